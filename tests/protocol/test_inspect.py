# SPDX-License-Identifier: BSD-3-Clause
"""flashield-inspect on the flash of a real daemon: idle, under load, stopped, started again, and damaged."""
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

import pytest

from helpers import PATIENCE, SEGMENT, Daemon, await_counts, daemon_flags, fill, fill_turn, flashield_command, free_port, on_flash, until

INSPECT = pathlib.Path(flashield_command()).with_name("flashield-inspect")
AREA = 64 << 10
OPTIONS = ["--flash-size", "16m", "--segment-size", str(SEGMENT), "--admission", "all", "-m", "4", "-t", "2"]
LARGE = 5000  # over 1/64 of a segment: an extent
TURNS = itertools.count()

pytestmark = pytest.mark.skipif(not INSPECT.exists(), reason=f"{INSPECT} is not built")


def inspect(path, *arguments, status=0, text=True):
    """Standard output; of --json, what it says."""
    done = subprocess.run([INSPECT, path, *arguments], capture_output=True, text=text, timeout=PATIENCE)
    assert done.returncode == status, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    if "--json" in arguments:
        return json.loads(done.stdout)
    return done.stdout


def complaint(*arguments, status=2):
    """What is said on standard error, by a call that must fail."""
    done = subprocess.run([INSPECT, *arguments], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stderr


def put_on_flash(client, *values, flags=0):
    """For each value keys of objects that lie on flash now, which no earlier call has used."""
    for turn in itertools.islice(TURNS, 20):
        keys = [[b"subject-%d-%d-%d" % (turn, len(value), i) for i in range(30)] for value in values]
        for value, subjects in zip(values, keys):
            for key in subjects:
                assert client.set(key, value, flags) == b"STORED\r\n"
        fill_turn(client)
        found = [[key for key in subjects if on_flash(client, key)] for subjects in keys]
        if all(found):
            return found
    raise AssertionError("no object got to flash")


def settled(daemon):
    """The daemon's statistics once no segment is being written."""
    def same_twice():
        first, second = daemon.stats(b"flash"), daemon.stats(b"flash")
        states = inspect(path_of(daemon), "--no-live", "--json")["states"]
        return first["segments_written"] == second["segments_written"] and not states["being written"] and second

    return until(same_twice, "the end of writing")


def path_of(daemon):
    return daemon.options[daemon.options.index("--flash-path") + 1]


@pytest.fixture(scope="module")
def subject(tmp_path_factory):
    """A daemon with some of everything on flash; tests only read."""
    path = tmp_path_factory.mktemp("inspect") / "flash"
    with Daemon(["--flash-path", str(path), *OPTIONS]) as daemon:
        with daemon.client() as client:
            daemon.small, daemon.large = put_on_flash(client, b"a small value", b"L" * LARGE, flags=12345)
        settled(daemon)
        yield daemon


@pytest.fixture
def copy(subject, tmp_path):
    """The flash of the subject in a file of its own, to be damaged."""
    shutil.copy(path_of(subject), tmp_path / "copy")
    return tmp_path / "copy"


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))


def place(record, within=0):
    return AREA + record["segment"] * SEGMENT + record["offset"] + within


# ---- what is refused ---------------------------------------------------------------------------


def test_a_missing_file_is_told(tmp_path):
    """Exit status 2 and the reason."""
    assert "No such file or directory" in complaint(tmp_path / "nothing")


def test_what_is_no_flash_is_told(tmp_path):
    """Empty, foreign and short files, and folders."""
    path = tmp_path / "file"
    path.write_bytes(b"")
    assert "is empty" in complaint(path)
    path.write_bytes(b"something else" * 10000)
    assert "is not a flash" in complaint(path, "verify")
    path.write_bytes(bytes(AREA + SEGMENT))
    assert "is not a flash" in complaint(path, "find", "key")
    assert "neither a file nor a block device" in complaint(tmp_path)


