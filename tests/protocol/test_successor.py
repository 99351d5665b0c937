# SPDX-License-Identifier: BSD-3-Clause
"""A start comes while the run before it still ends: it waits, so that nothing which it changes comes back in a later run."""
import os
import pathlib
import random
import signal
import subprocess

import pytest

from conftest import FLASH
from helpers import Daemon, driven_command, free_port, until
from test_service import Notified

WAITS = "has not ended: the start waits for it"
KEY = b"key"


class Turn:
    """Runs of one daemon, each with a log of its own. What a run is made of: "dram", or "flash"."""

    def __init__(self, folder, name="flash"):
        self.folder = folder
        self.name = name
        self.port = free_port()
        self.begun = []

    def options(self, place, *addresses):
        flash = ["--flash-path", self.name, *FLASH] if place == "flash" else ["-m", "16"]
        listen = ",".join(f"{address}:{self.port}" for address in addresses or ["127.0.0.1"])
        return ["--state-dir", str(self.folder), *flash, "-l", listen]

    def begin(self, place, faults="", addresses=()):
        """A process that starts; it may have to wait."""
        daemon = Daemon(self.options(place, *addresses), program=driven_command(), port=self.port, listen=False)
        daemon.log = self.folder / f"log.{self.name}.{len(self.begun)}"
        daemon.process = subprocess.Popen(daemon.command(), stdin=subprocess.DEVNULL, stderr=daemon.log.open("w"),
                                          env=dict(os.environ, FLASHIELD_FAULTS=faults))
        self.begun.append(daemon)
        return daemon

    def serve(self, place, faults=""):
        daemon = self.begin(place, faults)
        until(daemon.answers, "the daemon to serve")
        return daemon


def waits(daemon):
    return WAITS in daemon.log.read_text(encoding="utf-8")


def serves(daemon):
    try:
        return daemon.answers()
    except AssertionError:
        return False


def is_stopped(process):
    return pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "T"


def set_key(daemon, value):
    with daemon.client() as client:
        assert client.set(KEY, value) == b"STORED\r\n"


def get_key(daemon):
    with daemon.client() as client:
        until(lambda: client.stats(b"flash")["dram_loading"] == "0", "the end of loading")
        found = client.get(KEY)
        return found[0][2] if found else None


@pytest.fixture
def turns(open_folder):
    """Two daemons with one state directory. All processes that are left end by SIGKILL."""
    made = [Turn(open_folder, name) for name in ("one", "two")]
    yield made
    for daemon in made[0].begun + made[1].begun:
        if daemon.process.poll() is None:
            daemon.kill()


@pytest.fixture
def turn(turns):
    return turns[0]


def stop_half_way(daemon):
    """It has got a signal of a clean stop, and stands where it is about to save."""
    daemon.process.send_signal(signal.SIGTERM)
    until(lambda: is_stopped(daemon.process), "the stop to stand")


def go_on(daemon):
    """To the next point where it stands, or to its end."""
    daemon.process.send_signal(signal.SIGCONT)
    until(lambda: daemon.process.poll() is not None or is_stopped(daemon.process), "the stop to go on")


def end_saving(daemon):
    while daemon.process.poll() is None:
        go_on(daemon)
    assert daemon.process.returncode == 0


@pytest.mark.parametrize("places", ["dram dram dram", "flash flash flash", "flash dram flash"])
@pytest.mark.parametrize("moment", ["always", "after:1"])
def test_a_successor_waits_until_all_is_saved(turn, places, moment):
    """Before memory is saved, and before the state of the flash is."""
    places = places.split()
    first = turn.serve(places[0], f"saving_stands={moment}")
    set_key(first, b"1")
    stop_half_way(first)
    second = turn.begin(places[1])
    until(lambda: waits(second) or serves(second), "the successor to wait")
    if not waits(second):  # it doesn't: let us see what comes of that
        set_key(second, b"2")
    end_saving(first)
    until(second.answers, "the successor to serve")
    if places[1] == places[0]:
        assert get_key(second) == b"1"
    set_key(second, b"2")
    second.kill()
    third = turn.serve(places[2])
    assert get_key(third) in (None, b"2")
    assert third.stop() == 0


