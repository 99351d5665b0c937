# SPDX-License-Identifier: BSD-3-Clause
"""More clients, commands and bytes than there is room for: memory stays bounded, and the others are served. The outcomes are
those of packaging/doc/pressure.md."""
import contextlib
import os
import pathlib
import resource
import threading

import pytest

from helpers import PATIENCE, flashield_command, until

MIB = 1 << 20
SANITIZED = pytest.mark.skipif("san" in flashield_command(), reason="a sanitizer's own memory comes on top")


# ---- memory --------------------------------------------------------------------------------------------


class Group:
    """A memory cgroup, of either version, in the test's own."""

    def __init__(self):
        root = pathlib.Path("/sys/fs/cgroup")
        self.parent = root / "memory" if (root / "memory").is_dir() else root
        self.path = self.parent / f"flashield-test-{os.getpid()}"
        self.path.mkdir()
        self.limit = self.path / ("memory.limit_in_bytes" if self.parent != root else "memory.max")

    def used(self):
        return int((self.path / ("memory.usage_in_bytes" if "limit" in self.limit.name else "memory.current")).read_text())

    def end(self):
        """Whatever is left in it goes back to where it came from."""
        for pid in (self.path / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (self.parent / "cgroup.procs").write_text(pid)
        self.path.rmdir()


@pytest.fixture
def group():
    try:
        made = Group()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    try:
        yield made
    finally:
        made.end()


@SANITIZED
def test_a_cgroup_of_the_documented_size_is_enough(group, start, open_folder):
    """-m 32 with a limit of 1.1 x 32 + 24 MiB: four times as many objects as fit are set, and nothing kills the daemon. Data of
    the flash passes the page cache by."""
    daemon = start("-m", "32", "-t", "2", "--flash-path", str(open_folder / "flash"), "--flash-size", "64m", "--admission", "all")
    value = b"v" * 1000
    try:
        group.limit.write_text(str(int(1.1 * 32 + 24) * MIB))
        (group.path / "cgroup.procs").write_text(str(daemon.process.pid))
    except OSError as error:
        pytest.skip(f"this cgroup limits nothing: {error}")
    with daemon.client() as client:
        for first in range(0, 4 * 32 * 1000, 500):
            client.all(b"".join(b"set key-%d 0 0 1000 noreply\r\n%s\r\n" % (number, value) for number in range(first, first + 500)))
        assert client.count("curr_items", b"") > 10000
        assert group.used() > 8 * MIB  # it counts
    assert daemon.process.poll() is None


# ---- connections ---------------------------------------------------------------------------------------


IDLE = 3000
IDLE_BYTES = 4096  # of each, once it has been answered


@pytest.fixture
def descriptors():
    """Enough of them for so many clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < IDLE + 200:
        pytest.skip("too few descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, IDLE + 200), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@SANITIZED
@pytest.mark.usefixtures("descriptors")
def test_thousands_of_idle_connections_cost_a_page_each(start):
    """They have been answered once. Others are served."""
    daemon = start("-m", "64", "-c", str(IDLE + 100), "-t", "2")
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(daemon.client())
        assert first.set(b"key", b"value") == b"STORED\r\n"
        before = daemon.resident_bytes()
        clients = [stack.enter_context(daemon.client()) for _ in range(IDLE)]
        for client in clients:
            client.send(b"get key\r\n")
        for client in clients:
            assert client.values() == [(b"key", 0, b"value", None)]
        assert first.count("curr_connections", b"") == IDLE + 1
        assert daemon.resident_bytes() - before < IDLE * IDLE_BYTES
        assert first.get(b"key")


def test_clients_that_vanish_in_mid_value_leave_nothing(start):
    """Three times as much as memory holds is announced and half sent, again and again: it is given back, and others are served."""
    daemon = start("-m", "32", "-t", "2")
    half = b"v" * (MIB // 2)
    with daemon.client() as other:
        assert other.set(b"key", b"value") == b"STORED\r\n"
        for _ in range(5):
            with contextlib.ExitStack() as stack:
                for number in range(20):
                    stack.enter_context(daemon.client()).send(b"set v-%d 0 0 %d\r\n" % (number, MIB - 1000) + half)
                assert other.set(b"another", b"value") == b"STORED\r\n"
            until(lambda: other.count("curr_connections", b"") == 1, "the connections' end")
        for number in range(20):
            assert other.get(b"v-%d" % number) == []
        assert other.count("curr_items", b"") <= 2
        assert other.count("dram_bytes") < MIB


# ---- commands ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command, answer", [(b"get key\r\n", b"VALUE key 0 5\r\nvalue\r\nEND\r\n"), (b"mn\r\n", b"MN\r\n"),
                                             (b"set key 0 0 5\r\nvalue\r\n", b"STORED\r\n"), (b"bogus\r\n", b"ERROR\r\n")],
                         ids=["get", "mn", "set", "error"])
def test_a_pipeline_of_a_hundred_thousand_commands(start, command, answer):
    """In one piece: each is answered in its turn, and another client of the same worker needn't wait for the last."""
    daemon, count = start("-m", "8", "-t", "1"), 100000
    with daemon.client() as client, daemon.client() as other:
        assert client.set(b"key", b"value") == b"STORED\r\n"
        sender = threading.Thread(target=client.send, args=(command * count,))
        sender.start()
        assert client.reader.read(len(answer)) == answer
        assert other.ask(b"mn\r\n") == b"MN\r\n"  # while most of the answers wait for their reader
        got = client.reader.read(len(answer) * (count - 1))
        sender.join(PATIENCE)
        assert got == answer * (count - 1)


LIMIT = MIB  # -I


def test_values_and_keys_at_their_limits(start):
    """The largest key with the largest value is stored; a byte more gets memcached's error, and the connection goes on."""
    daemon = start("-m", "16", "-t", "1")
    key = b"k" * 250
    with daemon.client() as client:
        def largest():
            low, high = LIMIT // 2, LIMIT
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if client.set(key, b"v" * middle) == b"STORED\r\n" else (low, middle)
            return low

        most = largest()
        assert LIMIT - 1024 < most < LIMIT
        assert client.set(key, b"v" * most) == b"STORED\r\n"
        assert client.get(key)[0][2] == b"v" * most
        assert client.set(key, b"v" * (most + 1)) == b"SERVER_ERROR object too large for cache\r\n"
        assert client.get(key) == []
        assert client.set(key + b"k", b"value") == b"CLIENT_ERROR bad command line format\r\n"