def test_calls_that_make_no_sense_are_told(copy):
    """Each with what is wrong; nothing is guessed."""
    assert "no file given" in complaint()
    assert "is not a command" in complaint(copy, "lsit")
    assert "SEGMENT:OFFSET" in complaint(copy, "dump", "7")
    assert "not a number" in complaint(copy, "segment", "x")
    assert "segments 0 to" in complaint(copy, "segment", "9999")
    assert "only dump" in complaint(copy, "list", "--raw")
    assert "too many" in complaint(copy, "list", "again")
    assert "of which folder and file" in complaint("state")
    assert "No such file or directory" in complaint("state", copy.parent / "none", copy)
    assert "is not a directory" in complaint("state", copy, copy)
    assert "only state has it" in complaint(copy, "--region-dir", "/dev/shm")
    assert "memory-limit" in complaint("state", copy.parent, copy, "-m", "1k")
    assert "no record of this key" in complaint(copy, "dump", "--key", "never-set")


def test_help_names_every_command():
    """--help is complete and goes to standard output."""
    shown = subprocess.run([INSPECT, "--help"], capture_output=True, text=True, check=True).stdout
    for word in ("list", "verify", "find KEY", "dump SEGMENT:OFFSET", "segment NUMBER", "state STATE_DIR FILE", "--region-dir", "--no-live", "--uptime", "--records",
                 "--raw", "--threads", "--json", "--quiet", "--version", "Exit status"):
        assert word in shown


# ---- a daemon's flash --------------------------------------------------------------------------


def test_list_agrees_with_the_daemon(subject):
    """Segments and records are those of stats; of the live records it shows an upper bound."""
    stats = settled(subject)
    listed = inspect(path_of(subject), "--json")
    assert listed["superblock"]["in_use"]
    assert listed["superblock"]["segment_bytes"] == SEGMENT
    assert listed["states"]["complete"] == int(stats["segments_used"])
    assert listed["states"]["broken"] == listed["states"]["missing"] == listed["failures"] == 0
    assert listed["records"] == int(subject.stats(b"segments")["records"])
    assert listed["record_bytes"] == int(subject.stats(b"segments")["record_bytes"])
    live = sum(s["liveness"]["live_at_most"] for s in listed["segments"] if s["state"] == "complete")
    assert int(stats["flash_items"]) + int(stats["flash_ghosts"]) <= live <= listed["records"]


def test_list_is_a_table(subject):
    """A line per segment, columns in line, empty ones together."""
    lines = inspect(path_of(subject), "list").splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("segment  "))
    rows = lines[first + 1:lines.index("", first)]
    assert all(len(row.split()) > 10 for row in rows if " complete " in row)
    states = {row[len("segment  "):].split()[0] for row in rows}
    assert states <= {"complete", "empty", "being"}
    assert sum("empty" in row for row in rows) <= 2
    assert len({row.index(" complete ") for row in rows if " complete " in row}) == 1


def test_verify_finds_nothing_wrong(subject):
    """All checks of every complete segment."""
    stats = settled(subject)
    records = subject.stats(b"segments")["records"]
    shown = inspect(path_of(subject), "verify", "-j", "2")
    assert shown.splitlines()[-1] == f"{stats['segments_used']} segments, {records} records, 0 failures"


@pytest.mark.parametrize("kind", ["small", "large"])
def test_find_and_dump_give_what_a_get_gives(subject, kind):
    """Flags, CAS id and value of an object on flash, a small one and an extent."""
    key = getattr(subject, kind)[0]
    with subject.client() as client:
        (_, flags, value, cas), = client.get(key, command=b"gets")
    found = inspect(path_of(subject), "find", key.decode(), "--json")
    record = found["records"][0]
    assert (record["cas"], record["client_flags"], record["value_bytes"]) == (cas, flags, len(value))
    assert record["check_ok"] and record["youngest"] and record["extent"] == (kind == "large")
    where = f"{record['segment']}:{record['offset']}"
    assert inspect(path_of(subject), "dump", where, "--raw", text=False) == value
    assert inspect(path_of(subject), "dump", "--key", key.decode(), "--raw", text=False) == value
    shown = inspect(path_of(subject), "dump", where)
    assert f"key             {key.decode()} " in shown and f"CAS id          {cas}" in shown
    assert value[:100].decode() in shown


