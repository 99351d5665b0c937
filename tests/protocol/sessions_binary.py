# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of the binary protocol (what the fuzz targets begin with): each a list of steps that are sent in turn,
each step a list of packets sent at once. A packet is a function of the CAS id that was seen last. Sessions write the keys
that they read, so that answers don't depend on others."""
import functools
import itertools
import struct

import binary as b

GETS = [b.GET, b.GETQ, b.GETK, b.GETKQ]
STORES = [b.SET, b.ADD, b.REPLACE, b.SETQ, b.ADDQ, b.REPLACEQ]
JOINS = [b.APPEND, b.PREPEND, b.APPENDQ, b.PREPENDQ]
COUNTS = [b.INCR, b.DECR, b.INCRQ, b.DECRQ]
TOUCHES = [b.TOUCH, b.GAT, b.GATQ, b.GATK, b.GATKQ]
DELETES = [b.DELETE, b.DELETEQ]
EMPTY = [b.NOOP, b.VERSION, b.QUIT, b.QUITQ, b.SASL_LIST]
FLUSHES = [b.FLUSH, b.FLUSHQ]
OPCODES = sorted(GETS + STORES + JOINS + COUNTS + TOUCHES + DELETES + EMPTY + FLUSHES +
                 [b.STAT, b.VERBOSITY, b.SASL_AUTH, b.SASL_STEP])
UNKNOWN = [0x1f, *range(0x25, 0x100)]

# ---- what is intended to differ ------------------------------------------------------------------------------------------

# memcached 1.6.18 skips extras and key of a command it does not know twice, and a value where none belongs not at all:
# the next packet is looked for in the wrong place, and the connection ends or hangs. Ours skips the body, or ends.
NO_BODY_SKIPPED = {b.VERBOSITY, *UNKNOWN}
NO_SASL_SKIPPED = {b.SASL_AUTH, b.SASL_STEP} # without -S; other shapes are invalid
NO_VALUE_SKIPPED = {b.STAT, *TOUCHES}


# A body of 2 GB and more is to memcached one of less than nothing; ours ends the connection. And a decr that makes a number
# shorter leaves blanks behind it, but not where memcached happens to be sending the old value.


def loses_its_place(opcode, extras, key, value):
    """Does memcached?"""
    if key > 250:
        return False
    if opcode in NO_BODY_SKIPPED:
        return extras + key > 0
    if opcode in NO_SASL_SKIPPED:
        return extras == 0 and key > 0
    return opcode in NO_VALUE_SKIPPED and value > 0 and extras == (0 if opcode == b.STAT else 4) and \
        (key > 0 or opcode == b.STAT)


# ---- sessions ------------------------------------------------------------------------------------------------------------

def fixed(data):
    return lambda cas: data


PREPARED = {
    "absent": b.packet(b.DELETEQ, b"key"),
    "text": b.store(b.SETQ, b"key", b"some text", flags=0xdeadbeef),
    "number": b.store(b.SETQ, b"key", b"10", flags=7),
    "empty": b.store(b.SETQ, b"key", b"", flags=1),
    "large": b.store(b.SETQ, b"key", b"v" * 5000, flags=2),
    "greatest": b.store(b.SETQ, b"key", b"18446744073709551615"),
}
SEEN = b.packet(b.GETK, b"key")
CAS_OF = {"none": lambda cas: 0, "right": lambda cas: cas, "wrong": lambda cas: cas + 1000000, "one": lambda cas: 1}


def key_packets(opcode):
    """Functions of an id."""
    if opcode in GETS + DELETES:
        return [functools.partial(b.packet, opcode, b"key")]
    if opcode in STORES:
        return [functools.partial(b.store, opcode, b"key", value, flags=9) for value in (b"", b"new value", b"n" * 3000)]
    if opcode in JOINS:
        return [functools.partial(b.packet, opcode, b"key", value) for value in (b"", b"5", b"j" * 3000)]
    if opcode in COUNTS:
        return [functools.partial(b.count, opcode, b"key", delta, initial, exptime)
                for delta in (0, 1, 11, 2 ** 64 - 1) for initial, exptime in
                ((5, b.NO_CREATE), (0, 0), (5, 100), (2 ** 64 - 1, 0))]
    return [functools.partial(b.touch, opcode, b"key", exptime) for exptime in (0, 100, 2592000, 0x7fffffff, 0xffffffff)]


def on_objects(opcode):
    """The command on each kind of object, with each kind of id, and what is there afterwards."""
    for (kind, prepare), (which, cas_of), make in itertools.product(PREPARED.items(), CAS_OF.items(), key_packets(opcode)):
        def act(cas, make=make, cas_of=cas_of):
            return make(cas=cas_of(cas))
        yield f"{kind}, {which} id, {make.args[2:]} {make.keywords}", [[fixed(prepare), fixed(SEEN)], [act, fixed(SEEN)]]


def misshapen(opcode):
    """Extras, keys and values that are there or not, right or wrong."""
    for extras, key, value in itertools.product((0, 1, 3, 4, 5, 8, 9, 19, 20, 21, 255), (0, 1, 250, 251, 300), (0, 1, 9)):
        if loses_its_place(opcode, extras, key, value):
            continue
        if extras == 4 and opcode in FLUSHES and key == value == 0:
            continue  # a proper one: see expiry()
        if opcode == b.STAT and extras == key == value == 0:
            continue  # the general report, whose figures differ
        data = b.packet(opcode, b"k" * key, b"v" * value, b"\0" * extras)
        yield f"{extras} of extras, {key} of key, {value} of value", [[fixed(data)]]


