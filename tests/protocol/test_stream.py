# SPDX-License-Identifier: BSD-3-Clause
"""Connections as streams: pipelines, pieces, slow readers, endings."""
import random
import select
import socket
import threading

import pytest

from helpers import PATIENCE, Client, Daemon, Kind, in_time, until

NAMED = Kind(b"value of %key" + b"." * 200, copies=150)
KINDS = [NAMED]


def test_pipeline_of_a_thousand_commands(client):
    """1000 commands in one write are answered in order."""
    client.send(b"".join(b"set p%d 0 0 5\r\n%05d\r\nget p%d\r\n" % (i, i, i) for i in range(500)))
    for i in range(500):
        assert client.line() == b"STORED\r\n"
        assert client.values() == [(b"p%d" % i, 0, b"%05d" % i, None)]


def test_multiget_of_a_hundred_keys(placed):
    """100 keys of one get are answered in order."""
    keys = placed.put_many(NAMED, 100)
    found = placed.client.get(*keys)
    assert [(key, value) for key, _, value, _ in found] == [(key, NAMED.value(key)) for key in keys]


def test_pipelined_gets_between_changes(placed):
    """Gets in a pipeline see neither more nor less than what was set before them."""
    keys = placed.put_many(NAMED, 20)
    placed.client.send(b"".join(b"get %s\r\nset %s 0 0 3\r\nnew\r\nget %s\r\n" % (key, key, key) for key in keys))
    for key in keys:
        assert placed.client.values() == [(key, 0, NAMED.value(key), None)]
        assert placed.client.line() == b"STORED\r\n"
        assert placed.client.values() == [(key, 0, b"new", None)]


def test_byte_by_byte(client):
    """Commands may come in pieces of one byte."""
    for byte in b"set bytes 3 0 4\r\nab\r\n\r\nget bytes nothing\r\n":
        client.send(bytes([byte]))
    assert client.line() == b"STORED\r\n"
    assert client.values() == [(b"bytes", 3, b"ab\r\n", None)]


def test_pieces_of_a_large_value(client):
    """A value may come in many pieces, commands right behind it."""
    value = random.Random(1).randbytes(900_000)
    data = b"set large 0 0 900000\r\n" + value + b"\r\nget large\r\nversion\r\n"
    for at in range(0, len(data), 70_001):
        client.send(data[at:at + 70_001])
    assert client.line() == b"STORED\r\n"
    assert client.values() == [(b"large", 0, value, None)]
    assert client.line().startswith(b"VERSION")


def test_long_multiget_line(client):
    """A get may have more keys than the input buffer has room."""
    client.set(b"many", b"x")
    assert len(client.get(*[b"many"] * 50_000)) == 50_000


def test_long_multiget_gives_way(start):
    """A get of millions of keys takes its worker in many short turns; the others are served between them."""
    daemon = start("-t", "1")
    with daemon.client() as greedy, daemon.client() as other:
        greedy.send(b"get" + b" a" * 5_000_000 + b"\r\n")
        answers = 0
        while not select.select([greedy.socket], [], [], 0)[0]:
            assert other.ask(b"version\r\n").startswith(b"VERSION")
            answers += 1
        assert greedy.values() == []
        assert other.count("conn_yields", b"") >= 2000
        assert answers >= 10


def test_long_multiget_in_order(start):
    """Turns in the middle of a line change nothing: each key once, in order, and then the next command."""
    daemon = start("-t", "1", "-R", "1")
    with daemon.client() as client:
        client.all(b"".join(b"set o%d 0 0 2 noreply\r\nxx\r\n" % i for i in range(0, 5000, 3)))
        client.send(b"get " + b" ".join(b"o%d" % i for i in range(5000)) + b"\r\ngets o0 o1\r\nversion\r\n")
        assert [key for key, *_ in client.values()] == [b"o%d" % i for i in range(0, 5000, 3)]
        assert len(client.values()) == 1
        assert client.line().startswith(b"VERSION")


def test_quit_answers_what_came_before(placed):
    """quit closes after the answers to what came before it; what follows is not run."""
    key = placed.put(NAMED)
    with placed.daemon.client() as other:
        other.send(b"get %s\r\nquit\r\nset %s 0 0 1\r\nx\r\n" % (key, key))
        assert other.values() == [(key, 0, NAMED.value(key), None)]
        assert other.ends()
    assert placed.client.get(key)[0][2] == NAMED.value(key)


