# SPDX-License-Identifier: BSD-3-Clause
"""The one list of where ours is meant to differ from memcached, each with its reason, and where that shows:

    sessions   of tests/compare: may this entry excuse the session that was answered so by ours and by memcached?
    meta       of tests/protocol/test_meta_compare.py: (session, our answer), which memcached's is not
    options    of tests/protocol/test_options.py: (words, what ours does), which memcached doesn't
    upstream   of tests/upstream: {file of memcached's own tests: [patterns of its tests that fail, or one of the words below]}
    upstream_in  the same for the tests of one version ("newest", "debian") or for one place ("flash", "full") alone

since and until are the releases 1.6.N of memcached from which ours differs. An entry that shows nowhere in a whole run is told
as a failure, as is any difference without an entry. What a thread of memcached's decides has by_chance, and may show nowhere.
"""
import collections
import re
from dataclasses import dataclass, field
from typing import Callable

import binary as b
import tables

REFUSED, TAKEN = "refused", "taken"
ENDS = "ends early"  # the file ends before its last test, as one that fails is what the next ones need
NOT_RUN = "not run"  # it waits for ever, or all of it is about this
WITHOUT_EXTSTORE = "without extstore"  # the file is told that there is none, and leaves a part out


class ByChance(str):
    """A pattern of a test of memcached's that fails on a busy machine alone, so that it need not fail."""


@dataclass
class Intended:
    name: str
    reason: str
    since: int = 0
    until: int = 999
    sessions: Callable = None
    by_chance: bool = False  # it may excuse nothing in a whole run
    meta: list = field(default_factory=list)
    options: list = field(default_factory=list)
    upstream: dict = field(default_factory=dict)
    upstream_in: dict = field(default_factory=dict)

    def applies(self, release):
        return self.since <= release <= self.until


# ---- what a session has --------------------------------------------------------------------------------

STORE_LINE = re.compile(rb"^ *(?:set|add|replace|append|prepend|cas) +\S+ +\S+ +(\S+) +(\S+)", re.MULTILINE)
OTHER_TIME = re.compile(rb"^ *(?:touch +\S+|gats?) +(\S+)|^m[gsda] .*? [TN](\S+)|^m[gsda] [^\n]* [TNR](\S+)", re.MULTILINE)
META_LENGTH = re.compile(rb"^ *ms +\S+ +(\S+)", re.MULTILINE)
META_TIME = re.compile(rb"(?<= )[TNR](-?\d+)")
NEWER = re.compile(rb"^lru_crawler mgdump|^ *mg (?=[^\n]* C)[^\n]* v|^ *m[gsda] [^\n]* [Ex]|^ *ms [^\n]* s|^ *ms [^\n]* M[AP][^\n]* N|^ *ms [^\n]* N[^\n]* M[AP]", re.MULTILINE)
IN_BASE64 = re.compile(rb"^ *m[gsdae] [^\n]* b(?= |\r|\n)", re.MULTILINE)
LONG_OPAQUE = re.compile(rb"^ *m[gsda] [^\n]* O\S{32}", re.MULTILINE)
LONG_KEY = re.compile(rb"^ *(?:b?get|gets|gats?) [^\n]*%K", re.MULTILINE)
NO_LETTER = rb"[^0-9A-Za-z\[\\\]^_` \r\n]"
STRANGE_FLAG = re.compile(rb"^ *m[gdae] +\S+(?: +\S+)*? +" + NO_LETTER + rb"|^ *ms +\S+ +\S+(?: +\S+)*? +" + NO_LETTER, re.MULTILINE)
ODD_NUMBER = re.compile(rb"[ A-Z]-(?=[ \r\n])|0{20}1|\t-")


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


def items_rows(session, ours, theirs):
    """Are they the same, numbers apart?"""
    if session.binary or not session.text().startswith(b"stats items"):
        return False
    rows = [{re.sub(rb"\d+", b"", row) for row in answer.splitlines()} for _, answer in (ours, theirs)]
    return rows[0] == rows[1]


def matches(pattern):
    return lambda session, ours, theirs: not session.binary and pattern.search(session.text())


def line(pattern):
    return matches(re.compile(pattern, re.MULTILINE))


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


def verbosity(session, _ours, _theirs):
    return session.binary and first_packet(session) == (b.VERBOSITY, 4, 0, 0)


# ---- datagrams ---------------------------------------------------------------------------------------

