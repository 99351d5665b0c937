# SPDX-License-Identifier: BSD-3-Clause
"""The binary protocol: where ours is meant to differ from memcached, reports, limits, and each command on objects in DRAM, on
flash and on their way. What is answered in general is compared with memcached in tests/compare."""
import random
import shutil
import struct
import subprocess

import pytest

import binary as b
from binary import BinaryClient
from helpers import SEGMENT, Kind, fill, until

BINARY = bytes(range(256)) * 3

FLAGGED = Kind(b"the value", flags=0xfffffffe)
EMPTY = Kind(b"", flags=3)
LONG_KEY = Kind(b"v", key_length=250)
BYTES = Kind(BINARY)
LARGE = Kind(b"v" * 5000, flags=5, copies=8)
NUMBER = Kind(b"10", flags=7)
PLAIN = Kind(b"there", flags=9)
KINDS = [FLAGGED, EMPTY, LONG_KEY, BYTES, LARGE, NUMBER, PLAIN]


@pytest.fixture
def client(dram_daemon):
    with BinaryClient(dram_daemon.port) as opened:
        yield opened


@pytest.fixture
def binary(placed):
    with BinaryClient(placed.daemon.port) as opened:
        yield opened


# ---- where memcached loses its place, ours does not ----------------------------------------------------------------------

@pytest.mark.parametrize("opcode, extras, key, value", [
    *((opcode, *lengths) for opcode in (0x1f, 0x25, 0x60, 0xff, b.VERBOSITY) for lengths in ((0, 3, 0), (5, 0, 0), (8, 250, 100000), (255, 0, 1))),
    *((opcode, *lengths) for opcode in (b.SASL_AUTH, b.SASL_STEP) for lengths in ((0, 3, 0), (0, 250, 100000), (0, 5, 20)))])
def test_the_body_of_an_unknown_command_is_skipped(client, opcode, extras, key, value):
    """All of it and no more: the next packet is found. (Without -S, logging in is unknown.)"""
    answers = client.all(b.packet(opcode, b"k" * key, b"v" * value, b"e" * extras) + b.packet(b.VERSION))
    assert [(answer.opcode, answer.status) for answer in answers] == [(opcode, b.UNKNOWN), (b.VERSION, b.OK)]


@pytest.mark.parametrize("opcode", [b.TOUCH, b.GAT, b.GATQ, b.GATK, b.GATKQ, b.STAT], ids=hex)
def test_a_value_where_none_belongs_ends_the_connection(client, opcode):
    """With an answer, as with any other command of the wrong shape."""
    answers = client.all(b.packet(opcode, b"key", b"value", b"" if opcode == b.STAT else bytes(4)))
    assert [answer and answer.status for answer in answers] == [b.INVALID, None]


@pytest.mark.parametrize("opcode, status", [(b.SET, b.TOO_LARGE), (b.APPEND, b.TOO_LARGE), (0x60, b.UNKNOWN)], ids=hex)
@pytest.mark.parametrize("body", [0x80000100, 0xffffffff], ids=hex)
def test_a_body_of_two_gigabytes_ends_the_connection(client, opcode, status, body):
    """Nobody waits for so much."""
    answers = client.all(b.packet(opcode, b"k", b"", bytes(8) if opcode == b.SET else b"", body=body))
    assert [answer and answer.status for answer in answers] == [status, None]


def test_verbosity_is_a_command(client):
    """memcached 1.6 knows it no more, and loses its place."""
    def verbosity(level):
        return client.ask(b.packet(b.VERBOSITY, extras=struct.pack(">I", level)))

    assert [verbosity(level).status for level in (2, 1, 0)] == [b.OK] * 3
    assert client.ask(b.packet(b.VERBOSITY)).status == b.UNKNOWN


# ---- reports -----------------------------------------------------------------------------------------------------------

def test_reports_have_the_rows_of_the_text_protocol(dram_daemon, client):
    """The same names, and where nothing counts the same values."""
    for report in (b"", b"settings", b"items", b"slabs", b"sizes", b"flash", b"classifier"):
        assert client.rows(report).keys() == dram_daemon.stats(report).keys(), report
    assert client.rows(b"settings") == dram_daemon.stats(b"settings")


