# SPDX-License-Identifier: BSD-3-Clause
"""A new flash file doesn't hold up the start: memory serves while it is made, and a stop or a kill meanwhile is no matter."""
import functools
import os
import signal

import pytest

from conftest import SEGMENT
from helpers import Daemon, free_port, on_flash, put_on_flash, until
from metrics import scrape, value as value_of

MIB = 1 << 20
SIZE = 48 * MIB  # three times what a start makes at once


@pytest.fixture
def start(start):
    """They need fault points."""
    return functools.partial(start, driven=True)


@pytest.fixture
def options(open_folder):
    return ["--state-dir", str(open_folder), "--flash-path", "flash", "--flash-size", "48m", "--segment-size", str(SEGMENT),
            "--admission", "all", "-m", "4", "-t", "2"]


def environment(faults):
    return dict(os.environ, FLASHIELD_FAULTS=faults)


def flash(daemon):
    return daemon.stats(b"flash")


def complete(daemon):
    until(lambda: flash(daemon)["flash_allocation"] == "complete", "the file")
    assert flash(daemon)["flash_allocated_bytes"] == flash(daemon)["flash_bytes"] == str(SIZE)


def test_memory_serves_meanwhile_and_a_stop_is_prompt(start, options, open_folder):
    """With the file held back, objects stay in memory, everything shows how far it is, a stop is clean, and the next start goes on."""
    port = free_port()
    log = open_folder / "log"
    daemon = start(*options, f"--metrics-listen=127.0.0.1:{port}", environment=environment("device_file_slow=always"),
                   stderr=log.open("w"))
    with daemon.client() as client:
        client.all(b"".join(b"set key-%d 0 0 1000 noreply\r\n%s\r\n" % (n, bytes(1000)) for n in range(8000)))
        assert client.set(b"key", b"value") == b"STORED\r\n"
        assert client.get(b"key") == [(b"key", 0, b"value", None)]
        rows = client.stats(b"flash")
    assert (rows["flash_allocation"], rows["segments_used"], rows["flash_enabled"]) == ("in progress", "0", "1")
    assert 0 < int(rows["flash_allocated_bytes"]) < MIB
    metrics = scrape(port)
    assert value_of(metrics, "flash_allocated_bytes") == int(rows["flash_allocated_bytes"])
    assert value_of(metrics, "flash_size_bytes") == SIZE
    assert "MiB of the file are still to be made" in log.read_text()
    assert daemon.stop() == 0
    assert (open_folder / "flash").stat().st_size == int(rows["flash_allocated_bytes"])
    again = start(*options, stderr=log.open("w"))
    complete(again)
    assert "flash: all 48.00 MiB of the file are made\n" in log.read_text()
    assert flash(again)["flash_start"] == "warm"  # without an object
    assert (open_folder / "flash").stat().st_size == SIZE


def test_a_kill_meanwhile(start, options, open_folder):
    """The file is continued, and its space is still reserved."""
    daemon = Daemon(options, environment=environment("device_file_slow=always"), driven=True).start()
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    state = (open_folder / "flash").stat()
    assert state.st_size < MIB
    again = start(*options, "--flash-min-free", "1")
    complete(again)
    with again.client() as client:
        assert on_flash(client, put_on_flash(client, b"key"))


def test_no_room_later(start, options, open_folder):
    """Where space can't be reserved and runs out, the part that is made is used, and it is told."""
    log = open_folder / "log"
    daemon = start(*options, environment=environment("device_file_unreserved=always,device_file_full=after:6"),
                   stderr=log.open("w"))
    until(lambda: flash(daemon)["flash_allocation"] != "in progress", "the end of the room")
    rows = flash(daemon)
    assert rows["flash_allocation"] == "No space left on device"
    assert 16 * MIB <= int(rows["flash_allocated_bytes"]) < SIZE
    assert log.read_text().count("error: flash: the file can't be made longer than ") == 1
    with daemon.client() as client:
        assert on_flash(client, put_on_flash(client, b"key"))
        assert client.count("flash_offline") == 0
    assert daemon.stop() == 0
    again = start(*options)
    complete(again)
    assert flash(again)["flash_start"] == "warm"
