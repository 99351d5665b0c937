# SPDX-License-Identifier: BSD-3-Clause
"""Connections that last too long: idle ones (-o idle_timeout), and ones that don't read while memory is short."""
import contextlib
import os
import socket

import pytest

from helpers import PATIENCE, Client, Daemon, in_time, until

MIB = 1 << 20
SLOW = 12 * MIB # a value that sockets don't hold


class LateClient(Client):
    """A small receive buffer: what isn't read stays with the daemon."""

    def __init__(self, port):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        self.reader = self.socket.makefile("rb")


def kicks(daemon):
    """Asked over a connection of its own: where the machine stops for a second, one that was kept is closed too."""
    def ask():
        with contextlib.suppress(ConnectionError):
            return [int(daemon.stats()["idle_kicks"])]
    return until(ask, "an answer to stats")[0]


# ---- idle_timeout --------------------------------------------------------------------------------


def read_to_end(client):
    """What came until the daemon closed the connection."""
    with contextlib.suppress(ConnectionError):
        return client.reader.read()
    return None # reset


def test_idle_connections_are_closed(start):
    """One without a command since, one that has never sent any, and one amid a line."""
    daemon = start("-o", "idle_timeout=1")
    with daemon.client() as idle, daemon.client() as silent, daemon.client() as amid:
        for client, sent in (idle, b"mn\r\n"), (amid, b"set key 0 0 1"):
            with contextlib.suppress(ConnectionError): # where the machine stops for a second before
                client.send(sent)
        assert read_to_end(idle) in (b"MN\r\n", b"", None)
        assert read_to_end(silent) in (b"", None)
        assert read_to_end(amid) in (b"", None)
        assert kicks(daemon) >= 3


def longest_silence(client):
    """In seconds, of any connection. Who asks is silent no longer."""
    return max(int(value) for name, value in client.stats(b"conns").items() if name.endswith(":secs_since_last_cmd"))


def test_who_asks_stays(start):
    """While an idle one beside it is closed."""
    daemon = start("-o", "idle_timeout=100", driven=True)
    daemon.clock("stand")
    with daemon.client() as busy, daemon.client() as idle:
        assert idle.ask(b"mn\r\n") == b"MN\r\n"
        daemon.clock(90000)
        until(lambda: longest_silence(busy) >= 90, "the daemon to see it")
        daemon.clock(90000)
        assert idle.ends()
        assert busy.ask(b"mn\r\n") == b"MN\r\n"


@pytest.mark.parametrize("line, state, answer", [(b"set key 0 0 100", "conn_nread", b"STORED\r\n"),
                                                 (b"set key 0 0 2000000", "conn_swallow", b"SERVER_ERROR object too large for cache\r\n")])
def test_who_sends_a_value_stays(start, line, state, answer):
    """As in memcached, however slowly it comes, whether it is stored or thrown away."""
    daemon = start("-o", "idle_timeout=100", driven=True)
    daemon.clock("stand")
    with daemon.client() as slow, daemon.client() as idle:
        slow.send(line + b"\r\n" + b"v" * 50)
        with daemon.client() as other:
            until(lambda: state in other.stats(b"conns").values(), "the daemon to wait for the rest")
        assert idle.ask(b"mn\r\n") == b"MN\r\n"
        daemon.clock(90000)
        daemon.clock(90000)
        assert idle.ends()
        slow.send(b"v" * (int(line.split()[-1]) - 50) + b"\r\n")
        assert slow.line() == answer


def test_what_is_not_idle(start):
    """Who watches, or has not taken its answers yet, stays although it sends nothing."""
    daemon = start("-o", "idle_timeout=1", "-I", "16m")
    with daemon.client() as client:
        assert client.set(b"slow", b"v" * SLOW) == b"STORED\r\n"
    with LateClient(daemon.port) as late, daemon.client() as watcher:
        late.send(b"get slow\r\n")
        watcher.send(b"watch mutations\r\n")
        assert watcher.line() == b"OK\r\n"
        assert late.reader.peek(1) # it has begun to send
        for _ in range(2): # as long as it takes to close two idle ones
            with daemon.client() as idle:
                assert idle.ends()
        assert len(late.values()[0][2]) == SLOW
        with daemon.client() as client:
            client.send(b"set seen 0 0 5\r\nvalue\r\n")
            assert b"seen" in watcher.line()


