# SPDX-License-Identifier: BSD-3-Clause
"""A wall clock that a test sets, under daemons of its own: wallclock.c from Python.

    clock = WallClock(library_in(tmp_path), tmp_path)
    daemon = start(..., environment=clock.environment)
    clock.ahead = 86400  # seconds; at once, for all of them
"""
import mmap
import os
import pathlib
import struct
import subprocess

SOURCE = pathlib.Path(__file__).with_name("wallclock.c")


def library_in(folder):
    """Compiles it there, and returns its path."""
    library = pathlib.Path(folder) / "wallclock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, SOURCE], check=True)
    return library


class WallClock:
    """Its file is made in folder."""

    def __init__(self, library, folder):
        path = pathlib.Path(folder) / "wallclock"
        path.write_bytes(bytes(8))
        with open(path, "r+b") as opened:
            self.file = mmap.mmap(opened.fileno(), 8)
        self.environment = dict(os.environ, LD_PRELOAD=str(library), WALLCLOCK_FILE=str(path))

    @property
    def ahead(self):
        return struct.unpack("=q", self.file[:])[0]

    @ahead.setter
    def ahead(self, seconds):
        self.file[:] = struct.pack("=q", seconds)
