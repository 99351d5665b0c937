# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of the meta commands: each flag with all the tokens that it can have, pairs of flags, what is wrong with a line,
keys in base64, and values."""
import itertools
import random

import tables
from parts import FEW, KEYS, LINE_ENDS, LINE_STARTS, LOOK, LOOK_SHORT, NUMBERS, STATES
from session import Session

# Tokens that are right for a flag, by what the parser says that it is.
TOKENS = {
    "PLAIN": [b""],
    "ANSWERED": [b""],
    "OPAQUE": [b"1", b"opaque", b"", b"1234567890123456789012345678901"],
    "BASE64": [b""],
    "MODE": [b"S", b"E", b"A", b"P", b"R", b"I", b"D", b"+", b"-", b"e", b"a", b"p", b"r", b"s", b"i", b"d"],
    "NUMBER": [b"0", b"1", b"30", b"500", b"-1", b"18446744073709551615"],
}
# What is right for one flag alone.
OWN_TOKENS = {
    b"C": [b"0", b"1", b"%c", b"%d"], b"E": [], b"x": [],  # E and x came after 1.6.18: see newer()
    b"N": [b"0", b"30", b"-1"], b"R": [b"0", b"30", b"400", b"600", b"-1"], b"T": [b"0", b"30", b"-1", b"2592001"],
    b"F": [b"0", b"9", b"4294967295"], b"J": [b"0", b"13", b"18446744073709551615"], b"D": [b"0", b"5", b"11", b"18446744073709551615"],
}
BLOCK = b"27\r\n"
NAMES = {"META_GET": b"mg", "META_SET": b"ms", "META_DELETE": b"md", "META_ARITHMETIC": b"ma", "META_DEBUG": b"me", "META_NOOP": b"mn"}
OPAQUE_32 = b"O" + b"o" * 32  # a byte longer than one may be
FLAGGED = [b"mg", b"ms", b"md", b"ma"]
FIRST_FLAGS = b"C1 D1 F1 I J1 L N0 O1 P R1 T0 c f h k l q t u v".split()


def shown(data):
    return ascii(data[:30])[2:-1]


def act(name, flags, key=b"%k", length=b"2", block=BLOCK, end=b"\r\n"):
    words = [name, key] + ([length] if name == b"ms" else []) + ([flags] if flags else [])
    return b" ".join(words) + end + (block if name == b"ms" else b"")


def right_flags():
    """Every flag of the table with every token that is right for it."""
    for letter, kind in sorted(tables.meta_flags().items()):
        for token in OWN_TOKENS.get(letter, TOKENS[kind]):
            if kind != "BASE64":
                yield letter + token


def once(name, label, state, flags, look=LOOK, **more):
    """One command on a key in a state; an id that it names is the key's."""
    line = act(name, flags, **more)
    if b"%c" in line or b"%d" in line:
        return Session(f"{name.decode()} {label}, {state}", STATES[state] + b"gets %k\r\n", line + look)
    return Session(f"{name.decode()} {label}, {state}", STATES[state], line + look)


def single(name):
    for flags, state in itertools.product([b"", *right_flags()], STATES):
        yield once(name, shown(flags), state, flags + (b" v" if flags and name == b"ma" else b""))


def pairs(name, chance):
    """Two or more flags that are right."""
    flags = [flag for flag in right_flags() if flag[:1] not in b"SLP"]
    states = list(STATES)
    for count in range(900):
        some, letters = [], set()
        for flag in chance.sample(flags, chance.choice((2, 2, 3, 4, 6))):
            if flag[:1] not in letters:
                some.append(flag)
                letters.add(flag[:1])
        yield once(name, f"{count} {shown(b' '.join(some))}", chance.choice(states), b" ".join(some))


