# SPDX-License-Identifier: BSD-3-Clause
"""Over a clean stop objects on flash are kept, all of them and none that is stale; after a kill the start is cold."""
import signal
import subprocess

import pytest

from conftest import FLASH
from helpers import Daemon, await_counts, fill_turn, flashield_command, free_port, on_flash, put_on_flash, until
from metrics import scrape, value as value_of

KEYS = 6000
VALUE = 200
BATCH = 50


def key(n):
    return b"key-%d" % n


def value(n, version=0):
    return (b"%d.%d-" % (n, version)).ljust(VALUE, b"v")


@pytest.fixture
def options(open_folder):
    return ["--state-dir", str(open_folder), "--flash-path", "flash", *FLASH]


def fill(daemon):
    """More objects than memory holds, with a pause for the cleaner after each batch."""
    with daemon.client() as client:
        for first in range(0, KEYS, BATCH):
            client.all(b"".join(b"set %s 0 0 %d noreply\r\n%s\r\n" % (key(n), VALUE, value(n))
                                for n in range(first, first + BATCH)))
        fill_turn(client)
        until(lambda: client.count("segments_used") > 3, "segments")


def hits(daemon):
    """The numbers of the keys that are there, each with its own value. A busy drive may refuse one: it is asked again."""
    found = set()
    with daemon.client() as client:
        for _ in range(3):
            left = [n for n in range(KEYS) if n not in found]
            for first in range(0, len(left), BATCH):
                batch = left[first:first + BATCH]
                for name, _, data, _ in client.get(*map(key, batch)):
                    n = int(name[4:])
                    assert data == value(n)
                    found.add(n)
    return found


def slots(daemon):
    with daemon.client() as client:
        await_counts(client)
    rows = daemon.stats(b"flash")
    return int(rows["index_slots_used"]) + int(rows["extent_entries_used"]) + int(rows["frugal_items"])


def how(daemon):
    return daemon.stats(b"flash")["flash_start"]


# ---- kept -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["SIGTERM", "SIGINT", "SIGUSR1", "shutdown", "shutdown graceful"])
def test_all_flash_objects_outlive_a_clean_stop(options, start, end):
    daemon = start(*options, "-A")
    assert how(daemon) == "cold: the flash is new"
    fill(daemon)
    if end.startswith("SIG"):
        daemon.process.send_signal(signal.Signals[end])
    else:
        with daemon.client() as client:
            client.send(end.encode() + b"\r\n")
            client.ends()
    assert daemon.process.wait() == 0
    again = start(*options)
    assert how(again) == "warm"
    there = slots(again)
    assert there > 300
    with again.client() as client:  # memory is empty, so that this reads the flash alone
        client.send(b"lru_crawler metadump all\r\n")
        shown = sum(line.startswith(b"key=") for line in iter(client.line, b"END\r\n"))
        if again.stats(b"flash")["index"] == "slots":
            assert shown == client.count("flash_items")
        else:  # the frugal index counts what was overwritten or deleted until its segment goes
            assert 300 < shown <= client.count("flash_items")
    assert hits(again)
    assert slots(again) == there


def test_hits_after_are_hits_before(options, start):
    """Every key that flash has before the stop is a hit after it: the hit ratio of flash objects is kept."""
    daemon = start(*options)
    fill(daemon)
    with daemon.client() as client:
        before = hits(daemon)
        from_flash = {n for n in before if on_flash(client, key(n))}
    assert daemon.stop() == 0
    again = start(*options)
    after = hits(again)
    assert len(from_flash) > 300
    assert from_flash <= after <= before  # one that was in memory may have moved to flash since
    rows = again.stats(b"flash")
    assert int(rows["flash_read_errors"]) == 0
    assert len(after) == int(rows["flash_hits"])


def test_again_and_again(options, start):
    """Segments of earlier runs are reclaimed like any other."""
    last = None
    for turn in range(4):
        daemon = start(*options)
        assert how(daemon).startswith("warm" if turn else "cold")
        if last is not None:
            assert hits(daemon) >= last
        fill(daemon)
        assert daemon.stop() == 0
        daemon = start(*options)
        last = hits(daemon)
        assert last
        assert daemon.stop() == 0


def test_metrics_and_seccomp(options, start):
    port = free_port()
    options += ["--seccomp", "on"]
    for word in ("new", "warm"):
        daemon = start(*options, "--metrics-listen", f"127.0.0.1:{port}")
        assert value_of(scrape(port), "flash_start", how=word) == 1
        assert daemon.stop() == 0


# ---- never stale ----------------------------------------------------------------------------------


def test_what_was_changed_does_not_come_back(options, start):
    daemon = start(*options)
    changes = {b"set": b"set %s 0 0 3\r\nnew\r\n", b"delete": b"delete %s\r\n", b"touch": b"touch %s 1000\r\n",
               b"append": b"append %s 0 0 2\r\ner\r\n", b"expired": b"touch %s -1\r\n"}
    with daemon.client() as client:
        kept = put_on_flash(client, b"kept")
        changed = []
        for prefix, change in changes.items():
            name = put_on_flash(client, prefix)
            assert client.ask(change % name).split()[0] in (b"STORED", b"DELETED", b"TOUCHED")
            changed.append(name)
        assert on_flash(client, kept)
    assert daemon.stop() == 0
    again = start(*options)
    assert how(again) == "warm"
    with again.client() as client:
        assert [data for _, _, data, _ in client.get(kept)] == [b"old"]
        # One that went on to flash with its new value may be there: then with that.
        values = dict((name, data) for name, _, data, _ in client.get(*changed))
        assert values.items() <= {changed[0]: b"new", changed[2]: b"old", changed[3]: b"older"}.items()


