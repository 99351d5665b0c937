# SPDX-License-Identifier: BSD-3-Clause
"""A daemon under test, a client on a raw socket, and objects that lie where a test wants them. A test ends in one of four ways:
it passes, it is wrong (any exception but the two below), it is late, or the machine is broken."""
import errno
import functools
import itertools
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACED_AT_ONCE = 200
PATIENCE = 120.0  # seconds; a bound for what hangs, as sanitizer builds on a busy machine are slow


class Late(AssertionError):
    """A wait ran out, or a rate, a share or a time was missed. A busy machine can do that: such a test is tried again, alone."""


class Broken(AssertionError):
    """The machine has refused something that a test needs. The run says nothing about the daemon."""


NO_ROOM = 32 << 20  # bytes; a failure on a file system with less free says nothing
REFUSED = {errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE}


def no_room():
    """Which file system that the tests use is full?"""
    return next((path for path in (tempfile.gettempdir(), "/dev/shm") if os.path.isdir(path) and
                 shutil.disk_usage(path).free < NO_ROOM), None)


def judged(error):
    """The exception that says how the test ended, for one that it met."""
    if isinstance(error, (Late, Broken)) or not isinstance(error, Exception):
        return error
    full = no_room()
    if full:
        return Broken(f"no space in {full}; then: {error!r}")
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in REFUSED):
        return Broken(repr(error))
    if isinstance(error, (TimeoutError, subprocess.TimeoutExpired)):
        return Late(f"a wait ran out: {error}")
    return error


def in_time(condition, what):
    """Of a rate, a share or a time, which a busy machine can miss."""
    if not condition:
        raise Late(what)


def flashield_command():
    return os.environ.get("FLASHIELD_BIN", str(ROOT / "build" / "flashield"))


def daemon_flags():
    """Options that every daemon gets."""
    return os.environ.get("FLASHIELD_FLAGS", "").split()


def is_frugal():
    """Do the daemons under test have the index without a slot for each object?"""
    return "--index=frugal" in daemon_flags()


@functools.cache
def has_faults(command=None):
    """Only where there are fault points, a name that isn't one is an error."""
    done = subprocess.run([command or flashield_command(), "-u", "nobody", "-s", "/nonexistent/socket"], capture_output=True, check=False,
                          env=dict(os.environ, FLASHIELD_FAULTS="no_such_point=always"), timeout=PATIENCE)
    return done.returncode == 64


def driven_command():
    """A daemon with fault points, which a test can drive: the one under test if it has some."""
    return flashield_command() if has_faults() else os.environ.get("FLASHIELD_FAULTS_BIN", str(ROOT / "build" / "debug" / "flashield"))