def test_a_report_ends_with_an_empty_packet(client):
    """With the opaque of the request, as all its rows."""
    answers = client.all(b.packet(b.STAT, opaque=77))
    assert len(answers) > 50 and {answer.opaque for answer in answers} == {77}
    assert answers[-1] == b.Answer(b.STAT, b.OK, 77, 0, b"", b"", b"")
    assert answers[0].key == b"pid" and answers[0].value.isdigit()


def test_a_switch_of_sizes_ends_with_an_empty_packet(start):
    """memcached, which had them before 1.6.25, leaves it away, so that clients wait for ever."""
    with BinaryClient(start("--compat-version", "1.6.24").port) as client:
        assert client.rows(b"sizes_enable") == {"sizes_status": "enabled"}
        assert client.rows(b"sizes_disable") == {"sizes_status": "disabled"}


def test_detail_is_dumped_as_one_row(start):
    """However many prefixes there are."""
    daemon = start()
    with BinaryClient(daemon.port) as client:
        assert client.ask(b.packet(b.STAT, b"detail on")).status == b.OK
        client.all(b"".join(b.packet(b.GETQ, b"prefix-%d:key" % n) for n in range(500)))
        rows = client.rows(b"detail dump")
        assert list(rows) == ["detailed"]
        lines = rows["detailed"].split("\r\n")
        assert len(lines) == 502 and lines[-2:] == ["END", ""]
        assert "PREFIX prefix-7 get 1 hit 0 set 0 del 0" in lines
        assert client.ask(b.packet(b.STAT, b"detail off")).status == b.OK


def test_reset_sets_counters_to_zero(start):
    """stat reset."""
    with BinaryClient(start().port) as client:
        client.ask(b.packet(b.GET, b"none"))
        assert client.rows()["get_misses"] == "1"
        assert client.ask(b.packet(b.STAT, b"reset")).status == b.OK
        assert client.rows()["get_misses"] == "0"


def test_version_is_the_one_to_be_compatible_with(start):
    """--compat-version."""
    with BinaryClient(start("--compat-version", "1.4.39").port) as client:
        assert client.ask(b.packet(b.VERSION)).value == b"1.4.39"


# ---- streams -----------------------------------------------------------------------------------------------------------

def test_packets_byte_by_byte(client):
    """A packet may come in any number of pieces."""
    stream = b.store(b.SET, b"pieces", b"in pieces", flags=1) + b.packet(b.GETK, b"pieces") + b.count(b.INCR, b"pieces") + \
        b.packet(0x60, b"key", b"value") + b.packet(b.NOOP)
    for byte in stream:
        client.send(bytes([byte]))
    assert [client.answer().status for _ in range(5)] == [b.OK, b.OK, b.NOT_NUMBER, b.UNKNOWN, b.OK]


def test_a_long_pipeline_is_answered_in_order(client):
    """More than a turn's, and more than the buffers hold."""
    value = bytes(900)
    stream = b"".join(b.store(b.SET, b"long-%d" % n, value, opaque=2 * n) + b.packet(b.GETK, b"long-%d" % n, opaque=2 * n + 1)
                      for n in range(3000))
    answers = client.all(stream)
    assert [answer.opaque for answer in answers] == list(range(6000))
    assert all(answer.status == b.OK for answer in answers)


def test_values_of_all_sizes_come_back(client):
    """Copied ones, referenced ones, and the largest there may be."""
    source = random.Random(5)
    for size in [0, 1, 1000, 1023, 1024, 1025, 4096, 16384, 65536, 300000, (1 << 20) - 200]:
        value = source.randbytes(size)
        assert client.ask(b.store(b.SET, b"sized", value, flags=size)).status == b.OK
        for opcode in (b.GET, b.GETK, b.GAT):
            answer = client.ask(b.touch(opcode, b"sized") if opcode == b.GAT else b.packet(opcode, b"sized"))
            assert answer.value == value and answer.extras == struct.pack(">I", size)


def test_garbage_does_no_harm(dram_daemon):
    """Random packets, mostly well-formed: the daemon goes on."""
    source = random.Random(11)
    for _ in range(60):
        stream = b"".join(b.packet(source.randrange(0x26), source.randbytes(source.randrange(6)), source.randbytes(source.randrange(9)),
                                   source.randbytes(source.choice((0, 0, 4, 8, 20))), source.randrange(3))
                          for _ in range(100))
        with BinaryClient(dram_daemon.port) as client:
            try:
                client.send(stream + source.randbytes(30))
                client.socket.shutdown(1)
                client.reader.read()
            except OSError:
                pass
    with BinaryClient(dram_daemon.port) as client:
        assert client.ask(b.packet(b.NOOP)).status == b.OK