def expiry(opcode):
    """Times that lie in the past or ahead, or look negative."""
    for exptime in (0, 1, 100, 2592000, 2592001, 1000000000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff):
        if opcode in FLUSHES and exptime in (1, 2592001, 1000000000):
            continue  # what is near depends on the second it is, what is past has no meaning
        if opcode in STORES:
            data = b.store(opcode, b"key", b"v", exptime=exptime)
        elif opcode in COUNTS:
            data = b.count(opcode, b"key", exptime=exptime)
        elif opcode in TOUCHES:
            data = b.touch(opcode, b"key", exptime)
        else:
            data = b.packet(opcode, extras=struct.pack(">I", exptime))
        for kind in ("absent", "number"):
            yield f"{kind}, exptime {exptime}", [[fixed(PREPARED[kind]), fixed(SEEN)], [fixed(data), fixed(SEEN)]]
        if opcode in FLUSHES:
            yield "and none", [[fixed(b.packet(b.FLUSH))]]


TOO_LARGE = b"x" * 1100000


def too_large(opcode):
    data = b.packet(opcode, b"key", TOO_LARGE) if opcode in JOINS else b.store(opcode, b"key", TOO_LARGE)
    for kind in ("absent", "text"):
        yield f"{kind}, too large", [[fixed(PREPARED[kind]), fixed(SEEN)], [fixed(data), fixed(SEEN)]]
    half = b"y" * 600000
    yield "too large together", [[fixed(b.store(b.SET, b"key", half)), fixed(b.packet(opcode, b"key", half, b"" if opcode in JOINS
                                                                            else bytes(8))), fixed(b.packet(b.GET, b"key"))]]


def sessions(opcode):
    """(name, steps) of all that begin with this opcode."""
    yield from misshapen(opcode)
    if opcode in GETS + DELETES + STORES + JOINS + COUNTS + TOUCHES:
        yield from on_objects(opcode)
    if opcode in STORES + COUNTS + TOUCHES + FLUSHES:
        yield from expiry(opcode)
    if opcode in STORES + JOINS:
        yield from too_large(opcode)


def one(name, *packets):
    return name, [[fixed(data) for data in packets]]


OTHERS = [
    one("another magic", b.packet(b.NOOP), b.packet(b.NOOP, magic=0x81)),
    one("a text command behind", b.packet(b.NOOP), b"get a\r\n" * 10),
    one("key beyond the body", b.packet(b.GET, b"k", key_length=5, body=1)),
    one("key beyond the body, unknown", b.packet(0x60, b"k", key_length=5, body=1)),
    one("no body at all", b.packet(b.SET, b"k", b"", bytes(8), body=0)),
    one("extras beyond the body", b.packet(b.SET, b"", b"", bytes(8), body=7)),
    one("a body of four gigabytes", b.packet(b.GET, b"k", body=0xffffffff)),
    one("datatype and vbucket", b.store(b.SET, b"key", b"v", datatype=5, vbucket=77), b.packet(b.GET, b"key", datatype=255, vbucket=9)),
    one("keys of any bytes", b.store(b.SET, b"a b\r\n\0\xff", b"v"), b.packet(b.GETK, b"a b\r\n\0\xff"), b.packet(b.GETK, b"a b\r\n\0")),
    one("the longest key", b.store(b.SET, b"k" * 250, b"v"), b.packet(b.GETK, b"k" * 250), b.touch(b.GATK, b"k" * 250),
        b.packet(b.GETK, b"K" * 250)),
    one("opaque of each", *(b.packet(b.GETK, b"key", opaque=n) for n in (0, 1, 0x80000000, 0xffffffff))),
    one("quiet ones in order", b.store(b.SETQ, b"key", b"v"), *(b.packet(op, key, opaque=op) for op in GETS * 3 for key in (b"key", b"none")),
        b.packet(b.NOOP)),
    one("a pipeline of changes", b.store(b.SET, b"key", b"10"), b.count(b.INCR, b"key"), b.count(b.INCRQ, b"key"), b.packet(b.APPENDQ, b"key", b"0"),
        b.count(b.DECR, b"key", 121), b.packet(b.GET, b"key"), b.packet(b.DELETEQ, b"key"), b.packet(b.GET, b"key"),
        b.count(b.INCRQ, b"key", 1, 7, 0), b.packet(b.GETK, b"key"), b.store(b.ADDQ, b"key", b"x"), b.store(b.REPLACEQ, b"key", b"y"),
        b.packet(b.GET, b"key")),
    one("quit, and more", b.store(b.SET, b"key", b"v"), b.packet(b.GET, b"key"), b.packet(b.QUIT), b.packet(b.GET, b"key")),
    one("quit in silence, and more", b.packet(b.GET, b"none"), b.packet(b.QUITQ), b.packet(b.GET, b"none")),
    one("an error, and more", b.packet(b.GET, b"none"), b.packet(b.GET), b.packet(b.GET, b"none")),
    one("flush in silence", b.store(b.SET, b"key", b"v"), b.packet(b.FLUSHQ), b.packet(b.GET, b"key"), b.store(b.SET, b"key", b"w"),
        b.packet(b.GET, b"key")),
    one("numbers as text", *(data for text in (b" 5", b"5 ", b"5 x", b"+5", b"-5", b"005", b"5x", b"", b"18446744073709551616", b"0x5")
                             for data in (b.store(b.SETQ, b"key", text), b.count(b.INCR, b"key"), b.packet(b.GET, b"key")))),
    *(one(f"stat {key}", b.packet(b.STAT, key)) for key in
      (b"nothing", b"reset", b"reset x", b"resetx", b"detail", b"detail x", b"detail off", b"detailx", b"items x", b"itemsx", b"noreply",
       b" settings", b"set", b"cachedump 1 0", b"cachedump", b"\xff" * 250, b"\0")),
]
