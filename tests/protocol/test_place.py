# SPDX-License-Identifier: BSD-3-Clause
"""Each command behaves the same whether its object lies in DRAM or on flash."""

from helpers import Kind

BINARY = bytes(range(256)) + b"\r\nEND\r\nget x\r\n"

FLAGGED = Kind(b"the value", flags=4294967295)
EMPTY = Kind(b"")
LONG_KEY = Kind(b"v", key_length=250)
BINARY_VALUE = Kind(BINARY)
PLAIN = Kind(b"there")
MIDDLE = Kind(b"-", flags=7)
NUMBER = Kind(b"10")
LARGE_NUMBER = Kind(b"18446744073709551614")
NAMED = Kind(b"value of %key")
KINDS = [FLAGGED, EMPTY, LONG_KEY, BINARY_VALUE, PLAIN, MIDDLE, NUMBER, LARGE_NUMBER, NAMED]


def test_get_gives_value_and_flags(placed):
    """get answers what was set, flags included."""
    key = placed.put(FLAGGED)
    assert placed.client.get(key) == [(key, 4294967295, b"the value", None)]


def test_get_of_an_empty_value(placed):
    """A value of no bytes is a hit."""
    key = placed.put(EMPTY)
    assert placed.client.get(key) == [(key, 0, b"", None)]


def test_get_of_a_long_key(placed):
    """A key may have 250 bytes."""
    key = placed.put(LONG_KEY)
    assert len(key) == 250
    assert placed.client.get(key) == [(key, 0, b"v", None)]


def test_get_of_binary_bytes(placed):
    """A value may hold any bytes, line ends and commands too."""
    key = placed.put(BINARY_VALUE)
    assert placed.client.get(key) == [(key, 0, BINARY, None)]


def test_gets_shows_an_id_that_changes_with_each_write(placed):
    """CAS ids rise with each write."""
    key = placed.put(PLAIN)
    (_, _, _, first), = placed.client.get(key, command=b"gets")
    placed.client.set(key, b"2")
    (_, _, _, second), = placed.client.get(key, command=b"gets")
    assert second > first > 0


def test_set_replaces(placed):
    """After a set the old value is never seen again."""
    key = placed.put(PLAIN)
    assert placed.client.set(key, b"new") == b"STORED\r\n"
    assert placed.client.get(key) == [(key, 0, b"new", None)]


def test_add_of_a_present_key_is_not_stored(placed):
    """add leaves what is there."""
    key = placed.put(PLAIN)
    assert placed.client.set(key, b"x", command=b"add") == b"NOT_STORED\r\n"
    assert placed.client.get(key)[0][2] == b"there"


def test_replace_of_a_present_key(placed):
    """replace finds it."""
    key = placed.put(PLAIN)
    assert placed.client.set(key, b"x", command=b"replace") == b"STORED\r\n"
    assert placed.client.get(key)[0][2] == b"x"


def test_append_and_prepend_keep_the_flags(placed):
    """Both join to what is there; flags stay those of the set."""
    key = placed.put(MIDDLE)
    assert placed.client.set(key, b"right", flags=9, command=b"append") == b"STORED\r\n"
    assert placed.client.set(key, b"left", flags=9, command=b"prepend") == b"STORED\r\n"
    assert placed.client.get(key) == [(key, 7, b"left-right", None)]


def test_cas_stores_with_the_right_id(placed):
    """cas with the id that gets showed stores; a second one with it does not."""
    key = placed.put(PLAIN)
    (_, _, _, cas), = placed.client.get(key, command=b"gets")
    assert placed.client.set(key, b"2", command=b"cas", cas=cas) == b"STORED\r\n"
    assert placed.client.set(key, b"3", command=b"cas", cas=cas) == b"EXISTS\r\n"
    assert placed.client.get(key)[0][2] == b"2"


