# SPDX-License-Identifier: BSD-3-Clause
"""The limit on connections: refused at once (maxconns_fast), or kept waiting."""
import errno
import os
import resource
import select
import socket
import threading

import pytest

from helpers import PATIENCE, until

LIMIT = 10
REFUSAL = b"ERROR Too many open connections\r\n"


@pytest.fixture
def crowd():
    """Clients that are closed with the test, whatever happens."""
    clients = []
    yield clients
    for client in clients:
        client.close()


def fill(daemon, crowd, count):
    """So many connections, each of which has been answered."""
    for _ in range(count):
        client = daemon.client()
        crowd.append(client)
        assert client.ask(b"version\r\n").startswith(b"VERSION")


def alone(daemon, crowd):
    """A client, when those by which the start was seen are gone."""
    crowd.append(daemon.client())
    until(lambda: int(crowd[0].stats()["curr_connections"]) == 1, "the end of earlier connections")
    return crowd[0]


def test_refused_beyond_the_limit(start, crowd):
    """One more than -c is told so and closed, counted, and nobody else notices."""
    daemon = start("-c", str(LIMIT), "-t", "2")
    first = alone(daemon, crowd)
    fill(daemon, crowd, LIMIT - 1)
    for refused in 1, 2:
        with daemon.client() as beyond:
            assert beyond.line() == REFUSAL
            assert beyond.ends()
        stats = first.stats()
        assert int(stats["rejected_connections"]) == refused
        assert int(stats["curr_connections"]) == LIMIT
        assert stats["accepting_conns"] == "1"
        assert stats["listen_disabled_num"] == "0"
    crowd.pop().close()
    until(lambda: int(first.stats()["curr_connections"]) == LIMIT - 1, "the end of one")
    fill(daemon, crowd, 1)


def test_waiting_beyond_the_limit(start, crowd):
    """-o no_maxconns_fast: they wait until a connection closes, in the order in which they came."""
    daemon = start("-c", str(LIMIT), "-t", "2", "-o", "no_maxconns_fast")
    first = alone(daemon, crowd)
    fill(daemon, crowd, LIMIT - 1)
    stats = first.stats()
    assert (stats["accepting_conns"], stats["listen_disabled_num"]) == ("1", "0")
    assert "rejected_connections" not in stats
    waiting = [daemon.client() for _ in range(2)]
    until(lambda: first.stats()["accepting_conns"] == "0", "that nothing is accepted")
    assert first.stats()["listen_disabled_num"] == "1"
    for client in waiting:
        client.send(b"version\r\n")
    for client in waiting:
        crowd.pop().close()
        assert client.line().startswith(b"VERSION")
    crowd += waiting
    crowd.pop(1).close()
    until(lambda: first.stats()["accepting_conns"] == "1", "that it is accepted again")
    stats = first.stats()
    assert int(stats["time_in_listen_disabled_us"]) > 0
    assert 1 <= int(stats["listen_disabled_num"]) <= 3


def test_one_connection_at_a_time(start):
    """-c 1, many that want it: each is served."""
    daemon = start("-c", "1", "-t", "2", "-o", "no_maxconns_fast")
    served = []

    def come():
        with daemon.client() as client:
            if client.ask(b"version\r\n").startswith(b"VERSION"):
                served.append(1)

    threads = [threading.Thread(target=come) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(served) == 30


def test_limit_under_a_rush(start):
    """More than -c at once: whoever is not refused is served; afterwards all is as before."""
    daemon = start("-c", str(LIMIT), "-t", "4")
    outcomes = []

    def come():
        with daemon.client() as client:
            try:
                line = client.ask(b"version\r\n")
            except OSError:  # refused and closed before the request came
                line = b""
            outcomes.append(line)

    for _ in range(10):
        threads = [threading.Thread(target=come) for _ in range(3 * LIMIT)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    assert len(outcomes) == 30 * LIMIT
    assert all(line.startswith(b"VERSION") or line in (REFUSAL, b"") for line in outcomes)
    with daemon.client() as client:
        until(lambda: int(client.stats()["curr_connections"]) == 1, "the end of all")


def is_connected(connecting):
    return bool(select.select([], [connecting], [], 0)[1])


def test_backlog(start):
    """-b: so many (and one) wait in the kernel while nothing is accepted; a further one isn't let in."""
    daemon = start("-c", "1", "-b", "2", "-o", "no_maxconns_fast")
    with daemon.client() as only:
        until(lambda: int(only.stats()["curr_connections"]) == 1, "the end of earlier connections")
        with socket.socket() as beyond:
            beyond.setblocking(False)
            with daemon.client(), daemon.client(), daemon.client():
                assert beyond.connect_ex(("127.0.0.1", daemon.port)) == errno.EINPROGRESS
                assert only.ask(b"version\r\n").startswith(b"VERSION")
                assert not is_connected(beyond)
            assert only.ask(b"version\r\n").startswith(b"VERSION")


def test_descriptors_run_out(start, crowd):
    """With fewer descriptors than -c needs, accepting pauses, and goes on when connections close."""
    own = ["-u", "root"] if os.geteuid() == 0 else []  # whose limits may be changed
    daemon = start("-c", "1024", "-t", "1", *own)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (64, 64))
    first = alone(daemon, crowd)
    crowd += [daemon.client() for _ in range(64)]
    until(lambda: first.stats()["accepting_conns"] == "0", "that nothing is accepted")
    last = crowd.pop()
    last.send(b"version\r\n")
    while len(crowd) > 1:
        crowd.pop().close()
    assert last.line().startswith(b"VERSION")
    last.close()
    assert int(first.stats()["listen_disabled_num"]) >= 1
