# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of the classic text commands, by the shape that the table of commands gives each."""
import itertools

import tables
from parts import BETWEEN, EXTRA, FAULTS, FEW, KEYS, LINE_ENDS, LINE_STARTS, LOOK, LOOK_SHORT, NUMBERS, STATES
from session import Session

# Of each shape the words behind the name, as they are right: [(what it is, word)].
SHAPES = {
    "KEYS": [("key", b"%k")],
    "EXPIRY_KEYS": [("exptime", b"100"), ("key", b"%k")],
    "STORE": [("key", b"%k"), ("flags", b"3"), ("exptime", b"0"), ("bytes", b"2")],
    "STORE_CAS": [("key", b"%k"), ("flags", b"3"), ("exptime", b"0"), ("bytes", b"2"), ("id", b"%d")],
    "DELTA": [("key", b"%k"), ("delta", b"3")],
    "KEY": [("key", b"%k")],
    "TOUCH": [("key", b"%k"), ("exptime", b"100")],
}
# These change or show the daemon as a whole: their sessions are in admin_sessions.py.
ELSEWHERE = {"DELAY", "LEVEL", "WORDS", "META"}

BLOCK = b"27\r\n"
BLOCKS = [b"2\r\n", b"279\r\n", b"27", b"27\n\r\n", b"27\n", b"27\r", b"27xy\r\n", b"27\rx\r\n", b"2\0\r\n", b"\r\n\r\n", b"\r\n", b"27\r\n\r\n",
          b" 27\r\n", b"\0\0\r\n", b"27 \r\n", b"27\r\nversion\r\n", b"279999999999999999999999\r\n", b"2\r\nversion\r\n"]


def line(name, words, block=b""):
    return b" ".join([name, *words]) + b"\r\n" + block


class Command:
    """Lines of one command, right and wrong ones."""

    def __init__(self, command):
        self.name = command.name
        self.kinds = [kind for kind, _ in SHAPES[command.shape]]
        self.words = [word for _, word in SHAPES[command.shape]]
        self.block = BLOCK if "bytes" in self.kinds else b""

    def whole(self, words=None, block=None):
        return line(self.name, self.words if words is None else words, self.block if block is None else block)

    def with_word(self, place, word):
        return [*self.words[:place], word, *self.words[place + 1:]]

    def right(self):
        """What clients send."""
        yield "right", self.whole()
        if "key" in self.kinds[:1] and self.name not in (b"get", b"gets", b"bget"):
            yield "noreply", self.whole([*self.words, b"noreply"])
        if "exptime" in self.kinds:
            for exptime in (b"0", b"-1", b"100", b"2592000", b"2592001", b"2000000000"):
                yield f"exptime {exptime.decode()}", self.whole(self.with_word(self.kinds.index("exptime"), exptime))
        if "bytes" in self.kinds:
            for length in (0, 1, 1000, 3000, 20000):
                words = self.with_word(self.kinds.index("bytes"), b"%d" % length)
                yield f"{length} bytes", self.whole(words, b"7" * length + b"\r\n")
        if "delta" in self.kinds:
            for delta in (b"0", b"1", b"9", b"10", b"99", b"1000", b"18446744073709551615"):
                yield f"delta {delta.decode()}", self.whole(self.with_word(1, delta))

    def numbers(self):
        """Each number in turn all that it can be."""
        for (place, kind), number in itertools.product(enumerate(self.kinds), NUMBERS):
            if kind == "key":
                continue
            block = self.block
            if kind == "bytes" and number in (b"0", b"1", b"+1", b"+0", b"010", b"0" * 30 + b"1"):
                block = b"2" * int(number) + b"\r\n"
            elif kind == "bytes" and number in (b"2147483646",):
                continue  # two gigabytes would have to follow
            yield f"{kind} {ascii(number)[2:-1]}", self.whole(self.with_word(place, number), block)

    def words_missing(self):
        for count in range(len(self.words)):
            yield f"{count} words", self.whole(self.words[:count])
            yield f"{count} words, noreply", self.whole([*self.words[:count], b"noreply"])

    def words_extra(self):
        for extra in EXTRA:
            yield f"extra {ascii(extra[:20])[2:-1]}", self.whole([*self.words, extra])
        for place in range(len(self.words)):
            yield f"noreply at {place}", self.whole([*self.words[:place], b"noreply", *self.words[place:]])
            yield f"noreply for {place}", self.whole(self.with_word(place, b"noreply"))

    def blanks(self):
        head = b" ".join([self.name, *self.words])
        for start in LINE_STARTS:
            yield f"starts with {ascii(start)[2:-1]}", start + self.whole()
        for end in LINE_ENDS:
            yield f"ends with {ascii(end)[2:-1]}", head + end + self.block
        for between, place in itertools.product(BETWEEN, range(len(self.words))):
            words = [self.name, *self.words]
            joined = b" ".join(words[:place + 1]) + between + b" ".join(words[place + 1:])
            yield f"{ascii(between)[2:-1]} before word {place}", joined + b"\r\n" + self.block

    def keys(self):
        place = self.kinds.index("key")
        for key in KEYS:
            yield f"key {ascii(key)[2:-1]}", self.whole(self.with_word(place, key))
            yield f"key {ascii(key)[2:-1]}, noreply", self.whole([*self.with_word(place, key), b"noreply"])

    def pairs(self):
        """Two faults in a line: which one is told?"""
        faults = [(place, word) for place, kind in enumerate(self.kinds) for word in (FAULTS if kind != "key" else [b"%K"])]
        for (place, word), (other, second) in itertools.combinations(faults, 2):
            if place != other:
                words = self.with_word(place, word)
                words[other] = second
                yield f"{self.kinds[place]} {word.decode()}, {self.kinds[other]} {second.decode()}", self.whole(words)
        for (place, word), extra in itertools.product(faults, (b"x", b"noreply", b"noreply x", b"x x x", b"x noreply")):
            yield f"{self.kinds[place]} {word.decode()}, extra {extra.decode()}", self.whole([*self.with_word(place, word), extra])
        for place, word in faults:
            yield f"{self.kinds[place]} {word.decode()}, last", self.whole(self.with_word(place, word)[:place + 1])

    def blocks(self):
        for block in BLOCKS if self.block else []:
            yield f"block {ascii(block[:12])[2:-1]}", self.whole(block=block)
            yield f"block {ascii(block[:12])[2:-1]}, noreply", self.whole([*self.words, b"noreply"], block)

    def wrong(self):
        for variants in (self.numbers, self.words_missing, self.words_extra, self.blanks, self.keys, self.pairs, self.blocks):
            yield from variants()
        yield "capitals", self.whole().replace(self.name, self.name.upper(), 1)
        yield "one letter more", self.name + self.whole()
        yield "nothing but the name and a blank", self.name + b" \r\n"