def wrong(name):
    """Lines with a fault, or two."""
    kinds = tables.meta_flags()
    lines = []
    for letter in [letter for letter, kind in kinds.items() if kind == "NUMBER" and letter != b"E"]:
        for number in NUMBERS + [b"", b" 5"]:
            if number != b"2147483646":
                lines.append(letter + number)
    lines += [b"%c" % letter for letter in range(1, 256) if bytes([letter]) not in kinds and letter not in b"\n\r "]
    lines += [flag + b" " + flag for flag in FIRST_FLAGS]
    lines += [b"M", b"MX", b"MSS", b"MEA", b"M\t", b"MS MX", b"MX MX", b"O1234567890123456789012345678901 k", b"b", b"b k", b"k b",
              b"b b", b"v v", b"v z", b"z z", b"b z", b"z b", b"b Tx", b"Tx b", b"Tx z", b"z Tx", b"Dx z", b"MXX Tx", b"Tx MXX", b"T1 Tx",
              b"Tx T1", b"MX Tx", b"Tx MX", b"Fx Tx", b"Tx Fx", b"Fx z", b"z Fx", b"Cx Nx", b"Jx Dx", b"Dx Jx", b"Dx Cx", b"Cx Dx",
              b"vv", b"v1 k2", b"q z", b"k O1 z", b"k O1 MX", b"q MX", b"q Tx", b"k q k", b"v\tk", b"v\rk", b"\t", b"\tv", b"v\t", b"vk",
              b"noreply", b"v noreply", b"I1 v", b"S", b"S5", b"s5", b"c5 v", b"t5 v", b"q1 v", b"T-1 t", b"T2592001 t v", b"h l t f s c k v u O7 q T5 N5 R5 C5 F5 J5 D5",
              *(OPAQUE_32 + flags for flags in (b"", b" z", b" Tx", b" v", b" N30", b" q", b" MX"))]
    lines += [b" ".join(FIRST_FLAGS[:count]) for count in range(14, 21)] + [b"z " * 30, b"v " * 16, b"v " * 17, b"v " * 18, b"v " * 40]
    for flags, state in itertools.product(lines, FEW):
        yield once(name, shown(flags), state, flags, LOOK_SHORT)


def shapes(name):
    """Keys, blanks, words too few."""
    for key, state in itertools.product(KEYS, FEW):
        yield once(name, f"key {shown(key)}", state, b"v k", LOOK_SHORT, key=key)
        yield once(name, f"key {shown(key)}, q", state, b"q", LOOK_SHORT, key=key)
        yield once(name, f"key {shown(key)}, a wrong flag", state, b"z", LOOK_SHORT, key=key)
    for end, state in itertools.product(LINE_ENDS, FEW):
        yield once(name, f"ends with {shown(end)}", state, b"v k", LOOK_SHORT, end=end)
    for start in LINE_STARTS:
        yield Session(f"{name.decode()} starts with {shown(start)}", start + act(name, b"k v") + LOOK_SHORT)
    for line in (name, name + b" ", name + b"  ", name + b" %k" if name != b"ms" else b"ms %k ", b"  " + name + b"   %k   ", name + b"x %k",
                 name.upper() + b" %k", name + b"\t%k", name + b" -", name + b" " + b"a" * 1900, name + b" a" * 25, name + b" %k" + b" " * 50):
        for state in FEW:
            yield Session(f"{shown(line)}, {state}", STATES[state], line + b"\r\n" + LOOK_SHORT)


def base64_keys(name):
    """The whole session names its keys so: how a key came is remembered with the object in memcached."""
    for key in (b"a", b"YQ", b"YQ=a", b"YR==", b"=", b"====", b"Y===", b"!!!!", b"YWFhY", b"a2tr" * 62 + b"a", b"a2tr" * 63, b"YW-_",
                b"YW\tJj", b"%b=", b"=%b", b"%b%a"):
        for flags in (b"b", b"b k", b"k b O1", b"v b", b"q b", b"b q k"):
            yield once(name, f"base64 {shown(key)} {shown(flags)}", "absent", flags, b"mg " + key + b" b k v t\r\n", key=key)
    for flags, prepare in itertools.product((b"b", b"b k", b"k v b", b"b q k", b"b t s f c k", b"b T30 t", b"b N30 k", b"b I k", b"b MA k", b"b MI v k"),
                                            (b"", b"ms %b 2 b F5\r\n10\r\n", b"ms %b 2 b\r\n10\r\nmd %b b I\r\n")):
        yield Session(f"{name.decode()} base64 {shown(flags)} {shown(prepare)}", prepare,
                      act(name, flags, key=b"%b") + b"me %b b\r\nmg %b b k t f s v\r\nmg %b b\r\nmd %b b q\r\n")


