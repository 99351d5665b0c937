# SPDX-License-Identifier: BSD-3-Clause
"""The one list of where our answers are meant to differ from memcached 1.6.18's, each with its reason. An entry excuses a
session that it applies to; one that excuses none in a whole run is told as a failure, as is any difference without an
entry. What ours answers there is pinned by tests in tests/protocol/."""
import collections
import re

import binary as b
import tables

Intended = collections.namedtuple("Intended", "name reason applies")

STORE_LINE = re.compile(rb"^ *(?:set|add|replace|append|prepend|cas) +\S+ +\S+ +(\S+) +(\S+)", re.MULTILINE)
OTHER_TIME = re.compile(rb"^ *(?:touch +\S+|gats?) +(\S+)|^m[gsda] .*? [TN](\S+)|^m[gsda] [^\n]* [TN](\S+)", re.MULTILINE)
META_LENGTH = re.compile(rb"^ *ms +\S+ +(\S+)", re.MULTILINE)
META_TIME = re.compile(rb"(?<= )[TN](-?\d+)")
NEWER = re.compile(rb"^lru_crawler mgdump|^ *mg (?=[^\n]* C)[^\n]* v|^ *m[gsda] [^\n]* [Ex]|^ *ms [^\n]* s|^ *ms [^\n]* M[AP][^\n]* N|^ *ms [^\n]* N[^\n]* M[AP]", re.MULTILINE)
IN_BASE64 = re.compile(rb"^ *m[gsdae] [^\n]* b(?= |\r|\n)", re.MULTILINE)
LONG_OPAQUE = re.compile(rb"^ *m[gsda] [^\n]* O\S{32}", re.MULTILINE)
LONG_KEY = re.compile(rb"^ *(?:b?get|gets|gats?) [^\n]*%K", re.MULTILINE)


def number(word):
    try:
        return int(word)
    except ValueError:
        return 0


def beyond_32_bits(words):
    return any(not -2 ** 31 <= number(word) < 2 ** 31 and -2 ** 63 <= number(word) < 2 ** 63 for word in words if word)


def late(session, _ours, _theirs):
    text = session.text()
    return beyond_32_bits([found[0] for found in STORE_LINE.findall(text)] + META_TIME.findall(text) +
                          [word for found in OTHER_TIME.findall(text) for word in found])


def lengths(session, _ours, _theirs):
    text = session.text()
    return beyond_32_bits([found[1] for found in STORE_LINE.findall(text)] + META_LENGTH.findall(text))


def past(session, ours, theirs):
    text = session.text()
    return any(number(time) < 0 or number(time) > 30 * 86400 for time in META_TIME.findall(text)) and \
        re.sub(rb" t0\b", b" t-", ours[1]) == re.sub(rb" t0\b", b" t-", theirs[1])


def delayed(session, _ours, _theirs):
    delays = re.findall(rb"^flush_all[ \t\v\f\r]+([-+]?\d+)", session.text(), re.MULTILINE)
    return not session.binary and (beyond_32_bits(delays) or 1 in map(number, delays))


def dropped(session, ours, theirs):
    """What memcached has said is the end of what ours has."""
    if session.binary:
        return theirs[0] == "closed" and not theirs[1] and session.text()[b.HEADER.size:].find(b"get a\r\n") > 0
    return LONG_KEY.search(session.text()) and re.sub(rb"#\d+", b"#", ours[1]).endswith(re.sub(rb"#\d+", b"#", theirs[1]))


def matches(pattern):
    return lambda session, ours, theirs: not session.binary and pattern.search(session.text())


# ---- binary ------------------------------------------------------------------------------------------

SHAPE_OF = {command.opcode: command.shape for command in tables.binary_commands()}


def first_packet(session):
    """Opcode, bytes of extras, key and value."""
    _, opcode, key, extras, _, _, body, _, _ = b.HEADER.unpack_from(session.text())
    return opcode, extras, key, body - key - extras


def body_not_skipped(session, _ours, _theirs):
    if not session.binary:
        return False
    opcode, extras, key, _ = first_packet(session)
    shape = SHAPE_OF.get(opcode)
    return key <= b.KEY_MAX and (shape in (None, "LEVEL") and extras + key > 0 or shape == "SASL" and extras == 0 and key > 0)


def value_not_seen(session, _ours, _theirs):
    if not session.binary:
        return False
    opcode, extras, key, value = first_packet(session)
    return value > 0 and (opcode == b.STAT and extras == 0 and key <= b.KEY_MAX or
                          SHAPE_OF.get(opcode) == "TOUCH" and extras == 4 and 0 < key <= b.KEY_MAX)


def verbosity(session, ours, theirs):
    return session.binary and first_packet(session) == (b.VERBOSITY, 4, 0, 0)


# ---- datagrams ---------------------------------------------------------------------------------------

DATAGRAMS = Intended("datagrams", "the commands of one datagram are answered in one message; memcached answers each with a message that "
                     "says that it is the only one, in any order", lambda session, ours, theirs: False)


def in_datagrams(ours, theirs):
    """Of outcomes with frames: do they have the same lines?"""
    lines = [sorted(re.sub(rb"#\d+", b"#", answer).splitlines()) for answer in (ours[2], theirs[2])]
    return DATAGRAMS if lines[0] == lines[1] and \
        any(len(step) > 1 and {frame[1] for frame in step} == {1} for step in theirs[0]) else None


INTENDED = [
    DATAGRAMS,
    Intended("zero byte", "a zero byte in a line is a byte like others; memcached's lines end at it, and the key of one client "
             "would be another's", matches(re.compile(rb"\0"))),
    Intended("late times", "an exptime beyond 2^31 lies in the future, one below -2^31 in the past; memcached takes 32 bits of them",
             late),
    Intended("long lengths", "a length beyond 2^31 is a bad one; memcached takes 32 bits of it, and then what is sent of the "
             "value for commands", lengths),
    Intended("lost answers", "what is wrong with a key or a packet is told behind the answers to what came before it; memcached loses "
             "those that it hasn't sent yet", dropped),
    Intended("newer flags", "E and x, s of ms, N of ms with A and P, and C of mg, are memcached's since 1.6.19 to 1.6.45", matches(NEWER)),
    Intended("base64", "a key is answered in base64 if the command has b; memcached remembers with the object how its key came",
             matches(IN_BASE64)),
    Intended("long opaque", "a line that is answered with an error has done nothing; memcached finds a long opaque token after it "
             "has acted", matches(LONG_OPAQUE)),
    Intended("past t", "an object that expires at once has 0 seconds left; memcached counts them below zero, in 32 bits", past),
    Intended("binary verbosity", "the opcode is in the protocol's document, and sets the level as the text command does; memcached "
             "1.6 says that it is unknown", verbosity),
    Intended("binary bodies", "the body of a packet that nobody knows is skipped; memcached skips extras and key of it twice, and "
             "then looks for packets where none begins", body_not_skipped),
    Intended("binary values", "a value where none belongs is an error; memcached takes it for the next packet", value_not_seen),
    Intended("flush delay", "what is flushed with a delay is there until it is over; memcached flushes a second earlier, and hides what "
             "is stored in that second", delayed),
    Intended("slab commands", "there are no slabs and no LRU lists: slabs reassign, lru mode and lru temp_ttl are answered as by a memcached "
             "that has them switched off", matches(re.compile(rb"^slabs reassign|^lru (?:mode|temp_ttl)", re.MULTILINE))),
]


def reason(session, ours, theirs):
    """The entry that excuses a difference, or None."""
    return next((entry for entry in INTENDED if entry.applies(session, ours, theirs)), None)
