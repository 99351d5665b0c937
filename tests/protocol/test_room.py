# SPDX-License-Identifier: BSD-3-Clause
"""A flash that is larger than its file system: what has room is used, a twentieth is left to others, and log and reports say so. What the file has is
its own, and it grows when there is room."""
import pathlib
import shutil
import signal
import tempfile

import pytest

from helpers import Daemon, free_port, on_flash, put_on_flash, until
from metrics import scrape, value as value_of
from namespace import SmallTmpfs

MIB = 1 << 20
DISK = 64 * MIB
ASKED = 126 * MIB
STEP = ASKED // 16 // 4096 * 4096
GIVEN = 7 * STEP  # the most sixteenths that 95 % of the disk hold


@pytest.fixture
def small(open_folder):
    folder = open_folder / "small"
    folder.mkdir()
    with SmallTmpfs(folder, "64m") as made:
        if made.refused:
            pytest.skip(made.refused)
        yield made


@pytest.fixture
def started(small, start, open_folder):
    """Starts a daemon with its flash there and its state elsewhere; the text of its log is in log."""
    def start_one(*options, asked="126m"):
        with (open_folder / "log").open("w") as log:
            return start("-m", "16", "--state-dir", str(open_folder), "--flash-path", f"{small.folder}/flash", "--flash-size", asked,
                         "--admission", "all", *options, program=small.program, stderr=log)
    return start_one


def sizes(daemon):
    rows = daemon.stats(b"flash")
    return int(rows["flash_bytes"]), int(rows["flash_asked_bytes"])


def complete(daemon):
    until(lambda: daemon.stats(b"flash")["flash_allocation"] == "complete", "the file")


def file_bytes(small):
    return int(small.run("stat", "-c", "%s", f"{small.folder}/flash").stdout)


def said(open_folder):
    return (open_folder / "log").read_text()


def test_what_has_room_is_used_and_told(small, started, open_folder):
    port = free_port()
    daemon = started(f"--metrics-listen=127.0.0.1:{port}")
    assert sizes(daemon) == (GIVEN, ASKED)
    text = f"warning: flash: {small.folder}/flash has 55.12 MiB in place of 126.00 MiB, as its file system has or had no more room"
    assert text in said(open_folder)
    complete(daemon)
    assert file_bytes(small) == GIVEN and small.free_bytes() >= DISK // 20
    metrics = scrape(port)
    assert (value_of(metrics, "flash_size_bytes"), value_of(metrics, "flash_asked_bytes")) == (GIVEN, ASKED)
    with daemon.client() as client:
        assert on_flash(client, put_on_flash(client, b"key"))


def test_the_next_start_finds_the_same_size_and_the_objects_even_on_a_full_disk(small, started, open_folder):
    daemon = started()
    complete(daemon)
    with daemon.client() as client:
        key = put_on_flash(client, b"key")
    for _ in range(2):
        assert daemon.stop() == 0
        daemon = started()
        assert sizes(daemon) == (GIVEN, ASKED)
        assert daemon.stats(b"flash")["flash_start"] == "warm"
        with daemon.client() as client:
            assert client.get(key)
        small.fill()


def remount(small, size):
    assert small.run("mount", "-o", f"remount,size={size}", str(small.folder)).returncode == 0


def with_key(started, *options):
    """A daemon whose file is made and has an object, and that object's key."""
    daemon = started(*options)
    complete(daemon)
    with daemon.client() as client:
        return daemon, put_on_flash(client, b"key")


def killed(daemon):
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    daemon.killed = True


def assert_kept(daemon, key, size, start):
    assert sizes(daemon) == (size, ASKED)
    assert daemon.stats(b"flash")["flash_start"] == start
    with daemon.client() as client:
        assert client.get(key)


def test_more_room_makes_it_longer_where_its_objects_stay(small, started):
    """By a sixteenth of what was asked; not by all, where the numbers of its segments take another bit."""
    daemon, key = with_key(started)
    assert daemon.stop() == 0
    remount(small, "68m")
    daemon = started()
    assert_kept(daemon, key, GIVEN + STEP, "warm")
    assert daemon.stop() == 0
    remount(small, "256m")
    daemon = started()
    assert_kept(daemon, key, GIVEN + STEP, "warm")


def test_another_size_or_a_new_file_takes_all_that_has_room(small, started, open_folder):
    daemon, _ = with_key(started)
    assert daemon.stop() == 0
    remount(small, "256m")
    daemon = started(asked="125m")
    assert sizes(daemon) == (125 * MIB, 125 * MIB) and "in place of" not in said(open_folder)
    assert daemon.stop() == 0
    assert small.run("rm", f"{small.folder}/flash").returncode == 0
    daemon = started()
    complete(daemon)
    assert sizes(daemon) == (ASKED, ASKED) and file_bytes(small) == ASKED


@pytest.fixture
def region():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="flashield-test-", dir="/dev/shm"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize(("way", "start_row"), [("region", "warm: by the region that the last run has left"),
                                               ("journal", "warm: the index is rebuilt from flash and journal")])
def test_after_a_kill_it_keeps_its_size_and_its_objects(small, started, region, way, start_row):
    options = [f"--region-dir={region}"] if way == "region" else ["--journal=sync"]
    daemon, key = with_key(started, *options)
    remount(small, "68m")
    killed(daemon)
    daemon = started(*options)
    if way == "journal":
        until(lambda: daemon.stats(b"flash")["rebuilt_segments"] == daemon.stats(b"flash")["rebuild_segments"] != "0", "the rebuild")
    assert_kept(daemon, key, GIVEN, start_row)
    assert daemon.stop() == 0
    daemon = started(*options)
    assert_kept(daemon, key, GIVEN + STEP, "warm")


def test_its_segments_are_those_of_the_size_that_was_asked_for(small, started):
    """So they stay the same as it grows."""
    part = started("-m", "2", asked="252m")
    size = part.stats(b"flash")["segment_bytes"]
    assert sizes(part)[0] < 252 * MIB and part.stop() == 0
    assert small.run("rm", f"{small.folder}/flash").returncode == 0
    remount(small, "300m")
    whole = started("-m", "2", asked="252m")
    assert sizes(whole)[0] == 252 * MIB and whole.stats(b"flash")["segment_bytes"] == size


def test_a_kill_while_it_is_made_changes_nothing(small, started):
    """What a start has reserved counts as the file's."""
    daemon = started()
    killed(daemon)
    small.fill()
    daemon = started()
    complete(daemon)
    assert sizes(daemon) == (GIVEN, ASKED) and file_bytes(small) == GIVEN


def test_what_fits_is_made_as_asked(small, started, open_folder):
    """The operator's own figure may take the last twentieth."""
    daemon = started(asked="62m")
    assert sizes(daemon) == (62 * MIB, 62 * MIB) and "in place of" not in said(open_folder)


def test_without_any_room_the_start_fails_or_memory_serves(small, started, open_folder):
    small.fill()
    with pytest.raises(AssertionError, match="ended with 71"):
        Daemon(["-m", "16", "--flash-path", f"{small.folder}/flash", "--flash-size", "126m"], program=small.program).start()
    daemon = started("--flash-min-free", "1")
    assert daemon.stats(b"flash")["flash_enabled"] == "0"
    assert "all objects stay in memory" in said(open_folder)


def test_with_a_floor_of_free_space_the_rest_is_used(small, started):
    """--flash-min-free is about the room, not about all of the flash."""
    daemon = started("--flash-min-free", "32m")
    assert daemon.stats(b"flash")["flash_enabled"] == "1" and sizes(daemon) == (GIVEN, ASKED)
