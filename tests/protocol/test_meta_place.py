# SPDX-License-Identifier: BSD-3-Clause
"""Each meta command and flag behaves the same whether its object lies in DRAM, on flash, or moves between them."""
import base64
import random

import pytest

from helpers import SEGMENT, Countdown, Kind, fill, until

PLAIN = Kind(b"there")
FLAGGED = Kind(b"the value", flags=4294967295)
EMPTY = Kind(b"")
LONG_KEY = Kind(b"v", key_length=250)
LARGE = Kind(b"0123456789abcdef" * 190)
NUMBER = Kind(b"10", flags=3)
KINDS = [PLAIN, FLAGGED, EMPTY, LONG_KEY, LARGE, NUMBER]


def ask(placed, line, key, *rest):
    """The answer's line to a command on this key, which %b stands for: as words, without the line end."""
    return placed.client.ask(b"\r\n".join([line.replace(b"%b", key), *rest, b""])).split()


def value(placed, line, key):
    """The words of the answer's line, and the value behind it."""
    words = ask(placed, line, key)
    assert words[0] == b"VA", words
    data = placed.client.reader.read(int(words[1]) + 2)
    assert data.endswith(b"\r\n")
    return words[2:], data[:-2]


def cas(placed, key):
    return int(ask(placed, b"mg %b c", key)[1][1:])


def pipeline(placed, commands, key):
    return placed.client.all(commands.replace(b"%b", key) + b"\r\n").split(b"\r\n")[:-1]


# ---- mg ------------------------------------------------------------------------------------------

def test_get_of_a_miss_or_nothing(placed):
    """Without v only what was asked for comes; q hides misses alone."""
    key = placed.put(PLAIN)
    assert ask(placed, b"mg %b", key) == [b"HD"]
    assert ask(placed, b"mg %b q", key) == [b"HD"]
    assert ask(placed, b"mg none-%b k O1", key) == [b"EN", b"knone-" + key, b"O1"]
    assert pipeline(placed, b"mg none-%b q\r\nmg none-%b v q O1", key) == []


def test_get_answers_flags_in_their_order(placed):
    """What comes back comes as it was asked for."""
    key = placed.put(FLAGGED)
    flags, data = value(placed, b"mg %b s v f t k Ox", key)
    assert data == b"the value"
    assert flags == [b"s9", b"f4294967295", b"t-1", b"k" + key, b"Ox"]
    assert ask(placed, b"mg %b Oy k t f s", key) == [b"HD", b"Oy", b"k" + key, b"t-1", b"f4294967295", b"s9"]


def test_get_of_an_empty_value(placed):
    """A value of no bytes is a hit."""
    assert value(placed, b"mg %b s v", placed.put(EMPTY)) == ([b"s0"], b"")


def test_get_of_a_long_key(placed):
    """All flags with the longest key."""
    key = placed.put(LONG_KEY)
    flags, data = value(placed, b"mg %b k v O1234567890123456789012345678901 f s t h l c", key)
    assert (data, flags[0]) == (b"v", b"k" + key)
    assert [flag[:1] for flag in flags] == [b"k", b"O", b"f", b"s", b"t", b"h", b"l", b"c"]


def test_get_of_a_large_value(placed):
    """A value that is sent from where it lies; and one whose value nobody wants."""
    key = placed.put(LARGE)
    assert value(placed, b"mg %b v s", key) == ([b"s3040"], LARGE.template)
    assert ask(placed, b"mg %b s k", key) == [b"HD", b"s3040", b"k" + key]


@pytest.mark.parametrize("kind", [PLAIN, LARGE], ids=["small", "large"])
def test_get_of_a_value_that_the_client_has(placed, kind):
    """C: the value comes only if the id is another one; other flags are answered and act all the same."""
    key = placed.put(kind)
    found = cas(placed, key)
    countdown = Countdown()
    answer = ask(placed, b"mg %%b s v C%d T300 t" % found, key)
    assert answer[:2] == [b"HD", b"s%d" % len(kind.value(key))] and answer[2] in countdown.words(300)
    assert value(placed, b"mg %%b v C%d" % (found + 1), key) == ([], kind.value(key))
    assert value(placed, b"mg %b v C0", key) == ([], kind.value(key))
    assert ask(placed, b"mg none-%b v C0", key) == [b"EN"]


def test_get_with_a_key_in_base64(placed):
    """b: the key comes and goes in base64."""
    key = placed.put(PLAIN)
    coded = base64.b64encode(key)
    assert value(placed, b"mg %b b v k", coded) == ([b"k" + coded, b"b"], b"there")
    assert ask(placed, b"md %b k b", coded) == [b"HD", b"k" + coded, b"b"]
    assert ask(placed, b"mg %b", key) == [b"EN"]