def test_half_closed_connection_gets_its_answers(placed):
    """A client may shut its side down and still read all answers."""
    keys = placed.put_many(NAMED, 20)
    with placed.daemon.client() as other:
        other.send(b"get " + b" ".join(keys) + b"\r\n")
        other.socket.shutdown(socket.SHUT_WR)
        assert len(other.values()) == 20
        assert other.ends()


def test_drop_in_a_value_stores_nothing(dram_daemon, client):
    """A connection that goes away within a value leaves the old one, and no memory."""
    client.set(b"half", b"old")
    before = client.count("curr_connections", b"")
    with dram_daemon.client() as other:
        other.send(b"set half 0 0 500000\r\n" + b"x" * 1000)
    until(lambda: client.count("curr_connections", b"") == before, "the connection's end")
    assert client.get(b"half")[0][2] == b"old"


def test_drop_with_reads_in_flight(placed):
    """Connections that go away while their answers are read from flash do no harm."""
    keys = placed.put_many(NAMED, 20)
    for _ in range(20):
        with placed.daemon.client() as other:
            other.send(b"get " + b" ".join(keys) + b"\r\nincr %s 1\r\n" % keys[0])
    assert len(placed.client.get(*keys)) == 20


@pytest.mark.parametrize("seed", range(10))
def test_garbage(dram_daemon, seed):
    """Random bytes are answered with errors or a closed connection, never with silence for all."""
    source = random.Random(seed)
    words = [b"get ", b"set ", b"a ", b"0 ", b"1 ", b"\r\n", b"\n", b"noreply", b"-1 ", b"incr ", b"gat ", b"stats "]
    for _ in range(20):
        with dram_daemon.client() as client:
            data = b"".join(source.choice(words) if source.random() < 0.8 else source.randbytes(5) for _ in range(200))
            try:
                client.send(data)
                client.socket.shutdown(socket.SHUT_WR)
                client.reader.read()
            except OSError:
                pass
    assert dram_daemon.process.poll() is None
    with dram_daemon.client() as client:
        assert client.ask(b"version\r\n").startswith(b"VERSION")


def test_first_byte_chooses_the_protocol(client):
    """A connection that begins with the binary protocol's magic byte speaks it to its end."""
    client.send(b"\x80\x0a" + bytes(22))
    assert client.reader.read(24) == b"\x81\x0a" + bytes(22)
    client.send(b"version\r\nversion\r\nversion\r\n")
    assert client.ends()


@pytest.mark.clock
def test_slow_reader_takes_bounded_memory(start):
    """Who asks for 400 MB and reads nothing costs a few MB; the others are served."""
    daemon = start("-m", "32")
    value = b"v" * 100_000
    with daemon.client() as slow, daemon.client() as other:
        other.set(b"large", value)
        before = daemon.resident_bytes()
        slow.socket.settimeout(0.5)
        try:
            for _ in range(40):
                slow.send(b"get large\r\n" * 100)
        except TimeoutError:
            pass
        assert other.ask(b"version\r\n").startswith(b"VERSION")
        if "san" not in daemon.program:  # their own memory comes on top
            in_time(daemon.resident_bytes() - before < 8 << 20, "the reader's memory")
        slow.socket.settimeout(PATIENCE)
        for _ in range(1000):
            assert slow.values() == [(b"large", 0, value, None)]


@pytest.mark.clock
def test_slow_reader_of_flash(start, flash_options):
    """The same from flash: reads stop when nobody takes their answers."""
    daemon = start(*flash_options)
    with daemon.client() as client, daemon.client() as slow:
        value = b"v" * 900
        for i in range(12_000):
            client.send(b"set f%d 0 0 900 noreply\r\n%s\r\n" % (i, value))
            if i % 40 == 0:
                client.all(b"")
        before = daemon.resident_bytes()
        slow.socket.settimeout(0.5)
        try:
            for _ in range(20):
                slow.send(b"".join(b"get f%d\r\n" % i for i in range(12_000)))
        except TimeoutError:
            pass
        if "san" not in daemon.program:
            in_time(daemon.resident_bytes() - before < 16 << 20, "the reader's memory")
        assert client.ask(b"version\r\n").startswith(b"VERSION")


