# SPDX-License-Identifier: BSD-3-Clause
"""Study "device": the NAND writes of a drive for sequential and random writes in units of 1 to 512 MiB (the Flashield
paper's figure 1): speed, and device-level write amplification by the drive's own counters.

After section 2.1 of the paper: the space that is used is broken into regions of one unit each. Sequential: regions in
order of their addresses, and round again. Random: a region is drawn each time. Each write overwrites one whole region
with random data, O_DIRECT."""
import errno
import fcntl
import mmap
import os
import random
import stat
import struct
import time

import smart
from machine import size_text
from server import MIB, Trouble
from study import study

UNITS_MIB = [1 << i for i in range(10)]
FILL_BYTES = 8 * MIB
CALL_BYTES = 8 * MIB  # per write call: a larger unit takes several, one after the other
NEW_FILE_BYTES = 4 << 30  # where no size is given
BLKGETSIZE64 = 0x80081272
COUNTERS_AT_ALL = "write counters that could be read"


class Refused(Exception):
    """The target is not written to; the message tells the reason."""


class Target:
    """The file or device that is written to. It is nothing that somebody may miss, unless the command line says so. A
    path that isn't there becomes a file, which has no name from the start, so that no end of the bench leaves it
    behind. What is there is touched only with overwrite: a file, or a block device that nobody uses (it is held
    exclusively)."""

    def __init__(self, path, size, overwrite):
        flags = os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC
        self.fd = -1
        try:
            try:
                mode = os.stat(path).st_mode
            except FileNotFoundError:
                self.make(path, flags, size or NEW_FILE_BYTES)
                mode = stat.S_IFREG
            else:
                if not stat.S_ISREG(mode) and not stat.S_ISBLK(mode):
                    raise Refused(f"{path} is neither a file nor a block device")
                if not overwrite:
                    raise Refused(f"{path} is there already: --overwrite destroys what it holds")
                # O_EXCL on a block device makes sure that nobody else holds it, neither as a mount nor below another
                # device.
                self.fd = os.open(path, flags | (os.O_EXCL if stat.S_ISBLK(mode) else 0))
                self.bytes = size or self.size_of(mode)
                if stat.S_ISBLK(mode) and self.bytes > self.size_of(mode):
                    raise Refused(f"{path}: --size is {size_text(size)}, it has {size_text(self.size_of(mode))}")
            status = os.fstat(self.fd)
        except OSError as error:
            reasons = {errno.EBUSY: "it is mounted or otherwise in use", errno.EINVAL: "its file system knows no O_DIRECT"}
            raise Refused(f"{path}: {reasons.get(error.errno, error.strerror)}") from error
        # The path may have been replaced between the two calls: only the opened file counts.
        if stat.S_IFMT(status.st_mode) != stat.S_IFMT(mode):
            raise Refused(f"{path} changes while it is opened")
        self.number = status.st_rdev if stat.S_ISBLK(mode) else status.st_dev

    def make(self, path, flags, size):
        self.fd, self.bytes = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600), size
        os.unlink(path)
        disk = os.fstatvfs(self.fd)
        room = disk.f_bavail * disk.f_frsize
        if room < size:
            raise Refused(f"{path}: {size_text(size)} wanted, the file system has {size_text(room)} free")

    def size_of(self, mode):
        if stat.S_ISBLK(mode):
            return struct.unpack("Q", fcntl.ioctl(self.fd, BLKGETSIZE64, bytes(8)))[0]
        return os.fstat(self.fd).st_size


