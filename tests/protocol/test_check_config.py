# SPDX-License-Identifier: BSD-3-Clause
"""--check-config: each fault in a line, the start's own exit code, and nothing changed; a reload that fails is seen."""
import os
import re
import subprocess

import pytest

from helpers import PATIENCE, ROOT, flashield_command, free_port
from metrics import scrape, value
from namespace import IS_ROOT, SmallTmpfs
from test_service import Notified

USER = ["-u", "nobody"] if os.geteuid() == 0 else []


def checked(*options, check=True):
    done = subprocess.run([flashield_command(), *USER, *(["--check-config"] if check else []), "--metrics-listen", "off",
                           *map(str, options)], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()


@pytest.fixture
def written(open_folder):
    def write(text, name="conf"):
        path = open_folder / name
        path.write_text(text)
        path.chmod(0o644)
        return path
    return write


def test_good_options_are_silent(written, open_folder, dram_daemon):
    """Not even a port that is held is a fault: a daemon that is to reload holds it. No flash file is made."""
    path = written(f"port = {dram_daemon.port}\nlisten = 127.0.0.1\nflash-path = {open_folder}/flash\nflash-size = 64m\n")
    assert checked("--config", path) == (0, [])
    assert not (open_folder / "flash").exists()


def test_all_faults_are_told_with_their_lines(written, open_folder):
    """What only the system knows comes after what the options say; a start ends with the first one's code."""
    users = written("user:password\nnobody-has-this\n", "users")
    foreign = written("x" * 100000, "flash")
    foreign.chmod(0o666)
    path = written(f"threads = 0\nauth-file = {users}\nflash-path = {foreign}\nflash-size = 64m\nlisten = 127.0.0.1:99999\n"
                   "model = /nonexistent/model\nhot-fraction = 7\n")
    code, lines = checked("--config", path)
    assert lines[0] == f'{path}:1: threads: "0" is not a whole number from 1 to 256 threads'
    assert lines[1] == f'{path}:7: hot-fraction: "7" is not a number from 0 to 1'
    assert lines[2].startswith(f"{path}:5: listen: ") and lines[2].endswith('Invalid port number: "99999"')
    assert lines[3].startswith(f"{path}:3: flash-path {foreign}: holds something that is not a cache")
    assert lines[4] == f"{path}:6: model: /nonexistent/model: No such file or directory"
    assert lines[5].startswith(f"{path}:2: auth-file: ") and lines[5].endswith("(line 2)")
    assert len(lines) == 6
    assert code == checked("--config", path, check=False)[0] == 64
    assert foreign.read_text() == "x" * 100000


def test_the_file_is_named_as_it_was_given(written, open_folder):
    """In the lines of options, of contradictions and of what only the system knows."""
    written("threads = 0\nmodel-pinned = yes\nflash-path = flash\nflash-size = 64m\nauth-file = nowhere\n")
    done = subprocess.run([os.path.abspath(flashield_command()), *USER, "--check-config", "--metrics-listen", "off", "--config", "conf"],
                          cwd=open_folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert [line.split(": ")[:2] for line in done.stderr.splitlines()] == [
        ["conf:1", "threads"], ["conf:2", "model-pinned"], ["conf:5", "auth-file"]], done.stderr


def test_an_option_that_its_reason_names_has_its_line_too(written, open_folder):
    """In the file its name stands without dashes, and on the command line with them."""
    options = ["--flash-path", open_folder / "flash", "--flash-size", "64m", "-l", "127.0.0.1", "-p", free_port()]
    path = written("threads = 1\nregion-dir = /nonexistent\n")
    assert checked("--config", path, *options)[1][0].startswith(f"{path}:2: region-dir: /nonexistent: ")
    assert checked("--region-dir", "/nonexistent", *options)[1][0].startswith("--region-dir: /nonexistent: ")


@pytest.mark.parametrize("name", ["packaging/flashield.conf", "packaging/samples/flashield.conf",
                                  "packaging/samples/flashield-instance.conf", "packaging/samples/flashield-node.conf"])
def test_files_to_start_from_are_good(name, open_folder):
    """In a state directory, as the units give them one; a machine of tests has little room for a flash."""
    small = ["--flash-size", "64m"] if re.search("(?m)^flash-path", (ROOT / name).read_text()) else []
    done = subprocess.run([flashield_command(), *USER, "--config", str(ROOT / name), "--check-config", "--state-dir",
                           str(open_folder), *small], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("options", [
    ["-Q", "-t", "0"], ["-t", "0", "-p", "70000"], ["-m", "banana"], ["-o", "nothing"], ["-Z"], ["-Y", "/nonexistent"],
    ["--flash-path", "/nonexistent/flash", "--flash-size", "64m"], ["--flash-path", "/dev/null", "--flash-size", "64m"],
    ["--flash-path", "/tmp/none", "--flash-size", "64m", "-m", "8", "--segment-size", "32m"], ["-l", "127.0.0.1:x"],
    ["--flash-path", "/tmp/none", "--flash-size", "64m", "--region-dir", "/nonexistent"],
    ["--flash-path", "/tmp/none", "--flash-size", "64m", "--region-dir", "/var/tmp"],
    ["-p", "0", "-U", "0"], ["-I", "64m"], ["--flash-path", "/tmp/none"]])
def test_exit_code_is_that_of_a_start(options):
    options = options if "-l" in options or "-p" in options else ["-l", "127.0.0.1", "-p", free_port(), *options]
    code, lines = checked(*options)
    assert code != 0 and lines
    assert checked(*options, check=False)[0] == code


@pytest.mark.parametrize("model, code", [("/nonexistent", 71), ("/dev/null", 64)])
def test_exit_code_of_a_model_is_that_of_a_start(model, code, open_folder):
    """What is no model is the operator's mistake; what isn't there may come."""
    options = ["-l", "127.0.0.1", "-p", free_port(), "--flash-path", open_folder / "flash", "--flash-size", "64m", "--model", model]
    for check in True, False:
        found, lines = checked(*options, check=check)
        assert found == code and any(line.startswith(f"--model: {model}: ") for line in lines)


def test_a_state_directory_that_can_not_be_written(open_folder):
    """A warning, as the start goes on without it."""
    for folder, why in (open_folder / "none", "No such file or directory"), ("/proc", "Permission denied"):
        if str(folder) == "/proc" and not USER:
            continue
        code, lines = checked("-l", "127.0.0.1", "-p", free_port(), "--state-dir", folder)
        assert (code, lines) == (0, [f"warning: --state-dir: {folder}: {why}: nothing can be kept there over a stop"])


def test_a_flash_file_without_room(open_folder):
    """Both tell how much it would take and how much is free, and the folder stays as it is. With --flash-min-free it is no fault,
    and a part for which there is room is a warning."""
    folder = open_folder / "small"
    folder.mkdir()
    with SmallTmpfs(folder, "16m") as small:
        if small.refused:
            pytest.skip(small.refused)

        def started(*options):
            return subprocess.run([small.program, *(USER if IS_ROOT else []), "-l", "127.0.0.1", "-p", str(free_port()),
                                   "--metrics-listen", "off", "--flash-path", f"{folder}/flash", *options],
                                  capture_output=True, text=True, timeout=PATIENCE, check=False)

        text = f"flash-path {folder}/flash: it would take 1.00 GiB, and 16.00 MiB are free there: No space left on device"
        for options in ["--check-config"], []:
            done = started("--flash-size", "1g", *options)
            assert done.returncode == 71 and done.stderr.splitlines()[-1].endswith(text), done.stderr
            assert not small.run("ls", str(folder)).stdout
        done = started("--flash-size", "1g", "--check-config", "--flash-min-free", "64m")
        assert done.returncode == 0
        assert "1.00 GiB, and 16.00 MiB are free there: all objects would stay in memory" in done.stderr
        done = started("--flash-size", "64m", "--check-config")
        assert (done.returncode, done.stderr) == (0, f"warning: flash: {folder}/flash has 12.00 MiB in place of 64.00 MiB, as its file "
                                                     "system has or had no more room; with more, it grows after a clean stop if its objects can stay\n")
        assert not small.run("ls", str(folder)).stdout


def test_a_flash_larger_than_the_memory_can_serve(open_folder):
    """A part of it is used, which is told at the start."""
    assert checked("-m", "64", "--flash-path", f"{open_folder}/flash", "--flash-size", "126g", "--flash-min-free", "1m")[0] == 0


def test_a_reload_that_fails_is_seen(open_folder, written):
    """systemctl status says why, until one succeeds."""
    path = written("verbose = 0\n")
    started = Notified(open_folder, "--config", str(path))
    try:
        started.until("READY", "1")
        path.write_text("verbose = 10\n")
        started.process.send_signal(1)
        message, _ = started.until("READY", "1")
        assert message["STATUS"].startswith(
            f'Degraded: the last reload failed, options stay as they were: {path}:1: verbose: "10" is not'), message
        assert checked("--config", path)[0] == 64  # as ExecReload= of the unit asks first
        path.write_text("verbose = 0\n")
        started.process.send_signal(1)
        assert started.until("READY", "1")[0]["STATUS"] == "0 objects"
        started.finish()
    finally:
        started.close()


def test_a_reload_that_needs_a_restart_is_seen(open_folder, written):
    """systemctl status names the options, and a metric has their number, until the file says again what is in force."""
    path = written("verbose = 0\n")
    port = free_port()
    started = Notified(open_folder, "--config", str(path), f"--metrics-listen=127.0.0.1:{port}")
    try:
        started.until("READY", "1")
        for text, named, number in (("conn-limit = 77\nthreads = 3\n", "A restart is needed for conn-limit, threads; 0 objects", 2),
                                    ("conn-limit = 77\nverbose = 10\n", ", threads; 0 objects", 2),
                                    ("verbose = 1\n", "0 objects", 0)):
            path.write_text(text)
            started.process.send_signal(1)
            status = started.until("READY", "1")[0]["STATUS"]
            assert status.endswith(named), status
            assert status == named or status.startswith("Degraded: the last reload failed"), status
            assert value(scrape(port), "reload_restart_options") == number
        started.finish()
    finally:
        started.close()
