# SPDX-License-Identifier: BSD-3-Clause
"""Objects on flash outlive kill -9 when the index lies in --region-dir: served at once, and none that is stale."""
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

from conftest import FLASH
from helpers import Daemon, fill_turn, flashield_command, free_port, on_flash, until
from metrics import scrape, value as value_of
from test_check_config import checked

KEYS = 3000
VALUE = 200
BATCH = 50


def key(n):
    return b"key-%d" % n


def value(n, version):
    return (b"%d.%d-" % (n, version)).ljust(VALUE, b"v")


@pytest.fixture
def region():
    folder = tempfile.mkdtemp(prefix="flashield-test-", dir="/dev/shm")
    pathlib.Path(folder).chmod(0o777)
    yield pathlib.Path(folder)
    shutil.rmtree(folder)


@pytest.fixture
def options(open_folder, region):
    return ["--region-dir", str(region), "--flash-path", str(open_folder / "flash"), *FLASH]


@pytest.fixture
def start():
    """Starts daemons, each of which is killed or ends with the test."""
    daemons = []

    def start_one(*options):
        daemons.append(Daemon(list(options)))
        return daemons[-1].start()

    yield start_one
    codes = [daemon.stop() for daemon in daemons]
    assert not [code for code in codes if code not in (0, -signal.SIGKILL)]


def kill(daemon):
    daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait()


def how(daemon):
    return daemon.stats(b"flash")["flash_start"]


def fill(daemon, version):
    with daemon.client() as client:
        for first in range(0, KEYS, BATCH):
            client.all(b"".join(b"set %s 0 0 %d noreply\r\n%s\r\n" % (key(n), VALUE, value(n, version))
                                for n in range(first, first + BATCH)))
        fill_turn(client)
        until(lambda: client.count("segments_used") > 3, "segments")


def versions(daemon):
    """Of the keys that are there. A busy drive may refuse a read: what is missing is asked for again."""
    left, found = list(range(KEYS)), {}
    with daemon.client() as client:
        for _ in range(3):
            for first in range(0, len(left), BATCH):
                for name, _, data, _ in client.get(*map(key, left[first:first + BATCH])):
                    n = int(name[4:])
                    version = int(data.split(b"-")[0].split(b".")[1])
                    assert data == value(n, version)
                    found[n] = version
            left = [n for n in left if n not in found]
    return found


def test_flash_objects_outlive_kills(options, start):
    daemon = start(*options)
    assert how(daemon) == "cold: the flash is new"
    for version in range(1, 4):
        fill(daemon, version)
        with daemon.client() as client:  # some go, and stay away
            for n in range(0, KEYS, 7):
                assert client.ask(b"delete %s\r\n" % key(n)) in (b"DELETED\r\n", b"NOT_FOUND\r\n")
            flash = {n for n in range(1, 300) if n % 7 and on_flash(client, key(n))}
        kill(daemon)
        daemon = start(*options)
        assert how(daemon) == "warm: by the region that the last run has left"
        after = versions(daemon)
        assert set(after.values()) == {version}
        assert not [n for n in after if n % 7 == 0]
        assert flash and len(flash & set(after)) > 0.9 * len(flash)


def test_check_config_leaves_the_region(options, start, region):
    """The units ask it before each reload, when the daemon has the region, and before each start, when the next one needs it."""
    daemon = start(*options)
    fill(daemon, 1)
    assert checked(*options, "-l", "127.0.0.1") == (0, [])
    kill(daemon)
    before = {path.name: path.read_bytes() for path in region.iterdir()}
    assert checked(*options, "-l", "127.0.0.1") == (0, [])
    assert {path.name: path.read_bytes() for path in region.iterdir()} == before
    daemon = start(*options)
    assert how(daemon) == "warm: by the region that the last run has left"
    assert versions(daemon)


def test_killed_while_clients_write(options, start):
    """The last acknowledged set of each key, or a later one that wasn't answered, or nothing."""
    daemon = start(*options)
    fill(daemon, 1)
    with daemon.client() as client:
        for n in range(0, KEYS, 3):
            assert client.set(key(n), value(n, 2)) == b"STORED\r\n"
        client.send(b"".join(b"set %s 0 0 %d\r\n%s\r\n" % (key(n), VALUE, value(n, 3)) for n in range(0, KEYS, 3)))
        kill(daemon)
    daemon = start(*options)
    assert how(daemon).startswith("warm")
    for n, version in versions(daemon).items():
        assert version >= 2 if n % 3 == 0 else version == 1


def test_metrics_seccomp_and_memory(options, start):
    port = free_port()
    options += ["--seccomp", "on", "--metrics-listen", f"127.0.0.1:{port}"]
    for word in ("new", "attached"):
        daemon = start(*options)
        assert value_of(scrape(port), "flash_start", how=word) == 1
        fill(daemon, 1)
        rows = {name: int(text) for name, text in daemon.stats(b"memory").items() if text.isdigit()}
        assert rows["files"] < 64 << 20
        kill(daemon)


def test_a_flush_before_a_kill_holds(options, start):
    daemon = start(*options)
    fill(daemon, 1)
    with daemon.client() as client:
        client.send(b"flush_all\r\n")
        assert client.line() == b"OK\r\n"
    kill(daemon)
    daemon = start(*options)
    assert how(daemon).startswith("warm")
    assert not versions(daemon)


def test_no_downtime_and_other_sizes_are_cold(options, start):
    daemon = start(*options)
    fill(daemon, 1)
    kill(daemon)
    daemon = start(*options, "--restart-max-downtime", "0")
    assert how(daemon) == "cold: --restart-max-downtime is 0"
    assert not versions(daemon)
    kill(daemon)
    daemon = start(*options)
    assert how(daemon) == "cold: --region-dir has no region of the last run"


def test_a_folder_on_a_disk_is_refused(options, open_folder):
    refused = subprocess.run([flashield_command(), "-u", "nobody", *options, "--region-dir", str(open_folder)], capture_output=True,
                             timeout=60, check=False)
    assert refused.returncode != 0
    assert b"is on a disk; accepted are folders on tmpfs" in refused.stderr