def test_segment_shows_all_records(subject):
    """Their count is the header's, and the sizes add up."""
    segment = inspect(path_of(subject), "segment", "0", "--records", "--json")
    assert segment["records"] == segment["good_records"] == len(segment["records_listed"])
    assert segment["record_bytes"] == sum(size["bytes"] for size in segment["sizes"])
    assert all(record["check_ok"] for record in segment["records_listed"])
    shown = inspect(path_of(subject), "segment", "0", "--records")
    assert shown.count("\n") > segment["records"] and "largest gap" in shown


def overwritten_on_flash(client):
    """The key of an object whose two values are on flash, or None: memory may evict all of them before the cleaner writes."""
    keys, = put_on_flash(client, b"first")
    for key in keys:
        client.set(key, b"second!")
    fill_turn(client)
    return next((key for key in keys if on_flash(client, key)), None)


def test_an_overwritten_object_is_superseded(start, flash_options):
    """Both records are found, youngest first."""
    daemon = start(*flash_options)
    with daemon.client() as client:
        key = until(lambda: overwritten_on_flash(client), "an object that is on flash twice")
    settled(daemon)
    records = inspect(daemon.options[1], "find", key.decode(), "--json")["records"]
    assert [record["standing"] for record in records] == ["youngest", "superseded"]
    assert [record["value_bytes"] for record in records] == [7, 5]
    assert records[0]["cas"] > records[1]["cas"]
    listed = inspect(daemon.options[1], "--json")
    assert listed["segments"][records[1]["segment"]]["liveness"]["superseded"] >= 1


@pytest.mark.slots("segments of small objects have no filters with the frugal one")
def test_the_filter_lets_every_key_pass(start, flash_options):
    """verify asks each segment's filter for its keys, by the format's page alone."""
    daemon = start(*flash_options, "--filter-bits", "8")
    with daemon.client() as client:
        put_on_flash(client, b"value")
    settled(daemon)
    listed = inspect(daemon.options[1], "--json")
    assert any(segment.get("filter_bytes", 0) >= 72 for segment in listed["segments"])
    inspect(daemon.options[1], "verify")


# ---- while it is written -----------------------------------------------------------------------


def sound(path, command):
    """The tool looks at a doubtful segment twice, some time apart. Where the daemon gets no CPU meanwhile, what is being written
    looks broken then, but not for ever."""
    return subprocess.run([INSPECT, path, command], capture_output=True, timeout=PATIENCE).returncode == 0


def test_a_chain_shows_no_damage(start, tmp_path):
    """Bins, and records of the chain that the daemon has made of their columns."""
    path = tmp_path / "flash"
    daemon = start("--flash-path", str(path), *OPTIONS, "--index=frugal", "--frugal-memory=5")
    with daemon.client() as client:
        for _ in range(20):
            if client.count("frugal_merges") < 2:
                fill_turn(client)
        assert client.count("frugal_merges") > 1
    settled(daemon)
    inspect(str(path), "verify")
    kinds = {segment["kind"] for segment in inspect(str(path), "--no-live", "--json")["segments"] if "kind" in segment}
    assert {"bins", "chain"} <= kinds


@pytest.mark.parametrize("direct", ["auto", "off"])
def test_a_flash_under_load_shows_no_damage(start, tmp_path, direct):
    """Segments are overwritten under the reader all the time: being written, never broken."""
    path = tmp_path / "flash"
    options = list(OPTIONS)
    options[1] = "1m"
    daemon = start("--flash-path", str(path), *options, "--direct-io", direct)
    over = threading.Event()

    def load():
        with daemon.client() as client:
            while not over.is_set():
                fill(client, SEGMENT)

    loader = threading.Thread(target=load)
    loader.start()
    try:
        until(lambda: int(daemon.stats(b"flash")["segments_reclaimed"]) > 0, "the flash is full")
        before = int(daemon.stats(b"flash")["segments_written"])
        for _ in range(10):
            until(lambda: sound(path, "verify"), "verify finds no damage")
            until(lambda: sound(path, "list"), "list finds no damage")
        until(lambda: int(daemon.stats(b"flash")["segments_written"]) > before, "a segment was written meanwhile")
    finally:
        over.set()
        loader.join()


