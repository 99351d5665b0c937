# SPDX-License-Identifier: BSD-3-Clause
"""watch: who watches is sent what happens, and disturbs nobody."""
import re
import socket

import pytest

from helpers import SEGMENT, fill, fill_turn, until


def watch(daemon, *streams):
    client = daemon.client()
    assert client.ask(b" ".join([b"watch", *streams]) + b"\r\n") == b"OK\r\n"
    return client


def until_watched(daemon, count=1):
    until(lambda: int(daemon.stats()["log_watchers"]) == count, f"{count} watchers")


def event(watcher, type_):
    """The next event of this type, as a dict."""
    while True:
        line = watcher.line().decode()
        assert line, "the watcher was closed"
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if words.get("type") == type_:
            return words


def emitted(daemon, watcher, type_, act):
    """Acts until an event of this type comes."""
    watcher.socket.settimeout(0.3)
    for _ in range(100):
        act()
        try:
            while True:
                line = watcher.socket.recv(1 << 20)
                if f"type={type_} ".encode() in line:
                    text = next(one for one in line.decode().splitlines() if f"type={type_} " in one)
                    return dict(word.split("=", 1) for word in text.split() if "=" in word)
        except TimeoutError:
            continue
    raise AssertionError(f"no {type_}")


def test_watching_can_be_forbidden(start):
    """-W"""
    with start("-W").client() as client:
        assert client.ask(b"watch\r\n") == b"CLIENT_ERROR watch commands not allowed\r\n"


def test_there_are_at_most_twenty(start):
    """One more is refused, and let in when another has gone."""
    daemon = start()
    watchers = [watch(daemon) for _ in range(20)]
    with daemon.client() as late:
        assert late.ask(b"watch\r\n") == b"WATCHER_TOO_MANY log watcher limit reached\r\n"
        assert late.get(b"none") == []
    watchers.pop().close()
    until_watched(daemon, 19)
    watchers.append(watch(daemon))
    for watcher in watchers:
        watcher.close()
    until_watched(daemon, 0)


def test_nothing_is_missed_after_the_answer(start):
    """What another client does once "watch" is answered is told."""
    daemon = start()
    with daemon.client() as client:
        for n in range(100):
            with watch(daemon, b"mutations") as watcher:
                client.set(b"k%d" % n, b"v")
                assert event(watcher, "item_store")["key"] == f"k{n}"
            until_watched(daemon, 0)


def test_fetchers(start):
    """Hits and misses; the default stream."""
    daemon = start()
    with daemon.client() as client, watch(daemon) as watcher:
        client.set(b"a b".replace(b" ", b"/"), b"12345")
        found = emitted(daemon, watcher, "item_get", lambda: client.get(b"a/b"))
        assert found["key"] == "a%2Fb" and found["status"] == "found" and found["size"] == "5"
        assert float(found["ts"]) > 1e9 and int(found["gid"]) > 0


def test_mutations(start):
    """Sets and deletes, with what came of them."""
    daemon = start()
    with daemon.client() as client, watch(daemon, b"mutations") as watcher:
        stored = emitted(daemon, watcher, "item_store", lambda: client.set(b"k", b"v", command=b"add"))
        assert stored["cmd"] == "add" and stored["status"] in ("stored", "not_stored")
        deleted = emitted(daemon, watcher, "item_delete", lambda: client.ask(b"delete k\r\n"))
        assert deleted["key"] == "k"


def told(daemon, stream, act):
    """What is said of a client that acts: lines without time, number and descriptor. A class is N, a ttl rounded."""
    lines = []
    with daemon.client() as client, watch(daemon, stream) as watcher:
        act(client)
        client.set(b"last", b"")
        client.get(b"last")
        while b"key=last" not in (line := watcher.line()):
            line = re.sub(rb"^ts=[0-9.]+ gid=[0-9]+ ", b"", line.strip())
            line = re.sub(rb" ttl=([0-9]+)", lambda found: b" ttl=%d" % round(int(found[1]), -1), line)
            lines.append(re.sub(rb" (clsid|cfd)=[1-9][0-9]*", rb" \1=N", line))
    return lines


def test_lines_of_stores_are_memcacheds(start, memcached):
    """The same words, in the same order."""
    def store(client):
        for line, value in ((b"set k 0 100 20", b"a" * 20), (b"add k 0 0 1", b"b"), (b"append k 0 0 1", b"c"),
                            (b"replace k 0 50 2", b"de"), (b"cas k 0 0 3 1", b"fgh"), (b"cas none 0 0 1 1", b"i")):
            client.ask(line + b"\r\n" + value + b"\r\n")

    ours = told(start(), b"mutations", store)
    assert len(ours) == 6 and ours == told(memcached, b"mutations", store)