def test_both_protocols_see_the_same_objects(dram_daemon, client):
    """What one stores the other reads, flags and all."""
    with dram_daemon.client() as text:
        assert text.set(b"shared", b"by text", flags=12) == b"STORED\r\n"
        assert client.ask(b.packet(b.GET, b"shared"))[4:] == (struct.pack(">I", 12), b"", b"by text")
        stored = client.ask(b.store(b.SET, b"shared", b"by packets", flags=13))
        assert text.get(b"shared", command=b"gets") == [(b"shared", 13, b"by packets", stored.cas)]


@pytest.mark.slots("the frugal one goes with no -M")
def test_without_memory_nothing_is_stored(start):
    """-M: refused, and the rest goes on."""
    with BinaryClient(start("-M", "-m", "2", "-I", "512k").port) as client:
        stored = [client.ask(b.store(b.SET, b"k%d" % n, bytes(400000))) for n in range(8)]
        assert stored[0].status == b.OK and stored[-1].status == b.NO_MEMORY
        assert stored[-1].value == b"Out of memory allocating item"
        assert client.ask(b.packet(b.GET, b"k0")).status == b.OK
        assert client.ask(b.packet(b.GET, b"k7")).status == b.NOT_FOUND


@pytest.mark.parametrize("opcode", [b.SET, b.ADD])
def test_a_refusal_comes_behind_the_value(start, opcode):
    """Nothing is answered before the whole value has come; a refused set deletes its key, a refused add doesn't."""
    daemon = start("-I", "4k", "-m", "16", "-t", "1")
    with BinaryClient(daemon.port) as client:
        assert client.ask(b.store(b.SET, b"key", b"old")).status == b.OK
        whole = b.store(opcode, b"key", bytes(5000))
        client.send(whole[:-1])
        with daemon.client() as other:
            assert other.ask(b"mn\r\n") == b"MN\r\n"
        assert client.is_silent()
        client.send(whole[-1:])
        assert client.answer().status == b.TOO_LARGE
        assert client.ask(b.packet(b.GET, b"key")).status == (b.OK if opcode == b.ADD else b.NOT_FOUND)


def test_memccapable_passes(start, flash_options):
    """All 27 of libmemcached's conformance test, with flash and without."""
    if not shutil.which("memccapable"):
        pytest.skip("memccapable (libmemcached-tools) is not installed")
    for options in ([], flash_options):
        done = subprocess.run(["memccapable", "-b", "-h", "127.0.0.1", "-p", str(start(*options).port)],
                              capture_output=True, text=True, timeout=120, check=False)
        assert "All tests passed" in done.stdout, done.stdout + done.stderr


# ---- each command, wherever the object lies -----------------------------------------------------------------------------

@pytest.mark.parametrize("kind, value", [(FLAGGED, b"the value"), (EMPTY, b""), (LONG_KEY, b"v"), (BYTES, BINARY), (LARGE, b"v" * 5000)],
                         ids=["flagged", "empty", "long key", "any bytes", "large"])
def test_gets(placed, binary, kind, value):
    """Flags, id, and the key for who asked for it."""
    key, flags = placed.put(kind), struct.pack(">I", kind.flags)
    stream = b.packet(b.GET, key) + b.packet(b.GETQ, key) + b.packet(b.GETK, key) + b.packet(b.GETKQ, key)
    answers = binary.all(stream)
    assert [answer[4:] for answer in answers] == [(flags, name, value) for name in (b"", b"", key, key)]
    assert len({answer.cas for answer in answers}) == 1 and answers[0].cas > 0


def test_answers_come_in_order_with_misses_between(placed, binary):
    """Quiet misses say nothing; what was asked first is answered first, from wherever."""
    keys = placed.put_many(FLAGGED, 4)
    names = [keys[0], b"none", keys[1], b"none", keys[2], keys[3], keys[0]]
    answers = binary.all(b"".join(b.packet(b.GETKQ, name, opaque=n) for n, name in enumerate(names)) + b.packet(b.GETK, b"none", opaque=9))
    assert [(answer.opaque, answer.key) for answer in answers] == [(0, keys[0]), (2, keys[1]), (4, keys[2]), (5, keys[3]), (6, keys[0]),
                                                                  (9, b"none")]
    assert [answer.status for answer in answers] == [b.OK] * 5 + [b.NOT_FOUND]