DATAGRAMS = Intended("datagrams", "the commands of one datagram are answered in one message; memcached answers each with a message that "
                     "says that it is the only one, in any order", sessions=lambda session, ours, theirs: False)


def in_datagrams(ours, theirs):
    """Of outcomes with frames: do they have the same lines?"""
    lines = [sorted(re.sub(rb"#\d+", b"#", answer).splitlines()) for answer in (ours[2], theirs[2])]
    return DATAGRAMS if lines[0] == lines[1] and \
        any(len(step) > 1 and {frame[1] for frame in step} == {1} for step in theirs[0]) else None


# ---- the list ----------------------------------------------------------------------------------------

NUMBERS_READ = "what begins with no number is refused, with what is accepted; memcached reads it as 0"
CRASHES = "what ends memcached by a signal is refused"
BITS = "a number beyond 32 bits is refused; memcached takes what is left of it"
SUFFIXES = "-m and -I take suffixes, and what is too little is refused"
EXTSTORE = "flash takes objects in large segments when memory is short, whatever their size; these tests wait until all objects of some " \
    "size are there, and count pages and recaches"

LIST = [
    DATAGRAMS,
    Intended("end of the crawler", "the crawler is off when the command has been answered; memcached's ends some time later, and until then it is no "
             "known error to start another", by_chance=True, sessions=lambda session, ours, theirs: not session.binary and
             session.steps[0].startswith(b"lru_crawler disable\r\n") and theirs == ("open", ours[1].replace(b"CLIENT_ERROR lru crawler disabled", b"ERROR an unknown error happened"))),
    Intended("zero byte", "a zero byte in a line is a byte like others; memcached's lines end at it, and the key of one client "
             "would be another's", sessions=line(rb"\0")),
    Intended("zero byte in a key", "it is part of the key; memcached's key ends there", until=39,
             meta=[(b"mg a\0b k\r\n", b"EN ka\0b\r\n")]),
    Intended("late times", "an exptime beyond 2^31 lies in the future, one below -2^31 in the past; memcached takes 32 bits of them, or "
             "refuses the line", sessions=late, meta=[(b"ms a 1 T4000000000\r\nx\r\nmg a v\r\n", b"HD\r\nVA 1\r\nx\r\n")]),
    Intended("long lengths", "a length beyond 2^31 is a bad one; memcached takes 32 bits of it, and then what is sent of the "
             "value for commands", sessions=lengths, until=39),
    Intended("lost answers", "what is wrong with a key or a packet is told behind the answers to what came before it; memcached loses "
             "those that it hasn't sent yet", sessions=dropped),
    Intended("newer flags", "E and x, s of ms, N of ms with A and P, and C of mg, are memcached's since 1.6.19 to 1.6.40", until=39,
             sessions=matches(NEWER), meta=[
                 (b"mg a E5\r\nmd a E5\r\nma a E5\r\n", b"EN\r\nNF\r\nNF\r\n"),
                 (b"ms a 1 E77 c\r\nx\r\nmg a c\r\nms a 1 C77 E99\r\ny\r\nms a 1 C77\r\nz\r\nms a 1 C99\r\nz\r\nmg a v\r\n",
                  b"HD c#1\r\nHD c#1\r\nHD\r\nEX\r\nHD\r\nVA 1\r\nz\r\n"),
                 (b"mg a N30 E55 c\r\nmg a c\r\nma a E66\r\n", b"HD c#1 W\r\nHD c#1 Z\r\nCLIENT_ERROR cannot increment or decrement "
                  b"non-numeric value\r\n"),
                 (b"ma n N30 E55 c\r\nma n E66 c\r\nmg n c v\r\nma n C55\r\nma n C66 v\r\n",
                  b"HD c#1\r\nHD c#2\r\nVA 1 c#2\r\n1\r\nEX\r\nVA 1\r\n2\r\n"),
                 (b"ms a 1\r\nx\r\nmd a I E44\r\nmg a c v\r\nmd a C44\r\n", b"HD\r\nHD\r\nVA 1 c#1 X W\r\nx\r\nHD\r\n"),
                 (b"ms a 1 Ex\r\nx\r\n", b"CLIENT_ERROR bad token in command line format\r\n"),
                 (b"ms a 5 F9 T60\r\nhello\r\nmd a x\r\nmg a f s v t\r\n", b"HD\r\nHD\r\nVA 0 f0 s0 t60\r\n\r\n"),
                 (b"ms a 5 F9\r\nhello\r\nmd a x I T30\r\nmg a f s t\r\nmg a v\r\n",
                  b"HD\r\nHD\r\nHD f0 s0 t30 X W\r\nVA 0 Z X\r\n\r\n"),
                 (b"md a x k\r\nmg a\r\n", b"NF ka\r\nEN\r\n"),
                 (b"ms a 2 s k\r\nhi\r\nms a 3 MA s\r\nabc\r\nms a 1 MP s q\r\nx\r\nms a 4 ME s\r\nabcd\r\n",
                  b"HD s2 ka\r\nHD s5\r\nNS s4\r\n"),
                 (b"ms a 1 MA N30 F7\r\nx\r\nms a 1 MA N90 F9\r\ny\r\nmg a v f t\r\n", b"HD\r\nHD\r\nVA 2 f7 t30\r\nxy\r\n"),
                 (b"ms a 1 MP N0 T50\r\nx\r\nmg a v t\r\n", b"HD\r\nVA 1 t-1\r\nx\r\n"),
             ]),
    Intended("base64", "a key is answered in base64 if the command has b; memcached remembers with the object how its key came",
             sessions=matches(IN_BASE64), meta=[
                 (b"ms YQ== 1 b\r\nx\r\nmg a k\r\n", b"HD\r\nHD ka\r\n"),
                 (b"ms a 1\r\nx\r\nmg YQ== b k\r\n", b"HD\r\nHD kYQ== b\r\n"),
             ]),
    Intended("long opaque", "a line that is answered with an error has done nothing; memcached finds a long opaque token after it "
             "has acted", sessions=matches(LONG_OPAQUE), meta=[
                 (b"ms a 1\r\n5\r\nma a %O\r\nmg a v\r\n", b"HD\r\nCLIENT_ERROR opaque token too long\r\nVA 1\r\n5\r\n"),
                 (b"mg a N30 %O\r\nmg a\r\n", b"CLIENT_ERROR opaque token too long\r\nEN\r\n"),
             ]),
    Intended("past t", "an object that expires at once has 0 seconds left; memcached counts them below zero, in 32 bits", sessions=past,
             meta=[(b"ms a 1\r\nx\r\nmg a T-1 t\r\n", b"HD\r\nHD t0\r\n")]),
    Intended("leading blanks", "a command may have blanks before it, as before 1.6.40", since=40, sessions=line(rb"^ +[a-z]")),
    Intended("short lines", "mn may end in a line feed alone; memcached wants four bytes", since=40, sessions=line(rb"^[a-z]{2}\n")),
    Intended("long keys", "the error of a get whose key is too long is one line; memcached has an empty one behind it", since=40,
             sessions=lambda session, ours, theirs: LONG_KEY.search(session.text()) and b"\r\n\r\n" in theirs[1]),
    Intended("odd numbers", "a minus alone is no number, and zeros in front of one don't matter; memcached takes the one for 0, and not more "
             "than 20 digits", since=40, sessions=matches(ODD_NUMBER)),
    Intended("flags that are no letters", "they are answered as unknown letters are, and the value of ms is thrown away; memcached has another "
             "answer, and takes the value for commands", since=40, sessions=matches(STRANGE_FLAG)),
    Intended("noreply as a key", "the only word behind delete is a key; memcached deletes noreply without an answer", since=40,
             sessions=line(rb"^ *delete +noreply *\r?$")),
    Intended("bget", "bget is there, as before 1.6.40", since=40, sessions=line(rb"^ *bget|XYbget")),
    Intended("parts of words", "the words behind stats, watch and their like are compared as a whole; memcached takes any beginning of them, so that "
             "\"stats r\" resets", since=40, sessions=line(rb"^watch fetcher\r|^(?:lru_crawler|slabs|stats) [a-z]\r")),
    Intended("binary verbosity", "the opcode is in the protocol's document, and sets the level as the text command does; memcached "
             "1.6 says that it is unknown", sessions=verbosity),
    Intended("binary bodies", "the body of a packet that nobody knows is skipped; memcached skips extras and key of it twice, and "
             "then looks for packets where none begins", sessions=body_not_skipped),
    Intended("binary values", "a value where none belongs is an error; memcached takes it for the next packet", sessions=value_not_seen),
    Intended("huge bodies", "who has not logged in is told so, whatever the packet is like; memcached tells of a body beyond 1 GiB first", since=42,
             sessions=lambda session, ours, theirs: session.binary and b.HEADER.unpack_from(session.text())[6] > 1 << 30),
    Intended("flush delay", "what is flushed with a delay is there until it is over; memcached flushes a second earlier, and hides what "
             "is stored in that second", sessions=delayed),
    Intended("flushed at once", "an object that was flushed is found so by the next get, and counted in get_flushed; memcached since 1.6.25 frees "
             "many of them at once, whose gets are misses like others", since=25,
             sessions=lambda session, ours, theirs: ours == theirs and not session.binary and b"flush_all" in session.text()),
    Intended("id 0", "E0 gives an object an id of ours; memcached's ma gives it none", since=27, sessions=line(rb"^ *ma [^\n]* ?E0\b")),
    Intended("slabs", "there are no slabs: slabs reassign is answered as by a memcached that has it switched off, size classes are the allocator's, "
             "and no page moves", sessions=line(rb"^slabs reassign"), options=[
                 ("-I 1k", TAKEN), ("-I 1000000", TAKEN),
             ], upstream={
                 "slabs_reassign.t": [r"^12[89] slab", "Cannot re-run"],
                 "slabs-reassign-chunked.t": ["global page pool", "chunk rescues happened"],
                 "slabs-reassign2.t": ["pages moved back", "rescues happened", "reclaimed at least", "total_malloced"],
                 "slabs-cas.t": ["expected slab class", "slab rebalancer started"],
                 "slabs-mover.t": [NOT_RUN],
                 "issue_22.t": ["check evicted"],
                 "issue_163.t": ["Objects should be reclaimed"],
             }, upstream_in={
                 "newest": {"slabs_reassign.t": [r"^12[2-4] Class", r"^127$", r"^13\d slab"]},
                 "debian": {
                     "slabs_reassign.t": [r"^124$", "rebalancer started", "slabs moved is nonzero", r"^127 slab"],
                     "slabs-reassign-chunked.t": ["reassign evictions happened"],
                     "slabs-reassign2.t": ["reassign evictions happened"],
                 },
             }),
    Intended("rows of stats items", "the bytes of a size class, and how many of its objects are hot or cold, are each daemon's own", by_chance=True,
             sessions=items_rows),
    Intended("CLOCK", "one CLOCK evicts, and no lists by temperature: lru mode and lru temp_ttl are answered as by a memcached that has them switched "
             "off, other objects are evicted and more of them fit, and expired ones go in a pass a minute or when memory is short",
             sessions=line(rb"^lru (?:mode|temp_ttl)"), upstream={
                 "lru.t": [NOT_RUN],
                 "lru-maintainer.t": ["automatically reclaimed", "hot LRU", "temporary LRU", "^226 canary"],
                 "issue_14.t": ["Memory grows"],
                 "issue_183.t": ["Objects should be reclaimed"],
             }),
    Intended("holes", "while objects of another size come faster than memory is compacted, more are evicted, so that -m holds; memcached has moved "
             "its pages before", upstream={"slabs-reassign2.t": [ByChance("stored at least 10000 4k items")]}),
    Intended("small headers", "the header of an object is smaller than memcached's least, and so is what ten objects of a few bytes take",
             upstream={"issue_42.t": ["Check allocated size"]}),
    Intended("answers in memory", "a client that asks faster than it reads waits; memcached drops its connection when answers take more than "
             "read_buf_mem_limit", upstream={"conn-limits.t": ["OOM'ed multiget", "OOM counter", "disconnected after overflow", "OOM recorded"]}),
    Intended("memory file", "-e keeps nothing; --state-dir does (stop.md)",
             upstream={"restart.t": ["^1 Died", "hash (?:power )?level is", " == '"]}),
    Intended("extstore", EXTSTORE, upstream={name: [NOT_RUN] for name in (
        "binary-extstore.t", "chunked-extstore.t", "error-extstore.t", "extstore-buckets.t", "extstore-cas.t", "extstore-jbod.t",
        "extstore-overdel.t", "extstore-tiered.t", "extstore-tiered2.t", "extstore.t")} | {"metaget.t": [WITHOUT_EXTSTORE]}),
    Intended("nothing to listen on", "a start with which nobody could connect is refused: -p 0 alone, and mtls: without -o ssl_ca_cert",
             upstream={"issue_67.t": [ENDS]}, upstream_in={"newest": {"ssl_ports.t": [ENDS]}}),
    Intended("flushed without ids", "with -C, too, an object that is stored behind a flush_all is there; this test wants that it is lost "
             "within the second", upstream_in={"debian": {"flush-all.t": ["with no CAS at least once"]}}),
    Intended("flash", "\"stats\" has extstore's rows, memory moves to flash before it is evicted, and half of -m at most may be the index of "
             "the flash", upstream_in={"flash": {"stats.t": ["count of stats values"], "watcher.t": [NOT_RUN]}}),
    Intended("debug builds", "commands and variables of memcached's debug builds aren't there",
             options=[("-o relaxed_privileges", TAKEN)], upstream={"64bit.t": ["faked", "hit size limit"]}),
    Intended("numbers of flags", NUMBERS_READ, options=[(words, REFUSED) for words in (
        "-U x", "-b x", "-a 8")]),
    Intended("crashes", CRASHES, until=23, options=[(words, REFUSED) for words in (
        "-o slab_sizes", "-o slab_chunk_max", "-o sock_cookie_id", "-o slab_chunk_max=x", "-o slab_chunk_max=0", "-o slab_automove_window=-1")]),
    Intended("chunks below zero", "slab_chunk_max is 1 or more, as in newer memcacheds", until=23, options=[("-o slab_chunk_max=-1", REFUSED)]),
    Intended("chunks in bytes", "slab_chunk_max beyond 1024 is a number of bytes, as before 1.6.24: it has no effect here, so an old command line need "
             "not be changed for it", since=24, options=[("-o slab_chunk_max=524288", TAKEN)]),
    Intended("32 bits", BITS, options=[(words, REFUSED) for words in (
        "-o ext_threads=99999999999", "-o read_buf_mem_limit=1000001", "-o ext_page_size=1000001", "-o ext_wbuf_size=1000001")]),
    Intended("suffixes", SUFFIXES, options=[("-m 64k", REFUSED), ("-m 1g", TAKEN), ("-m 4096 -I 1g", TAKEN)]),
    Intended("size of a flash file", "ext_path wants a size with a suffix; memcached takes any size without a known one for MiB", until=20,
             options=[("-o ext_path=@/f:64", REFUSED), ("-o ext_path=@/f:64k", REFUSED)]),
    Intended("buckets", "a bucket of ext_path is accepted without effect, as memcached has them since 1.6.25", until=24,
             options=[("-o ext_path=/f:1g:compact", TAKEN)]),
    Intended("words behind a bucket", "more words behind a bucket of ext_path are refused; memcached doesn't look at them", since=25,
             options=[("-o ext_path=/f:1g:default:x", REFUSED)]),
    Intended("order of extstore's options", "ext_page_size may follow ext_path, as in newer memcacheds", until=44,
             options=[("-o ext_path=/f:128m,ext_page_size=8", TAKEN)]),
    Intended("worker_logbuf_size", "it is a number of KiB; memcached goes on to read it as slab_sizes", until=39,
             options=[("-o worker_logbuf_size=1", TAKEN)]),
    Intended("flags with a value", "a flag takes =no, so that the command line can override the file", options=[("--disable-cas=no", TAKEN)]),
]
INTENDED = {entry.name: entry for entry in LIST}
assert len(INTENDED) == len(LIST)


def of_release(release):
    """The entries that hold for memcached 1.6.release."""
    return [entry for entry in LIST if entry.applies(release)]


def reason(session, ours, theirs, release):
    """The entry that excuses a difference, or None."""
    return next((entry for entry in of_release(release) if entry.sessions and entry.sessions(session, ours, theirs)), None)


# Answers that no entry takes for a reason against itself.
ANY_ANSWER = "closed", b"\r\n\r\n"


def may_excuse(session, release):
    """Is there an entry that could excuse this session, whatever the answers?"""
    return session.binary and reason(session, ("closed", [], b""), ("closed", [], b""), release) is not None or \
        not session.binary and reason(session, ANY_ANSWER, ANY_ANSWER, release) is not None


def upstream(release, *where):
    """{file: [(entry, patterns)]}, for the own tests of memcached 1.6.release: "newest" or "debian", in one of the places."""
    found = collections.defaultdict(list)
    for entry in of_release(release):
        for files in [entry.upstream] + [entry.upstream_in.get(word, {}) for word in where]:
            for name, patterns in files.items():
                found[name].append((entry.name, patterns))
    return found