def connects(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@pytest.mark.parametrize("size, flash", [(100_000, False), (900, True)])
def test_many_that_do_not_read(open_folder, tmp_path, size, flash):
    """100 clients ask for 300 MB and read nothing, while another overwrites what they asked for: the
    daemon's memory stays within its limit, what it is beside that, and per connection a value and
    64 KiB. When they read, nothing is missing, out of order or mixed up."""
    memory, keys = (4, 12_000) if flash else (24, 100)
    connections, turns = 100, 1 if flash else 3
    path = open_folder / "socket"
    options = ["-s", str(path), "-a", "0777", "-m", str(memory), "-t", "2"]
    if flash:
        options += ["--flash-path", str(tmp_path / "flash"), "--flash-size", "128m", "--segment-size", "64k",
                    "--admission", "all"]

    def value(key, turn):
        return (b"%s in turn %d;" % (key, turn)).ljust(32) * (size // 32)

    def overwrite(turn):
        for i in range(keys):
            key = b"n%d" % i
            assert other.set(key, value(key, turn)) == b"STORED\r\n"

    def wanted(n):
        return [[b"n%d" % ((n * 317 + i * 5 + j) % keys) for j in range(5)] for i in range((1_000_000 if flash else 3_000_000) // size // 5)]

    with Daemon(options, listen=False) as daemon:
        until(lambda: connects(path), "the socket")
        clients = [Client(0, str(path)) for _ in range(connections)]
        with Client(0, str(path)) as other:
            overwrite(0)
            if flash:  # a busy machine's cleaner may not keep up with one round
                until(lambda: other.count("flash_items") >= 100 or overwrite(0), "objects on flash")
            for turn in range(turns):
                for n in range(turn, connections, turns):
                    clients[n].send(b"".join(b"get " + b" ".join(some) + b"\r\n" for some in wanted(n)))
                assert other.ask(b"version\r\n").startswith(b"VERSION")
                overwrite(turn + 1)
            if "asan" not in daemon.program:  # where freed memory is kept
                bound = memory * 1.1 * 2**20 + 24 * 2**20 + connections * (size + 64 * 2**10)
                in_time(daemon.resident_bytes() <= bound, "the memory of all")
            hits = 0
            for n, client in enumerate(clients):
                for some in wanted(n):
                    found = client.values()
                    hits += len(found)
                    rest = iter(some)
                    assert all(key in rest for key, *_ in found)  # in order; some may be evicted
                    assert all(data in [value(key, turn) for turn in range(turns + 1)] for key, _, data, _ in found)
                assert client.ask(b"version\r\n").startswith(b"VERSION")
                client.close()
            assert hits > 0


def test_many_connections(start):
    """500 connections at a time, each served."""
    daemon = start("-c", "600")
    clients = [daemon.client() for _ in range(500)]
    for i, client in enumerate(clients):
        client.send(b"set c%d 0 0 1\r\nx\r\nget c%d\r\n" % (i, i))
    for i, client in enumerate(clients):
        assert client.line() == b"STORED\r\n"
        assert client.values() == [(b"c%d" % i, 0, b"x", None)]
        client.close()


def test_kill_under_load_exits_with_zero(start, flash_options):
    """SIGTERM ends the daemon with exit code 0, whatever is in flight."""
    daemon = start(*flash_options)
    ready, threads = threading.Barrier(5), []

    def load(seed):
        source = random.Random(seed)
        try:
            with daemon.client() as client:
                ready.wait(PATIENCE)
                while True:
                    client.all(b"".join(b"set l%d 0 0 900 noreply\r\n%s\r\nget l%d\r\n" % (
                        source.randrange(9000), b"x" * 900, source.randrange(9000)) for _ in range(50)))
                    assert client.ask(b"version\r\n")
        except (OSError, AssertionError):
            pass

    for seed in range(4):
        threads.append(threading.Thread(target=load, args=(seed,)))
        threads[-1].start()
    ready.wait(PATIENCE)
    until(lambda: daemon.stats(b"flash")["segments_written"] != "0", "a segment")
    assert daemon.stop() == 0
    for thread in threads:
        thread.join()
