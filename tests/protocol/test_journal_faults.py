# SPDX-License-Identifier: BSD-3-Clause
"""Faults of the file system on which the journal lies, and stops in the middle of a rebuild: clients get answers, and after
a crash no value of before. tests/unit/server/store/state/test_losses.c has what the store makes of failed calls."""
import os
import select
import subprocess

import pytest

from conftest import FLASH
from helpers import until
from slowdrive import LIBRARY, SlowDrive
from test_faults import small_file_system, with_faults  # noqa: F401
from test_journal import VALUE, crash, key, read_all, rebuilt, rows, set_all, set_on_flash, value

pytestmark = pytest.mark.slots("the frugal one has no journal")

LOOKED_AT = 1500  # of the keys
needs_library = pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not built: a sanitizer's variant?")


def options_in(folder, flash="flash"):
    return ["--state-dir", str(folder), "--flash-path", str(flash), "--journal", "sync", *FLASH]


def journal_file(folder, number=1):
    return folder / f"flash.journal.{number}"


def begin_set(client, n, version):
    client.send(b"set %s 0 0 %d\r\n%s\r\n" % (key(n), VALUE, value(n, version)))


def has_answer(client):
    return bool(select.select([client.socket], [], [], 0)[0])


def broken(daemon):
    until(lambda: rows(daemon)["journal"] == "broken", "the journal to be given up")


def is_cold_without_it(daemon, start, options, changed):
    """The values of before are gone, rather than back."""
    crash(daemon)
    again = start(*options)
    assert rows(again)["flash_start"] == "cold: there is no journal of the last run"
    with again.client() as client:
        assert not read_all(client, changed)


@needs_library
def test_a_sync_that_hangs_holds_up_what_depends_on_it_alone(start, open_folder):
    """One worker, so that no answer could come while it waits for the file system itself."""
    drive = SlowDrive(open_folder, journal_file(open_folder))
    options = [*options_in(open_folder), "-t", "1"]
    daemon = start(*options, environment=drive.environment)
    with daemon.client() as client, daemon.client() as other, daemon.client() as flusher:
        lay = set_on_flash(client, range(LOOKED_AT), 50)
        other.set(b"in-dram", b"here")
        drive.writes.hang = 1
        begin_set(client, lay[0], 1)
        until(lambda: drive.writes.held == 1, "the journal's write")
        assert [data for _, _, data, _ in other.get(b"in-dram")] == [b"here"]
        other.set(b"new", b"too")
        assert other.get(b"new")
        assert int(rows(daemon)["journal_waiting"]) >= 0
        flusher.send(b"flush_all\r\n")
        until(lambda: rows(daemon)["journal_waiting"] != "0", "the flush to wait")
        other.send(b"version\r\n")  # the worker goes on
        assert other.line().startswith(b"VERSION")
        other.send(b"get in-dram\r\n")  # sees the flush, and so waits for it
        assert not has_answer(client) and not has_answer(flusher)
        drive.writes.hang = 0
        assert client.line() == b"STORED\r\n"
        assert flusher.line() == b"OK\r\n"
        assert other.line() == b"END\r\n"
        assert rows(daemon)["journal"] == "sync"


@needs_library
def test_a_sync_that_fails_once_ends_the_journal(start, open_folder):
    """What a failed sync has made durable, nobody knows; that a later one succeeds says nothing."""
    drive = SlowDrive(open_folder, journal_file(open_folder))
    options = options_in(open_folder)
    daemon = start(*options, environment=drive.environment)
    with daemon.client() as client:
        lay = set_on_flash(client, range(LOOKED_AT), 50)
        drive.writes.fail_per_mille = 1000
        set_all(client, lay[:10], 1, quiet=False)
        drive.writes.fail_per_mille = 0
        broken(daemon)
        set_all(client, lay[10:20], 1, quiet=False)
    assert not list(open_folder.glob("flash.journal.*"))
    is_cold_without_it(daemon, start, options, lay[:20])


def test_a_journal_that_was_deleted_is_given_up(start, open_folder):
    options = options_in(open_folder)
    daemon = start(*options)
    with daemon.client() as client:
        lay = set_on_flash(client, range(LOOKED_AT), 50)
        journal_file(open_folder).unlink()
        set_all(client, lay[:10], 1, quiet=False)
        broken(daemon)
    is_cold_without_it(daemon, start, options, lay[:10])


def test_a_full_file_system_ends_the_journal_and_answers_go_on(start, small_file_system, open_folder):  # noqa: F811
    folder = small_file_system
    options = options_in(folder, open_folder / "flash")
    log = open_folder / "log"
    with log.open("w") as stderr:
        daemon = start(*options, stderr=stderr)
    with daemon.client() as client:
        lay = set_on_flash(client, range(LOOKED_AT), 50)
        with (folder / "others").open("wb", buffering=0) as others, pytest.raises(OSError):
            while True:
                others.write(bytes(1 << 12))
        set_all(client, lay, 1, quiet=False)
        broken(daemon)
    assert "journal: it can't be written and ends here" in log.read_text()
    is_cold_without_it(daemon, start, options, lay)


def test_a_read_only_file_system_at_the_start(start, small_file_system, open_folder):  # noqa: F811
    """The run goes without the journal, and so must the next one."""
    folder = small_file_system
    options = options_in(folder, open_folder / "flash")
    daemon = start(*options)
    with daemon.client() as client:
        lay = set_on_flash(client, range(LOOKED_AT), 50)
    crash(daemon)
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    log = open_folder / "log"
    with log.open("w") as stderr:
        daemon = start(*options, stderr=stderr)
    assert "journal: it can't be written in" in log.read_text()
    assert rows(daemon)["journal"] == "off"
    with daemon.client() as client:
        set_all(client, lay[:10], 1)
    crash(daemon)
    subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
    daemon = start(*options)
    assert rows(daemon)["flash_start"].startswith("cold")
    with daemon.client() as client:
        assert not read_all(client, lay)


@with_faults
def test_a_stop_in_a_rebuild_is_begun_again(start, open_folder):
    """The rebuild stands behind its first segment when SIGTERM comes."""
    options = options_in(open_folder)
    daemon = start(*options)
    with daemon.client() as client:
        lay = set_on_flash(client, range(LOOKED_AT), 50)
        set_all(client, lay[:10], 1, quiet=False)
    crash(daemon)
    log = open_folder / "log"
    with log.open("w") as stderr:
        again = start(*options, environment=dict(os.environ, FLASHIELD_FAULTS="rebuild_stands=always"), stderr=stderr)
    until(lambda: rows(again)["rebuilt_segments"] == "1", "the first segment")
    assert int(rows(again)["rebuild_segments"]) > 1
    assert again.stop() == 0
    assert "the rebuild of the index is not over" in log.read_text()
    third = start(*options)
    assert rows(third)["flash_start"].startswith("warm: the index is rebuilt")
    rebuilt(third)
    with third.client() as client:
        found = read_all(client, lay)
    assert all(data == value(n, 1 if n in lay[:10] else 0) for n, data in found.items())
    kept = set(lay[10:])
    assert len(kept & set(found)) >= len(kept) * 0.9
