# SPDX-License-Identifier: BSD-3-Clause
"""The wall clock is set forward and back, in a run and between two. Expiries and a pending flush_all go on with the time that
really passes, over a clean stop and a kill. The journal alone has nothing but the wall clock to go by."""
import pathlib
import shutil
import tempfile

import pytest

from conftest import FLASH
from helpers import flashield_command, free_port, on_flash, put_on_flash, until
from wallclock import WallClock, library_in

DAY = 86400
STEPS = [DAY, -DAY]
STEP_WORDS = ["forward", "back"]
LIFE = 10000  # seconds: longer than a test, shorter than a step
AGE_MOST = 3000  # no test takes so long

pytestmark = pytest.mark.skipif("san" in flashield_command(), reason="a sanitizer's runtime has to be loaded first")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return library_in(tmp_path_factory.mktemp("wallclock"))


@pytest.fixture
def clock(library, tmp_path):
    return WallClock(library, tmp_path)


@pytest.fixture
def region():
    folder = tempfile.mkdtemp(prefix="flashield-test-", dir="/dev/shm")
    pathlib.Path(folder).chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def runs(start, clock, open_folder):
    """next_run(options) starts a daemon with the same flash, state directory and port as the one before."""
    port = free_port()
    common = ["--state-dir", str(open_folder), "--flash-path", "flash", "--restart-max-downtime", f"{LIFE}s", *FLASH]

    def next_run(*options):
        return start(*common, *options, port=port, environment=clock.environment)

    return next_run


def wall(client):
    return int(client.stats()["time"])


def time_left(client, name):
    """Its time to live in seconds, -1 without one; None: it is not there."""
    words = client.ask(b"mg %s t\r\n" % name).split()
    return int(words[1][1:]) if words[0] == b"HD" else None


def lives_on(client, name):
    left = time_left(client, name)
    return left is not None and LIFE - AGE_MOST < left <= LIFE


def loaded(daemon):
    """Waits until what DRAM held is loaded."""
    until(lambda: daemon.stats(b"flash")["dram_loading"] == "0", "the end of loading")
    return daemon.stats(b"flash")


def newest_id(client):
    assert client.set(b"newest", b"v") == b"STORED\r\n"
    return client.get(b"newest", command=b"gets")[0][3]


def passes_its_second(client, name):
    until(lambda: not client.get(name), f"the end of {name}")


class Objects:
    """On flash and in DRAM: one that lives for ever, and one that lives for LIFE."""

    def __init__(self, client):
        def both_on_flash():  # the first may be reclaimed while the second is to get there
            self.flash = [put_on_flash(client, b"ever"), put_on_flash(client, b"life", exptime=LIFE)]
            return on_flash(client, self.flash[0])

        until(both_on_flash, "objects on flash")
        assert client.set(b"dram-ever", b"v") == b"STORED\r\n"
        assert client.set(b"dram-life", b"v", exptime=LIFE) == b"STORED\r\n"

    def are_on_flash(self, client):
        """With their times. A busy drive may refuse a read: it is asked again."""
        return until(lambda: time_left(client, self.flash[0]) == -1 and lives_on(client, self.flash[1]), "objects on flash")

    def are_in_dram(self, client):
        return time_left(client, b"dram-ever") == -1 and lives_on(client, b"dram-life")


# ---- in a run -------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS, ids=STEP_WORDS)
def test_a_step_changes_no_expiry_that_was_given(runs, clock, step):
    """The clock of "stats" has stepped; times to live, and a flush that is pending, have not."""
    daemon = runs()
    with daemon.client() as client:
        objects, before = Objects(client), wall(client)
        assert client.set(b"short", b"v", exptime=2) == b"STORED\r\n"
        clock.ahead = step
        assert abs(wall(client) - before - step) < AGE_MOST
        assert objects.are_on_flash(client) and objects.are_in_dram(client)
        passes_its_second(client, b"short")
        assert client.ask(b"flush_all %d\r\n" % LIFE) == b"OK\r\n"
        clock.ahead = -step
        assert objects.are_on_flash(client)
        assert client.ask(b"flush_all 2\r\n") == b"OK\r\n"
        clock.ahead = step
        passes_its_second(client, objects.flash[0])
        assert not client.get(b"dram-ever")


@pytest.mark.parametrize("step", STEPS, ids=STEP_WORDS)
def test_an_absolute_expiry_is_by_the_clock_of_its_command(runs, clock, step):
    """As the client has read it from the same clock."""
    clock.ahead = step
    with runs().client() as client:
        now = wall(client)
        assert client.set(b"past", b"v", exptime=now - 10) == b"STORED\r\n"
        assert client.set(b"life", b"v", exptime=now + LIFE) == b"STORED\r\n"
        assert not client.get(b"past")
        assert lives_on(client, b"life")
        clock.ahead = -step
        assert lives_on(client, b"life")


