# SPDX-License-Identifier: BSD-3-Clause
"""Scripted sessions of meta commands are answered as memcached answers them, of the version that is there."""
import pathlib
import re
import sys

import pytest

from helpers import Late, memcached_release
from sessions_meta import SESSIONS

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "compare"))
import intended  # (the one list of intended differences)
import seconds

DIFFERENT = [(session, expected, entry) for entry in intended.LIST for session, expected in entry.meta]

TRIES = 50  # until no second begins while a session runs
CLEAN = b"".join(b"delete %s noreply\r\n" % key for key in (b"a", b"b", b"n", b"k" * 250))


def in_full(session):
    return CLEAN + (session.replace(b"%k", b"k" * 250).replace(b"%K", b"k" * 251).replace(b"%O", b"O" + b"o" * 32)
                    .replace(b"%X", b"x" * 2000000))


def plain(answer):
    """Ids are numbered in the order in which they appear: those of two daemons are not the same. Class and size
    of an item are each one's own. What the daemon does with a very long value in an answer isn't of interest."""
    ids = {}

    def number(match):
        value = match.group(2)
        return match.group(1) + (b"0" if value == b"0" else b"#%d" % ids.setdefault(value, len(ids) + 1))

    return re.sub(rb"( cls=)\d+ size=\d+", rb"\1-", re.sub(rb"( c| cas=)(\d+)", number, answer))


def answer(daemon, session):
    with daemon.client() as client:
        return plain(client.all(in_full(session)))


@pytest.fixture(scope="module")
def both(twin, memcached):
    """Ours and memcached, each with some ids used up: C1 is nobody's."""
    for daemon in (twin, memcached):
        with daemon.client() as client:
            client.all(b"set used 0 0 1 noreply\r\nx\r\n" * 100)
    return twin, memcached


def uptimes(daemons):
    return [daemon.stats()["uptime"] for daemon in daemons]


def in_one_second(daemons, ask):
    """The answers of one run. It is made again in one case alone: the uptime of a daemon has moved, and what differs are times."""
    for _ in range(TRIES):
        before = uptimes(daemons)
        found = ask()
        if len({seconds.without(one) for one in found}) > 1 or len(set(found)) == 1 or uptimes(daemons) == before:
            return found
    raise Late(f"in each of {TRIES} runs a second began")


def answers(both, session):
    return in_one_second(both, lambda: [answer(daemon, session) for daemon in both])


@pytest.mark.parametrize("group", SESSIONS)
def test_same_answers_as_memcached(both, group):
    """The same bytes come back, but for the numbers of ids and classes."""
    different = []
    for session in SESSIONS[group]:
        ours, theirs = answers(both, session)
        if ours != theirs:
            different.append(f"{session[:200]}\n    ours: {ours[:200]}\n  theirs: {theirs[:200]}")
    assert not different, f"{len(different)} of {len(SESSIONS[group])}:\n" + "\n".join(different)


@pytest.mark.parametrize("session, expected, entry", DIFFERENT, ids=lambda part: ascii(part[:40]) if isinstance(part, bytes) else part.name)
def test_intended_differences(both, session, expected, entry):
    """What is not as in memcached is as it is listed, with its reason; of releases with which it does agree, that too."""
    ours, _ = in_one_second(both[:1], lambda: [answer(both[0], session), expected])
    assert ours == expected
    theirs, _ = in_one_second(both[1:], lambda: [answer(both[1], session), expected])
    assert (theirs != expected) == entry.applies(memcached_release()), entry.reason


def test_same_answers_without_ids(start, memcached):
    """-C shows no ids, and compares them as memcached does then."""
    session = (b"ms a 1 c\r\n5\r\nmg a c v\r\nme a\r\nms a 1 C0 c\r\n6\r\nms a 1 C5 c\r\n7\r\nms a 1 C5 I\r\n8\r\nmg a v\r\n"
               b"ms a 1 C5 MA\r\n9\r\nma a C5 c v\r\nmd a C5\r\nmd a I\r\nmg a v c\r\nmg a v c\r\nmd a C0\r\nmg a\r\nmg a N30 c\r\n")
    theirs = start("-C", "-U", "0", program=memcached.program)
    assert answer(start("-C"), session) == answer(theirs, session)