def test_get_tells_hits_and_idle_time(placed):
    """h is 1 once the object was read; l is small. u doesn't count as a read."""
    key = placed.put(PLAIN)
    hit, idle = ask(placed, b"mg %b h l u", key)[1:]
    assert hit in (b"h0", b"h1") and int(idle[1:]) <= 60
    ask(placed, b"mg %b", key)
    assert ask(placed, b"mg %b h", key) == [b"HD", b"h1"]


def test_get_touches(placed):
    """T: the new time counts, is answered by a t behind it, and not by one before it."""
    key = placed.put(PLAIN)
    countdown = Countdown()
    (new,), data = value(placed, b"mg %b T100 t v", key)
    assert data == b"there" and new in countdown.words(100)
    assert ask(placed, b"mg %b t T200", key)[1] in countdown.words(100)
    assert ask(placed, b"mg %b t", key)[1] in countdown.words(200)
    assert ask(placed, b"mg %b T-1", key) == [b"HD"]
    assert ask(placed, b"mg %b v", key) == [b"EN"]


def test_old_time_to_live_of_an_object_that_is_touched(placed):
    """t before T asks for what was left."""
    assert ask(placed, b"mg %b t T50", placed.put(PLAIN)) == [b"HD", b"t-1"]


def test_vivify_of_what_is_there(placed):
    """N changes nothing of an object; after a delete it makes one, for the first who asks."""
    key = placed.put(PLAIN)
    assert value(placed, b"mg %b N30 v", key) == ([], b"there")
    assert ask(placed, b"md %b", key) == [b"HD"]
    assert value(placed, b"mg %b N30 v", key) == ([b"W"], b"")
    assert value(placed, b"mg %b N30 v", key) == ([b"Z"], b"")
    assert ask(placed, b"ms %b 3", key, b"new") == [b"HD"]
    assert value(placed, b"mg %b N30 v", key) == ([], b"new")


def test_recache(placed):
    """R: the first who asks shortly before the end wins."""
    key = placed.put(PLAIN)
    assert value(placed, b"mg %b R60 v", key) == ([], b"there")
    assert ask(placed, b"mg %b T30", key) == [b"HD"]
    assert value(placed, b"mg %b R10 v", key) == ([], b"there")
    assert value(placed, b"mg %b R60 v", key) == ([b"W"], b"there")
    assert value(placed, b"mg %b R60 v", key) == ([b"Z"], b"there")


# ---- md ------------------------------------------------------------------------------------------

def test_delete(placed):
    """A deleted object is gone; q hides the success alone."""
    key = placed.put(PLAIN)
    assert ask(placed, b"md %b k O1", key) == [b"HD", b"k" + key, b"O1"]
    assert ask(placed, b"mg %b", key) == [b"EN"]
    assert pipeline(placed, b"md %b\r\nmd %b q", key) == [b"NF", b"NF"]
    assert pipeline(placed, b"md %b q\r\nmg %b v", placed.put(PLAIN)) == [b"EN"]


def test_delete_compares(placed):
    """C: only an object with this id goes."""
    key = placed.put(PLAIN)
    found = cas(placed, key)
    assert ask(placed, b"md %%b C%d k" % (found + 1), key) == [b"EX", b"k" + key]
    assert ask(placed, b"md %%b C%d I" % (found + 1), key) == [b"EX"]
    assert value(placed, b"mg %b v", key) == ([], b"there")
    assert ask(placed, b"md %%b C%d" % found, key) == [b"HD"]
    assert ask(placed, b"mg %b", key) == [b"EN"]


def test_invalidate(placed):
    """md I leaves the value, stale: the first reader wins, others learn that somebody has, a set mends it."""
    key = placed.put(FLAGGED)
    before = cas(placed, key)
    countdown = Countdown()
    assert ask(placed, b"md %b I T60", key) == [b"HD"]
    assert placed.client.get(key) == [(key, 4294967295, b"the value", None)]
    flags, data = value(placed, b"mg %b v t f c", key)
    assert data == b"the value" and flags[0] in countdown.words(60) and flags[1] == b"f4294967295"
    assert int(flags[2][1:]) > before and flags[3:] == [b"X", b"W"]
    assert value(placed, b"mg %b v", key) == ([b"Z", b"X"], b"the value")
    assert ask(placed, b"ms %%b 3 C%d I" % (before + 1), key, b"old")[0] in (b"HD", b"EX")
    assert ask(placed, b"ms %b 3", key, b"new") == [b"HD"]
    assert value(placed, b"mg %b v", key) == ([], b"new")


def test_drop_value(placed):
    """md x empties an object, its client flags too; with I it is stale as well."""
    key = placed.put(FLAGGED)
    assert ask(placed, b"md %b x", key) == [b"HD"]
    assert value(placed, b"mg %b v f s t", key) == ([b"f0", b"s0", b"t-1"], b"")
    key = placed.put(FLAGGED)
    assert ask(placed, b"md %b x I T50", key) == [b"HD"]
    assert value(placed, b"mg %b v f", key) == ([b"f0", b"X", b"W"], b"")


