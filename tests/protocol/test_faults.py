# SPDX-License-Identifier: BSD-3-Clause
"""What a running daemon makes of a flash file that changes under it, and of a kernel that refuses what it asks for.
The outcomes are those of packaging/doc/faults.md."""
import os
import pwd
import re
import shutil
import subprocess

import pytest

from helpers import PATIENCE, fill, flashield_command, free_port, has_faults, until

FLASH = ["--flash-size", "16m", "--segment-size", "64k", "--admission", "all", "-m", "4", "-t", "2"]
USER = ["-u", "nobody"] if os.geteuid() == 0 else []


@pytest.fixture
def served(start, open_folder):
    """A daemon with objects on flash, its flash file and its log."""
    flash, log = open_folder / "flash", open_folder / "log"
    with log.open("w") as stderr:
        daemon = start("--flash-path", str(flash), *FLASH, stderr=stderr)
    with daemon.client() as client:
        fill_flash(client)
    return daemon, flash, log


def fill_flash(client):
    def moved():
        fill(client, 1 << 20)
        return client.count("flash_items") > 2000

    until(moved, "objects to move to flash")


def offline_lines(log):
    return re.findall(r"error: flash is offline.*", log.read_text())


def test_a_flash_file_that_is_cut_short_is_offline_until_it_is_whole(served):
    """It is told once, with the reason. Objects are served from DRAM, though the superblock is still there and segments can
    still be written behind the end. When the file has its length again, the flash is back."""
    daemon, flash, log = served
    size = flash.stat().st_size
    os.truncate(flash, size // 4)
    with daemon.client() as client:
        until(lambda: client.count("flash_offline") == 1, "the flash to be offline")
        until(lambda: "cut short: it has " in client.stats(b"flash")["flash_offline_reason"], "its reason")
        before = len(offline_lines(log))
        for number in range(2000):  # new objects all the while
            key = b"key-%d" % number
            assert client.set(key, b"v" * 1000) == b"STORED\r\n"
            assert client.get(key) == [(key, 0, b"v" * 1000, None)]
        assert len(offline_lines(log)) == before <= 2
        assert client.count("flash_offline") == 1
        os.truncate(flash, size)
        until(lambda: client.count("flash_offline") == 0, "the flash to be back")
        fill_flash(client)


def test_a_deleted_flash_file_is_told_and_used_to_the_end(served):
    """The daemon has the file open: its objects are read and written on. Only the next start lacks it."""
    daemon, flash, log = served
    flash.unlink()
    with daemon.client() as client:
        until(lambda: "the flash file was deleted or replaced; it is used until the daemon ends" in log.read_text(), "a warning")
        written = client.count("segments_written")
        fill(client, 4 << 20)
        until(lambda: client.count("segments_written") > written, "further segments")
        assert client.count("flash_offline") == 0
        assert client.stats(b"flash")["flash_file_away_reason"] == "the flash file was deleted or replaced"
    assert daemon.stop() == 0


# ---- a full file system --------------------------------------------------------------------------------


@pytest.fixture
def small_file_system(open_folder):
    """24 MiB for the flash and the state."""
    folder = open_folder / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=777", "tmpfs", str(folder)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_file_system_takes_nothing_from_a_flash_that_is_there(start, small_file_system, open_folder):
    """The file's blocks are its own. The state, which is written at the end, finds no room: that is told, and the next start is
    cold."""
    folder, log = small_file_system, open_folder / "log"
    options = ["--state-dir", str(folder), "--flash-path", "flash", *FLASH]
    with log.open("w") as stderr:
        daemon = start(*options, stderr=stderr)
    with (folder / "others").open("wb", buffering=0) as others, pytest.raises(OSError):
        while True:
            others.write(bytes(1 << 16))
    with daemon.client() as client:
        fill_flash(client)
        assert [client.count(name) for name in ("flash_write_errors", "flash_offline", "segments_retired")] == [0, 0, 0]
    assert daemon.stop() == 0
    assert "its state can't be saved in" in log.read_text()
    assert start(*options).stats(b"flash")["flash_start"].startswith("cold")


# ---- what the kernel refuses ---------------------------------------------------------------------------


with_faults = pytest.mark.skipif(not has_faults(), reason="this build has no fault points")


def refused(open_folder, faults, *options):
    """What a daemon says that can't start, and its exit code."""
    done = subprocess.run([flashield_command(), *USER, "--metrics-listen=off", "-l", "127.0.0.1", "-p", str(free_port()),
                           "--flash-path", str(open_folder / "flash"), *FLASH, *options], capture_output=True, text=True,
                          env=dict(os.environ, FLASHIELD_FAULTS=faults), timeout=PATIENCE, check=False)
    return done.returncode, done.stderr


@with_faults
def test_a_start_that_lacks_something_ends_with_the_reason(open_folder):
    """No thread, no context for asynchronous reads, no address space, no memory for the index."""
    # The first thread only takes signals, and is not needed.
    for faults, reason in (("thread_start=after:1", "can't start the cleaner"),
                           ("thread_start=after:6", "can't start to serve: Resource temporarily unavailable"),
                           ("aio_setup=always", "raise /proc/sys/fs/aio-max-nr"),
                           ("memory_map=always", "out of memory"),
                           ("region_commit=after:1", "out of memory"),
                           ("device_flush_eio=always", "input/output error"),
                           ("memory_alloc=after:20", "out of memory")):
        code, said = refused(open_folder, faults)
        assert code == 71 and reason in said, (faults, code, said)


@with_faults
def test_without_a_context_for_writes_objects_stay_in_memory(start, open_folder):
    """fs.aio-max-nr is reached once the daemon serves: it goes on from DRAM, and says what to raise."""
    log = open_folder / "log"
    with log.open("w") as stderr:
        daemon = start("--flash-path", str(open_folder / "flash"), *FLASH, stderr=stderr,
                       environment=dict(os.environ, FLASHIELD_FAULTS="aio_setup=after:2"))
    with daemon.client() as client:
        fill(client, 8 << 20)
        until(lambda: "raise /proc/sys/fs/aio-max-nr" in log.read_text(), "an attempt to write")
        assert client.set(b"key", b"value") == b"STORED\r\n"
        assert len(client.get(b"key")) == 1


@with_faults
def test_connections_that_are_not_accepted_at_once_are_accepted_later(start, open_folder):
    """accept4() fails for want of descriptors each other time: accepting pauses, which is told and counted; everyone is served."""
    log = open_folder / "log"
    with log.open("w") as stderr:
        daemon = start("-t", "1", "-m", "8", stderr=stderr, environment=dict(os.environ, FLASHIELD_FAULTS="net_accept=every:2"))
    for _ in range(6):
        with daemon.client() as client:
            assert client.ask(b"mn\r\n") == b"MN\r\n"
    stats = daemon.stats()
    assert int(stats["listen_disabled_num"]) >= 2
    assert "no more connections for now: accept4(): Too many open files" in log.read_text()


@with_faults
def test_memory_that_is_out_now_and_then_costs_answers_and_no_more(start, open_folder):
    """A set gets memcached's error, a get is a miss, a connection may be closed. No value is wrong, and the daemon lives."""
    daemon = start("--flash-path", str(open_folder / "flash"), *FLASH,
                   environment=dict(os.environ, FLASHIELD_FAULTS="memory_alloc=every:499"))  # a start makes fewer
    errors = 0
    for turn in range(20):
        try:
            with daemon.client() as client:
                for number in range(200):
                    key, value = b"key-%d" % number, b"%d-%d-" % (turn, number) * 100
                    answer = client.set(key, value)
                    if not answer:
                        raise ConnectionError("it was closed")
                    assert answer in (b"STORED\r\n", b"SERVER_ERROR out of memory storing object\r\n")
                    errors += answer != b"STORED\r\n"
                    found = client.get(key)
                    assert not found or found[0][2] == value, "another value"
        except (ConnectionError, IndexError):
            errors += 1
    assert errors
    assert until(daemon.answers, "an answer")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_flash_file_without_permission_ends_the_start(open_folder):
    """By the user it runs as, where it isn't root that opens the file."""
    flash, program = open_folder / "flash", open_folder / "flashield"
    shutil.copy(flashield_command(), program)
    flash.touch(mode=0o600)
    entry = pwd.getpwnam("nobody")
    done = subprocess.run([program, "--metrics-listen=off", "-s", str(open_folder / "socket"), "--flash-path", str(flash), *FLASH],
                          user=entry.pw_uid, group=entry.pw_gid, extra_groups=[], capture_output=True, text=True, timeout=PATIENCE,
                          check=False)
    assert done.returncode == 71
    assert f"flash-path {flash}: Permission denied" in done.stderr
    assert flash.stat().st_size == 0