class Writer:
    """Overwrites regions with data that no drive can compress or has seen before. seconds has the time of write calls
    and fdatasync, without that of making the data."""

    def __init__(self, target, seed):
        self.target, self.random = target, random.Random(seed)
        self.buffer = mmap.mmap(-1, CALL_BYTES)  # at a page, as O_DIRECT wants it
        self.data = int.from_bytes(os.urandom(CALL_BYTES), "little")
        self.repeat = int.from_bytes((1).to_bytes(8, "little") * (CALL_BYTES // 8), "little")
        self.seconds = self.written = 0

    def renew(self):
        """Random data with one random word of 64 bits everywhere is new random data, at the speed of memory: a
        generator would slow the writes to a fast drive down."""
        self.data ^= self.repeat * self.random.getrandbits(64)
        self.buffer[:] = self.data.to_bytes(CALL_BYTES, "little")

    def region(self, offset, size):
        for at in range(offset, offset + size, CALL_BYTES):
            left = min(CALL_BYTES, offset + size - at)
            self.renew()
            with memoryview(self.buffer)[:left] as part:
                began, done = time.monotonic(), 0
                while done < left:
                    wrote = os.pwrite(self.target.fd, part[done:], at + done)
                    if wrote == 0:
                        raise Trouble("nothing more can be written")
                    done += wrote
                self.seconds += time.monotonic() - began
            self.written += left

    def job(self, drawn, unit, span, total):
        for number in range(-(-total // unit)):
            self.region((self.random.randrange(span // unit) if drawn else number % (span // unit)) * unit, unit)
        began = time.monotonic()
        os.fdatasync(self.target.fd)
        self.seconds += time.monotonic() - began


class Drive:
    """The counters of the drive below. The first reading finds out which it has; a drive that tells nothing isn't asked
    again."""

    def __init__(self, s, number, total):
        self.name, self.counts_host, self.counts_nand = smart.find_drive(number), False, False
        if not self.name:
            self.lacks(s, COUNTERS_AT_ALL, "no single drive lies below")
            return
        try:
            counters, why = smart.read(self.name)
        except smart.Untold as error:
            s.note(f"The drive is /dev/{self.name}.")
            self.lacks(s, COUNTERS_AT_ALL, str(error))
            return
        s.note(f"The drive is /dev/{self.name}, {counters.model or 'of an unknown model'}.")
        self.counts_host, self.counts_nand = counters.host == counters.host, counters.counts_nand()
        if not self.counts_nand:
            self.lacks(s, "NAND write counters" if self.counts_host else COUNTERS_AT_ALL, why)
            return
        s.note(f"The drive's counters: {', '.join(counters.sources)}.")
        if counters.step > 0.02 * total:
            s.note(f"The drive counts in steps of {size_text(counters.step)}: its figures are good to "
                   f"{100 * counters.step / total:.0f} %; a larger --total is better.")

    @staticmethod
    def lacks(s, what, why):
        s.note(f"This drive reports no {what}{f' ({why})' if why else ''}: device-level write amplification can't be "
               "measured here.")

    def read(self):
        try:
            return smart.read(self.name)[0] if self.counts_host or self.counts_nand else smart.Counters()
        except smart.Untold:
            return smart.Counters()


def used_space(size, utilisation):
    """Returns the bytes of whole fill units in the used space, or of the smallest unit when there is less than one."""
    used = int(size * utilisation)
    return used - used % (MIB if used < FILL_BYTES else FILL_BYTES)


def check(options, die):
    """Opens the target before anything is measured: a target that isn't accepted is bad usage."""
    if not options.path:
        die("device: --path names the file or block device that is overwritten; --size, --utilisation and --total say how "
            "much, --overwrite that what it holds may go")
    try:
        options.target = Target(options.path, options.size, options.overwrite)
    except Refused as refused:
        die(f"device: {refused}")
    if used_space(options.target.bytes, options.utilisation) == 0:
        die(f"device: {options.path}: {100 * options.utilisation:.0f} % of it are less than the smallest unit, 1 MiB")


@study("device", "sequential and random writes of 1 to 512 MiB to a drive, and its counters: --path")
def device(s):
    options, target = s.options, s.options.target
    total, span = options.total or target.bytes, used_space(target.bytes, options.utilisation)
    s.describe("Writes of large units to the drive itself",
               f"{options.path}: {100 * options.utilisation:.0f} % of its {size_text(target.bytes)} are broken into regions "
               "of one unit; each write overwrites one with random data (O_DIRECT): in order and round again, or a random "
               f"one. {size_text(total)} per row; --rounds doesn't count here. Host: bytes written by the drive's count per "
               "byte written here (more than 1: others write too). NAND: bytes written to flash per byte of the host. The "
               "paper's drive (Intel 535, 480 GB, 90 % used, 4 TB per row): nearly 8 for random units of 1 MB, 1 from 8 MB "
               "sequential and 512 MB random on.",
               {"mb_s": ("MB/s", -1), "host_share": ("host", 3), "dlwa": ("NAND", 3)}, sampled=False)
    drive = Drive(s, target.number, total)
    # All of the used space holds data before anything is measured, as in a cache that is full.
    s.progress(f"device: filling {size_text(span)}")
    Writer(target, 0).job(False, FILL_BYTES if span % FILL_BYTES == 0 else MIB, span, span)
    for pattern in ("sequential", "random"):
        for unit in UNITS_MIB:
            if unit * MIB > span:
                s.note(f"Units of {unit} MiB and more are larger than the space that is used.")
                break
            row = f"{pattern}, {unit} MiB"
            s.progress(f"device: {row}")
            before, writer = drive.read(), Writer(target, unit)
            writer.job(pattern == "random", unit * MIB, span, total)
            after = drive.read()
            s.add(row, mb_s=writer.written / 1e6 / writer.seconds)
            if drive.counts_host:
                s.add(row, host_share=(after.host - before.host) / writer.written)
            if drive.counts_nand:
                s.add(row, dlwa=smart.amplification(before, after))
