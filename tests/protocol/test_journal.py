# SPDX-License-Identifier: BSD-3-Clause
"""--journal=sync: after a crash of the host, which a kill stands for here, the flash is rebuilt, and nothing on it is
stale. tests/unit/server/store/test_power.c cuts the power at each write."""
import subprocess

import pytest

from conftest import FLASH
from helpers import fill_turn, flashield_command, free_port, on_flash, until
from metrics import scrape, value as value_of

pytestmark = pytest.mark.slots("the frugal one has no journal")

COUNT = 3000
BATCH = 50
VALUE = 200


def key(n):
    return b"key-%d" % n


def value(n, version=0):
    return (b"%d.%d-" % (n, version)).ljust(VALUE, b"v")


@pytest.fixture
def options(open_folder):
    return ["--state-dir", str(open_folder), "--flash-path", "flash", "--journal", "sync", *FLASH]


def set_all(client, numbers, version=0, quiet=True):
    """In pipelines; their answers come when they are durable."""
    numbers = list(numbers)
    tail = b" noreply\r\n" if quiet else b"\r\n"
    for first in range(0, len(numbers), BATCH):
        batch = numbers[first:first + BATCH]
        client.send(b"".join(b"set %s 0 0 %d%s%s\r\n" % (key(n), VALUE, tail, value(n, version)) for n in batch))
        for _ in () if quiet else batch:
            assert client.line() == b"STORED\r\n"
    client.send(b"mn\r\n")
    assert client.line() == b"MN\r\n"


def read_all(client, numbers):
    """A busy drive may refuse a read: what is missing is asked for again."""
    left, found = list(numbers), {}
    for _ in range(3):
        for first in range(0, len(left), BATCH):
            for name, _, data, _ in client.get(*map(key, left[first:first + BATCH])):
                found[int(name[4:])] = data
        left = [n for n in left if n not in found]
    return found


def set_on_flash(client, numbers, least):
    """Sets all keys, and again where a busy drive has let too many of them be evicted. The numbers of those keys whose values are
    on flash then: more than `least`."""
    found = []

    def enough():
        set_all(client, range(COUNT))
        fill_turn(client)
        until(lambda: client.count("segments_used") > 3, "segments")
        found[:] = [n for n in numbers if on_flash(client, key(n))]
        return len(found) > least

    until(enough, "keys on flash")
    return found


def rows(daemon):
    return daemon.stats(b"flash")


def crash(daemon):
    daemon.process.kill()
    daemon.process.wait()
    daemon.process = subprocess.Popen(["true"])  # for the fixture, which asks for a clean end


def rebuilt(daemon):
    def done():
        now = rows(daemon)
        return now["rebuild_segments"] != "0" and now["rebuilt_segments"] == now["rebuild_segments"]
    until(done, "the rebuild")


def test_flash_is_rebuilt_after_a_crash(options, start):
    port = free_port()
    daemon = start(*options, "--seccomp", "on", "--metrics-listen", f"127.0.0.1:{port}")
    assert rows(daemon)["journal"] == "sync"
    with daemon.client() as client:
        lay = set_on_flash(client, range(COUNT), 400)
        set_all(client, lay[0::4], 1, quiet=False)
        client.send(b"".join(b"delete %s\r\n" % key(n) for n in lay[1::4]))
        for _ in lay[1::4]:
            assert client.line() == b"DELETED\r\n"
    figures = rows(daemon)
    assert int(figures["journal_entries"]) >= len(lay) // 2
    assert 0 < int(figures["journal_syncs"]) < int(figures["journal_entries"])
    assert value_of(scrape(port), "journal_broken") == 0
    crash(daemon)

    again = start(*options)
    assert rows(again)["flash_start"].startswith("warm: the index is rebuilt")
    rebuilt(again)
    with again.client() as client:
        found = read_all(client, lay)
    for n, data in found.items():
        assert data == value(n, 1 if n in lay[0::4] else 0)
    assert not set(lay[1::4]) & set(found)
    kept = set(lay[2::4]) | set(lay[3::4])
    assert len(kept & set(found)) >= len(kept) * 0.9  # a few slots may go to innocent drops and reclaim
    # A clean stop and a further crash: the journal goes on.
    assert again.stop() == 0
    third = start(*options)
    assert rows(third)["flash_start"] == "warm"
    crash(third)
    fourth = start(*options)
    rebuilt(fourth)
    with fourth.client() as client:
        for n, data in read_all(client, lay).items():
            assert data == value(n, 1 if n in lay[0::4] else 0)


def test_a_flush_outlives_a_crash(options, start):
    daemon = start(*options)
    with daemon.client() as client:
        set_all(client, range(COUNT))
        fill_turn(client)
        until(lambda: client.count("segments_used") > 3, "segments")
        client.send(b"flush_all\r\n")
        assert client.line() == b"OK\r\n"
    crash(daemon)
    again = start(*options)
    rebuilt(again)
    with again.client() as client:
        assert read_all(client, range(COUNT)) == {}


def test_off_in_between_is_cold(options, start):
    daemon = start(*options)
    with daemon.client() as client:
        set_all(client, range(COUNT))
        fill_turn(client)
    crash(daemon)
    without = [word for word in options if word not in ("--journal", "sync")]
    daemon = start(*without)
    assert rows(daemon)["flash_start"].startswith("cold")
    assert rows(daemon)["journal"] == "off"
    crash(daemon)
    daemon = start(*options)
    assert rows(daemon)["flash_start"] == "cold: there is no journal of the last run"


@pytest.mark.parametrize("left_out", ["--state-dir", "--flash-path"])
def test_what_it_takes(options, left_out):
    at = options.index(left_out)
    result = subprocess.run([flashield_command(), *options[:at], *options[at + 2:]], capture_output=True, text=True)
    assert result.returncode != 0
    assert "--journal: sync takes --flash-path and --state-dir" in result.stderr
