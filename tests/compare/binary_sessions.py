# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of the binary protocol, by the shape that the table of opcodes gives each: all lengths of extras, key and value;
each opcode on each kind of object, with each kind of id; times; values too large; opcodes that nobody has; pipelines."""
import functools
import itertools
import random
import struct

import binary as b
import tables
from session import Session

# The shape of an opcode: how many bytes of extras, and has it a key, a value?
KEYED = {"KEY", "STORE", "JOIN", "DELTA", "TOUCH"}
SHAPES = KEYED | {"FLUSH", "LEVEL", "STAT", "EMPTY", "SASL"}
EXTRAS = {"STORE": 8, "DELTA": 20, "TOUCH": 4, "FLUSH": 4, "LEVEL": 4}
GETS = [b.GET, b.GETQ, b.GETK, b.GETKQ]
STATES = {
    "absent": [], "text": [(b"some text", 0xdeadbeef, 0)], "number": [(b"10", 7, 0)], "empty": [(b"", 1, 0)],
    "large": [(b"v" * 5000, 2, 0)], "greatest": [(b"18446744073709551615", 0, 0)], "expiring": [(b"42", 3, 500)],
    "expired": [(b"42", 3, 0xffffffff)], "blanks": [(b" 5 x", 0, 0)], "replaced": [(b"old", 1, 9), (b"12", 0, 0)],
}
IDS = {"no": lambda cas: 0, "its": lambda cas: cas, "another": lambda cas: cas + 1000000}
TIMES = (0, 1, 100, 2592000, 2592001, 1000000000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff)


def step(*makers):
    """Packets as one step; each is a function of the key and the id that was seen last."""
    return lambda keys, cas: b"".join(make(keys.of[b"k"], cas) for make in makers)


def fixed(data):
    return lambda key, cas: data


def prepare(state):
    return [lambda key, cas, one=one: b.store(b.SETQ, key, one[0], flags=one[1], exptime=one[2]) for one in STATES[state]] + [look]


def look(key, _cas):
    return b.packet(b.GETK, key)


def session(name, *steps):
    return Session(name, *steps, binary=True)


def right(command):
    """Functions (key, cas=...) that make packets of a command that has a key."""
    op = command.opcode
    if command.shape == "KEY":
        return [functools.partial(b.packet, op)]
    if command.shape == "STORE":
        return [lambda key, cas, value=value, exptime=exptime: b.store(op, key, value, flags=9, exptime=exptime, cas=cas)
                for value, exptime in ((b"", 0), (b"new value", 0), (b"n" * 3000, 0), (b"7", 100))]
    if command.shape == "JOIN":
        return [lambda key, cas, value=value: b.packet(op, key, value, cas=cas) for value in (b"", b"5", b"j" * 3000)]
    if command.shape == "DELTA":
        return [lambda key, cas, delta=delta, initial=initial, exptime=exptime: b.count(op, key, delta, initial, exptime, cas=cas)
                for delta in (0, 1, 11, 90, 2 ** 64 - 1) for initial, exptime in
                ((5, b.NO_CREATE), (0, 0), (5, 100), (2 ** 64 - 1, 0))]
    return [lambda key, cas, exptime=exptime: b.touch(op, key, exptime, cas=cas) for exptime in (0, 100, 2592000, 0x7fffffff, 0xffffffff)]


def on_objects(command):
    for state, (which, id_of), (number, make) in itertools.product(STATES, IDS.items(), enumerate(right(command))):
        def act(key, cas, make=make, id_of=id_of):
            return make(key, cas=id_of(cas))
        yield session(f"{hex(command.opcode)} variant {number}, {state}, {which} id", step(*prepare(state)), step(act), step(look, look))


def misshapen(command):
    """Extras, keys and values that are there or not, right or wrong."""
    op = command.opcode
    for extras, length, value in itertools.product((0, 1, 3, 4, 5, 8, 9, 19, 20, 21, 255), (0, 7, 250, 251, 300), (0, 1, 9)):
        if op == b.STAT and extras == length == value == 0 or command.shape == "FLUSH" and length == value == 0 and extras in (0, 4):
            continue  # right ones, which have sessions of their own

        def act(key, _cas, extras=extras, length=length, value=value):
            return b.packet(op, key[:length].ljust(length, b"k"), b"v" * value, b"\0" * extras)
        yield session(f"{hex(op)}, {extras} of extras, {length} of key, {value} of value", step(act))


def broken(command):
    """Lengths that lie, other magic bytes, fields that nobody looks at."""
    op, extras = command.opcode, bytes(EXTRAS.get(command.shape, 0))
    for name, more in (("key beyond the body", {"key_length": 40, "body": 20}), ("extras beyond the body", {"body": 0}),
                       ("datatype and vbucket", {"datatype": 5, "vbucket": 77}), ("an answer's magic", {"magic": 0x81}),
                       ("another magic", {"magic": 0x00})):
        yield session(f"{hex(op)}, {name}", step(lambda key, cas, more=more: b.packet(
            op, key if command.shape in KEYED | {"STAT"} else b"", b"", extras, **more), look))


def times(command):
    op = command.opcode
    for exptime, state in itertools.product(TIMES, ("absent", "number")):
        if command.shape == "STORE":
            act = lambda key, cas, exptime=exptime: b.store(op, key, b"v", exptime=exptime)  # noqa: E731
        elif command.shape == "DELTA":
            act = lambda key, cas, exptime=exptime: b.count(op, key, exptime=exptime)  # noqa: E731
        else:
            act = lambda key, cas, exptime=exptime: b.touch(op, key, exptime)  # noqa: E731
        yield session(f"{hex(op)}, {state}, exptime {exptime}", step(*prepare(state)), step(act), step(look))


def too_large(command):
    op, large, half = command.opcode, b"x" * 1100000, b"y" * 600000
    extras = bytes(EXTRAS.get(command.shape, 0))
    for state in ("absent", "text"):
        yield session(f"{hex(op)}, {state}, too large", step(*prepare(state)),
                      step(lambda key, cas: b.packet(op, key, large, extras), look))
    yield session(f"{hex(op)}, too large together", step(lambda key, cas: b.store(b.SET, key, half)),
                  step(lambda key, cas: b.packet(op, key, half, extras), look))


def sessions(command):
    assert command.shape in SHAPES, f"no sessions for the shape {command.shape} of opcode {command.opcode}"
    yield from misshapen(command)
    yield from broken(command)
    if command.shape in KEYED:
        yield from on_objects(command)
    if command.shape in ("STORE", "DELTA", "TOUCH"):
        yield from times(command)
    if command.shape in ("STORE", "JOIN"):
        yield from too_large(command)


# ---- what is no command, reports, pipelines ----------------------------------------------------------

def unknown(commands):
    known = {command.opcode for command in commands}
    for op in sorted(set(range(256)) - known):
        yield session(f"{hex(op)}, bare", step(fixed(b.packet(op)), look))
        for extras, length, value in ((0, 0, 9), (4, 0, 0), (0, 7, 0), (8, 7, 3), (0, 251, 0)):
            yield session(f"{hex(op)}, {extras} of extras, {length} of key, {value} of value", step(
                lambda key, cas, op=op, extras=extras, length=length, value=value:
                b.packet(op, key.ljust(length, b"k")[:length], b"v" * value, bytes(extras)), look))


REPORTS = [b"nothing", b"reset x", b"resetx", b"detail", b"detail x", b"detailx", b"items x", b"itemsx", b"noreply", b" settings", b"set",
           b"cachedump 1 0", b"cachedump", b"\xff" * 250, b"\0"]


def others():
    for report in REPORTS:
        yield session(f"stat {report[:20]}", step(fixed(b.packet(b.STAT, report))))
    for level in (0, 1, 2, 0xffffffff):
        yield session(f"verbosity {level}", step(fixed(b.packet(b.VERBOSITY, extras=struct.pack(">I", level)))))
    yield session("a text command behind", step(look, fixed(b"get a\r\n" * 10)))
    yield session("keys of any bytes", step(*(lambda key, cas, op=op, end=end: b.store(op, key + end, b"v") if op == b.SET else
                                              b.packet(op, key + end) for end in (b" a\r\n\0\xff", b"\0", b" a")
                                              for op in (b.SET, b.GETK, b.DELETE, b.GETK))))
    yield session("opaque of each", step(*(lambda key, cas, n=n: b.packet(b.GETK, key, opaque=n) for n in (0, 1, 0x80000000, 0xffffffff))))
    yield session("a body of four gigabytes", step(lambda key, cas: b.packet(b.GET, key, body=0xffffffff)))
    yield session("no body at all", step(lambda key, cas: b.packet(b.SET, key, b"", bytes(8), body=0)))
    for text in (b" 5", b"5 ", b"5 x", b"+5", b"-5", b"005", b"5x", b"", b"18446744073709551616", b"0x5", b"-18446744073709551615", b"\t5\n"):
        yield session(f"{text} as a number", step(lambda key, cas, text=text: b.store(b.SETQ, key, text)),
                      step(lambda key, cas: b.count(b.INCR, key)), step(look))
    for quits in (b.QUIT, b.QUITQ):
        yield session(f"{hex(quits)}, and more", step(*prepare("text"), fixed(b.packet(quits)), look))


def pipelines(commands, count, seed):
    chance = random.Random(seed)
    keyed = [command for command in commands if command.shape in KEYED and command.shape != "DELTA"]
    made = [make for command in keyed for make in right(command)]
    counts = [make for command in commands if command.shape == "DELTA" for make in right(command)]
    for number in range(count):
        packets = []
        for _ in range(chance.choice((2, 5, 10, 25))):
            make = chance.choice(made)
            id_of = chance.choice((IDS["no"], IDS["no"], IDS["its"], IDS["another"]))
            packets.append(lambda key, cas, make=make, id_of=id_of: make(key, cas=id_of(cas)))
        # Numbers change in a step of their own: not while the value is being sent, and stored anew beside it by memcached.
        change = [lambda key, cas, make=make: make(key, cas=0) for make in chance.sample(counts, 3)]
        yield Session(f"pipeline {number}", step(*prepare(chance.choice(list(STATES)))), step(*packets), step(*change), step(look),
                      binary=True, cuts=[chance.random() for _ in range(chance.choice((0, 1, 4)))])


def groups(seed=1):
    commands = tables.binary_commands()
    found = {}
    for command in commands:
        kind = command.shape if command.shape in KEYED else "EMPTY"
        found.setdefault(f"binary {kind.lower()}", []).extend(sessions(command))
    found["binary unknown"] = list(unknown(commands))
    found["binary others"] = list(others())
    found["binary pipelines"] = list(pipelines(commands, 500, seed))
    return found
