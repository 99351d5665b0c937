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
    seen = bytearray()

    def told():
        act()
        while data := watcher.take():
            seen.extend(data)
        whole = seen.decode().rpartition("\n")[0].splitlines()
        return next((line for line in whole if f"type={type_} " in line), None)

    line = until(told, f"an event {type_}")
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


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
    with daemon.client() as client:
        client.set(b"a/b", b"12345")
    with daemon.client() as client, watch(daemon) as watcher:
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


def test_look_ups_of_other_commands_are_memcacheds(start, memcached):
    """Every command that looks a key up has a line for fetchers; ours name the command, too."""
    def act(client):
        for line, value in ((b"set look 0 0 2", b"10"), (b"set look 0 0 2", b"11"), (b"add look 0 0 1", b"b"), (b"add look-2 0 0 1", b"b"),
                            (b"append look 0 0 1", b"2"), (b"prepend none 0 0 1", b"c"), (b"replace none 0 0 1", b"d"),
                            (b"cas look 0 0 1 1", b"e"), (b"ms look 2", b"10"), (b"ms look 2 ME", b"11")):
            client.ask(line + b"\r\n" + value + b"\r\n")
        for line in (b"incr look 1", b"decr none 1", b"touch look 100", b"gat 100 look", b"ma look", b"mg look-3 N30", b"mg look T90 v", b"me look",
                     b"delete look", b"delete look", b"md look-2", b"set look 0 0 1048577\r\n" + b"x" * 1048577):
            client.send(line + b"\r\nmn\r\n")
            while client.line() != b"MN\r\n":
                pass

    ours, theirs = told(daemon := start(), b"fetchers", act), told(memcached, b"fetchers", act)
    assert [re.sub(rb" from=(?:dram|none)(?: cmd=[a-z]+)?$", b"", line) for line in ours] == theirs and len(theirs) == 22
    commands = [re.findall(rb" cmd=([a-z]+)$", line) for line in ours]
    assert commands == [[word] for word in (b"set set add add append prepend replace cas set add incr decr touch").split()] + \
        [[], [b"incr"], [], [], [b"me"], [b"delete"], [b"delete"], [b"delete"], [b"set"]]
    assert daemon.stats()["log_worker_dropped"] == "0"


def test_deletions(start):
    """Deletes that have found their object, as memcached has told them since 1.6.20."""
    def act(client):
        client.set(b"k", b"12345")
        for line in (b"delete none", b"delete k", b"md k", b"ms k 2\r\nab", b"md k I", b"md k q", b"mn"):
            client.send(line + b"\r\n")
        while client.line() != b"MN\r\n":
            pass
        client.set(b"last", b"")
        client.ask(b"delete last\r\n")

    assert told(start(), b"deletions", act) == [b"type=deleted key=k cmd=delete clsid=N size=5 from=dram",
                                                b"type=deleted key=k cmd=md clsid=N size=2 from=dram"]


def test_words_of_memcacheds_proxy(start, memcached):
    """They are streams without a line, in ours and in a memcached without a proxy."""
    for daemon in (ours := start(), memcached):
        for word in (b"proxyreqs", b"proxyevents", b"proxyuser"):
            watch(daemon, word, b"sysevents").close()
    with ours.client() as client:
        assert client.ask(b"watch proxycmds\r\n") == b"ERROR\r\n"


def reason_of(watcher, port):
    """Why the connection from this port has ended. (The end of a client before it may be told late.)"""
    while (seen := event(watcher, "conn_close"))["rport"] != str(port):
        pass
    return seen["reason"]


def test_reasons_of_closing_are_memcacheds(start, memcached):
    """Who says quit or closes has ended normally; who speaks HTTP, or an endless line, has not."""
    def reasons(daemon):
        seen = []
        with watch(daemon, b"connevents") as watcher:
            for line in (b"GET / HTTP/1.1\r\n", b"quit\r\n", b"x" * 3000, b"mn\r\n", b"\x80\x17" + b"\0" * 22):
                with daemon.client() as client:
                    port = client.socket.getsockname()[1]
                    client.send(line)
                    if line == b"mn\r\n":
                        client.line()
                    else:
                        assert client.ends()
                seen.append(reason_of(watcher, port))
        return seen

    assert reasons(start()) == reasons(memcached) == ["error", "normal", "error", "normal", "normal"]


def test_an_idle_client_is_closed_for_that(start):
    """memcached's word for it."""
    daemon = start("-o", "idle_timeout=1")
    with daemon.client() as idle, watch(daemon, b"connevents") as watcher:
        port = idle.socket.getsockname()[1]
        assert idle.ends()
        assert reason_of(watcher, port) == "idle_timeout"


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
    daemon, ports = start(), set()

    def come_and_go():
        with daemon.client() as client:
            ports.add(client.socket.getsockname()[1])

    with watch(daemon, b"connevents") as watcher:
        seen = emitted(daemon, watcher, "conn_new", come_and_go)
        assert seen["rip"] == "127.0.0.1" and int(seen["rport"]) in ports and seen["transport"] == "tcp" and int(seen["cfd"]) > 0
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
        last = [b""]

        def told():
            """A line after the lost ones brings it; until there is room for one, the watcher reads what waits for it."""
            data = watcher.take()
            if not data:
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
