# SPDX-License-Identifier: BSD-3-Clause
"""--region-dir on a tmpfs that is too small, or that others fill: a container's /dev/shm has 64 MiB. A start without enough room
says how much is missing, and a daemon that serves has all of its room already."""
import re
import subprocess

import pytest

from conftest import FLASH
from helpers import PATIENCE, fill, free_port, on_flash, put_on_flash, until
from namespace import IS_ROOT, SmallTmpfs

NEEDED = re.compile(r"--region-dir: \S+: ([0-9.]+) MiB more are needed, and ([0-9.]+) of ([0-9.]+) MiB are free there: enlarge that file "
                    r"system, or lower -m or the flash")


@pytest.fixture
def tmpfs(open_folder):
    """tmpfs(size) is a SmallTmpfs."""
    made = []

    def of_size(size):
        folder = open_folder / "shm"
        folder.mkdir()
        made.append(SmallTmpfs(folder, size))
        if made[0].refused:
            pytest.skip(f"no tmpfs can be mounted here: {made[0].refused}")
        return made[0]

    yield of_size
    for small in made:
        small.__exit__()


@pytest.fixture
def options(open_folder):
    return ["--region-dir", str(open_folder / "shm"), "--flash-path", str(open_folder / "flash"), *FLASH]


def refused(small, *options):
    """How much a start that fails wants, and finds free, of how much; in MiB."""
    command = [small.program, "--metrics-listen=off", "-l", "127.0.0.1", "-p", str(free_port()), *options]
    done = subprocess.run([*command, *(["-u", "nobody"] if IS_ROOT else [])], capture_output=True, text=True, timeout=PATIENCE,
                          check=False)
    assert done.returncode == 71, done.stderr
    found = NEEDED.search(done.stderr)
    assert found, done.stderr
    return [float(number) for number in found.groups()]


def test_a_tmpfs_that_is_too_small_ends_the_start(tmpfs, options):
    """With what is needed and what there is."""
    small = tmpfs("128k")
    needed, free, size = refused(small, *options)
    assert needed > free
    assert (free, size) == (round(small.free_bytes() / (1 << 20), 2), 0.12)


def test_a_tmpfs_that_others_have_filled_ends_the_start(tmpfs, options):
    small = tmpfs("64m")
    small.fill()
    needed, free, size = refused(small, *options)
    assert (free, size) == (0, 64) and needed > 0


@pytest.mark.slots("the frugal one makes its columns while the flash fills")
def test_a_daemon_outlives_others_that_fill_its_tmpfs(start, tmpfs, options):
    """What it uses is its own: it serves flash and DRAM, moves objects, and the next start after a kill is warm."""
    small = tmpfs("64m")
    daemon = start(*options, program=small.program)
    small.fill()
    with daemon.client() as client:
        assert int(client.stats()["pid"]) == daemon.process.pid
        name = put_on_flash(client, b"key")
        for _ in range(4):  # as often as memory is large: segments are written and reclaimed
            fill(client, 4 << 20)
        written = client.count("segments_written")
        until(lambda: fill(client, 1 << 20) or client.count("segments_written") > written, "further segments")
        name = put_on_flash(client, b"last")
    assert small.free_bytes() == 0
    daemon.kill()
    again = start(*options, program=small.program)
    assert again.stats(b"flash")["flash_start"] == "warm: by the region that the last run has left"
    with again.client() as client:
        until(lambda: on_flash(client, name), "the object on flash")


def test_a_column_that_finds_no_room_is_told(start, tmpfs, options, open_folder):
    """Small objects stay in DRAM then, and the log says so once. What the daemon serves is right."""
    small, log = tmpfs("64m"), open_folder / "log"
    with log.open("w") as stderr:
        daemon = start(*options, "--index=frugal", program=small.program, stderr=stderr)
    small.fill()
    with daemon.client() as client:
        until(lambda: fill(client, 1 << 20) or "no memory for a column of the frugal index" in log.read_text(), "the line in the log")
        assert client.set(b"key", b"value") == b"STORED\r\n"
        assert client.get(b"key") == [(b"key", 0, b"value", None)]


@pytest.mark.long
def test_an_index_that_finds_no_room_to_grow_drops_nothing_wrong(start, tmpfs, options, open_folder):
    """Objects that are smaller than expected need more slots than the first table has: the log says once that it has no room, and
    objects stay in DRAM."""
    small, log = tmpfs("64m"), open_folder / "log"
    with log.open("w") as stderr:
        daemon = start(*options, program=small.program, stderr=stderr)
    small.fill()
    with daemon.client() as client:
        def is_told():
            values = b"".join(b"set small-%d-%d 0 0 1 noreply\r\nv\r\n" % (is_told.turn, n) for n in range(20000))
            client.all(values)
            is_told.turn += 1
            return "no memory for a table of the index" in log.read_text()

        is_told.turn = 0
        until(is_told, "the line in the log")
        assert client.set(b"key", b"value") == b"STORED\r\n"
        assert client.get(b"key") == [(b"key", 0, b"value", None)]
