# SPDX-License-Identifier: BSD-3-Clause
"""The flash moves to another file while clients are served: no value is wrong or old, and the next start has all of them."""
import pathlib
import random
import subprocess
import threading

import pytest

from helpers import PATIENCE, SEGMENT, fill_turn, flashield_command, free_port, until
from metrics import scrape, value as value_of

MIB = 1 << 20
KEYS = 1500
OPTIONS = ["--segment-size", str(SEGMENT), "--admission", "all", "-m", "4", "-t", "2", "--flash-size", "4m"]


@pytest.fixture
def options(open_folder):
    return ["--enable-move", "--state-dir", str(open_folder), "--flash-path", str(open_folder / "flash"), *OPTIONS]


def admin(daemon, *words):
    program = pathlib.Path(flashield_command()).parent / "flashield-admin"
    return subprocess.run([program, "--server", f"127.0.0.1:{daemon.port}", *map(str, words)], check=False, capture_output=True, text=True,
                          timeout=PATIENCE)


class Load:
    """A client that sets, deletes and gets its own keys. Each hit must have the last value that was acknowledged."""

    def __init__(self, daemon):
        self.client = daemon.client()
        self.random = random.Random(7)
        self.versions = {}
        self.hits = 0
        self.wrong = None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def value(self, n):
        return (b"%d.%d-" % (n, self.versions[n])).ljust(200 + n % 500, b"v")

    def set(self, n):
        self.versions[n] = self.versions.get(n, 0) + 1
        assert self.client.set(b"load-%d" % n, self.value(n)) == b"STORED\r\n"

    def get(self, n):
        for _, _, found, _ in self.client.get(b"load-%d" % n):
            self.hits += 1
            assert n in self.versions and found == self.value(n), n

    def run(self):
        try:
            while not self.stop.is_set():
                n = self.random.randrange(KEYS)
                if self.random.random() < 0.3:
                    self.set(n)
                elif self.random.random() < 0.05:
                    self.versions.pop(n, None)
                    self.client.ask(b"delete load-%d\r\n" % n)
                else:
                    self.get(n)
        except (AssertionError, OSError) as error:
            self.wrong = error

    def __enter__(self):
        for n in range(KEYS):
            self.set(n)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        for n in range(KEYS):
            self.get(n)
        self.client.close()


def read_all(load, daemon):
    """What is there of the load's keys after a start is the last value."""
    assert load.wrong is None
    assert int(daemon.stats(b"flash")["flash_items"]) > 0
    load.client = daemon.client()
    for n in range(KEYS):
        load.get(n)
    load.client.close()


def test_a_larger_and_a_smaller_file_under_load(start, options, open_folder):
    """Both moves end, every value read meanwhile is the last one, and a clean start on the new file is warm."""
    port = free_port()
    daemon = start(*options, f"--metrics-listen=127.0.0.1:{port}")
    with daemon.client() as client:
        for _ in range(20):
            if client.count("segments_used") > 2 * MIB // SEGMENT + 10:
                break
            fill_turn(client)
    assert admin(daemon, "move", "status").stdout == "none\n"
    with Load(daemon) as load:
        for name, size in (("larger", 6), ("smaller", 2)):
            before = load.hits
            done = admin(daemon, "--size", f"{size}m", "--rate", "0", "move", open_folder / name)
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout.splitlines()[-1].startswith(f"done: {open_folder / name}: ")
            until(lambda before=before: load.hits > before + 100 or load.wrong, "reads")
            assert (open_folder / name).stat().st_size == size * MIB
    assert load.wrong is None
    rows = daemon.stats(b"flash")
    assert (rows["flash_move"], rows["flash_bytes"], rows["flash_offline"]) == ("done", str(2 * MIB), "0")
    assert int(rows["flash_moved_bytes"]) >= 4 * MIB
    assert int(rows["segments_reclaimed"]) > 0
    assert int(rows["segments_total"]) == (2 * MIB - 65536) // SEGMENT
    assert value_of(scrape(port), "flash_moving") == 0
    assert daemon.stop() == 0
    # The index was made for more segments, and goes on.
    again = start("--state-dir", str(open_folder), "--flash-path", str(open_folder / "smaller"), *OPTIONS[:-1], "2m")
    assert again.stats(b"flash")["flash_start"] == "warm"
    read_all(load, again)


