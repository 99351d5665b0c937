# SPDX-License-Identifier: BSD-3-Clause
"""A slow, hanging or failing drive under a daemon of a test: tools/slowdrive/slowdrive.h from Python.

    drive = SlowDrive(tmp_path, flash_path)
    daemon = start("--flash-path", str(flash_path), ..., environment=drive.environment)
    drive.reads.hang = 1
    until(lambda: drive.reads.held == 3, "three reads to wait")
"""
import mmap
import os
import pathlib
import struct

from helpers import flashield_command

LIBRARY = pathlib.Path(flashield_command()).resolve().parent / "slowdrive.so"
MAGIC = struct.unpack("<Q", b"slowdrv1")[0]
FIELDS = ["per_second", "latency_us", "parallel", "hang", "fail_per_mille", "done", "bytes", "failed", "held",
          "held_most"]
WORDS = 2 + 2 * len(FIELDS)


class Side:
    """One direction: attributes are the fields of struct slowdrive_side."""

    def __init__(self, words, first):
        self.__dict__.update(words=words, first=first)

    def __getattr__(self, name):
        if name not in FIELDS:
            raise AttributeError(name)
        return self.words[self.first + FIELDS.index(name)]

    def __setattr__(self, name, value):
        self.words[self.first + FIELDS.index(name)] = value


class SlowDrive:
    """The control file of one program, made in folder, for the I/O of the file flash_path."""

    def __init__(self, folder, flash_path):
        path = pathlib.Path(folder) / "slowdrive.control"
        path.write_bytes(struct.pack(f"={WORDS}Q", MAGIC, *[0] * (WORDS - 1)))
        with open(path, "r+b") as opened:
            self.words = memoryview(mmap.mmap(opened.fileno(), WORDS * 8)).cast("Q")
        self.reads = Side(self.words, 2)
        self.writes = Side(self.words, 2 + len(FIELDS))
        self.environment = dict(os.environ, LD_PRELOAD=str(LIBRARY), SLOWDRIVE_FILE=str(flash_path),
                                SLOWDRIVE_CONTROL=str(path))

    @property
    def attached(self):
        return self.words[1]