def test_incr_and_decr(placed):
    """Both count, wrap at 64 bits and stop at zero."""
    key = placed.put(LARGE_NUMBER)
    assert placed.client.ask(b"incr %s 3\r\n" % key) == b"1\r\n"
    assert placed.client.ask(b"decr %s 5\r\n" % key) == b"0\r\n"


def test_incr_of_something_else(placed):
    """A value that is no number stays as it is."""
    key = placed.put(PLAIN)
    answer = placed.client.ask(b"incr %s 1\r\n" % key)
    assert answer == b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
    assert placed.client.get(key)[0][2] == b"there"


def test_delete(placed):
    """A deleted object is gone, and a second delete finds nothing."""
    key = placed.put(PLAIN)
    assert placed.client.ask(b"delete %s\r\n" % key) == b"DELETED\r\n"
    assert placed.client.ask(b"delete %s\r\n" % key) == b"NOT_FOUND\r\n"
    assert placed.client.get(key) == []


def test_touch_with_a_time_in_the_past(placed):
    """touch changes the expiry of what is there."""
    key = placed.put(PLAIN)
    assert placed.client.ask(b"touch %s 100\r\n" % key) == b"TOUCHED\r\n"
    assert placed.client.get(key)[0][2] == b"there"
    assert placed.client.ask(b"touch %s -1\r\n" % key) == b"TOUCHED\r\n"
    assert placed.client.get(key) == []


def test_gat_answers_and_touches(placed):
    """gat gives the value and then the new time counts."""
    key = placed.put(PLAIN)
    assert placed.client.get(key, command=b"gat -1") == [(key, 0, b"there", None)]
    assert placed.client.get(key) == []


def test_multiget_answers_in_the_order_of_the_keys(placed):
    """get of many keys answers in their order, missing ones left out, one given twice twice."""
    keys = placed.put_many(NAMED, 5)
    found = placed.client.get(keys[3], b"nothing-here", keys[0], keys[4], keys[3], keys[1])
    assert [key for key, *_ in found] == [keys[3], keys[0], keys[4], keys[3], keys[1]]
    assert all(value == b"value of " + key for key, _, value, _ in found)


def test_noreply_changes_are_made_in_silence(placed):
    """Commands with noreply act, and only the last one is answered."""
    keys = placed.put_many(NUMBER, 4)
    answer = placed.client.all(b"incr %s 2 noreply\r\ndelete %s noreply\r\ntouch %s -1 noreply\r\n"
                               b"append %s 0 0 1 noreply\r\n6\r\n" % tuple(keys))
    assert answer == b""
    assert [value for _, _, value, _ in placed.client.get(*keys)] == [b"12", b"106"]


def test_commands_of_one_connection_act_in_order(placed):
    """In a pipeline each command sees what those before it did to its key."""
    key = placed.put(NUMBER)
    answer = placed.client.all(b"incr %b 1\r\nget %b\r\nincr %b 1\r\ndecr %b 5\r\nget %b\r\n"
                               b"append %b 0 0 1\r\n0\r\nincr %b 1\r\n"
                               b"set %b 0 0 1\r\n3\r\nincr %b 1\r\ndelete %b\r\nincr %b 1\r\nget %b\r\n"
                               .replace(b"%b", key))
    got = answer.replace(b" \r\n", b"\r\n").split(b"\r\n")
    assert got[:2] == [b"11", b"VALUE %s 0 2" % key]
    assert got[4:6] == [b"12", b"7"]
    assert got[8] == b"END" and got[9] == b"STORED"
    assert got[11:] == [b"STORED", b"4", b"DELETED", b"NOT_FOUND", b"END", b""]


def test_flush_all_takes_everything(placed):
    """After flush_all nothing that was stored before it is found, and what comes after is."""
    key, later = placed.put(PLAIN), PLAIN.key()
    assert placed.client.ask(b"flush_all\r\n") == b"OK\r\n"
    assert placed.client.get(key) == []
    assert placed.client.set(later, b"v") == b"STORED\r\n"
    assert placed.client.get(key, later) == [(later, 0, b"v", None)]