def test_after_a_stop_and_after_another_start(subject, tmp_path):
    """A copy has no daemon; another start serves nothing of what is there."""
    path = tmp_path / "flash"
    shutil.copy(path_of(subject), path)
    before = inspect(path, "--json")
    assert not before["superblock"]["in_use"]
    inspect(path, "verify")
    # It must not write: it would begin with the first segment.
    with Daemon(["--flash-path", str(path), *OPTIONS]):
        after = inspect(path, "--json")
        assert after["superblock"]["in_use"]
        assert after["superblock"]["attach_epoch"] == before["superblock"]["attach_epoch"] + 1
        assert after["states"]["complete"] == before["states"]["complete"]
        assert all(s["liveness"]["live_at_most"] == 0 for s in after["segments"] if s["state"] == "complete")
        assert "of an earlier start: not served" in inspect(path)
        found = inspect(path, "find", subject.small[0].decode(), "--json")
        assert "not served" in found["records"][0]["standing"]


def test_after_a_warm_start(open_folder):
    """What earlier starts wrote is served, and the tool says so."""
    options = ["--state-dir", str(open_folder), "--flash-path", "flash", *OPTIONS]
    path = open_folder / "flash"
    with Daemon(options) as daemon, daemon.client() as client:
        key = put_on_flash(client, b"value")[0][0]
    for _ in range(2):
        with Daemon(options) as daemon, daemon.client() as client:
            assert daemon.stats(b"flash")["flash_start"] == "warm"
            report = inspect(path, "--json")
            assert report["superblock"]["first_epoch"] == 1
            live = sum(s["liveness"]["live_at_most"] for s in report["segments"] if s["state"] == "complete")
            await_counts(client)
            assert live >= client.count("flash_items") > 0
            assert "warm, with objects since start 1" in inspect(path)
            found = inspect(path, "find", key.decode(), "--json")
            assert "not served" not in found["records"][0]["standing"]
    with Daemon([*options, "--restart-max-downtime", "0"]):
        assert "of an earlier start: not served" in inspect(path)


# ---- what a start would do ---------------------------------------------------------------------


DAEMON_OPTIONS = ["--flash-size", "16m", "--segment-size", str(SEGMENT), "-m", "4"]
INDEX = [word for word in daemon_flags() if word.startswith("--index=")]


