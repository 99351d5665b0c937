# SPDX-License-Identifier: BSD-3-Clause
"""Values of hundreds of megabytes (-I up to 1024m)."""
import hashlib

import pytest

from helpers import until

MIB = 1 << 20
LARGE = 300 * MIB
PIECE = bytes(range(256)) * 4096 # 1 MiB


@pytest.fixture
def daemon(start):
    return start("-m", "700", "-I", "350m", "-t", "2")


def send_value(client, length):
    for at in range(0, length, MIB):
        client.send(PIECE[:min(MIB, length - at)])
    client.send(b"\r\n")


def connections(client):
    return client.count("curr_connections", b"")


def test_too_large_is_swallowed(daemon):
    """A value over the limit is read and dropped, whatever its length; the connection goes on, the old value is gone."""
    with daemon.client() as client:
        assert client.set(b"key", b"old") == b"STORED\r\n"
        client.send(b"set key 0 0 %d\r\n" % (400 * MIB))
        send_value(client, 400 * MIB)
        assert client.line() == b"SERVER_ERROR object too large for cache\r\n"
        assert client.ask(b"mn\r\n") == b"MN\r\n"
        assert client.get(b"key") == []


@pytest.mark.parametrize("command, answer", [
    (b"set key 0 0 %d", b"SERVER_ERROR object too large for cache"),
    (b"add key 0 0 %d", b"SERVER_ERROR object too large for cache"),
    (b"ms key %d", b"SERVER_ERROR object too large for cache"),
    (b"ms key %d Fx", b"CLIENT_ERROR bad command line format")])
def test_a_refusal_comes_behind_the_value(start, command, answer):
    """Nothing is answered before the whole value has come, so a client that writes first and reads then hears in order."""
    daemon = start("-I", "4k", "-m", "16", "-t", "1")
    with daemon.client() as client, daemon.client() as other:
        assert client.set(b"key", b"old") == b"STORED\r\n"
        client.send(b"mn\r\n" + command % 5000 + b"\r\n" + bytes(4999))
        assert client.line() == b"MN\r\n"
        assert other.ask(b"mn\r\n") == b"MN\r\n"
        assert client.is_silent()
        client.send(b"v\r\nget key\r\n")
        assert client.line() == answer + b"\r\n"
        left = [] if answer.startswith(b"SERVER") and not command.startswith(b"add") else [(b"key", 0, b"old", None)]
        assert client.values() == left


def test_a_refused_value_that_is_cut_short(start):
    """The connection ends in the middle of a value that is refused; the daemon goes on."""
    daemon = start("-I", "4k", "-m", "16", "-t", "1")
    with daemon.client() as client:
        for command, left in (b"add key 0 0 5000\r\n", [(b"key", 0, b"old", None)]), (b"set key 0 0 5000\r\n", []):
            client.set(b"key", b"old")
            with daemon.client() as cut:
                cut.send(b"mn\r\n" + command + b"x")
                assert cut.line() == b"MN\r\n"
            until(lambda: connections(client) == 1, "the connection to be closed")
            assert client.get(b"key") == left


def test_cut_short(daemon):
    """A value of which not all comes is not stored, and its memory is given back."""
    with daemon.client() as client:
        for _ in range(4): # more than fits
            with daemon.client() as cut:
                cut.send(b"set cut 0 0 %d\r\n" % LARGE + PIECE)
            until(lambda: connections(client) == 1, "the connection to be closed")
            assert client.get(b"cut") == []
        client.send(b"set whole 0 0 %d\r\n" % LARGE)
        send_value(client, LARGE)
        assert client.line() == b"STORED\r\n"


def test_set_and_get(daemon):
    """300 MiB in and out, byte for byte, while another connection is served."""
    with daemon.client() as client, daemon.client() as other:
        client.send(b"set large 7 0 %d\r\n" % LARGE)
        client.send(PIECE)
        assert other.get(b"large") == []
        for _ in range(LARGE // MIB - 1):
            client.send(PIECE)
        client.send(b"\r\n")
        assert client.line() == b"STORED\r\n"
        client.send(b"get large\r\nmn\r\n")
        assert client.line() == b"VALUE large 7 %d\r\n" % LARGE
        assert other.set(b"small", b"value") == b"STORED\r\n"
        got, expected = hashlib.sha1(), hashlib.sha1()
        for _ in range(LARGE // MIB):
            got.update(client.reader.read(MIB))
            expected.update(PIECE)
        assert got.digest() == expected.digest()
        assert [client.line() for _ in range(3)] == [b"\r\n", b"END\r\n", b"MN\r\n"]
        assert client.ask(b"append large 0 0 3\r\nend\r\n") == b"STORED\r\n"
        assert client.ask(b"delete large\r\n") == b"DELETED\r\n"
