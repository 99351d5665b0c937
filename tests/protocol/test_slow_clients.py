# SPDX-License-Identifier: BSD-3-Clause
"""Thousands of clients that send byte by byte, and thousands that read their answers a few bytes at a time: each gets what it
would get anyway, memory stays within its bound, and others are served all the while."""
import resource
import selectors
import socket

import pytest

from helpers import PATIENCE, flashield_command, until

pytestmark = pytest.mark.long

MIB = 1 << 20
CLIENTS = 2000  # of each kind
OTHERS = 200  # descriptors for everything else
MEMORY = 128  # MiB
VALUE = 10000
GETS = 40  # of one slow reader: 400 kB
PIECE = 7  # bytes that a slow reader takes at a time
ROUNDS = 50
WHOLE = 20  # slow readers that read on to the end

# What is sent byte by byte, and its answer.
SLOW_COMMANDS = [
    (b"set slow 0 0 20\r\naaaaaaaaaaaaaaaaaaaa\r\n", b"STORED\r\n"),
    (b"get nothing at all\r\n", b"END\r\n"),
    (b"bogus\r\n", b"ERROR\r\n"),
    (b"get " + b"k" * 251 + b"\r\n", b"CLIENT_ERROR bad command line format\r\n"),
    (b"set slow 0 0 5\r\ntoo long\r\n", b"CLIENT_ERROR bad data chunk\r\n"),
    (b"incr number x\r\n", b"CLIENT_ERROR invalid numeric delta argument\r\n"),
]


@pytest.fixture
def count():
    """Clients of each kind: as many as the hard limit on descriptors allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = min(CLIENTS, (hard - OTHERS) // 2) if hard != resource.RLIM_INFINITY else CLIENTS
    wanted = 2 * most + OTHERS
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted) if soft != resource.RLIM_INFINITY else soft, hard))
    yield most
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def connect():
    """Sockets that are closed with the test; received: bytes of a receive buffer."""
    sockets = []

    def one(port, received=None):
        made = socket.socket()
        sockets.append(made)
        if received:  # what it doesn't read stays with the daemon
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, received)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.settimeout(PATIENCE)
        made.connect(("127.0.0.1", port))
        return made

    yield one
    for made in sockets:
        made.close()


class Bystander:
    """A client that is neither slow nor patient: its commands are answered between those of the others."""

    def __init__(self, client):
        self.client = client
        self.asked = 0

    def ask(self):
        key, value = b"normal-%d" % self.asked, b"%d" % self.asked * 100
        self.asked += 1
        assert self.client.set(key, value) == b"STORED\r\n"
        assert self.client.get(key)[0][2] == value
        assert self.client.ask(b"delete %s\r\n" % key) == b"DELETED\r\n"


def is_bounded(daemon, client):
    """By the daemon's own account, and by the kernel's."""
    now = {name: int(value) for name, value in client.stats(b"memory").items()}
    assert now["sum"] <= 1.1 * MEMORY * MIB + 24 * MIB
    if "san" not in flashield_command():  # a sanitizer's own memory comes on top
        assert daemon.resident_bytes() <= 1.1 * MEMORY * MIB + 24 * MIB


def start_crowded(start, count):
    return start("-m", str(MEMORY), "-c", str(count + 100), "-t", "2")


def test_thousands_that_send_byte_by_byte(start, connect, count):
    """All of them are amid a command for most of the time; each has its answer, memcached's own lines among them."""
    daemon = start_crowded(start, count)
    with daemon.client() as client:
        bystander = Bystander(client)
        slow = [(connect(daemon.port), *SLOW_COMMANDS[n % len(SLOW_COMMANDS)]) for n in range(count)]
        longest = max(len(command) for command, _ in SLOW_COMMANDS)
        for at in range(longest):
            for number, (sock, command, _) in enumerate(slow):
                if at < len(command):
                    sock.send(command[at:at + 1])
                if number % 200 == 0:
                    bystander.ask()
            if at == 15:  # each is amid its line or its value, but for the shortest
                assert client.count("curr_connections", b"") >= count
                is_bounded(daemon, client)
        for sock, command, answer in slow:
            got = b""
            while len(got) < len(answer):
                received = sock.recv(len(answer) - len(got))
                assert received, (command, got)
                got += received
            assert got == answer, command
        is_bounded(daemon, client)
        assert bystander.asked >= longest
        assert client.get(b"slow") in ([], [(b"slow", 0, b"a" * 20, None)])  # a bad chunk takes the old value along


def answer_of(number):
    """The values of 17 keys in turn, from another one on for each reader."""
    return b"".join(b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key_of(n), VALUE, value_of(n)) for n in range(number, number + GETS))


def key_of(number):
    return b"value-%d" % (number % 17)


def value_of(number):
    return (b"%d," % (number % 17)).ljust(VALUE, b"v")


def test_thousands_that_read_a_few_bytes_at_a_time(start, connect, count):
    """Each asks for more than the kernel holds for it. Whoever goes on reading gets all of it, and in order."""
    daemon = start_crowded(start, count)
    with daemon.client() as client:
        bystander = Bystander(client)
        for number in range(17):
            assert client.set(key_of(number), value_of(number)) == b"STORED\r\n"
        slow = []
        for number in range(count):
            slow.append(connect(daemon.port, 4096))
            slow[-1].sendall(b"".join(b"get %s\r\n" % key_of(n) for n in range(number, number + GETS)))
            if number % 100 == 0:
                bystander.ask()
        got = [b"" for _ in slow]
        for turn in range(ROUNDS):
            for number, sock in enumerate(slow):
                got[number] += sock.recv(PIECE)
                if number % 500 == 0:
                    bystander.ask()
            if turn % 10 == 0:
                is_bounded(daemon, client)
        assert client.count("curr_connections", b"") == count + 1  # nobody was given up
        for number in range(count):
            assert got[number] and answer_of(number).startswith(got[number])
        for number in range(0, count, count // WHOLE):
            rest = answer_of(number)[len(got[number]):]
            while rest:
                received = slow[number].recv(MIB)
                assert received and rest.startswith(received)
                rest = rest[len(received):]
            bystander.ask()
        is_bounded(daemon, client)
        for sock in slow:
            sock.close()
        until(lambda: client.count("curr_connections", b"") == 1, "the end of the slow ones")
        is_bounded(daemon, client)


def test_one_more_than_the_limit_is_refused_while_thousands_are_slow(start, connect, count):
    """With memcached's line; the slow ones, and who was there before, notice nothing."""
    limit = count // 2
    daemon = start("-m", str(MEMORY), "-c", str(limit), "-t", "2")
    with daemon.client() as client:
        until(lambda: client.count("curr_connections", b"") == 1, "the end of the start's connections")
        slow = [connect(daemon.port) for _ in range(limit - 1)]
        for sock in slow:
            sock.send(b"mn\r")
        until(lambda: client.count("curr_connections", b"") == limit, "all to be connected")
        refused = connect(daemon.port)
        assert refused.makefile("rb").readline() == b"ERROR Too many open connections\r\n"
        assert client.count("rejected_connections", b"") == 1
        with selectors.DefaultSelector() as selector:
            for sock in slow:
                selector.register(sock, selectors.EVENT_READ)
            for sock in slow:
                sock.send(b"\n")
            Bystander(client).ask()
            while selector.get_map():
                ready = selector.select(PATIENCE)
                assert ready
                for found, _ in ready:
                    assert found.fileobj.recv(100) == b"MN\r\n"
                    selector.unregister(found.fileobj)