# ---- over a restart -------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS, ids=STEP_WORDS)
def test_a_step_while_it_is_stopped(runs, clock, step):
    """Both the flash and what DRAM held are warm, the ids rise, and nothing lives longer or shorter."""
    daemon = runs()
    with daemon.client() as client:
        objects, last = Objects(client), newest_id(client)
        assert client.ask(b"flush_all %d\r\n" % LIFE) == b"OK\r\n"
    assert daemon.stop() == 0
    clock.ahead = step
    daemon = runs()
    rows = loaded(daemon)
    assert (rows["flash_start"], rows["dram_start"]) == ("warm", "warm")
    with daemon.client() as client:
        assert objects.are_on_flash(client) and objects.are_in_dram(client)
        assert newest_id(client) > last


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS, ids=STEP_WORDS)
def test_a_flush_and_an_expiry_come_due_at_their_time_after_a_step(runs, clock, step):
    """Neither waits for the clock to be where it was, nor do they spare what was in DRAM."""
    daemon = runs()
    with daemon.client() as client:
        objects = Objects(client)
        assert client.set(b"short", b"v", exptime=2) == b"STORED\r\n"
        assert client.ask(b"flush_all 3\r\n") == b"OK\r\n"
    assert daemon.stop() == 0
    clock.ahead = step
    daemon = runs()
    loaded(daemon)
    with daemon.client() as client:
        passes_its_second(client, b"short")
        passes_its_second(client, objects.flash[0])
        assert not client.get(b"dram-ever")
        assert client.set(b"after", b"v") == b"STORED\r\n"
        assert client.get(b"after")


@pytest.mark.parametrize("step", STEPS, ids=STEP_WORDS)
def test_a_step_beside_a_kill(runs, clock, region, step):
    """The region has the boot-time clock too."""
    options = ["--region-dir", region]
    daemon = runs(*options)
    with daemon.client() as client:
        objects = Objects(client)
        assert client.ask(b"flush_all %d\r\n" % LIFE) == b"OK\r\n"
    daemon.kill()
    clock.ahead = step
    daemon = runs(*options)
    assert daemon.stats(b"flash")["flash_start"] == "warm: by the region that the last run has left"
    with daemon.client() as client:
        assert objects.are_on_flash(client)
        assert client.ask(b"flush_all 2\r\n") == b"OK\r\n"
    daemon.kill()
    clock.ahead = -step
    daemon = runs(*options)
    with daemon.client() as client:
        passes_its_second(client, objects.flash[0])


# ---- the journal ----------------------------------------------------------------------------------


JOURNAL = ["--journal", "sync"]
NO_JOURNAL = pytest.mark.slots("the frugal one has no journal")


def rebuilt(daemon):
    def done():
        rows = daemon.stats(b"flash")
        return rows["rebuild_segments"] != "0" and rows["rebuilt_segments"] == rows["rebuild_segments"]
    until(done, "the rebuild")


@NO_JOURNAL
@pytest.mark.long
def test_with_the_journal_a_step_is_time_that_has_passed(runs, clock):
    """What would have expired by then is gone, and a flush that was pending has come due; the rest is there."""
    daemon = runs(*JOURNAL)
    with daemon.client() as client:
        objects = Objects(client)
        expires = put_on_flash(client, b"expires", exptime=LIFE // 2)
        assert client.ask(b"flush_all %d\r\n" % LIFE) == b"OK\r\n"
    daemon.kill()
    clock.ahead = LIFE - AGE_MOST
    daemon = runs(*JOURNAL)
    rebuilt(daemon)
    with daemon.client() as client:
        until(lambda: time_left(client, objects.flash[0]) == -1, "the object that lives for ever")
        assert not client.get(expires)
        assert 0 < until(lambda: time_left(client, objects.flash[1]), "the object that lives on") <= AGE_MOST
    daemon.kill()
    clock.ahead = LIFE + AGE_MOST
    daemon = runs(*JOURNAL)
    rebuilt(daemon)
    with daemon.client() as client:
        assert not client.get(objects.flash[0])


@NO_JOURNAL
@pytest.mark.parametrize("step, why", [(DAY, "the stop was longer ago than"), (-DAY, "the clock was set back")], ids=STEP_WORDS)
def test_with_the_journal_a_long_step_is_a_cold_start(runs, clock, step, why):
    """Whether an object has expired, nobody knows then."""
    daemon = runs(*JOURNAL)
    with daemon.client() as client:
        objects = Objects(client)
    daemon.kill()
    clock.ahead = step
    daemon = runs(*JOURNAL)
    assert why in daemon.stats(b"flash")["flash_start"]
    with daemon.client() as client:
        assert not client.get(*objects.flash)