def test_a_run_without_the_flash(options, start):
    """A run of the same daemon from memory alone changes what flash has: the next run with the flash doesn't believe its state."""
    port = free_port()
    daemon = start(*options, port=port)
    with daemon.client() as client:
        name = put_on_flash(client, b"key")
    assert daemon.stop() == 0
    without = start(*options[:2], "-m", "4", port=port)
    with without.client() as client:
        assert client.set(name, b"new") == b"STORED\r\n"
    assert without.stop() == 0
    again = start(*options, port=port)
    assert how(again) == "cold: there is no state file in --state-dir"
    with again.client() as client:
        assert client.get(name) == []


def test_a_larger_flash_is_warm(options, start):
    daemon = start(*options)
    with daemon.client() as client:
        name = put_on_flash(client, b"key")
    assert daemon.stop() == 0
    at = options.index("--flash-size")
    again = start(*options[:at], "--flash-size", "31m", *options[at + 2:])
    assert how(again).startswith("cold: the size of flash")
    with again.client() as client:
        name = put_on_flash(client, b"key")
    assert again.stop() == 0
    larger = start(*options)
    assert how(larger) == "warm"
    with larger.client() as client:
        assert on_flash(client, name) and client.get(name)[0][2] == b"old"


def test_a_pending_flush_goes_on(options, start):
    daemon = start(*options)
    with daemon.client() as client:
        key_flushed = put_on_flash(client, b"flushed")
        assert client.ask(b"flush_all 3\r\n") == b"OK\r\n"
    assert daemon.stop() == 0
    again = start(*options)
    assert how(again) == "warm"
    with again.client() as client:
        until(lambda: not client.get(key_flushed), "the flush that was pending")
        assert client.set(b"after", b"x") == b"STORED\r\n"
        assert client.get(b"after")
    assert again.stop() == 0
    third = start(*options)
    assert how(third) == "warm"
    with third.client() as client:
        assert not client.get(key_flushed)


# ---- cold -----------------------------------------------------------------------------------------


def test_a_kill_starts_cold(options, start):
    daemon = start(*options)
    fill(daemon)
    assert daemon.stop() == 0
    warm = start(*options)
    assert how(warm) == "warm"
    warm.process.kill()
    warm.process.wait()
    warm.process = subprocess.Popen(["true"])  # for the fixture, which asks for a clean end
    cold = start(*options)
    assert how(cold) == "cold: the last run was killed, or saved nothing"
    assert not hits(cold) and slots(cold) == 0


def test_options_that_make_it_cold(options, start):
    for more, text in ((["--restart-max-downtime", "0"], "cold: --restart-max-downtime is 0"),
                       (["--tag-bits", "9"], "cold: --index, --tag-bits or --clock-mode has changed"),
                       (["--flash-size", "48m"], "cold: the size of flash or segments"),
                       (["--restart-max-downtime", "1us"], "cold: the stop was longer ago than")):
        daemon = start(*options)
        fill(daemon)
        assert daemon.stop() == 0
        daemon = start(*options, *more)
        assert how(daemon).startswith(text)
        assert slots(daemon) == 0 and not hits(daemon)
        assert daemon.stop() == 0


def test_the_reason_is_logged_once(options, open_folder):
    log = open_folder / "log"
    for text in (b"cold: the flash is new", b"warm start from the state file"):
        with open(log, "wb") as stderr, Daemon(options, stderr=stderr) as daemon:
            fill(daemon)
        assert log.read_bytes().count(b"flash: " + text) == 1


def test_a_state_directory_that_can_not_be_written(open_folder, options):
    """The daemon serves, says at its end what is wrong, and starts cold."""
    folder = open_folder / "state"
    folder.mkdir()
    options = ["--state-dir", str(folder), "--flash-path", str(open_folder / "flash"), *FLASH]
    folder.chmod(0o555)
    with open(open_folder / "log", "wb") as stderr, Daemon(options, stderr=stderr) as daemon:
        assert daemon.stats(b"flash")["flash_enabled"] == "1"
    assert b"its state can't be saved in" in (open_folder / "log").read_bytes()
    with Daemon(options) as daemon:
        assert how(daemon) == "cold: the last run was killed, or saved nothing"


def test_a_second_daemon_leaves_the_state_alone(options, start, open_folder):
    """One that is refused for the same flash; and one beside it with a flash of its own in the same directory."""
    daemon = start(*options)
    fill(daemon)
    refused = subprocess.run([flashield_command(), "-u", "nobody", "-p", str(free_port()), "-l", "127.0.0.1",
                              "--metrics-listen=off", *options], capture_output=True, check=False)
    assert refused.returncode != 0 and b"in use" in refused.stderr
    beside = start("--state-dir", str(open_folder), "--flash-path", "other", *FLASH)
    fill(beside)
    assert daemon.stop() == 0 and beside.stop() == 0
    again = start(*options)
    assert how(again) == "warm" and hits(again)
    beside = start("--state-dir", str(open_folder), "--flash-path", "other", *FLASH)
    assert how(beside) == "warm" and hits(beside)