def test_lines_of_fetches_are_memcacheds(start, memcached):
    """Ours say whence it came, too."""
    def fetch(client):
        client.get(b"k", b"none")

    for daemon in (ours := start(), memcached):
        with daemon.client() as client:
            client.set(b"k", b"a" * 20)
    theirs = told(memcached, b"fetchers", fetch)
    assert len(theirs) == 2
    assert told(ours, b"fetchers", fetch) == [theirs[0] + b" from=dram", theirs[1] + b" from=none"]


def test_rawcmds(start):
    """Command lines; what isn't printable is replaced."""
    daemon = start()
    with daemon.client() as client, watch(daemon, b"rawcmds") as watcher:
        seen = emitted(daemon, watcher, "rawcmd", lambda: client.ask(b"bogus\x01thing\r\n"))
        assert seen["cmd"] == "bogus?thing"


def test_evictions(start):
    """What is evicted from DRAM."""
    daemon = start("-m", "4")
    with daemon.client() as client, watch(daemon, b"evictions") as watcher:
        seen = emitted(daemon, watcher, "eviction", lambda: fill(client, 1 << 20))
        assert seen["key"].startswith("filler-") and seen["fetch"] == "no" and seen["ttl"] == "-1"
        assert seen["size"] == "900" and int(seen["clsid"]) > 0


def test_connevents(start):
    """Connections that come and go."""
    daemon = start()
    with watch(daemon, b"connevents") as watcher:
        seen = emitted(daemon, watcher, "conn_new", lambda: daemon.client().close())
        assert seen["rip"] == "127.0.0.1" and seen["transport"] == "tcp" and int(seen["cfd"]) > 0
        emitted(daemon, watcher, "conn_close", lambda: daemon.client().close())


def test_sysevents(start):
    """What the daemon does by itself."""
    daemon = start()
    with daemon.client() as client, watch(daemon, b"sysevents") as watcher:
        emitted(daemon, watcher, "lru_crawler", lambda: client.ask(b"lru_crawler crawl all\r\n"))


def test_flash(start, tmp_path):
    """Segments that are written and reclaimed."""
    daemon = start("-m", "4", "--flash-path", str(tmp_path / "flash"), "--flash-size", "1m", "--segment-size",
                   str(SEGMENT), "--admission", "all")
    with daemon.client() as client, watch(daemon, b"flash") as watcher:
        seen = emitted(daemon, watcher, "segment_written", lambda: fill_turn(client))
        assert int(seen["bytes"]) == SEGMENT and int(seen["objects"]) > 0
        emitted(daemon, watcher, "segment_reclaimed", lambda: fill_turn(client))


def test_what_a_watcher_sends_is_ignored(start):
    """It watches until it closes."""
    daemon = start()
    with daemon.client() as client, watch(daemon) as watcher:
        watcher.send(b"get a\r\n" * 100)
        assert emitted(daemon, watcher, "item_get", lambda: client.get(b"none"))


def test_a_watcher_that_reads_nothing_loses_lines_and_is_told(start):
    """Nobody waits for it; what it missed is counted."""
    daemon = start("-o", "watcher_logbuf_size=16")
    with daemon.client() as client, daemon.client() as watcher:
        assert watcher.ask(b"watch\r\n") == b"OK\r\n"
        keys = [b"key-%03d-" % n + b"k" * 200 for n in range(100)]

        def skipped():
            for _ in range(10):
                assert client.get(*keys) == []
            return int(client.stats()["log_watcher_skipped"]) > 0

        until(skipped, "skipped lines")
        watcher.socket.settimeout(0.2)
        last = [b""]

        def told():
            """A line after the lost ones brings it; until there is room for one, the watcher reads what waits for it."""
            try:
                data = watcher.socket.recv(1 << 16)
            except TimeoutError:
                client.get(*keys)
                return False
            last[0] = last[0][-20:] + data
            return b"skipped=" in last[0]

        until(told, "what was lost")
        assert client.stats()["log_watchers"] == "1"


def test_watchers_end_with_the_daemon(start):
    """A stop closes them, and takes no longer for it."""
    daemon = start()
    watchers = [watch(daemon, b"fetchers", b"rawcmds") for _ in range(5)]
    until_watched(daemon, 5)
    assert daemon.stop() == 0
    for watcher in watchers:
        watcher.reader.read() # up to the end


@pytest.mark.parametrize("order", ["reading", "writing"])
def test_a_watcher_that_closes_is_forgotten(start, order):
    """Whichever side it closes first."""
    daemon = start()
    watcher = watch(daemon)
    until_watched(daemon)
    if order == "writing":
        watcher.socket.shutdown(socket.SHUT_WR)
    else:
        watcher.close()
    until_watched(daemon, 0)