@pytest.mark.slots("the frugal one goes with no -M")
def test_same_answers_without_memory(start, memcached):
    """-M refuses to store when memory is out, q or not, and the old value is gone then."""
    options = ["-M", "-m", "2", "-I", "512k"]
    big = b"x" * 400000
    full = b"ms old 1\r\nx\r\n" + b"".join(b"ms k%d 400000\r\n%s\r\n" % (n, big) for n in range(10))
    session = (b"mg old v\r\nms old 400000 q\r\n" + big + b"\r\nmg old v\r\nms k9 400000 k\r\n" + big + b"\r\nmg k9\r\n"
               b"ms k9 600000 q\r\n" + b"x" * 600000 + b"\r\n")
    daemons = start(*options), start(*options, "-U", "0", program=memcached.program)
    for daemon in daemons:
        with daemon.client() as client:
            assert b"SERVER_ERROR out of memory" in client.all(full)  # how many fit is each one's own
    ours, theirs = (answer(daemon, session) for daemon in daemons)
    assert ours == theirs


# ---- counters ------------------------------------------------------------------------------------

COUNTERS = ["cmd_get", "cmd_set", "cmd_touch", "cmd_meta", "get_hits", "get_misses", "delete_hits", "delete_misses", "incr_hits",
            "incr_misses", "decr_hits", "decr_misses", "cas_hits", "cas_misses", "cas_badval", "touch_hits", "touch_misses",
            "store_too_large"]
COUNTED = [b"mg a", b"mg a v", b"mg a v q", b"mg a T5", b"mg a N5", b"mg a N5 T5", b"mg a R5", b"mg a u v", b"me a",
           b"mg a z", b"mn", b"md a", b"md a q", b"md a C1", b"md a I", b"md a I T5", b"md a z", b"ma a", b"ma a q", b"ma a MD",
           b"ma a N0", b"ma a MD N0", b"ma a C1", b"ma a T5", b"ma a MX",
           *(b"ms a 1%s\r\n1" % flags for flags in (b"", b" q", b" ME", b" MA", b" MP", b" MR", b" C1", b" C0", b" C1 I",
                                                     b" C1 MA", b" C1 ME", b" C1 MR", b" z", b" MX")),
           b"ms a 2\r\nxxxx", b"ms a 2000000\r\n" + b"x" * 2000000, b"ms a 2000000 MR q\r\n" + b"x" * 2000000]


def counted(daemon, line):
    before = daemon.stats()
    with daemon.client() as client:
        client.all(line + b"\r\n")
    after = daemon.stats()
    return {name: int(after[name]) - int(before[name]) for name in COUNTERS if after[name] != before[name]}


@pytest.mark.parametrize("present", [False, True], ids=["absent", "present"])
def test_same_counters_as_memcached(both, present):
    """After each command the same counters have moved by the same."""
    different = []
    for line in COUNTED:
        for daemon in both:
            with daemon.client() as client:
                client.all(CLEAN + (b"set a 0 0 1\r\n5\r\n" if present else b""))
        ours, theirs = (counted(daemon, line) for daemon in both)
        if ours != theirs:
            different.append(f"{line[:40]}\n    ours: {ours}\n  theirs: {theirs}")
    assert not different, "\n".join(different)


def test_recache_by_the_clock(both):
    """R beyond 30 days is a time of the clock."""
    for ahead, won in ((1000, False), (5000, True), (-10, False)):
        session = b"ms a 1 T3600\r\nx\r\nmg a R%d v\r\n" % (int(both[0].stats()["time"]) + ahead)
        ours, theirs = answers(both, session)
        assert ours == theirs and ours.endswith(b"VA 1%s\r\nx\r\n" % (b" W" if won else b""))