def values():
    """ms: lengths and data blocks."""
    for number, state in itertools.product(NUMBERS + [b"S2", b"", b"q"], FEW):
        if number == b"2147483646":
            continue
        small = number in (b"0", b"1", b"+1", b"+0", b"010", b"0" * 30 + b"1")
        yield once(b"ms", f"length {shown(number)}", state, b"k", LOOK_SHORT, length=number,
                   block=b"2" * int(number) + b"\r\n" if small else BLOCK)
    for block, flags, state in itertools.product(
            (b"2\r\n", b"279\r\n", b"27\n", b"27\r", b"27xy\r\n", b"27\rx\r\n", b"\r\n\r\n", b"27\r\n\r\n", b"\0\0\r\n", b"27\r\nversion\r\n",
             b"27XYversion\r\n"), (b"", b"q", b"k O1", b"z", b"Tx", b"MX", b"ME", b"C5 k", b"I"), FEW):
        yield once(b"ms", f"block {shown(block)} {shown(flags)}", state, flags, LOOK_SHORT, block=block)
    large = b"x" * 1100000 + b"\r\n"
    for flags, state in itertools.product((b"", b"q", b"k O1", b"ME", b"MA", b"MR q", b"C5", b"I C5", b"z", b"MX"), FEW):
        yield once(b"ms", f"too large {shown(flags)}", state, flags, LOOK_SHORT, length=b"1100000", block=large)
    half = b"y" * 600000 + b"\r\n"
    for flags in (b"MA k", b"MP q"):
        yield Session(f"ms too large together {shown(flags)}", b"set %k 0 0 600000\r\n" + half,
                      act(b"ms", flags, length=b"600000", block=half) + b"mg %k s\r\n")


def others():
    """me and mn: of their words only the key, and a b behind it, mean something."""
    for state, words in itertools.product(STATES, (b"%k", b"%k b", b"%b b", b"%k v", b"%k k q", b"%n", b"", b"%K", b"%k " + b"x " * 30)):
        yield Session(f"me {shown(words)}, {state}", STATES[state] + b"me " + words + b"\r\n" + LOOK)
    for line in (b"mn", b"mn ", b" mn", b"mn x", b"mn q", b"mn" + b" x" * 40, b"mn\n", b"mn\t", b"mnx", b"MN", b"mx %k", b"m"):
        yield Session(f"{shown(line)}", STATES["number"] + line + b"\r\n" + LOOK)


def newer():
    """What releases after 1.6.18 have."""
    for name, flags in itertools.product(FLAGGED, (b"E77", b"x", b"E0", b"x I")):
        yield once(name, f"newer {flags.decode()}", "number", flags + b" c" * (b"E" in flags), LOOK_SHORT)
    for mode, flags in itertools.product((b"MA", b"MP"), (b"N30", b"N0 F7 T50", b"N-1", b"N30 q")):
        yield once(b"ms", f"newer {flags.decode()}", "absent", mode + b" " + flags, LOOK_SHORT)
    yield Session("mg newer C", STATES["number"] + b"mg %k c\r\n", b"mg %k C%c v\r\nmg %k C%d v\r\n" + LOOK_SHORT)
    yield once(b"ms", "newer s", "number", b"s k", LOOK_SHORT)


def groups(seed=1):
    chance = random.Random(seed)
    commands = {command.id for command in tables.text_commands() if command.shape == "META"}
    assert commands == set(NAMES), f"no sessions for {commands ^ set(NAMES)}"
    found = {}
    for name in FLAGGED:
        found[f"meta {name.decode()}"] = [*single(name), *pairs(name, chance), *wrong(name), *shapes(name), *base64_keys(name)]
    found["meta ms"] += values()
    found["meta me mn"] = list(others())
    found["meta newer"] = list(newer())
    return found
