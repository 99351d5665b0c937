# SPDX-License-Identifier: BSD-3-Clause
"""Sessions at random: pipelines of commands on two keys, cut into pieces at any place.

A command that changes a number doesn't follow a read of its key in the same step: while memcached sends a value
it stores a new one beside it, with other marks, so that its answers depend on how fast it sends."""
import random
import re

import tables
from meta_sessions import right_flags
from parts import LOOK, STATES
from session import Session
from text_sessions import SHAPES, Command

COUNT = 2500
READS = re.compile(rb"^(?:b?get|gets|gats?|mg|me) ")
COUNTS = re.compile(rb"^(?:incr|decr|ma) ")
KEYS = [b"%k", b"%k", b"%j", b"%j", b"%n"]
# Wrong ones that leave the connection in step.
WRONG = [b"get\r\n", b"incr %k x\r\n", b"incr %k 1 2 3\r\n", b"touch %k x\r\n", b"delete %k 1\r\n", b"nonsense\r\n", b"\r\n", b"mg %k z\r\n",
         b"mg\r\n", b"set %k 0 0\r\n", b"set %k 0 0 2\r\nabXY", b"set %k 0 0 2 noreply\r\nabXY", b"cas %k 0 0 x 1\r\n", b"ma %k MX\r\n",
         b"ms %k 2 Tx\r\nab\r\n", b"ms %k 2\r\nabXY", b"md %k z\r\n", b"me\r\n", b"gat x %k\r\n", b"verbosity\r\n", b"set %k 0 0 1 noreply x\r\nx\r\n"]
NEUTRAL = [b"version\r\n", b"mn\r\n", b"get %n\r\n", b"mg %k v q\r\nmg %j v q\r\nmn\r\n", b"get %k %j %n %k\r\n", b"gets %j %k\r\n"]


def classic_lines():
    lines = []
    for command in tables.text_commands():
        if command.shape in SHAPES:
            lines += [data for _, data in Command(command).right()]
    return lines


def meta_line(chance):
    name = chance.choice((b"mg", b"ms", b"md", b"ma"))
    flags = [flag for flag in right_flags() if not (name == b"ms" and flag[:1] in b"sN" or flag in (b"N-1", b"T-1", b"T2592001")) and
             (flag[:1] != b"M" or flag[1:] in (b"SEAPR" if name == b"ms" else b"ID"))]
    some = {flag[:1]: flag for flag in chance.sample(flags, chance.choice((0, 1, 2, 3, 5)))}
    words = [name, b"%k"] + ([b"2"] if name == b"ms" else []) + list(some.values())
    return b" ".join(words) + b"\r\n" + (b"%d\r\n" % chance.randrange(10, 100) if name == b"ms" else b"")


def choose(chance, lines):
    kind = chance.random()
    if kind < 0.5:
        line = chance.choice(lines)
    elif kind < 0.85:
        line = meta_line(chance)
    else:
        line = chance.choice(WRONG + NEUTRAL)
    return line.replace(b"%k", chance.choice(KEYS))


def steps(chance, lines):
    """Commands, and a new step where a number would be changed that is being sent."""
    made, step, read = [], b"", set()
    for _ in range(chance.choice((2, 3, 5, 8, 13, 25))):
        line = choose(chance, lines)
        if read and COUNTS.match(line):
            made.append(step)
            step, read = b"", set()
        if READS.match(line):
            read.add(line)
        step += line
    return made + [step]


def groups(seed):
    chance = random.Random(seed)
    lines = classic_lines()
    found = []
    for number in range(COUNT):
        states = [chance.choice(list(STATES)) for _ in range(2)]
        prepare = STATES[states[0]] + STATES[states[1]].replace(b"%k", b"%j")
        cuts = [chance.random() for _ in range(chance.choice((0, 1, 3, 8)))]
        found.append(Session(f"pipeline {number}, {' '.join(states)}", prepare + b"gets %k\r\n", *steps(chance, lines),
                             LOOK + LOOK.replace(b"%k", b"%j"), cuts=cuts))
    return {"pipelines": found}
