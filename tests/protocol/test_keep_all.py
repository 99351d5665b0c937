# SPDX-License-Identifier: BSD-3-Clause
"""-M: what was answered STORED is there, and what can't be kept is refused with memcached's words, until DRAM and flash are
full. And what becomes of the old value of a set that is refused."""
import struct

import pytest

from helpers import Kind, Placer, until

REFUSED = b"SERVER_ERROR out of memory storing object\r\n"
TOO_LARGE = b"SERVER_ERROR object too large for cache\r\n"
BATCH_BYTES = 256 << 10
FLASH_BYTES = 24 << 20
OLD = Kind(b"old")
REFUSALS = 400  # in a row, while the flash takes no more: then all is full


def value_of(number, size):
    return (b"%d." % number).ljust(size, b"v")


def set_batch(client, first, count, size):
    """Pipelined sets. The numbers of those that were stored."""
    client.send(b"".join(b"set object:%d 0 0 %d\r\n%s\r\n" % (n, size, value_of(n, size)) for n in range(first, first + count)))
    answers = [client.line() for _ in range(count)]
    assert set(answers) <= {b"STORED\r\n", REFUSED}
    return [first + i for i, answer in enumerate(answers) if answer == b"STORED\r\n"]


def has_more_room(client, written):
    """Has a segment been written since? Or else, is the flash full? Then there is none under way either."""
    rows = client.stats(b"flash")
    return int(rows["segments_written"]) > written or (rows["segments_free"] == "0" and rows["plan_bytes"] == "0")


def fill_all(client, size):
    """Sets until none is taken any more. Numbers of what was stored, and how many were refused."""
    stored, number, refused, batch = [], 0, 0, max(4, BATCH_BYTES // (size + 60))
    while refused < REFUSALS:
        written = client.count("segments_written")
        taken = set_batch(client, number, batch, size)
        stored += taken
        number += batch
        refused = 0 if taken else refused + batch
        if not taken:
            until(lambda: has_more_room(client, written), "a segment to be written, or the flash to be full")
            if client.count("segments_written") > written:
                refused = 0
    return stored, number - len(stored)


def missing(client, stored, size):
    lost = []
    for first in range(0, len(stored), 64):
        numbers = stored[first:first + 64]
        found = {key: data for key, _, data, _ in client.get(*(b"object:%d" % n for n in numbers))}
        lost += [n for n in numbers if found.get(b"object:%d" % n) != value_of(n, size)]
    return lost


@pytest.mark.slots("the frugal one goes with no -M")
@pytest.mark.parametrize("size", [20, 300, 100_000])
def test_what_was_stored_is_there_when_all_is_full(start, open_folder, size):
    """Objects of any size, with an index that was made for another one."""
    daemon = start("-M", "-m", "24", "-t", "2", "--flash-path", str(open_folder / "flash"), "--flash-size", str(FLASH_BYTES),
                   "--segment-size", "512k", "--admission", "all", "--flash-read-timeout", "60s")
    with daemon.client() as client:
        stored, refused = fill_all(client, size)
        assert refused >= REFUSALS
        assert len(stored) * (size + 40) > FLASH_BYTES, "both are full"
        assert client.count("evictions", b"") == 0
        assert client.count("index_drops") == 0
        assert not missing(client, stored, size)
        for number in stored[:1000:10]:  # and one that goes makes room for one that comes
            assert client.ask(b"delete object:%d\r\n" % number) == b"DELETED\r\n"
        assert not missing(client, stored[1000:], size)


@pytest.mark.slots("the frugal one goes with no -M")
def test_gat_finds_what_is_there_when_all_is_full(start, open_folder):
    """An object on flash takes memory to get a new expiry. Where there is none it is answered all the same, and never lives
    longer than the client asked for."""
    size = 2000
    daemon = start("-M", "-m", "24", "-t", "2", "--flash-path", str(open_folder / "flash"), "--flash-size", str(FLASH_BYTES),
                   "--segment-size", "512k", "--admission", "all", "--flash-read-timeout", "60s")
    with daemon.client() as client:
        stored = fill_all(client, size)[0][:200]
        keys = [b"object:%d" % n for n in stored]
        expected = [(key, value_of(n, size)) for key, n in zip(keys, stored)]
        for command in (b"gat 0", b"gats 0", b"gat 3600"):  # they were stored without an end
            client.send(command + b" " + b" ".join(keys) + b"\r\n")
            assert [(key, data) for key, _, data, _ in client.values()] == expected
        gone = 0
        for key in keys:
            answer = client.ask(b"mg %s t\r\n" % key).split()
            gone += answer == [b"EN"]
            assert answer == [b"EN"] or 0 < int(answer[1][1:]) <= 3600
        assert gone > 0, "memory was full"


def put_on_flash(daemon, count):
    """Keys of so many objects that have left DRAM for flash."""
    placer = Placer(daemon, "flash", [OLD])
    keys = placer.put_many(OLD, count)
    placer.client.close()
    return keys


def meta_set(client, key, value):
    return client.ask(b"ms %s %d\r\n%s\r\n" % (key, len(value), value))


def binary_set(daemon, key, value):
    with daemon.client() as client:
        client.send(struct.pack(">BBHBBHIIQ", 0x80, 1, len(key), 8, 0, 0, 8 + len(key) + len(value), 7, 0) + bytes(8) + key + value)
        _, _, _, _, _, status, length, opaque, _ = struct.unpack(">BBHBBHIIQ", client.reader.read(24))
        client.reader.read(length)
        assert opaque == 7
        client.send(struct.pack(">BBHBBHIIQ", 0x80, 0x0a, 0, 0, 0, 0, 0, 8, 0))  # noop: the value was passed by
        assert struct.unpack(">BBHBBHIIQ", client.reader.read(24))[7] == 8
        return status


@pytest.mark.parametrize("keep", [pytest.param(True, marks=pytest.mark.slots("the frugal one goes with no -M")), False])
def test_a_set_that_is_too_large_takes_the_old_value_along(start, open_folder, keep):
    """As the client thinks of it as gone, in DRAM or on flash. Another key's value stays."""
    daemon = start(*(["-M"] if keep else []), "-m", "4", "-I", "1024", "-t", "1", "--flash-path", str(open_folder / "flash"),
                   "--flash-size", "16m", "--segment-size", "64k", "--admission", "all", "--flash-read-timeout", "60s")
    with daemon.client() as client:
        flash = put_on_flash(daemon, 8)
        until(lambda: client.set(b"dram", b"old") == b"STORED\r\n", "room, which with -M the cleaner makes")
        large = b"x" * 2000
        for key in (flash[0], b"dram"):
            assert client.set(key, large) == TOO_LARGE
            assert client.get(key) == []
        assert meta_set(client, flash[1], large) == TOO_LARGE
        assert client.get(flash[1]) == []
        assert binary_set(daemon, flash[2], large) == 3
        assert client.get(flash[2]) == []
        client.send(b"set %s 0 0 2000 noreply\r\n%s\r\nget %s\r\n" % (flash[3], large, flash[3]))
        assert client.values() == []
        for key in flash[4:]:
            assert client.get(key) != []
        until(lambda: client.set(flash[0], b"new") == b"STORED\r\n", "room for the new value")
        assert client.get(flash[0]) == [(flash[0], 0, b"new", None)]
        rows = client.stats()
        assert int(rows["cmd_set"]) == int(rows["total_items"])
        assert (rows["delete_hits"], rows["delete_misses"]) == ("0", "0")


def binary_packet(opcode, key, opaque, extras=b"", value=b""):
    return struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0, len(extras) + len(key) + len(value), opaque, 0) + \
        extras + key + value