def test_set_replaces(placed, binary):
    """After a set the old value is never seen again."""
    key = placed.put(PLAIN)
    stored = binary.ask(b.store(b.SET, key, b"new", flags=1))
    assert binary.ask(b.packet(b.GET, key))[1:] == (b.OK, 0xdeadbeef, stored.cas, struct.pack(">I", 1), b"", b"new")


@pytest.mark.parametrize("opcode", [b.SET, b.ADD, b.REPLACE, b.SETQ, b.ADDQ, b.REPLACEQ], ids=hex)
def test_an_id_is_compared(placed, binary, opcode):
    """Only the right one stores, once."""
    key = placed.put(PLAIN)
    cas = binary.ask(b.packet(b.GET, key)).cas
    assert binary.ask(b.store(opcode, key, b"x", cas=cas + 12345)).status == b.EXISTS
    stored = binary.all(b.store(opcode, key, b"2", cas=cas))
    assert [answer.status for answer in stored] == ([] if opcode >= b.SETQ else [b.OK])
    assert binary.ask(b.store(opcode, key, b"3", cas=cas)).status == b.EXISTS
    assert binary.ask(b.packet(b.GET, key)).value == b"2"


def test_add_and_replace(placed, binary):
    """add leaves what is there, replace finds it."""
    key = placed.put(PLAIN)
    assert binary.ask(b.store(b.ADD, key, b"x")).status == b.EXISTS
    assert binary.ask(b.packet(b.GET, key)).value == b"there"
    key = placed.put(PLAIN)
    assert binary.ask(b.store(b.REPLACE, key, b"x")).status == b.OK


def test_append_and_prepend(placed, binary):
    """Flags stay; a wrong id changes nothing."""
    key = placed.put(PLAIN)
    assert binary.ask(b.packet(b.APPEND, key, b"x", cas=(1 << 63))).status == b.EXISTS
    assert binary.all(b.packet(b.APPENDQ, key, b">") + b.packet(b.PREPENDQ, key, b"<")) == []
    answer = binary.ask(b.packet(b.GET, key))
    assert (answer.value, answer.extras) == (b"<there>", struct.pack(">I", 9))
    key = placed.put(PLAIN)
    cas = binary.ask(b.packet(b.GET, key)).cas
    assert binary.ask(b.packet(b.PREPEND, key, b"<", cas=cas)).status == b.OK
    assert binary.ask(b.packet(b.GET, key)).value == b"<there"


def test_counting(placed, binary):
    """The answer is a number of 64 bits, the value its digits; initial values are for absent keys."""
    key = placed.put(NUMBER)
    assert binary.ask(b.count(b.INCR, key, 5, cas=(1 << 63))).status == b.EXISTS
    assert binary.ask(b.count(b.INCR, key, 5, 77, 0)).value == struct.pack(">Q", 15)
    answer = binary.ask(b.packet(b.GET, key))
    assert (answer.value, answer.extras) == (b"15", struct.pack(">I", 7))
    key = placed.put(NUMBER)
    assert binary.all(b.count(b.DECRQ, key, 3)) == []
    assert binary.ask(b.packet(b.GET, key)).value == b"7 "
    key = placed.put(PLAIN)
    assert binary.ask(b.count(b.DECR, key, 1, 77, 0)).status == b.NOT_NUMBER
    assert binary.ask(b.packet(b.GET, key)).value == b"there"


def test_touch_tells_flags_and_id(placed, binary):
    """And the new time counts."""
    key = placed.put(FLAGGED)
    cas = binary.ask(b.packet(b.GET, key)).cas
    touched = binary.ask(b.touch(b.TOUCH, key, 100))
    assert touched[1:] == (b.OK, 0xdeadbeef, cas, struct.pack(">I", 0xfffffffe), b"", b"")
    assert binary.ask(b.packet(b.GET, key)).value == b"the value"
    key = placed.put(FLAGGED)
    assert binary.ask(b.touch(b.TOUCH, key, 2592001)).status == b.OK  # a time in 1970
    assert binary.ask(b.packet(b.GET, key)).status == b.NOT_FOUND


@pytest.mark.parametrize("opcode", [b.GAT, b.GATQ, b.GATK, b.GATKQ], ids=hex)
def test_get_and_touch(placed, binary, opcode):
    """The value, and then the new time counts."""
    key = placed.put(FLAGGED)
    answer = binary.ask(b.touch(opcode, key, 2592001))
    assert answer[4:] == (struct.pack(">I", 0xfffffffe), key if opcode >= b.GATK else b"", b"the value")
    assert binary.ask(b.packet(b.GET, key)).status == b.NOT_FOUND