# ---- ms ------------------------------------------------------------------------------------------

def test_set_modes(placed):
    """E, A, P and R on an object that is there, and with s its new length."""
    key = placed.put(FLAGGED)
    assert ask(placed, b"ms %b 1 ME k s", key, b"x") == [b"NS", b"k" + key, b"s1"]
    assert ask(placed, b"ms %b 2 MA s F5 T50", key, b"-r") == [b"HD", b"s11"]
    assert ask(placed, b"ms %b 2 MP s", key, b"l-") == [b"HD", b"s13"]
    assert value(placed, b"mg %b v f t", key) == ([b"f4294967295", b"t-1"], b"l-the value-r")
    countdown = Countdown()
    assert ask(placed, b"ms %b 3 MR F5 T50 s", key, b"new") == [b"HD", b"s3"]
    flags, data = value(placed, b"mg %b v f t", key)
    assert data == b"new" and flags[0] == b"f5" and flags[1] in countdown.words(50)


def test_set_compares(placed):
    """C: only an object with this id is replaced, or joined to."""
    key = placed.put(PLAIN)
    found = cas(placed, key)
    for mode in (b"S", b"R", b"A", b"P"):
        assert ask(placed, b"ms %%b 1 M%b C%d c" % (mode, found + 1), key, b"x") == [b"EX", b"c0"]
    assert value(placed, b"mg %b v", key) == ([], b"there")
    assert ask(placed, b"ms %%b 1 MA C%d" % found, key, b"x") == [b"HD"]
    assert value(placed, b"mg %b v", key) == ([], b"therex")
    answer = ask(placed, b"ms %%b 1 C%d c" % cas(placed, key), key, b"y")
    assert answer == [b"HD", b"c%d" % cas(placed, key)]


def test_set_of_something_older(placed):
    """C and I: what was made of an older version is stored, as stale."""
    assert placed.client.ask(b"ms first 1\r\n1\r\n").rstrip() == b"HD"     # it takes id 1, which is then older than any other
    key = placed.put(PLAIN)
    assert ask(placed, b"ms %b 3 C1 I", key, b"old") == [b"HD"]
    assert value(placed, b"mg %b v", key) == ([b"X", b"W"], b"old")
    assert value(placed, b"mg %b v", key) == ([b"Z", b"X"], b"old")


def test_set_with_an_id_of_the_client(placed):
    """E: the id that is shown and compared from then on."""
    key = placed.put(PLAIN)
    assert ask(placed, b"ms %b 1 E12345678901234 c", key, b"x") == [b"HD", b"c12345678901234"]
    assert cas(placed, key) == 12345678901234
    assert ask(placed, b"ms %b 1 C12345678901234", key, b"y") == [b"HD"]
    key = placed.put(PLAIN)
    assert ask(placed, b"md %b I E77", key) == [b"HD"]
    assert value(placed, b"mg %b v c", key) == ([b"c77", b"X", b"W"], b"there")


def test_set_of_too_large_a_value(placed):
    """It is passed over, and the old value is gone."""
    key = placed.put(PLAIN)
    assert ask(placed, b"ms %b 2000000 ME", key, b"x" * 2000000)[:3] == [b"SERVER_ERROR", b"object", b"too"]
    assert ask(placed, b"mg %b", key) == [b"EN"]


# ---- ma, me --------------------------------------------------------------------------------------

def test_arithmetic(placed):
    """ma counts up and down, and answers what it was asked."""
    key = placed.put(NUMBER)
    assert value(placed, b"ma %b v k", key) == ([b"k" + key], b"11")
    assert value(placed, b"ma %b MD D5 v t", key) == ([b"t-1"], b"6")
    assert ask(placed, b"ma %b O5 D90", key) == [b"HD", b"O5"]
    assert ask(placed, b"ma %b q v", key, b"mn") == [b"MN"]
    assert value(placed, b"mg %b v f", key) == ([b"f3"], b"97")


def test_arithmetic_touches_and_compares(placed):
    """T and C of ma."""
    key = placed.put(NUMBER)
    found = cas(placed, key)
    assert ask(placed, b"ma %%b C%d" % (found + 1), key) == [b"EX"]
    countdown = Countdown()
    answer = ask(placed, b"ma %%b C%d T90 t c" % found, key)
    assert answer[0] == b"HD" and answer[1] in countdown.words(90) and answer[2] == b"c%d" % cas(placed, key)
    assert value(placed, b"mg %b v", key) == ([], b"11")


