# SPDX-License-Identifier: BSD-3-Clause
"""A scripted session: what a client sends on a connection of its own, and what came back.

Bytes that are sent are templates, so that each run of a session has keys that nobody else uses:

    %k %j   two keys               %L      a key of 250 bytes     %c   the id that was seen last
    %n      a key that nobody sets %K      one of 251             %d   that id and a million: nobody's
    %b %a   %k and %j in base64    %%      a percent sign
"""
import base64
import collections
import itertools
import re

Outcome = collections.namedtuple("Outcome", "end answer")  # end: open, closed, or waiting for more

PLACE = re.compile(rb"%([kjnLKbacd%])")
serial = itertools.count(1)


class Keys:
    """The keys of one run."""

    def __init__(self, number=None):
        number = next(serial) if number is None else number
        self.stem = b"w%06x" % number
        self.of = {b"k": self.stem + b"k", b"j": self.stem + b"j", b"n": self.stem + b"n",
                   b"L": self.stem.ljust(250, b"L"), b"K": self.stem.ljust(251, b"K"), b"%": b"%"}
        self.of[b"b"] = base64.b64encode(self.of[b"k"])
        self.of[b"a"] = base64.b64encode(self.of[b"j"])

    def fill(self, template, cas=0):
        ids = {b"c": b"%d" % cas, b"d": b"%d" % (cas + 1000000)}
        return PLACE.sub(lambda found: self.of.get(found.group(1)) or ids[found.group(1)], template)


class Session:
    """Steps are templates, each sent when the one before it has been answered: ids come from answers. A step may be
    a function of Keys and the last id instead (binary packets, which have lengths). Pieces: a step is cut into so
    many, sent one after the other."""

    __slots__ = ("name", "steps", "binary", "cuts")

    def __init__(self, name, *steps, binary=False, cuts=()):
        self.name = name
        self.steps = steps
        self.binary = binary
        self.cuts = cuts  # fractions of a step's length

    def step(self, number, keys, cas):
        step = self.steps[number]
        return step(keys, cas) if callable(step) else keys.fill(step, cas)

    def text(self):
        """All of it, for reading and for the patterns of what is intended to differ."""
        keys = Keys(0)
        return b"".join(step(keys, 0) if callable(step) else step for step in self.steps)

    def pieces(self, data):
        ends = sorted({round(cut * len(data)) for cut in self.cuts} | {len(data)})
        return [data[start:end] for start, end in zip([0, *ends], ends) if end > start]