def with_id(name, state, data):
    """cas with the id that the object has, and what is no id of its."""
    for which, id_ in (("its", b"%c"), ("another", b"%d"), ("0", b"0"), ("greatest", b"18446744073709551615")):
        act = data.replace(b"%d", id_)
        yield Session(f"{name}, {state}, {which} id", STATES[state] + b"gets %k\r\n", act + LOOK)


def multigets(name, before):
    """Several keys, some of them there, some too long."""
    store = b"set %k 1 0 1\r\na\r\nset %j 2 0 2\r\nbc\r\nset %L 3 0 0\r\n\r\n"
    lists = [b"%k %j", b"%j %k %n %L", b"%k %k %k", b"%n %n", b"%n %k", b"%k  %n   %j ", b"%k %K %j", b"%K %k %j", b"%k %j %K", b"%n %K",
             b"%k " * 23 + b"%j", b"%k " * 24 + b"%j", b"%k " * 25 + b"%j", b"%n " * 99 + b"%k", b"%k " * 30 + b"%K", b"%k " * 23 + b"%K",
             b"%k " * 24 + b"%K", b"%k\t%j", b"%k\r%j", b"%k\0 %j", b"%k noreply", b"%k %j noreply", b"%L %L %L %L", b"%K %K",
             b"%k %j" + b" " * 40, b"0 %k", b"-1 %k"]
    for keys in lists:
        yield Session(f"{name} {ascii(keys[:30])[2:-1]}", store + name_of(name) + before + b" " + keys + b"\r\n" + LOOK_SHORT)


def name_of(name):
    return name.encode()


def sessions(command):
    """All sessions of one command of the table."""
    made, name = Command(command), command.name.decode()
    for state, (variant, data) in itertools.product(STATES, made.right()):
        if command.shape == "STORE_CAS":
            yield from with_id(f"{name} {variant}", state, data)
        else:
            yield Session(f"{name} {variant}, {state}", STATES[state], data + LOOK)
    for state, (variant, data) in itertools.product(FEW, made.wrong()):
        yield Session(f"{name} {variant}, {state}", STATES[state], data + LOOK_SHORT)
    if command.shape in ("KEYS", "EXPIRY_KEYS"):
        yield from multigets(name, b" 0" if command.shape == "EXPIRY_KEYS" else b"")
    if command.shape in ("STORE", "STORE_CAS"):
        yield from too_large(made, name)


def too_large(made, name):
    large = b"x" * 1100000
    words = made.with_word(3, b"%d" % len(large))
    for state, noreply in itertools.product(("absent", "number"), (False, True)):
        yield Session(f"{name}, too large, {state}, {noreply}",
                      STATES[state] + made.whole([*words, b"noreply"] if noreply else words, large + b"\r\n") + LOOK_SHORT)
    half = b"set %k 0 0 600000\r\n" + b"y" * 600000 + b"\r\n"
    yield Session(f"{name}, too large together", half + made.whole(made.with_word(3, b"600000"), b"x" * 600000 + b"\r\n") + LOOK_SHORT)


# ---- groups ------------------------------------------------------------------------------------------

def groups(commands=None):
    """{group: [Session]} of all commands with a shape that is known here."""
    found = {}
    for command in commands or tables.text_commands():
        if command.shape in SHAPES:
            found[f"text {command.name.decode()}"] = list(sessions(command))
        else:
            assert command.shape in ELSEWHERE, f"no sessions for the shape {command.shape} of {command.name}"
    return found