def test_a_clean_start_on_a_larger_file_is_warm(start, options, open_folder):
    """With so many segments that their numbers take no further bit of a slot."""
    daemon = start(*options[:-1], "5m")
    with daemon.client() as client:
        fill_turn(client)
    assert admin(daemon, "--size", "7m", "--rate", "0", "move", open_folder / "larger").returncode == 0
    assert daemon.stop() == 0
    again = start("--state-dir", str(open_folder), "--flash-path", str(open_folder / "larger"), *OPTIONS[:-1], "7m")
    rows = again.stats(b"flash")
    assert rows["flash_start"] == "warm"
    assert int(rows["segments_total"]) == (7 * MIB - 65536) // SEGMENT
    assert int(rows["flash_items"]) > 0


@pytest.mark.slots("the frugal one has no journal")
@pytest.mark.parametrize("size", ["4m", "3m"])
def test_with_a_journal_a_killed_daemon_is_rebuilt_from_the_new_file(start, options, open_folder, size):
    """Under load, whose answers wait for the journal. Each value that was acknowledged is the last one, or a miss."""
    daemon = start(*options, "--journal", "sync")
    with daemon.client() as client:
        fill_turn(client)
    load = Load(daemon)
    with load:
        assert admin(daemon, "--size", size, "--rate", "0", "move", open_folder / "new").returncode == 0
        before = load.hits
        until(lambda: load.hits > before + 100 or load.wrong, "reads")
    assert load.wrong is None
    daemon.kill()
    assert sorted(file.name.rsplit(".", 1)[0] for file in open_folder.glob("*.journal.*")) == \
        ["new.journal"] * len(list(open_folder.glob("*.journal.*")))
    again = start("--journal", "sync", "--state-dir", str(open_folder), "--flash-path", str(open_folder / "new"), *OPTIONS[:-1], size)
    rows = again.stats(b"flash")
    assert rows["flash_start"] == "warm: the index is rebuilt from flash and journal"
    until(lambda: again.stats(b"flash")["rebuilt_segments"] == rows["rebuild_segments"], "the rebuild")
    read_all(load, again)


def test_a_move_is_cancelled(start, options, open_folder):
    """At a low rate it stands still, and everything shows it. A cancel removes the new file."""
    port = free_port()
    daemon = start(*options, f"--metrics-listen=127.0.0.1:{port}")
    with daemon.client() as client:
        fill_turn(client)
    assert admin(daemon, "--no-wait", "--rate", "1k", "move", open_folder / "new").returncode == 0
    until(lambda: daemon.stats(b"flash")["flash_move"] == "copying", "the move")
    assert value_of(scrape(port), "flash_moving") == 1
    assert admin(daemon, "move", "status").stdout.startswith(f"copying: {open_folder / 'new'}: ")
    refused = admin(daemon, "move", open_folder / "other")
    assert (refused.returncode, "a move is under way" in refused.stderr) == (2, True)
    assert admin(daemon, "move", "cancel").returncode == 0
    until(lambda: daemon.stats(b"flash")["flash_move"] == "cancelled", "the end of the move")
    assert not (open_folder / "new").exists()
    refused = admin(daemon, "move", "cancel")
    assert (refused.returncode, "no move is under way" in refused.stderr) == (2, True)


def test_what_fails_is_told(start, options, open_folder):
    daemon = start(*options)
    failed = admin(daemon, "move", open_folder / "no" / "such" / "folder")
    assert failed.returncode == 1
    assert failed.stdout.splitlines()[-1].endswith("No such file or directory")
    assert admin(daemon, "move", open_folder / "flash").returncode == 1  # it is in use
    assert daemon.stats(b"flash")["flash_move_reason"] != "none"
    with daemon.client() as client:
        assert client.ask(b"flash_move\r\n") == b"ERROR\r\n"
        assert client.ask(b"flash_move relative\r\n") == b"SERVER_ERROR the path must be absolute\r\n"
        assert client.ask(b"flash_move /x y\r\n") == b"CLIENT_ERROR bad size\r\n"
        assert client.ask(b"flash_move /x 1 y\r\n") == b"CLIENT_ERROR bad rate\r\n"
        assert client.ask(b"flash_move cancel\r\n") == b"NOT_FOUND\r\n"
    assert admin(daemon, "move", "relative").returncode == 2


def test_it_is_off_by_default(dram_daemon):
    with dram_daemon.client() as client:
        assert client.ask(b"flash_move /tmp/x\r\n") == b"ERROR\r\n"
    refused = admin(dram_daemon, "move", "/tmp/x")
    assert (refused.returncode, "--enable-move" in refused.stderr) == (2, True)