def binary_opaques(client, count):
    """(opaque, status) of so many answers."""
    found = []
    for _ in range(count):
        _, _, _, _, _, status, length, opaque, _ = struct.unpack(">BBHBBHIIQ", client.reader.read(24))
        client.reader.read(length)
        found.append((opaque, status))
    return found


@pytest.mark.slots("the frugal one goes with no -M")
@pytest.mark.parametrize("form", ["set", "set noreply", "ms", "binary"])
def test_a_refusal_that_reads_flash_is_answered_behind_the_value(start, open_folder, form):
    """Under -M the old object is read before it is deleted. The answer waits for the value all the same, and a get behind it
    for the delete. (Three workers, as each keeps what it has read: the one of this client has read nothing.)"""
    daemon = start("-M", "-m", "4", "-I", "1024", "-t", "3", "--flash-path", str(open_folder / "flash"), "--flash-size", "16m",
                   "--segment-size", "64k", "--admission", "all", "--flash-read-timeout", "60s")
    with daemon.client() as watching, daemon.client() as client:
        (key,) = put_on_flash(daemon, 1)
        reads = watching.count("flash_reads")
        if form == "binary":
            packets = binary_packet(1, key, 7, bytes(8), b"x" * 2000) + binary_packet(9, key, 8) + binary_packet(10, b"", 9)
            start_bytes, rest = packets[:1000], packets[1000:]
        else:
            line = b"ms %s 2000" if form == "ms" else b"set %s 0 0 2000" + (b" noreply" if "noreply" in form else b"")
            start_bytes, rest = line % key + b"\r\n" + b"x" * 1000, b"x" * 1000 + b"\r\nget %s\r\nmn\r\n" % key
        client.send(start_bytes)
        until(lambda: watching.count("flash_reads") > reads, "the old object to be read")
        for _ in range(3):  # a turn of each worker
            with daemon.client() as other:
                assert other.ask(b"mn\r\n") == b"MN\r\n"
        assert client.is_silent()
        client.send(rest)
        if form == "binary":
            assert binary_opaques(client, 2) == [(7, 3), (9, 0)]  # a quiet get that misses says nothing
            return
        assert form == "set noreply" or client.line() == TOO_LARGE
        assert client.values() == []
        assert client.line() == b"MN\r\n"


def test_a_delete_whose_answer_nobody_needs_reads_no_flash(start, flash_options):
    """noreply, and md with q: the slot goes at once."""
    daemon = start(*flash_options)
    with daemon.client() as client:
        flash = put_on_flash(daemon, 8)
        reads = client.count("flash_reads")
        assert client.all(b"delete %s noreply\r\n" % flash[0]) == b""
        assert client.all(b"md %s q\r\n" % flash[1]) == b""
        assert client.count("flash_reads") == reads
        assert client.get(flash[0], flash[1]) == []
        assert client.ask(b"delete %s\r\n" % flash[2]) == b"DELETED\r\n"
        assert client.count("flash_reads") > reads
        assert client.ask(b"delete %s\r\n" % flash[2]) == b"NOT_FOUND\r\n"
        assert client.all(b"md %s q\r\n" % flash[2]) == b"NF\r\n"
        assert client.get(*flash[3:]) != []