def state(folder, *options, status=0):
    done = subprocess.run([INSPECT, "--json", *DAEMON_OPTIONS, *INDEX, *options, "state", folder, folder / "flash"],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == status, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return json.loads(done.stdout)


def contents(*folders):
    return {path: path.read_bytes() for folder in folders for path in folder.iterdir()}


def test_state_tells_what_the_start_then_does(open_folder):
    """Running, stopped and damaged; the words are those of the start, and nothing is changed."""
    options = ["--state-dir", str(open_folder), "--flash-path", str(open_folder / "flash"), *OPTIONS]
    with Daemon(options) as daemon, daemon.client() as client:
        put_on_flash(client, b"value")
        assert client.set(b"in-memory", b"value") == b"STORED\r\n"
        running = state(open_folder, status=1)
        assert running["in_use"] and running["start"]["refused"] and "in use" in running["start"]["reason"]
    before = contents(open_folder)
    stopped = state(open_folder)
    assert not stopped["in_use"]
    assert stopped["state_file"]["epoch"] == stopped["saved_objects"]["epoch"] == stopped["flash"]["attach_epoch"] == 1
    assert stopped["state_file"]["uuid"] == stopped["flash"]["uuid"]
    assert stopped["region"] is None
    assert stopped["start"]["flash"]["word"] == stopped["start"]["memory"]["word"] == "warm"
    off = state(open_folder, "--restart-max-downtime", "0", status=1)["start"]
    assert off["flash"]["word"] == off["memory"]["word"] == "off"
    layout = state(open_folder, "--segment-size", str(2 * SEGMENT), status=1)["start"]
    assert layout["flash"]["word"] == "layout"
    assert "segment-size" in state(open_folder, "--segment-size", "4m", status=1)["start"]["reason"]
    shown = subprocess.run([INSPECT, *DAEMON_OPTIONS, *INDEX, "state", open_folder, open_folder / "flash"],
                           capture_output=True, text=True, check=True).stdout
    objects = stopped["start"]["flash"]["objects"]
    assert f"flash           warm, with {objects} objects" in shown
    assert "of start 1 of this flash; stopped" in shown
    assert contents(open_folder) == before
    with Daemon(options) as daemon, daemon.client() as client:
        assert daemon.stats(b"flash")["flash_start"] == "warm"
        await_counts(client)
        assert client.count("flash_items") == objects > 0
    file = open_folder / "flash.state"
    file.write_bytes(file.read_bytes()[:-100])
    cold = state(open_folder, status=1)["start"]["flash"]
    assert cold["word"] == "damaged"
    with Daemon(options) as daemon:
        assert daemon.stats(b"flash")["flash_start"] == cold["text"]


@pytest.mark.parametrize("mode", ["lru", "mfu"])
def test_state_has_the_clock_mode_of_the_daemon(open_folder, mode):
    """The daemon saves the mode that it was told, and no other start takes its flash over."""
    options = ["--state-dir", str(open_folder), "--flash-path", str(open_folder / "flash"), "--clock-mode", mode, *OPTIONS]
    with Daemon(options) as daemon, daemon.client() as client:
        put_on_flash(client, b"value")
    for other in ["lru", "mfu"]:
        start = state(open_folder, "--clock-mode", other, status=int(other != mode))["start"]
        assert start["flash"]["word"] == ("warm" if other == mode else "options")


def test_state_tells_since_when_nobody_was_served(open_folder):
    """A start that fails before it serves doesn't end the pause that --restart-max-downtime allows; one that serves does."""
    options = ["--state-dir", str(open_folder), "--flash-path", str(open_folder / "flash"), *OPTIONS]
    port = free_port()  # the same daemon each time
    with Daemon(options, port=port) as daemon, daemon.client() as client:
        put_on_flash(client, b"value")
    stopped = time.clock_gettime(time.CLOCK_BOOTTIME)
    failing = Daemon([*options, "-Y", "/nonexistent"], port=port)
    assert subprocess.run(failing.command(), check=False, stderr=subprocess.DEVNULL).returncode == 1
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    told = state(open_folder)
    assert told["state_file"]["epoch"] == 2, "the start that failed has saved it"
    assert min(told["state_file"]["age_s"], told["saved_objects"]["age_s"]) >= now - stopped
    with Daemon(options, port=port) as daemon, daemon.client() as client:
        served = time.clock_gettime(time.CLOCK_BOOTTIME)
        assert daemon.stats(b"flash")["flash_start"] == "warm"
        assert client.set(b"key", b"value") == b"STORED\r\n"
    told = state(open_folder)
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert max(told["state_file"]["age_s"], told["saved_objects"]["age_s"]) <= now - served


def test_state_of_a_daemon_that_was_killed(open_folder):
    """It knows the region, if it is told where it is."""
    with tempfile.TemporaryDirectory(prefix="flashield-test-", dir="/dev/shm") as path:
        regions = pathlib.Path(path)
        regions.chmod(0o777)
        options = ["--state-dir", str(open_folder), "--flash-path", str(open_folder / "flash"), *OPTIONS,
                   "--region-dir", path]
        with Daemon(options) as daemon, daemon.client() as client:
            put_on_flash(client, b"value")
            daemon.kill()
        before = contents(open_folder, regions)
        killed = state(open_folder, "--region-dir", path)
        assert killed["region"]["epoch"] == 1 and killed["region"]["this_boot"]
        assert killed["start"]["flash"]["word"] == "attached"
        assert state(open_folder, status=1)["start"]["flash"]["word"] == "unclean"
        assert contents(open_folder, regions) == before
        with Daemon(options) as daemon, daemon.client() as client:
            assert daemon.stats(b"flash")["flash_start"] == killed["start"]["flash"]["text"]
            await_counts(client)
            assert client.count("flash_items") == killed["start"]["flash"]["objects"] > 0


def test_state_of_a_flash_of_another_version(copy, tmp_path):
    """Its superblock can't be read, and a start takes the flash for new."""
    bytes_of = bytearray(copy.read_bytes())
    for at in (0, 32 << 10):
        bytes_of[at + 100] ^= 1
    copy.write_bytes(bytes_of)
    done = subprocess.run([INSPECT, *DAEMON_OPTIONS, "state", tmp_path, copy], capture_output=True, text=True)
    assert done.returncode == 1
    assert "neither copy of the superblock is whole" in done.stdout
    assert "cold: the flash is new" in done.stdout


# ---- damage ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["small", "large"])
def test_a_flipped_bit_in_a_value_is_found(subject, copy, kind):
    """verify, find and dump tell it, with the right segment and offset."""
    key = getattr(subject, kind)[0].decode()
    record = inspect(copy, "find", key, "--json")["records"][0]
    flip(copy, place(record, 32 + len(key) + 3))
    shown = inspect(copy, "verify", status=1).splitlines()
    assert shown[0] == f"segment {record['segment']} offset {record['offset']}: record: broken, fails its check"
    assert shown[-1].endswith(" 1 failures")
    found = inspect(copy, "find", key, "--json", status=1)
    assert not found["records"][0]["check_ok"] and not found["records"][0]["youngest"]
    where = f"{record['segment']}:{record['offset']}"
    assert "FAILS" in inspect(copy, "dump", where, status=1)
    assert inspect(copy, "dump", where, "--raw", status=1) == ""
    failed = inspect(copy, "verify", "--json", status=1)["failed"]
    assert [(f["segment"], f["offset"]) for f in failed] == [(record["segment"], record["offset"])]


def test_damage_of_a_segment_as_a_whole_is_found(copy):
    """Header page and footer."""
    for segment, at, text in ((2, 200, "header page fails its checksum"), (3, SEGMENT - 100, "tail fails its checksum")):
        start = AREA + segment * SEGMENT
        flip(copy, start + at)
        assert f"segment {segment} offset 0: the {'footer' if at > 200 else 'header'}" in inspect(copy, "verify", status=1)
        assert text in inspect(copy, "--no-live", status=1)
        assert "broken" in inspect(copy, "segment", str(segment), status=1)
        flip(copy, start + at)
    inspect(copy, "verify")


def test_one_broken_superblock_is_told_and_two_end_it(copy):
    """The other copy counts, as for the daemon."""
    flip(copy, 100)
    assert "superblock copy 0 offset 0: fails its checksum" in inspect(copy, "verify", status=1)
    assert "copy 0: BROKEN" in inspect(copy, "list", status=1)
    flip(copy, 32768 + 100)
    assert "neither copy of the superblock is whole" in complaint(copy, status=1)


def test_a_truncated_file_is_told(copy):
    """What is beyond the end is missing; the rest is shown."""
    os.truncate(copy, AREA + 3 * SEGMENT + 5000)
    listed = inspect(copy, "--json", status=1)
    states = [segment["state"] for segment in listed["segments"]]
    assert states[:3] == ["complete"] * 3 and set(states[3:]) == {"missing"}
    assert "the file ends 60536 bytes before the segment does" in inspect(copy, "verify", status=1)