def test_a_successor_goes_on_when_the_other_is_killed(turn):
    first = turn.serve("dram", "saving_stands=always")
    stop_half_way(first)
    second = turn.begin("dram")
    until(lambda: waits(second), "the successor to wait")
    assert f"process {first.process.pid}, which" in second.log.read_text(encoding="utf-8")
    first.kill()
    until(second.answers, "the successor to serve")
    assert get_key(second) is None
    assert second.stop() == 0


def test_a_signal_ends_the_wait(turn):
    first = turn.serve("dram", "saving_stands=always")
    set_key(first, b"1")
    stop_half_way(first)
    second = turn.begin("dram")
    until(lambda: waits(second), "the successor to wait")
    second.process.send_signal(signal.SIGTERM)
    assert second.process.wait() == 0
    assert first.process.poll() is None
    end_saving(first)
    third = turn.serve("dram")
    assert get_key(third) == b"1"
    assert third.stop() == 0


def test_the_wait_has_an_end(turn):
    """The start fails, and has touched nothing."""
    first = turn.serve("dram", "saving_stands=always")
    stop_half_way(first)
    second = turn.begin("dram", "predecessor_hangs=always")
    assert second.process.wait() == 71
    text = second.log.read_text(encoding="utf-8")
    assert f"process {first.process.pid}, which serves the same clients with {turn.folder}, has not ended" in text


def test_the_service_manager_is_told(turn, open_folder):
    first = turn.serve("dram", "saving_stands=always")
    stop_half_way(first)
    folder = open_folder / "manager"
    folder.mkdir()
    second = Notified(folder, *turn.options("dram"), listen=False)
    try:
        message, _ = second.until("EXTEND_TIMEOUT_USEC")
        assert message["STATUS"] == f"Starting: process {first.process.pid} has to end first, and saves its objects"
        first.kill()
        second.until("READY", "1")
        second.finish()
    finally:
        second.close()


# ---- rounds ---------------------------------------------------------------------------------------


class Life:
    """A daemon whose runs end in all ways, and the value that was acknowledged last."""

    def __init__(self, turn, chance):
        self.turn = turn
        self.chance = chance
        self.last = None
        self.run = self.next_run()
        until(self.run.answers, "the daemon to serve")

    def next_run(self):
        addresses = self.chance.choice([["127.0.0.1"], ["127.0.0.1", "127.0.0.2"]])
        return self.turn.begin(self.chance.choice(["dram", "flash"]), "saving_stands=always", addresses)

    def end_after_successor(self):
        """The successor comes while the run before it stands in its stop, which then goes on, or is killed."""
        stop_half_way(self.run)
        if self.chance.random() < 0.5:
            go_on(self.run)
        successor = self.next_run()
        until(lambda: waits(successor) or serves(successor), "the successor to wait")
        if self.chance.random() < 0.3:
            successor.kill()
            successor = self.next_run()
            until(lambda: waits(successor) or serves(successor), "another one to wait")
        if self.chance.random() < 0.6:
            end_saving(self.run)
        else:
            self.run.kill()
        return successor

    def end_before_successor(self):
        if self.chance.random() < 0.5:
            self.run.kill()
        else:
            self.run.process.send_signal(signal.SIGTERM)
            until(lambda: self.run.process.poll() is not None or is_stopped(self.run.process), "the stop to stand")
            end_saving(self.run)
        return self.next_run()

    def go_round(self, value):
        set_key(self.run, value)
        self.last = value
        overlaps = self.chance.random() < 0.6
        self.run = self.end_after_successor() if overlaps else self.end_before_successor()
        until(self.run.answers, "the successor to serve")
        found = get_key(self.run)
        assert found in (None, self.last)
        return found is not None


@pytest.mark.parametrize("rounds", [6, pytest.param(100, marks=pytest.mark.long)])
def test_successors_and_kills(turns, rounds):
    """Two daemons share a directory. Each finds the last value that it has acknowledged, or none."""
    seed = int(os.environ.get("FLASHIELD_SEED", random.randrange(1 << 30)))
    print(f"FLASHIELD_SEED={seed}")
    chance = random.Random(seed)
    lives = [Life(turn, chance) for turn in turns]
    found = sum(life.go_round(b"%d of %s" % (n, life.turn.name.encode())) for n in range(rounds) for life in lives)
    print(f"{found} of {2 * rounds} values were found")
    assert found > 0 or rounds < 100