def test_arithmetic_of_something_else(placed):
    """A value that is no number stays as it is."""
    key = placed.put(PLAIN)
    assert ask(placed, b"ma %b q", key)[0] == b"CLIENT_ERROR"
    assert ask(placed, b"ma %b N30", key)[0] == b"CLIENT_ERROR"
    assert value(placed, b"mg %b v", key) == ([], b"there")


def test_arithmetic_makes_what_is_absent(placed):
    """N makes a number of an absent key, and changes none that is there."""
    key = placed.put(NUMBER)
    assert value(placed, b"ma %b N30 J5 v t", key) == ([b"t-1"], b"11")
    assert ask(placed, b"md %b", key) == [b"HD"]
    assert ask(placed, b"ma %b", key) == [b"NF"]
    countdown = Countdown()
    flags, data = value(placed, b"ma %b N30 J5 v t", key)
    assert data == b"5" and flags[0] in countdown.words(30)


def test_debug(placed):
    """me tells of an object without reading it."""
    key = placed.put(FLAGGED)
    found = cas(placed, key)
    answer = ask(placed, b"me %b", key)
    assert answer[:2] == [b"ME", key]
    fields = dict(word.split(b"=") for word in answer[2:])
    assert list(fields) == [b"exp", b"la", b"cas", b"fetch", b"cls", b"size"]
    assert fields[b"exp"] == b"-1" and int(fields[b"cas"]) == found and fields[b"fetch"] == b"yes"
    header = 24 if placed.where == "dram" else 28  # an item keeps what it needs for flash where there is flash
    assert int(fields[b"size"]) == len(key) + 9 + header + 4 and int(fields[b"cls"]) > 0
    assert ask(placed, b"me none-%b", key) == [b"EN"]


# ---- together ------------------------------------------------------------------------------------

def test_commands_of_one_connection_act_in_order(placed):
    """In a pipeline each command sees what those before it did to its key, in base64 or not."""
    key = placed.put(NUMBER)
    coded = base64.b64encode(key)
    answer = placed.client.all(b"ma %b v\r\nmg %b v\r\nma %c b v\r\nms %b 1 MA\r\n0\r\nma %c b v\r\nmd %c b I\r\nmg %b v\r\nmg %c b v\r\n"
                               b"ms %c 1 b\r\n3\r\nma %b v\r\nmd %b\r\nma %c b\r\nmg %b N30 v\r\nmg %b v\r\n"
                               .replace(b"%b", key).replace(b"%c", coded))
    assert answer.split(b"\r\n") == [
        b"VA 2", b"11", b"VA 2", b"11", b"VA 2", b"12", b"HD", b"VA 3", b"121", b"HD", b"VA 3 X W", b"121", b"VA 3 Z X", b"121",
        b"HD", b"VA 1", b"4", b"HD", b"NF", b"VA 0 W", b"", b"VA 0 Z", b"", b""]


def test_quiet_pipeline(placed):
    """Hits of many quiet gets come in their order, each with its token; mn ends them."""
    keys = placed.put_many(PLAIN, 6)
    commands = b"".join(b"mg %s v q k O%d\r\nmg none-%s v q O9\r\n" % (key, n, key) for n, key in enumerate(keys))
    assert placed.client.all(commands) == b"".join(b"VA 5 k%s O%d\r\nthere\r\n" % (key, n) for n, key in enumerate(keys))


class Counter:
    """A key that counts: what it must be, if it is there."""

    def __init__(self, number):
        self.key = b"counter-%d" % number
        self.value = None

    def step(self, rng):
        kind = rng.randrange(6)
        if self.value is None or kind == 0:
            self.value = rng.randrange(1000)
            return b"ms %s 4 F7 q\r\n%04d\r\n" % (self.key, self.value)
        if kind == 1:
            self.value = (self.value + 3) % 10000
            return b"ma %s D3 q\r\n" % self.key
        if kind == 2:
            return b"md %s I q\r\n" % self.key
        if kind == 3:
            return b"mg %s T500 q\r\n" % self.key
        return b""


def test_objects_that_move(start, flash_options):
    """While objects are on their way to flash and back each one is gone, or is what the last command made of it."""
    daemon = start(*flash_options)
    rng = random.Random(21)
    counters = [Counter(number) for number in range(400)]
    with daemon.client() as client:
        start_count = client.count("segments_written")

        def turn():
            client.all(b"".join(counter.step(rng) for counter in counters))
            fill(client, SEGMENT // 2)
            return client.count("segments_written") > start_count + 60

        until(turn, "segments to be written")
        found = 0
        for counter in counters:
            words = client.ask(b"mg %s v f\r\n" % counter.key).split()
            if words[0] == b"EN":
                continue
            data = client.reader.read(int(words[1]) + 2)
            found += 1
            assert (int(data), words[2]) == (counter.value, b"f7"), counter.key
        assert found > 0
