# SPDX-License-Identifier: BSD-3-Clause
"""Times and ids over restarts: expiries and flushes go on, whether their second comes before the stop, while the daemon is
away, or after the start; CAS ids rise and stay exact in floating point."""
import time

import pytest

from conftest import FLASH
from helpers import Countdown, put_on_flash, until

EXACT = 1 << 53  # ids below it are whole numbers in clients that hold them as floating-point numbers


@pytest.fixture
def options(open_folder):
    return ["--state-dir", str(open_folder), "--flash-path", "flash", *FLASH]


def restart(daemon, start, options):
    """Stops it and starts the next one, which is warm."""
    assert daemon.stop() == 0
    again = start(*options, driven=True)
    assert again.stats(b"flash")["flash_start"].startswith("warm")
    return again


def time_left(client, name):
    """Its time to live in seconds, -1 without one, None when it is not there."""
    words = client.ask(b"mg %s t\r\n" % name).split()
    return int(words[1][1:]) if words[0] == b"HD" else None


def wait_for_second(began, seconds):
    """Until the daemon's second is over that many seconds after `began`, whatever part of a second it was in."""
    until(lambda: time.monotonic() > began + seconds + 1, "the time")


# ---- gone stays gone ------------------------------------------------------------------------------


def test_what_was_flushed_stays_away(options, start):
    daemon = start(*options, driven=True)
    with daemon.client() as client:
        flushed = put_on_flash(client, b"flushed")
        assert client.ask(b"flush_all\r\n") == b"OK\r\n"
        kept = put_on_flash(client, b"kept")
    for _ in range(2):
        daemon = restart(daemon, start, options)
        with daemon.client() as client:
            assert not client.get(flushed)
            assert client.get(kept)


@pytest.mark.clock
def test_a_flush_comes_due_while_the_daemon_is_away(options, start):
    daemon = start(*options, driven=True)
    with daemon.client() as client:
        flushed = put_on_flash(client, b"flushed")
        began = time.monotonic()
        assert client.ask(b"flush_all 2\r\n") == b"OK\r\n"
    assert daemon.stop() == 0
    wait_for_second(began, 2)
    daemon = start(*options, driven=True)
    with daemon.client() as client:
        assert not client.get(flushed)
        kept = put_on_flash(client, b"kept")
    daemon = restart(daemon, start, options)
    with daemon.client() as client:
        assert not client.get(flushed)
        assert client.get(kept)


@pytest.mark.clock
def test_an_object_expires_while_the_daemon_is_away(options, start):
    daemon = start(*options, driven=True)
    with daemon.client() as client:
        kept = put_on_flash(client, b"kept")
        name = put_on_flash(client, b"expires", exptime=1000)
        began = time.monotonic()
        assert client.ask(b"touch %s 1\r\n" % name) == b"TOUCHED\r\n"
    assert daemon.stop() == 0
    wait_for_second(began, 1)
    daemon = start(*options, driven=True)
    with daemon.client() as client:
        assert client.get(kept)
        assert not client.get(name)


# ---- times go on ----------------------------------------------------------------------------------


def test_a_time_to_live_goes_on(options, start):
    daemon = start(*options, driven=True)
    with daemon.client() as client:
        for_ever = put_on_flash(client, b"ever")
        countdown = Countdown()
        name = put_on_flash(client, b"thousand", exptime=1000)
    for _ in range(2):
        daemon = restart(daemon, start, options)
        with daemon.client() as client:
            after = time_left(client, name)
            assert time_left(client, for_ever) == -1
        assert b"t%d" % after in countdown.words(1000)


# ---- ids ------------------------------------------------------------------------------------------


def newest_id(daemon, name):
    with daemon.client() as client:
        assert client.set(name, b"x") == b"STORED\r\n"
        return client.get(name, command=b"gets")[0][3]


@pytest.mark.parametrize("killed", [False, True], ids=["stops", "kills"])
def test_ids_rise_over_restarts(options, start, killed):
    """And one that a client was shown before is never that of another value."""
    ids = []
    for _ in range(4):
        daemon = start(*options, driven=True)
        ids += [newest_id(daemon, b"key"), newest_id(daemon, b"other")]
        with daemon.client() as client:
            for old in ids[:-2]:
                assert client.set(b"key", b"y", command=b"cas", cas=old) in (b"EXISTS\r\n", b"NOT_FOUND\r\n")
        if killed:
            daemon.kill()
        else:
            assert daemon.stop() == 0
    assert ids == sorted(set(ids))
    assert ids[-1] < EXACT


def test_an_id_on_flash_is_kept(options, start):
    daemon = start(*options, driven=True)
    with daemon.client() as client:
        name = put_on_flash(client, b"key")
        before = client.get(name, command=b"gets")[0][3]
    daemon = restart(daemon, start, options)
    with daemon.client() as client:
        assert client.get(name, command=b"gets")[0][3] == before
        assert client.set(name, b"new", command=b"cas", cas=before) == b"STORED\r\n"
        assert client.get(name, command=b"gets")[0][3] > before
