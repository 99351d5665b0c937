# SPDX-License-Identifier: BSD-3-Clause
"""Generated sessions of the binary protocol are answered as memcached 1.6 answers them. What is intended to differ is
told in sessions_binary.py; test_binary.py says what ours does instead."""
import pytest

import binary as b
from binary import BinaryClient
from sessions_binary import DELETES, FLUSHES, OPCODES, OTHERS, UNKNOWN, one, sessions


def run(daemon, steps):
    """All answers. CAS ids are numbered by their first appearance, as they count what a daemon has ever stored."""
    seen, answers, cas = {0: 0}, [], 0
    with BinaryClient(daemon.port) as client:
        for step in steps:
            got = client.all(b"".join(make(cas) for make in step))
            for answer in got:
                cas = (answer and answer.cas) or cas
                answers.append(answer and answer._replace(cas=seen.setdefault(answer.cas, len(seen))))
            if None in got:
                break
    return answers


def compare(ours, theirs, cases):
    count = 0
    for name, steps in cases:
        assert run(ours, steps) == run(theirs, steps), name
        count += 1
    assert count > 0


@pytest.mark.parametrize("opcode", OPCODES, ids=hex)
def test_same_answers_as_memcached(dram_daemon, memcached, opcode):
    """Right and wrong packets of an opcode, on all kinds of objects."""
    compare(dram_daemon, memcached, sessions(opcode))


def test_same_answers_to_what_is_no_command(dram_daemon, memcached):
    """Opcodes that nobody has: all of them bare, some in all shapes."""
    compare(dram_daemon, memcached, (one(hex(opcode), b.packet(opcode)) for opcode in UNKNOWN))
    compare(dram_daemon, memcached, (case for opcode in UNKNOWN[::16] for case in sessions(opcode)))


@pytest.mark.parametrize("name, steps", OTHERS, ids=[name for name, _ in OTHERS])
def test_same_answers_in_longer_sessions(dram_daemon, memcached, name, steps):
    """Pipelines, broken packets, reports."""
    compare(dram_daemon, memcached, [(name, steps)])


@pytest.mark.parametrize("options, opcodes", [
    (["-C"], [b.GET, b.SET, b.ADD, b.APPEND, b.INCR, b.DELETE, b.TOUCH, b.GATK]), (["-F"], [b.FLUSH, b.FLUSHQ]),
    (["-B", "binary"], [b.GET, b.NOOP]), (["-I", "2m"], [b.SETQ, b.APPEND])], ids=lambda value: " ".join(map(str, value)))
def test_same_answers_with_options(start, memcached, options, opcodes):
    """-C shows no ids, and compares none in set; -F refuses to flush; -I moves the limit."""
    ours, theirs = start(*options), start(*options, program=memcached.program)
    for opcode in opcodes:
        compare(ours, theirs, sessions(opcode))


COUNTED = ["cmd_get", "cmd_set", "cmd_flush", "cmd_touch", "get_hits", "get_misses", "get_expired", "get_flushed", "delete_misses", "delete_hits",
           "incr_misses", "incr_hits", "decr_misses", "decr_hits", "cas_misses", "cas_hits", "cas_badval", "touch_hits",
           "touch_misses", "store_too_large", "store_no_memory", "auth_cmds", "auth_errors", "total_items", "curr_items"]


@pytest.mark.parametrize("opcode", OPCODES, ids=hex)
def test_same_counters_as_memcached(start, memcached, opcode):
    """What stats count of a command, on all kinds of objects."""
    daemons = [start(), start("-U", "0", program=memcached.program)]
    before = [daemon.stats() for daemon in daemons]
    for name, steps in sessions(opcode):
        for daemon in daemons:
            run(daemon, steps)
        after = [daemon.stats() for daemon in daemons]
        ours, theirs = ({counter: int(now[counter]) - int(was[counter]) for counter in COUNTED} for was, now in zip(before, after))
        if opcode in FLUSHES:  # what is flushed goes when somebody meets it, a crawler of either one perhaps
            theirs |= {counter: ours[counter] for counter in ("curr_items", "get_flushed")}
        if opcode in DELETES and name.split(", ")[1:2] in (["wrong id"], ["one id"]):
            theirs["delete_misses"] = ours["delete_misses"]  # ours is a miss, as memcached's own md counts it
        assert ours == theirs, name
        before = after