@functools.cache
def version_of(command):
    return subprocess.run([command, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]


def memcached_version():
    """The version of the memcached that ours is compared with, as "1.6.18"."""
    return version_of(memcached_command())


def memcached_release():
    """N of its version 1.6.N."""
    return int(memcached_version().split(".")[2])


def as_memcached():
    """The options by which ours answers like that memcached."""
    return ["--compat-version", memcached_version()]


def memcached_command():
    return os.environ.get("MEMCACHED_BIN", "memcached")


def until(condition, what, patience=PATIENCE):
    """Asks again until condition() is true; returns what it returned."""
    end = time.monotonic() + patience
    while True:
        result = condition()
        if result:
            return result
        in_time(time.monotonic() < end, f"waited {patience} s for: {what}")
        time.sleep(0.01)


def breathe():
    """Of a load beside a test: leaves the machine to others for a moment. Nothing is waited for."""
    time.sleep(0.02)


class Countdown:
    """Of times to live that a test sets from its beginning on: what may be left of them now, however long the test was held up."""

    def __init__(self):
        self.began = time.monotonic()

    def words(self, seconds):
        """"t" and the seconds that may be left of so many."""
        passed = int(time.monotonic() - self.began) + 1
        return {b"t%d" % left for left in range(max(seconds - passed, 0), seconds + 1)}


def await_counts(client):
    """Until all slots are counted that a warm start has left to be counted while clients are served."""
    until(lambda: client.count("index_slots_uncounted") == 0, "the count of slots")


# Below the ports that the kernel gives to clients, so that none of them gets in between. A process of tests takes a block of them
# for its life, by a name that the kernel gives to one process at a time.
PORTS = range(20000, 32000)
BLOCK = 250


@functools.cache
def own_ports():
    """The ports of this process, in turn, and what holds them."""
    for first in PORTS[::BLOCK]:
        holder = socket.socket(socket.AF_UNIX)
        try:
            holder.bind(f"\0flashield-tests-{first}")
        except OSError:
            holder.close()
            continue
        return itertools.cycle(range(first, first + BLOCK)), holder
    raise Broken("each block of ports is taken")


def is_free(port):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(type=kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


def free_port():
    for port in itertools.islice(own_ports()[0], BLOCK):
        if is_free(port):
            return port
    raise Broken("no port is free")


class Daemon:
    """A process that serves on 127.0.0.1; `with` starts and stops it. One that is driven has fault points, and a socket by which a
    test places objects on flash, lets cleaner and keeper come to rest, and moves the clock (server/drive.h)."""

    def __init__(self, options, program=None, port=None, listen=True, stderr=None, environment=None, driven=False):
        self.program = program or (driven_command() if driven else flashield_command())
        self.driven = tempfile.TemporaryDirectory() if driven else None
        self.options = options
        self.port = port
        self.listen = listen
        self.stderr = stderr
        self.environment = environment  # None: the test's own
        self.process = None
        self.killed = False

    def command(self):
        # Figures over HTTP are asked for by the tests of them; all others would want the same port.
        flags = ["--metrics-listen=off"] + daemon_flags()
        command = [self.program, *([] if self.program == memcached_command() else flags), *self.options]
        if self.listen:
            command += ["-l", "127.0.0.1", "-p", str(self.port)]
        if os.geteuid() == 0 and "-u" not in self.options:
            command += ["-u", "nobody"]
        return command

    def start(self):
        chosen, self.port = not self.port, self.port or free_port()
        if self.driven:
            if not os.path.exists(self.program):
                pytest.skip(f"{self.program} is not built")
            self.environment = dict(self.environment or os.environ, FLASHIELD_DRIVE=self.drive_path())
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stderr=self.stderr,
                                        env=self.environment)
        if self.listen:
            until(lambda: self.answers(chosen), f"an answer of {self.program}")
        return self

    def answers(self, chosen=False):
        """chosen: the port was free just now, and is nobody's but this process's."""
        if self.process.poll() is not None:
            if chosen and not is_free(self.port):
                raise Broken(f"a stranger has taken port {self.port}")
            raise AssertionError(f"{self.command()} ended with {self.process.returncode}")
        try:
            with self.client() as client:
                if "binary" in self.options or "-S" in self.options:
                    client.send(b"\x80\x0b" + bytes(22))  # version
                    return client.reader.read(2) == b"\x81\x0b"
                return client.ask(b"version\r\n").startswith((b"VERSION", b"CLIENT_ERROR unauthenticated"))
        except OSError:
            return False

    def kill(self):
        """Ends it by SIGKILL; stop() then has nothing to do."""
        self.process.kill()
        self.process.wait()
        self.killed = True

    def stop(self, signal_number=signal.SIGTERM):
        """Its exit code."""
        if self.killed:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Late(f"waited {PATIENCE} s for the end of {self.command()}") from None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        assert self.stop() == 0, "not a clean end (sanitizers tell here too)"

    def client(self):
        return Client(self.port, daemon=self)

    def drive_path(self):
        return os.path.join(self.driven.name, "drive")

    def drive(self, line, answer):
        with Client(0, self.drive_path()) as client:
            assert client.ask(line + b"\n") == answer + b"\n"

    def place(self, keys):
        """Puts the objects of these keys, which are in DRAM, on flash."""
        for first in range(0, len(keys), PLACED_AT_ONCE):
            some = keys[first:first + PLACED_AT_ONCE]
            self.drive(b"place " + b" ".join(some), b"PLACED %d" % len(some))

    def place_all(self):
        """Puts all objects on flash that lie in DRAM alone and may go."""
        with Client(0, self.drive_path()) as client:
            assert client.ask(b"place\n").startswith(b"PLACED ")

    def rest(self):
        """Waits until cleaner and keeper have nothing to do."""
        self.drive(b"rest", b"RESTS")

    def clock(self, word):
        """Lets the clock "stand" or "go", or moves it forward by so many milliseconds."""
        self.drive(b"clock %s" % str(word).encode(), b"OK")

    def resident_bytes(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def stats(self, report=b""):
        with self.client() as client:
            return client.stats(report)


class Client:
    """A raw socket with a buffered reader."""

    def __init__(self, port, path=None, daemon=None, address="127.0.0.1"):
        self.daemon = daemon
        if path:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(PATIENCE)
            self.socket.connect(path)
        else:
            self.socket = socket.create_connection((address, port), PATIENCE)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.reader.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def line(self):
        return self.reader.readline()

    def ask(self, data):
        """One line for an answer."""
        self.send(data)
        return self.line()

    def all(self, data):
        """All that comes before the answer to a last command, or before the end of the stream."""
        self.send(data + b"mn\r\n")
        answer = b""
        while True:
            line = self.line()
            if line in (b"MN\r\n", b""):
                return answer
            answer += line

    def ends(self):
        """True when the daemon has closed the connection and nothing is left to read."""
        try:
            return self.reader.read(1) == b""
        except ConnectionResetError:
            return True

    def is_silent(self):
        """True when nothing is there to read now."""
        self.socket.settimeout(0)
        try:
            return not self.reader.peek(1)
        finally:
            self.socket.settimeout(PATIENCE)

    def take(self):
        """What is there now and was not read before, b"" when nothing is. For a client that doesn't use its reader."""
        self.socket.settimeout(0)
        try:
            return self.socket.recv(1 << 20)
        except BlockingIOError:
            return b""
        finally:
            self.socket.settimeout(PATIENCE)

    def values(self):
        """The answer to a get: [(key, flags, data, cas or None)]."""
        found = []
        while True:
            words = self.line().split()
            if words == [b"END"]:
                return found
            assert words and words[0] == b"VALUE", words
            data = self.reader.read(int(words[3]) + 2)
            assert data.endswith(b"\r\n")
            found.append((words[1], int(words[2]), data[:-2], int(words[4]) if len(words) > 4 else None))

    def get(self, *keys, command=b"get"):
        self.send(command + b" " + b" ".join(keys) + b"\r\n")
        return self.values()

    def set(self, key, value, flags=0, exptime=0, command=b"set", cas=None):
        head = b"%s %s %d %d %d" % (command, key, flags, exptime, len(value))
        tail = b"" if cas is None else b" %d" % cas
        return self.ask(head + tail + b"\r\n" + value + b"\r\n")

    def stats(self, report=b""):
        self.send(b"stats " + report + b"\r\n")
        rows = {}
        while True:
            line = self.line()
            if line == b"END\r\n":
                return rows
            if not line:
                raise ConnectionResetError("the daemon closed the connection amid a report")
            stat, name, value = line.decode().rstrip("\r\n").split(" ", 2)
            assert stat == "STAT"
            rows[name] = value

    def count(self, name, report=b"flash"):
        return int(self.stats(report)[name])


class Kind:
    """What an object is like. In the value, %key stands for its key."""

    def __init__(self, value, flags=0, key_length=0, copies=30):
        self.template = value
        self.flags = flags
        self.key_length = key_length
        self.copies = copies  # set at a time: the cleaner writes many of them to flash, some are evicted
        self.waiting = []  # keys that were set and may lie on flash by now

    def key(self):
        return (b"object-%d-" % next(serial)).ljust(self.key_length, b"k")

    def value(self, key):
        return self.template.replace(b"%key", key)

    def store(self, client):
        """With -M a set may be refused until the cleaner has made room."""
        key = self.key()
        until(lambda: client.set(key, self.value(key), self.flags) == b"STORED\r\n", "an object to be stored")
        return key


serial = itertools.count()
FILLER = 900
LARGE_FILLER = 3000  # with the frugal index it has a slot
SEGMENT = 64 << 10
ROOM = SEGMENT
ROOM_SECONDS = 0.3  # then it is filled nevertheless: the cleaner may have no reason to write, or not be able to


def fill(client, bytes_, size=FILLER):
    """Other objects, that push the ones before them out of DRAM."""
    value = b"f" * size
    client.all(b"".join(b"set filler-%d 0 0 %d noreply\r\n%s\r\n" % (next(serial), size, value)
                        for _ in range(bytes_ // size + 1)))


def has_room(client):
    """Is there free memory for what is set next? A daemon without a flash evicts for it."""
    rows = client.stats(b"flash")
    return rows["flash_enabled"] == "0" or int(rows["dram_budget"]) - int(rows["dram_bytes"]) >= ROOM


def fill_turn(client):
    """Fills the memory once, not faster than the cleaner makes room by writing segments: little is evicted. With the frugal index
    small objects share no segment with larger ones: there are fillers of both kinds then."""
    sizes = [FILLER, LARGE_FILLER] if is_frugal() else [FILLER]
    for _ in range(client.count("limit_maxbytes", b"") // (SEGMENT // 2)):
        end = time.monotonic() + ROOM_SECONDS
        while not has_room(client) and time.monotonic() < end:
            time.sleep(0.001)
        for size in sizes:
            fill(client, SEGMENT // 2 // len(sizes), size)


def on_flash(client, key):
    """Does this key's value come from flash? (A get counts one flash hit then.)"""
    before = client.count("flash_hits")
    return bool(client.get(key)) and client.count("flash_hits") == before + 1


def put_on_flash(client, prefix, exptime=0):
    """The key of an object that lies on flash, with the value "old"."""
    if client.daemon and client.daemon.driven:
        key = b"%s-%d" % (prefix, next(serial))
        assert client.set(key, b"old", exptime=exptime) == b"STORED\r\n"
        client.daemon.place([key])
        return key
    for turn in range(20):
        names = [b"%s-%d-%d" % (prefix, turn, n) for n in range(30)]
        for name in names:
            assert client.set(name, b"old", exptime=exptime) == b"STORED\r\n"
        fill_turn(client)
        found = [name for name in names if on_flash(client, name)]
        if found:
            return found[0]
    raise Late("no object got to flash")


class Placer:
    """Gives objects that lie in DRAM, or on flash."""

    def __init__(self, daemon, where, kinds):
        self.daemon = daemon
        self.where = where
        self.kinds = kinds
        self.client = daemon.client()

    def find(self, kind):
        while kind.waiting:
            key = kind.waiting.pop()
            if on_flash(self.client, key):
                return key
        return None

    def refill(self):
        for kind in self.kinds:
            if not kind.waiting:
                kind.waiting = [kind.store(self.client) for _ in range(kind.copies)]
        fill_turn(self.client)

    def put_many(self, kind, count):
        """Keys of so many objects of this kind. Who waits for the last may lose the first to an
        eviction: such a one is replaced."""
        if self.where == "flash" and self.daemon.driven:
            keys = [kind.store(self.client) for _ in range(count)]
            self.daemon.place(keys)
            return keys
        keys = []
        for _ in range(20):
            keys += [self.put(kind) for _ in range(count - len(keys))]
            keys = [key for key in keys if self.client.get(key)]
            if len(keys) == count:
                return keys
        raise Late(f"never {count} objects at a time")

    def put(self, kind):
        """The key of a new object of this kind, lying where it should."""
        if self.where == "dram":
            return kind.store(self.client)
        if self.daemon.driven:
            return self.put_many(kind, 1)[0]
        for _ in range(20):
            key = self.find(kind)
            if key:
                return key
            self.refill()
        raise Late("no object got to flash")