def test_unix_sockets_are_never_idle(open_folder):
    """As in memcached; by then -l's are closed."""
    path = str(open_folder / "socket")
    with Daemon(["-s", path, "-o", "idle_timeout=1"], listen=False):
        until(lambda: os.path.exists(path), "the socket")

        def client():
            with contextlib.suppress(ConnectionError):
                return Client(0, path)

        with until(client, "a connection") as idle, Client(0, path) as busy:
            first = int(busy.stats()["time"])
            until(lambda: int(busy.stats()["time"]) > first + 3, "some seconds")
            assert kicks(busy) == 0
            assert idle.ask(b"mn\r\n") == b"MN\r\n"


# ---- memory of answers ---------------------------------------------------------------------------


def late_daemon(start, **more):
    """Four slow values are too much for it."""
    daemon = start("-m", "64", "-t", "1", "-I", "16m", **more)
    with daemon.client() as client:
        assert client.set(b"slow", b"v" * SLOW) == b"STORED\r\n"
        assert client.set(b"small", b"value") == b"STORED\r\n"
    return daemon


def test_who_never_reads_is_closed(start):
    """When their answers hold too much memory, others wait no longer than it takes to see that nobody reads them."""
    daemon = late_daemon(start)
    with contextlib.ExitStack() as stack:
        late = [stack.enter_context(LateClient(daemon.port)) for _ in range(8)]
        for client in late:
            client.send(b"get slow\r\n")
        for client in late[:3]:
            assert client.reader.peek(1)
        with daemon.client() as client:
            assert client.get(b"small") == [(b"small", 0, b"value", None)]
            open_now = int(client.stats()["curr_connections"])
        assert open_now < 8


def test_many_who_never_read_are_closed_together(start):
    """Not one after the other as each leaves its memory to the next, while all others wait for the last of them."""
    daemon = start("-m", "16", "-t", "2")
    until(lambda: int(daemon.stats()["curr_connections"]) == 1, "those by which the start was seen to be gone")
    with contextlib.ExitStack() as stack:
        # Connections go to the workers in turn: what happens on the other one doesn't keep this one waiting.
        watching = stack.enter_context(daemon.client())
        assert watching.set(b"slow", b"v" * (MIB // 5)) == b"STORED\r\n"
        for _ in range(120):
            stack.enter_context(LateClient(daemon.port)).send(b"get slow\r\n" * 300)
            stack.enter_context(daemon.client())
        until(lambda: int(watching.stats()["curr_connections"]) == 241, "all to be open")
        until(lambda: int(watching.stats()["curr_connections"]) <= 241 - 40, "many to be closed")


def test_who_reads_late_gets_all(start):
    """The same, but they do read, one after the other: all answers come, complete. The clock stands, so that nobody is late."""
    daemon = late_daemon(start, driven=True)
    daemon.clock("stand")
    with contextlib.ExitStack() as stack:
        late = [stack.enter_context(LateClient(daemon.port)) for _ in range(8)]
        for client in late:
            client.send(b"get slow\r\nget small\r\n")
        waiting = list(late)
        while waiting: # whoever has something
            ready = until(lambda: [client for client in waiting if answers(client)], "an answer")
            for client in ready:
                assert len(client.values()[0][2]) == SLOW
                assert client.values() == [(b"small", 0, b"value", None)]
                waiting.remove(client)


def answers(client):
    client.socket.setblocking(False)
    try:
        return client.socket.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return False
    finally:
        client.socket.settimeout(PATIENCE)


def test_lines_that_never_end(start):
    """Long lines that are begun and not ended take bounded memory; who ends one in time is served."""
    daemon = start("-m", "64", "-t", "1")
    part = b"get " + b"%s " % (b"k" * 200) * 20000 # 4 MB
    before = daemon.resident_bytes()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(daemon.client()) for _ in range(20)]
        for client in clients:
            with contextlib.suppress(ConnectionError):
                client.send(part)
        with daemon.client() as client:
            assert client.ask(b"mn\r\n") == b"MN\r\n"
            until(lambda: int(client.stats()["curr_connections"]) < 20, "connections to be closed")
        if "san" not in daemon.program: # their own memory comes on top
            in_time(daemon.resident_bytes() - before < 60 * MIB, "the memory of unfinished lines")
    with daemon.client() as client: # of the others nothing is left
        client.set(b"k" * 200, b"value")
        client.send(part + b"\r\n")
        assert len(client.values()) == 20000
