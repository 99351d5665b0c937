# SPDX-License-Identifier: BSD-3-Clause
"""stats latency: each request is in one histogram, whatever its protocol and wherever its object lies. No time is judged."""
import re
import socket

import pytest

from binary import GET, SET, BinaryClient, packet, store
from helpers import PATIENCE, Kind, free_port, until

PLAIN = Kind(b"a value of some length")
KINDS = [PLAIN]
NAMES = ["dram_hit", "flash_hit", "miss", "set", "flash_read", "flash_write"]
WHAT = ["mean", "p50", "p90", "p99", "p999", "max"]
LARGE = 900 * 1024


def counts(client):
    rows = client.stats(b"latency")
    return {name: int(rows[name + "_count"]) for name in NAMES}


def brings(client, action, expected):
    """So many of each kind come with an action, and no others. Another worker records them when it has sent."""
    before = counts(client)
    action()

    def gained():
        after = counts(client)
        return {name: after[name] - before[name] for name in NAMES[:4] if after[name] != before[name]}
    until(lambda: sum(gained().values()) >= sum(expected.values()), f"{expected} in stats latency")
    assert gained() == expected


def test_rows(placed):
    """Each kind with its quantiles, which ascend; decimals below 10 us. What was never recorded has none."""
    rows = placed.client.stats(b"latency")
    assert set(rows) == {f"{name}_count" for name in NAMES} | {f"{name}_{what}_us" for name in NAMES for what in WHAT}
    for name in NAMES:
        values = [rows[f"{name}_{what}_us"] for what in WHAT]
        if rows[f"{name}_count"] == "0":
            assert set(values) == {"nan"}, (name, values)
            continue
        assert re.fullmatch(r"\d+\.\d{6}", values[0]), (name, values[0])
        for value in values[1:]:
            assert re.fullmatch(r"\d\.\d{3}|10\.000|\d{2,}", value), (name, value)
        quantiles = [float(value) for value in values[1:]]
        assert quantiles == sorted(quantiles)
        assert float(values[-1]) > 0


def test_other_commands_are_in_none(placed):
    """delete, touch, incr, version, and what is refused."""
    client, key = placed.client, placed.put(PLAIN)

    def ask():
        for command in (b"touch %s 0", b"incr %s 1", b"delete %s", b"delete %s", b"version%.0s", b"get%.0s", b"nonsense %s"):
            client.ask(command % key + b"\r\n")
    brings(client, ask, {})


@pytest.mark.parametrize("protocol", ["text", "meta", "binary"])
def test_hits_misses_and_sets(placed, protocol):
    """A hit is its tier's, in every protocol."""
    key = placed.put(PLAIN)
    hit = f"{placed.where}_hit"
    with BinaryClient(placed.daemon.port) as binary:
        asks = {"text": (lambda: placed.client.get(key), lambda: placed.client.get(b"none"),
                         lambda: placed.client.set(b"other", b"x")),
                "meta": (lambda: placed.client.ask(b"mg %s\r\n" % key), lambda: placed.client.ask(b"mg none v\r\n"),
                         lambda: placed.client.ask(b"ms other 1\r\nx\r\n")),
                "binary": (lambda: binary.ask(packet(GET, key)), lambda: binary.ask(packet(GET, b"none")),
                           lambda: binary.ask(store(SET, b"other", b"x")))}[protocol]
        for ask, kind in zip(asks, (hit, "miss", "set")):
            brings(placed.client, ask, {kind: 1})


def test_what_waits_for_flash_is_counted_once(placed):
    """A set that has to read first is a set; gets beside it in the same turn are what they are."""
    client, first, second, third = placed.client, *placed.put_many(PLAIN, 3)
    hit = f"{placed.where}_hit"
    brings(client, lambda: client.ask(b"append %s 0 0 1\r\nx\r\n" % first), {"set": 1})
    brings(client, lambda: client.get(second, third, b"none", b"none-too"), {hit: 2, "miss": 2})


def test_flash_reads_and_writes(placed):
    """What the device was asked for."""
    client, key = placed.client, placed.put(PLAIN)
    before, flash = counts(client)["flash_read"], client.count("flash_reads")
    client.get(key)
    assert counts(client)["flash_read"] - before == client.count("flash_reads") - flash
    assert (counts(client)["flash_write"] > 0) == (placed.where == "flash")


def test_pipelines_and_large_values(placed):
    """More than one receive takes: each counts once."""
    client = placed.client
    many = b"set piped 0 0 100 noreply\r\n" + b"x" * 100 + b"\r\n"
    large = b"set large 0 0 %d\r\n" % LARGE + b"x" * LARGE + b"\r\n"
    brings(client, lambda: client.all(many * 1000), {"set": 1000})
    brings(client, lambda: client.all(b"get piped\r\n" * 1000), {"dram_hit": 1000})
    brings(client, lambda: client.ask(large), {"set": 1})  # last: where memory is small, others give way to it


def test_datagrams(start):
    """UDP: recorded when the answer is sent."""
    port = free_port()
    with start("-U", str(port)).client() as client, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(PATIENCE)
        udp.connect(("127.0.0.1", port))

        def ask(data):
            udp.send(bytes([0, 7, 0, 0, 0, 1, 0, 0]) + data)
            return udp.recv(2000)[8:]
        brings(client, lambda: ask(b"set a 0 0 1\r\nx\r\n"), {"set": 1})
        brings(client, lambda: ask(b"get a none\r\n"), {"dram_hit": 1, "miss": 1})


def test_reset(start):
    """stats reset begins anew."""
    with start().client() as client:
        client.set(b"a", b"x")
        client.get(b"a", b"none")
        assert client.ask(b"stats reset\r\n") == b"RESET\r\n"
        assert counts(client) == dict.fromkeys(NAMES, 0)
        assert {value for name, value in client.stats(b"latency").items() if name.endswith("_us")} == {"nan"}
        client.get(b"a")
        assert counts(client)["dram_hit"] == 1