@pytest.mark.parametrize("opcode", [b.DELETE, b.DELETEQ], ids=hex)
def test_delete(placed, binary, opcode):
    """With the right id or none; then it is gone."""
    key = placed.put(PLAIN)
    assert binary.ask(b.packet(opcode, key, cas=(1 << 63))).status == b.EXISTS
    assert binary.ask(b.packet(b.GET, key)).value == b"there"
    key = placed.put(PLAIN)
    cas = binary.ask(b.packet(b.GET, key)).cas
    assert [answer.status for answer in binary.all(b.packet(opcode, key, cas=cas))] == ([] if opcode == b.DELETEQ else [b.OK])
    assert binary.ask(b.packet(opcode, key)).status == b.NOT_FOUND


def test_a_pipeline_on_one_key_acts_in_order(placed, binary):
    """Each command sees what those before it did."""
    key = placed.put(NUMBER)
    answers = binary.all(b.count(b.INCR, key) + b.packet(b.APPENDQ, key, b"0") + b.count(b.INCRQ, key) + b.packet(b.GET, key) +
                         b.packet(b.DELETE, key) + b.packet(b.GETQ, key) + b.count(b.INCR, key, 1, 5, 0) + b.packet(b.GET, key))
    assert [answer.status for answer in answers] == [b.OK] * 5
    assert [answer.value for answer in answers] == [struct.pack(">Q", 11), b"111", b"", struct.pack(">Q", 5), b"5"]


def test_quit_comes_after_all_answers(placed):
    """What was asked before is answered before the connection ends."""
    keys = placed.put_many(FLAGGED, 3)
    with BinaryClient(placed.daemon.port) as client:
        client.send(b"".join(b.packet(b.GETK, key) for key in keys) + b.packet(b.QUITQ))
        assert [client.answer().key for _ in keys] == keys
        assert client.answer() is None


def test_an_error_comes_after_all_answers(placed):
    """So does what ends the connection."""
    keys = placed.put_many(FLAGGED, 3)
    with BinaryClient(placed.daemon.port) as client:
        client.send(b"".join(b.packet(b.GETK, key) for key in keys) + b.packet(b.GET))
        assert [client.answer().key for _ in keys] == keys
        assert client.answer().status == b.INVALID
        assert client.answer() is None


def test_flush(placed, binary):
    """Nothing that was stored before it is found."""
    key = placed.put(PLAIN)
    assert binary.all(b.packet(b.FLUSHQ)) == []
    assert binary.ask(b.packet(b.GET, key)).status == b.NOT_FOUND


class Counter:
    """A number that commands without answer change, and what it should be."""

    def __init__(self, number):
        self.key = b"moving-%d" % number
        self.value = None

    def step(self, rng):
        kind = rng.randrange(7)
        if self.value is None or kind == 0:
            self.value = rng.randrange(1000, 2000)
            return b.store(b.SETQ, self.key, b"%d" % self.value, flags=7)
        if kind == 1:
            self.value += 3
            return b.count(b.INCRQ, self.key, 3)
        if kind == 2:
            self.value -= 1
            return b.count(b.DECRQ, self.key)
        if kind == 3:
            return b.touch(b.GATQ, self.key, 500)
        if kind == 4:
            return b.store(b.SETQ, self.key, b"wrong", cas=1)
        return b.packet(b.GETQ, self.key) * 2


def test_objects_that_move(start, flash_options):
    """While objects are on their way to flash and back each one is gone, or is what the last command made of it."""
    daemon = start(*flash_options)
    rng = random.Random(21)
    counters = [Counter(number) for number in range(300)]
    with BinaryClient(daemon.port) as client, daemon.client() as text:
        before = text.count("segments_written")

        def turn():
            client.all(b"".join(counter.step(rng) for counter in counters))
            fill(text, SEGMENT // 2)
            return text.count("segments_written") > before + 60

        until(turn, "segments to be written")
        found = 0
        for counter in counters:
            answer = client.ask(b.packet(b.GET, counter.key))
            if answer.status == b.NOT_FOUND:
                continue
            found += 1
            assert (int(answer.value), answer.extras) == (counter.value, struct.pack(">I", 7)), counter.key
        assert found > 0
