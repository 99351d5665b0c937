# SPDX-License-Identifier: BSD-3-Clause
"""UDP: frames, answers of several datagrams, what is dropped; text and binary; objects in DRAM and on flash."""
import random
import socket
import struct
import subprocess

import pytest

from conftest import FLASH
from helpers import (FILLER, PATIENCE, Daemon, Kind, Placer, fill_turn, flashield_command, free_port, on_flash,
                     until)

HEADER = struct.Struct(">HHHH")
MOST = 1400 - HEADER.size
KINDS = [Kind(b"of %key"), Kind(b"%key" + b"v" * 1500, key_length=100)]


class UdpClient:
    """Sends requests, puts answers together."""

    def __init__(self, port, host="127.0.0.1"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.socket.settimeout(PATIENCE)
        self.socket.connect((host, port))
        self.id = random.randrange(1 << 16)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def frame(self, data, sequence=0, total=1, reserved=0):
        self.id = (self.id + 1) & 0xFFFF
        return HEADER.pack(self.id, sequence, total, reserved) + data

    def send(self, data, **fields):
        self.socket.send(self.frame(data, **fields))

    def answer(self):
        """The next message. Its datagrams are whole, in order, and no longer than they may be."""
        payload, total, expected = b"", 1, 0
        while expected < total:
            datagram = self.socket.recv(65536)
            number, sequence, total, reserved = HEADER.unpack_from(datagram)
            assert (number, sequence, reserved) == (self.id, expected, 0)
            assert HEADER.size < len(datagram) <= 1400
            assert sequence == total - 1 or len(datagram) == 1400
            payload += datagram[HEADER.size:]
            expected += 1
        return payload

    def ask(self, data, **fields):
        self.send(data, **fields)
        return self.answer()

    def silent(self, *datagrams):
        """Are these answered by nothing? What is asked after them is the next that is answered, as one client's
        datagrams go to one worker."""
        for datagram in datagrams:
            self.socket.send(datagram)
        return self.ask(b"version\r\n").startswith(b"VERSION")


def value_line(key, value, flags=0):
    return b"VALUE %s %d %d\r\n%s\r\n" % (key, flags, len(value), value)


@pytest.fixture(scope="module")
def served():
    """A daemon with UDP on the port of TCP."""
    port = free_port()
    with Daemon(["-U", str(port), "-m", "64", "-t", "2"], port=port) as daemon:
        yield daemon


@pytest.fixture
def udp(served):
    with UdpClient(served.port) as client:
        yield client


# ---- what is dropped

def test_garbage_is_dropped(served, udp):
    """No header, half of one, one alone: no answer, counted."""
    bad = [b"", b"x", b"\0" * 7, b"\0" * 8, HEADER.pack(7, 0, 1, 0)]
    before = int(served.stats(b"flash")["udp_requests_dropped"])
    assert udp.silent(*bad)
    assert int(served.stats(b"flash")["udp_requests_dropped"]) == before + len(bad)


def test_requests_in_parts(served, udp):
    """The first part is told that there is no such thing, as protocol.txt's frame would allow; others get nothing."""
    refusal = b"SERVER_ERROR multi-packet request not supported\r\n"
    assert udp.ask(b"get a\r\n", total=2) == refusal
    assert udp.silent(*[udp.frame(b"get a\r\n", sequence=s, total=t) for s, t in ((1, 2), (0, 0), (5, 9), (65535, 65535))])


def test_incomplete_commands(udp):
    """A line or a value that doesn't end with its datagram is nothing, and the next datagram starts anew."""
    assert udp.silent(udp.frame(b"get a"), udp.frame(b"set half 0 0 3\r\nxy"), udp.frame(b"set half 0 0 3\r\n"),
                      udp.frame(b"\x80\x0b\x00"))
    assert udp.ask(b"get half\r\n") == b"END\r\n"


@pytest.mark.parametrize("options", [["-S", "-B", "binary"], ["-Y", "/dev/null"]])
def test_no_authentication(memcached, options):
    """A datagram can't log in: refused at the start, in memcached's words and with its exit code."""
    ends = [subprocess.run([program, *options, "-p", "0", "-U", str(free_port()), "-u", "nobody"], capture_output=True,
                           timeout=PATIENCE, check=False) for program in (flashield_command(), memcached.program)]
    assert ends[0].returncode == ends[1].returncode == 64
    assert b"UDP" in ends[0].stderr
    assert ends[0].stderr == ends[1].stderr


def test_random_bytes(served, udp):
    """Whatever comes, it goes on."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(300):
        data = chance.randbytes(chance.randrange(200))
        if chance.random() < 0.7:
            data = HEADER.pack(chance.randrange(1 << 16), 0, 1, 0) + data
        with UdpClient(served.port) as other:
            other.socket.send(data)
    with served.client() as client:
        assert client.ask(b"version\r\n").startswith(b"VERSION")
    assert udp.ask(b"version\r\n").startswith(b"VERSION")


def test_servers_do_not_answer_each_other(served, udp):
    """A datagram from our own port's number would begin an endless exchange: dropped."""
    before = int(served.stats(b"flash")["udp_requests_dropped"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.2", served.port))
        other.sendto(udp.frame(b"version\r\n"), ("127.0.0.1", served.port))
        until(lambda: int(served.stats(b"flash")["udp_requests_dropped"]) == before + 1, "that it is dropped")


@pytest.mark.parametrize("command", [b"quit\r\n", b"set quiet 0 0 1 noreply\r\nx\r\n", b"flush_all 1000 noreply\r\n"])
def test_no_answer(udp, command):
    """What has no answer over TCP has no datagram."""
    assert udp.silent(udp.frame(command))


def test_commands_that_need_a_stream(udp):
    """watch is refused."""
    assert udp.ask(b"watch\r\n") == b"WATCHER_FAILED failed to add log watcher\r\n"


def test_too_large_value(udp):
    """The rest of a value that is refused can't come: nothing waits for it, and as the answer would come behind it, there
    is none, as with memcached."""
    udp.send(b"set large 0 0 2000000\r\nx")
    assert udp.ask(b"get large\r\n") == b"END\r\n"


def test_answers_that_hold_too_much(start):
    """A multiget of what no memory has room for is dropped and counted; smaller ones are answered."""
    port = free_port()
    daemon = start("-U", str(port), "-m", "64", "-t", "1")
    with daemon.client() as client, UdpClient(port) as udp:
        for i in range(20):
            assert client.set(b"large-%d" % i, b"v" * 1000000) == b"STORED\r\n"
        udp.send(b"get " + b" ".join(b"large-%d" % i for i in range(20)) + b"\r\n")
        until(lambda: client.count("udp_answers_dropped") == 1, "that it is dropped")
        client.set(b"small", b"v" * 5000)
        for _ in range(20):
            assert udp.ask(b"get small\r\n") == value_line(b"small", b"v" * 5000) + b"END\r\n"


# ---- what is answered

def test_like_tcp(served, udp):
    """Single commands are answered as over TCP, and change the same objects."""
    with served.client() as tcp:
        for data in (b"set a 5 0 3\r\nabc\r\n", b"get a\r\n", b"gets a\r\n", b"incr a 1\r\n", b"get missing\r\n", b"bogus\r\n",
                     b"\r\n", b"append a 0 0 2\r\nde\r\n", b"get a\r\n", b"mg a v f s\r\n", b"touch a 0\r\n",
                     b"set a 0 0 1\r\nxyz\r\n", b"get " + b"k" * 251 + b"\r\n", b"delete a\r\n", b"delete a\r\n"):
            by_udp = udp.ask(data)
            if data.startswith((b"get", b"mg", b"bogus", b"\r\n")):
                assert by_udp == tcp.all(data)
        assert udp.ask(b"set u 0 0 1\r\nx\r\n") == b"STORED\r\n"
        assert tcp.get(b"u") == [(b"u", 0, b"x", None)]


@pytest.mark.parametrize("request_", [b"version\r\n", b"get a\r\n", b"get missing\r\n", b"bogus\r\n", b"mn\r\n", b"stats bogus\r\n",
                                      b"set a 0 0 3\r\nabc\r\n", b"touch a 0\r\n", b"delete nothing\r\n"])
def test_datagrams_as_memcached(start, memcached, request_):
    """Short answers are memcached's datagrams, byte for byte."""
    datagrams = []
    for program in None, memcached.program:
        port = free_port()
        daemon = start("-U", str(port), program=program)
        with daemon.client() as client:
            client.set(b"a", b"abc")
        with UdpClient(port) as udp:
            udp.socket.send(HEADER.pack(4711, 0, 1, 0) + request_)
            datagrams.append(udp.socket.recv(65536))
    assert datagrams[0] == datagrams[1]


def test_ignored_fields(udp):
    """As memcached: with a total of 1, neither sequence number nor reserved bytes matter."""
    assert udp.ask(b"version\r\n", sequence=5).startswith(b"VERSION")
    assert udp.ask(b"version\r\n", reserved=77).startswith(b"VERSION")


@pytest.mark.parametrize("length", [0, MOST - 100, MOST - 31, MOST - 30, MOST - 29, 2 * MOST, 100000, 1000000])
def test_answers_of_any_length(served, udp, length):
    """Values around the size of a datagram, and of hundreds of them."""
    value = random.Random(length).randbytes(length)
    with served.client() as client:
        assert client.set(b"sized", value) == b"STORED\r\n"
    assert udp.ask(b"get sized\r\n") == value_line(b"sized", value) + b"END\r\n"


def test_multiget_is_one_message(served, udp):
    """All of an answer is one numbered message."""
    keys = [b"many-%d" % i for i in range(100)]
    with served.client() as client:
        for key in keys:
            client.set(key, key * 50)
    expected = b"".join(value_line(key, key * 50) for key in keys) + b"END\r\n"
    assert udp.ask(b"get " + b" ".join(keys) + b"\r\n") == expected


def test_pipelines(udp):
    """Several commands in a datagram: their answers in one message. More than a turn's (-R), too."""
    assert udp.ask(b"set p 0 0 1\r\nx\r\n" + b"get p\r\n" * 500) == b"STORED\r\n" + (value_line(b"p", b"x") + b"END\r\n") * 500


def test_large_requests(served, udp):
    """A datagram may be as large as UDP lets it be."""
    value = b"v" * 60000
    assert udp.ask(b"set large 0 0 60000\r\n" + value + b"\r\n") == b"STORED\r\n"
    with served.client() as client:
        assert client.get(b"large")[0][2] == value


def test_stats(udp):
    """A report of several datagrams."""
    answer = udp.ask(b"stats\r\n")
    assert answer.startswith(b"STAT pid ") and answer.endswith(b"END\r\n") and len(answer) > MOST


def binary(opcode, key=b"", extras=b"", value=b"", opaque=0x11223344):
    return struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0, len(key) + len(extras) + len(value),
                       opaque, 0) + extras + key + value


def test_binary_protocol(udp):
    """The first byte decides in each datagram anew."""
    assert udp.ask(binary(0x0B))[:2] == b"\x81\x0b"
    assert udp.ask(binary(1, b"b", bytes(8), b"val"))[:8] == b"\x81\x01" + bytes(6)
    assert udp.ask(binary(0, b"b")).endswith(b"val")
    assert udp.ask(b"get b\r\n") == value_line(b"b", b"val") + b"END\r\n"
    assert udp.ask(binary(0, b"nothing"))[6:8] == b"\x00\x01"


def test_many_clients(served):
    """Clients are spread over the workers' sockets; each gets its own answers."""
    clients = [UdpClient(served.port) for _ in range(64)]
    for number, client in enumerate(clients):
        client.send(b"set of-%d 0 0 4\r\n%04d\r\n" % (number, number))
    for client in clients:
        assert client.answer() == b"STORED\r\n"
    for number, client in enumerate(clients):
        client.send(b"get of-%d\r\n" % number)
    for number, client in enumerate(clients):
        assert client.answer() == value_line(b"of-%d" % number, b"%04d" % number) + b"END\r\n"
        client.socket.close()


def patient(udp):
    """The daemon may not be there yet."""
    try:
        return udp.ask(b"version\r\n").startswith(b"VERSION")
    except ConnectionRefusedError:
        return False


def test_ipv6(start):
    """On ::1, where there is one."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("there is no ::1")
    port = free_port()
    start("-l", f"[::1]:{port}", "-p", "0", "-U", str(port), listen=False)
    with UdpClient(port, "::1") as udp:
        until(lambda: patient(udp), "an answer")


def test_stop_while_requests_come(start):
    """A stop in the middle of them is a clean one."""
    port = free_port()
    daemon = start("-U", str(port), "-t", "2")
    with UdpClient(port) as udp:
        for _ in range(200):
            udp.send(b"get a\r\n")
        daemon.process.terminate()
        for _ in range(200):
            try:
                udp.send(b"get a\r\n")
            except ConnectionRefusedError:
                break
    assert daemon.process.wait(PATIENCE) == 0


# ---- where the object lies

@pytest.fixture(scope="module")
def flash_served(tmp_path_factory):
    """A daemon with little memory, a small flash file, and UDP."""
    port = free_port()
    path = tmp_path_factory.mktemp("flash") / "flash"
    with Daemon(["--flash-path", str(path), *FLASH, "-U", str(port)], port=port) as daemon:
        yield daemon


@pytest.mark.parametrize("where", ["dram", "flash"])
def test_objects_in_both_places(flash_served, where):
    """get, a pipeline, and a change of an object, where it lies."""
    placer = Placer(flash_served, where, KINDS)
    with placer.client, UdpClient(flash_served.port) as udp:
        for kind in KINDS:
            key = placer.put(kind)
            assert on_flash(placer.client, key) == (where == "flash")
            whole = value_line(key, kind.value(key)) + b"END\r\n"
            assert udp.ask(b"get %s\r\nget missing\r\nget %s\r\n" % (key, key)) == whole + b"END\r\n" + whole
            key = placer.put(kind)
            assert udp.ask(b"append %s 0 0 4\r\ntail\r\n" % key) == b"STORED\r\n"
            assert udp.ask(b"get %s\r\n" % key) == value_line(key, kind.value(key) + b"tail") + b"END\r\n"


def test_many_on_flash(flash_served):
    """A multiget of objects in both places: whole values or none, some of them from flash."""
    keys = [b"wide-%d" % i for i in range(400)]
    with flash_served.client() as client, UdpClient(flash_served.port) as udp:
        for key in keys:
            client.set(key, key * (FILLER // 10))
        fill_turn(client)
        before = client.count("flash_hits")
        for first in range(0, len(keys), 100):
            part = keys[first:first + 100]
            answer = udp.ask(b"get " + b" ".join(part) + b"\r\n")
            present = [key for key in part if b"VALUE %s " % key in answer]
            assert answer == b"".join(value_line(key, key * (FILLER // 10)) for key in present) + b"END\r\n"
        assert client.count("flash_hits") > before
