# SPDX-License-Identifier: BSD-3-Clause
"""The emulated drive of tools/slowdrive: under a small program, under the daemon and under memcached."""
import errno
import itertools
import os
import signal
import subprocess
import sys
import time

import pytest

from helpers import PATIENCE, Daemon, fill, fill_turn, free_port, memcached_command, on_flash, until
from slowdrive import LIBRARY, SlowDrive

pytestmark = [pytest.mark.clock, pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not built: a sanitizer's variant?")]

PAGE = 4096
FLASH = ["--flash-size", "16m", "--segment-size", "64k", "--admission", "all", "-m", "4", "-t", "2"]

# Each call on a file: what it asks for, and the side it is on.
CALLS = {
    "pread": "os.pread(fd, 4096, 0)",
    "preadv": "os.preadv(fd, [bytearray(4096)], 0)",
    "pwrite": "os.pwrite(fd, bytes(4096), 0)",
    "pwritev": "os.pwritev(fd, [bytes(4096)], 0)",
    "fsync": "os.fsync(fd)",
    "fdatasync": "os.fdatasync(fd)",
}


@pytest.fixture
def drive(tmp_path):
    """A drive below tmp_path / "flash", which has 64 pages."""
    path = tmp_path / "flash"
    path.write_bytes(bytes(64 * PAGE))
    return SlowDrive(tmp_path, path)


def side_of(drive, call):
    return drive.reads if "read" in call else drive.writes


def program(drive, lines, path=None):
    """A program of a few lines, with the file open as fd."""
    text = f"import os\nfd = os.open({str(path or drive.environment['SLOWDRIVE_FILE'])!r}, os.O_RDWR)\n{lines}"
    return subprocess.Popen([sys.executable, "-c", text], env=drive.environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def outcome(process):
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    return out.strip()


# ---- a small program -----------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"x" * 176, bytes(175), None], ids=["empty", "magic", "short", "missing"])
def test_a_wrong_control_file_ends_the_program_at_its_start(drive, content):
    path = drive.environment["SLOWDRIVE_CONTROL"]
    if content is None:
        os.unlink(path)
    else:
        drive.environment["SLOWDRIVE_CONTROL"] = path + ".wrong"
        with open(path + ".wrong", "wb") as out:
            out.write(content)
    process = program(drive, "print('started')")
    out, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (127, "")
    assert errors.startswith("slowdrive: ")


@pytest.mark.parametrize("call", CALLS)
def test_without_settings_calls_pass_and_are_counted(drive, call):
    process = program(drive, f"for _ in range(7): {CALLS[call]}")
    outcome(process)
    side = side_of(drive, call)
    assert (side.done, side.failed, side.held_most) == (7, 0, 0)
    assert side.bytes == (0 if "sync" in call else 7 * PAGE)
    assert drive.attached == process.pid


@pytest.mark.parametrize("call", CALLS)
def test_only_the_named_file_is_affected(drive, tmp_path, call):
    """Another file's calls return while those of the named one would hang, also behind a reused descriptor."""
    other = tmp_path / "other"
    other.write_bytes(bytes(PAGE))
    drive.reads.hang = drive.writes.hang = 1
    outcome(program(drive, CALLS[call], other))
    lines = f"{CALLS[call]}; os.close(fd); fd = os.open({drive.environment['SLOWDRIVE_FILE']!r}, os.O_RDWR); {CALLS[call]}"
    process = program(drive, lines, other)
    until(lambda: side_of(drive, call).held == 1, "the second call to wait")
    drive.reads.hang = drive.writes.hang = 0
    outcome(process)
    assert side_of(drive, call).done == 1


@pytest.mark.parametrize("call", CALLS)
def test_a_hang_holds_the_call_until_it_is_off(drive, call):
    side = side_of(drive, call)
    side.hang = 1
    process = program(drive, f"{CALLS[call]}; print('returned')")
    until(lambda: side.held == 1, "the call to wait")
    assert (process.poll(), side.done) == (None, 0)
    side.hang = 0
    assert outcome(process) == "returned"
    assert (side.done, side.held, side.held_most) == (1, 0, 1)


@pytest.mark.parametrize("call", CALLS)
def test_a_failing_drive_answers_eio(drive, call):
    side_of(drive, call).fail_per_mille = 1000
    lines = f"try: {CALLS[call]}\nexcept OSError as error: print(error.errno)"
    assert outcome(program(drive, lines)) == str(errno.EIO)
    assert (side_of(drive, call).failed, side_of(drive, call).done) == (1, 1)


def test_some_requests_of_an_unreliable_drive_fail(drive):
    drive.reads.fail_per_mille = 300
    lines = "failed = 0\nfor _ in range(1000):\n try: os.pread(fd, 4096, 0)\n except OSError: failed += 1\nprint(failed)"
    failed = int(outcome(program(drive, lines)))
    assert failed == drive.reads.failed
    assert 200 < failed < 400  # seven standard deviations


TIMED = "import time; start = time.monotonic()\n{}\nprint(time.monotonic() - start)"


@pytest.mark.parametrize("threads", [1, 8])
def test_a_rate_of_reads_holds_over_their_number(drive, threads):
    """200 reads at 1000 a second take a fifth of a second, however many ask at a time."""
    drive.reads.per_second = 1000
    lines = TIMED.format("from concurrent.futures import ThreadPoolExecutor\n"
                         f"with ThreadPoolExecutor({threads}) as pool:\n"
                         " list(pool.map(lambda n: os.pread(fd, 4096, n % 64 * 4096), range(200)))")
    assert float(outcome(program(drive, lines))) > 0.15
    assert (drive.reads.done, drive.reads.bytes) == (200, 200 * PAGE)
    assert drive.reads.held_most <= threads


def test_a_rate_of_writes_is_in_bytes_and_their_flush_waits_for_them(drive):
    drive.writes.per_second = 1 << 20
    lines = TIMED.format("for n in range(50): os.pwrite(fd, bytes(4096), n * 4096)\nos.fdatasync(fd)")
    assert float(outcome(program(drive, lines))) > 0.15  # 200 KiB at 1 MiB a second
    assert (drive.writes.done, drive.writes.bytes) == (51, 50 * PAGE)


def test_latency_is_shared_by_what_is_under_way_up_to_a_number(drive):
    """40 reads of 10 ms each: four at a time take a tenth of a second."""
    drive.reads.latency_us = 10000
    drive.reads.parallel = 4
    lines = TIMED.format("from concurrent.futures import ThreadPoolExecutor\n"
                         "with ThreadPoolExecutor(40) as pool:\n"
                         " list(pool.map(lambda n: os.pread(fd, 4096, 0), range(40)))")
    assert float(outcome(program(drive, lines))) > 0.08
    assert drive.reads.done == 40
    drive.reads.parallel = 1
    assert float(outcome(program(drive, lines))) > 0.35


def test_a_change_of_settings_reaches_what_waits(drive):
    drive.reads.per_second = 1
    process = program(drive, "for _ in range(100): os.pread(fd, 4096, 0)")
    until(lambda: drive.reads.held == 1, "a read to wait")
    drive.reads.per_second = 0
    outcome(process)
    assert drive.reads.done == 100


def test_a_forked_child_has_a_drive_too(drive):
    drive.reads.latency_us = 1
    lines = ("os.pread(fd, 4096, 0)\npid = os.fork()\nos.pread(fd, 4096, 0)\n"
             "if pid: assert os.waitpid(pid, 0)[1] == 0")
    outcome(program(drive, lines))
    assert drive.reads.done == 3


# ---- the daemon ----------------------------------------------------------------------------------------


def on_the_drive(start, folder, *options):
    """A daemon whose drive is emulated, and the drive."""
    drive = SlowDrive(folder, folder / "flash")
    daemon = start("--flash-path", str(folder / "flash"), *FLASH, *options, environment=drive.environment)
    assert drive.attached == daemon.process.pid
    return daemon, drive


def fill_until(client, condition, what):
    """Sets objects, more than the memory holds if need be."""
    def more():
        fill(client, 256 << 10)
        return condition()
    until(more, what)


def keys_on_flash(daemon, count):
    """Keys of so many objects that lie there, at least. Each turn sets others: what is read in each turn stays in memory."""
    turns = itertools.count()
    found = []

    def enough():
        turn = next(turns)
        keys = [b"key-%d-%d" % (turn, n) for n in range(300)]
        for key in keys:
            assert client.set(key, b"v" * 900) == b"STORED\r\n"
        fill_turn(client)
        found[:] = [key for key in found + keys if on_flash(client, key)]
        return len(found) >= count

    with daemon.client() as client:
        until(enough, "objects to come to flash")
    return found


def key_on_flash(daemon):
    return keys_on_flash(daemon, 1)[0]


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_start_that_waits_for_the_drive_ends_at_a_signal(start, open_folder, end):
    """All that the last run has saved is there for the next start."""
    port = free_port()
    options = ["--state-dir", str(open_folder), "--flash-path", str(open_folder / "flash"), *FLASH]
    daemon = start(*options, port=port)
    with daemon.client() as client:
        assert client.set(b"key", b"value") == b"STORED\r\n"
    assert daemon.stop() == 0
    left = {path.name: path.read_bytes() for path in open_folder.iterdir() if path.suffix != ".lock"}  # that one names the process
    drive = SlowDrive(open_folder, open_folder / "flash")
    drive.reads.hang = 1
    waiting = Daemon(options, port=port, environment=drive.environment)
    with subprocess.Popen(waiting.command(), env=drive.environment, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: drive.reads.held > 0, "the start to wait")
        process.send_signal(end)
        assert process.wait(PATIENCE) == 0
        assert "the start is ended by a signal" in process.stderr.read()
    assert {name: (open_folder / name).read_bytes() for name in left} == left
    again = start(*options, port=port)
    until(lambda: again.stats(b"flash")["dram_loading"] == "0", "the end of loading")
    rows = again.stats(b"flash")
    assert (rows["flash_start"], rows["dram_start"]) == ("warm", "warm")
    with again.client() as client:
        assert client.get(b"key")[0][2] == b"value"


@pytest.mark.parametrize("options", [[], ["-u", "root"], ["--seccomp=on"]], ids=["nobody", "root", "seccomp"])
def test_the_daemon_s_reads_pass_the_drive(start, open_folder, options):
    """Whoever it becomes. Each of its reads is one of the drive's, and 200 at 1000 a second take their time. They are of
    more objects than the daemon keeps, which reads one only once for many gets; a few it may keep."""
    if "root" in options and os.geteuid() != 0:
        pytest.skip("needs root")
    daemon, drive = on_the_drive(start, open_folder, *options)
    keys = keys_on_flash(daemon, 60)
    with daemon.client() as client:
        done, counted = drive.reads.done, client.count("flash_reads")
        drive.reads.per_second = 1000
        begin = time.monotonic()
        assert all(client.get(keys[n % len(keys)]) for n in range(200))
        assert time.monotonic() - begin > 0.15
        # The cleaner reads, too: samples, and what it reclaims.
        assert drive.reads.done - done >= client.count("flash_reads") - counted >= 180


def test_hanging_reads_are_misses_until_the_drive_works_again(start, open_folder):
    daemon, drive = on_the_drive(start, open_folder, "--flash-read-timeout", "100ms")
    key = key_on_flash(daemon)
    with daemon.client() as client:
        drive.reads.hang = 1
        assert client.get(key) == []
        assert drive.reads.held >= 1
        assert client.set(b"another", b"value") == b"STORED\r\n"
        drive.reads.hang = 0
        until(lambda: on_flash(client, key), "the object to be read again")
        until(lambda: drive.reads.held == 0, "what was held to be done")


def test_failing_reads_are_the_daemon_s_read_errors(start, open_folder):
    daemon, drive = on_the_drive(start, open_folder)
    key = key_on_flash(daemon)
    with daemon.client() as client:
        before = client.count("flash_read_errors")
        drive.reads.fail_per_mille = 1000
        assert client.get(key) == []
        assert client.count("flash_read_errors") == before + 1
        drive.reads.fail_per_mille = 0
        assert client.get(key) == []  # what could not be read once is gone
        assert client.count("flash_read_errors") == before + 1


def test_hanging_writes_hold_the_cleaner_until_the_drive_works_again(start, open_folder):
    daemon, drive = on_the_drive(start, open_folder)
    drive.writes.hang = 1
    with daemon.client() as client:
        fill_until(client, lambda: drive.writes.held > 0, "a write to wait")
        assert client.count("segments_written") == 0
        drive.writes.hang = 0
        until(lambda: client.count("segments_written") > 0, "a segment to be written")


def test_failing_writes_are_the_daemon_s_write_errors(start, open_folder):
    daemon, drive = on_the_drive(start, open_folder)
    drive.writes.fail_per_mille = 1000
    with daemon.client() as client:
        fill_until(client, lambda: client.count("flash_write_errors") > 0, "an error")
        assert client.count("segments_written") == 0
        drive.writes.fail_per_mille = 0


def test_an_end_with_a_hanging_drive_comes_when_the_drive_works_again(open_folder):
    """The requests that are held keep the daemon, not the shim: nothing crashes meanwhile."""
    drive = SlowDrive(open_folder, open_folder / "flash")
    with Daemon(["--flash-path", str(open_folder / "flash"), *FLASH, "--flash-read-timeout", "50ms"],
                environment=drive.environment) as daemon:
        key = key_on_flash(daemon)
        drive.reads.hang = 1
        with daemon.client() as client:
            assert client.get(key) == []
        daemon.process.send_signal(signal.SIGTERM)
        until(lambda: drive.reads.held >= 1, "a read to wait")
        drive.reads.hang = 0


# ---- memcached -----------------------------------------------------------------------------------------


@pytest.fixture
def extstore(start, open_folder):
    """A memcached whose values of 1000 bytes lie on its flash, the drive, and the keys."""
    drive = SlowDrive(open_folder, open_folder / "flash")
    options = ["-m", "64", "-U", "0", "-o", f"ext_page_size=16,ext_path={open_folder}/flash:128m,ext_item_size=128,"
               "ext_item_age=0,ext_threads=4,ext_recache_rate=0"]
    try:
        daemon = start(*options, program=memcached_command(), environment=drive.environment)
    except FileNotFoundError:
        pytest.skip("memcached is not installed")
    keys = [b"key-%d" % n for n in range(20000)]
    with daemon.client() as client:
        client.all(b"".join(b"set %s 0 0 1000 noreply\r\n%s\r\n" % (key, b"v" * 1000) for key in keys))
        until(lambda: int(client.stats()["extstore_objects_used"]) > 10000, "objects to be written")
    return daemon, drive, keys


def first_on_drive(client, drive, keys):
    """The latest ones may still be read from a write buffer."""
    for key in keys:
        done = drive.reads.done
        if client.get(key) and drive.reads.done > done:
            return key
    raise AssertionError("no key is read from the drive")


def test_memcached_s_reads_and_writes_pass_the_drive(extstore):
    daemon, drive, keys = extstore
    assert drive.attached == daemon.process.pid
    assert drive.writes.bytes >= 4 << 20  # the rest may be in its buffers
    with daemon.client() as client:
        key = first_on_drive(client, drive, keys)
        done = drive.reads.done
        drive.reads.per_second = 1000
        begin = time.monotonic()
        assert sum(len(client.get(key)) for _ in range(200)) == 200
        assert time.monotonic() - begin > 0.15
        assert drive.reads.done - done == 200


def test_memcached_s_reads_hang_until_the_drive_works_again(extstore):
    daemon, drive, keys = extstore
    with daemon.client() as client, daemon.client() as other:
        key = first_on_drive(client, drive, keys)
        drive.reads.hang = 1
        client.send(b"get %s\r\n" % key)
        until(lambda: drive.reads.held == 1, "the read to wait")
        assert other.set(b"another", b"value") == b"STORED\r\n"
        drive.reads.hang = 0
        assert len(client.values()) == 1


def test_memcached_s_reads_fail(extstore):
    daemon, drive, keys = extstore
    with daemon.client() as client:
        key = first_on_drive(client, drive, keys)
        drive.reads.fail_per_mille = 1000
        assert client.get(key) == []
        assert drive.reads.failed >= 1
