# SPDX-License-Identifier: BSD-3-Clause
"""Models of files: --model, --model-pinned, and the one that a daemon saves in its state directory."""
import copy
import itertools
import json
import os
import signal
import subprocess

import pytest

from helpers import Daemon, PATIENCE, free_port, until

FEATURES = ["reads", "mean_gap", "last_gap", "max_gap", "first_gap", "count", "idle", "size", "ttl"]
MODEL = {"format": "flashield model", "version": 1, "label_mode": "full", "threshold": 1, "horizon_ms": 60000, "size_exponent": 1,
         "trained": 1700000000, "samples": 4711, "bias": -0.25,
         "features": [{"name": name, "weight": 0.5, "mean": 2, "scale": 0.5} for name in FEATURES],
         "calibration": [{"decision": -1, "worth": -3}, {"decision": 1, "worth": 2.5}]}
EX_USAGE, EX_OSERR = 64, 71


def with_flash(folder, *more):
    return ["--flash-path", str(folder / "flash"), "--flash-size", "16m", "-m", "8", *more]


def write(path, **changes):
    path.write_text(json.dumps(copy.deepcopy(MODEL) | changes))
    path.chmod(0o644)
    return path


@pytest.fixture
def model(open_folder):
    return write(open_folder / "given.json")


@pytest.fixture
def log(open_folder):
    return open_folder / "log"


def refused(options):
    return subprocess.run(Daemon(options, port=free_port()).command(), capture_output=True, text=True, timeout=PATIENCE, check=False)


def classifier(daemon):
    return daemon.stats(b"classifier")


# ---- what stops the start


def test_a_broken_model_stops_the_start(model, open_folder):
    """With file, field and what is wanted."""
    write(model, bias="much")
    done = refused(with_flash(open_folder, "--model", str(model)))
    assert done.returncode == EX_USAGE
    assert done.stderr.splitlines()[-1] == f'--model: {model}: "bias" is not a number from -1000000 to 1000000'
    model.write_text("{\n  oops\n}\n")
    assert f"--model: {model}: line 2, column 6:" in refused(with_flash(open_folder, "--model", str(model))).stderr


@pytest.mark.parametrize("version", [0, 2])
def test_a_model_of_another_version_stops_the_start(model, open_folder, version):
    """Whatever fields that version has."""
    write(model, version=version, trees=[])
    done = refused(with_flash(open_folder, "--model", str(model)))
    assert done.returncode == EX_USAGE
    assert done.stderr.splitlines()[-1] == f'--model: {model}: "version" is not 1, the only one that this program knows'


def test_a_missing_model_stops_the_start(open_folder):
    done = refused(with_flash(open_folder, "--model", f"{open_folder}/none.json"))
    assert done.returncode == EX_OSERR
    assert done.stderr.splitlines()[-1] == f"--model: {open_folder}/none.json: No such file or directory"


def test_a_model_of_another_mode_stops_the_start(model, open_folder):
    done = refused(with_flash(open_folder, "--model", str(model), "--label-mode", "paper"))
    assert done.returncode == EX_USAGE
    assert '"label_mode" is "full", but --label-mode is "paper"' in done.stderr


def test_pinned_needs_a_model(open_folder):
    done = refused(with_flash(open_folder, "--model-pinned"))
    assert done.returncode == EX_USAGE
    assert done.stderr == "--model-pinned: it keeps the model of --model, which is not given\n"


# ---- the operator's model


def test_a_model_is_in_use_from_the_start(start, model, open_folder):
    rows = classifier(start(*with_flash(open_folder, "--model", str(model))))
    assert (rows["model"], rows["model_origin"], rows["model_samples"]) == ("svm", "imported", "4711")
    assert float(rows["weight_reads"]) == 0.5 and float(rows["bias"]) == -0.25
    assert int(rows["model_age_ms"]) > 365 * 86400 * 1000


def test_without_one_there_is_none(start, open_folder):
    rows = classifier(start(*with_flash(open_folder)))
    assert (rows["model"], rows["model_origin"]) == ("none", "none")


def test_without_flash_it_has_no_effect(start, model, log):
    daemon = start("--model", str(model), stderr=log.open("w"))
    assert daemon.stats()["pid"]
    assert "warning: --model has no effect without --flash-path" in log.read_text()


def test_another_content_is_taken_at_sighup(start, model, open_folder, log):
    """A broken one is not; the same one changes nothing."""
    daemon = start(*with_flash(open_folder, "--model", str(model), "--model-pinned"), stderr=log.open("w"))

    def hangup(last):
        before = len(log.read_text())
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: last in log.read_text()[before:], f"{last!r} in the log")
        return log.read_text()[before:]

    assert classifier(daemon)["model_origin"] == "pinned"
    assert "the model of" not in hangup("none has changed")
    write(model, bias=7)
    hangup(f"the model of {model} is in use (pinned, 4711 samples)")
    assert float(classifier(daemon)["bias"]) == 7
    write(model, samples=0)
    hangup(f'warning: --model: the model stays as it was: {model}: "samples" is not a whole number')
    assert float(classifier(daemon)["bias"]) == 7


def test_in_the_background_a_relative_path_is_found_at_sighup(model, open_folder, log):
    """Though the daemon has left the folder in which it was started."""
    port, pid_file = free_port(), open_folder / "pid"
    options = with_flash(open_folder, "--model", model.name, "-d", "-v", "-P", str(pid_file))
    with log.open("w") as errors:
        subprocess.run(Daemon(options, port=port).command(), stderr=errors, cwd=open_folder, timeout=PATIENCE, check=True)
    until(pid_file.exists, "the process's number")
    number = int(pid_file.read_text())
    try:
        write(model, bias=7)
        os.kill(number, signal.SIGHUP)
        until(lambda: log.read_text().count(f"the model of {model} is in use") == 2, "the model, again")
    finally:
        os.kill(number, signal.SIGTERM)
        until(lambda: not os.path.exists(f"/proc/{number}"), "the end")


def test_a_pipe_in_its_place_keeps_nobody_waiting(start, model, open_folder, log):
    daemon = start(*with_flash(open_folder, "--model", str(model)), stderr=log.open("w"))
    model.unlink()
    os.mkfifo(model)
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: f"the model stays as it was: {model}: it is not a regular file" in log.read_text(), "the warning")
    assert daemon.stop() == 0


# ---- the daemon's own


def keep_trained(daemon):
    """Reads keys of which half are read again after their window, until a model of the daemon's own is in use."""
    numbers = itertools.count()

    def round_of_reads():
        number = next(numbers)
        for key in [b"again%d" % i for i in range(200)] + [b"once%d_%d" % (number, i) for i in range(200)]:
            if number == 0 or key.startswith(b"once"):
                client.ask(b"set %s 0 0 1\r\nx\r\n" % key)
            client.send(b"get %s\r\n" % key)
            while client.reader.readline() != b"END\r\n":
                pass
        return classifier(daemon)["model_origin"] == "trained"

    with daemon.client() as client:
        until(round_of_reads, "a model")


def test_in_the_background_it_is_saved_in_a_relative_state_directory(open_folder):
    port, pid_file = free_port(), open_folder / "pid"
    (open_folder / "state").mkdir()
    (open_folder / "state").chmod(0o777)
    options = with_flash(open_folder, "--state-dir", "state", "--label-mode", "paper", "--training-window", "1s", "--flashiness-horizon",
                         "1s", "-d", "-P", str(pid_file))
    daemon = Daemon(options, port=port)
    subprocess.run(daemon.command(), cwd=open_folder, timeout=PATIENCE, check=True)
    until(pid_file.exists, "the process's number")
    number = int(pid_file.read_text())
    try:
        keep_trained(daemon)
        until((open_folder / "state" / "model.json").exists, "the file")
    finally:
        os.kill(number, signal.SIGTERM)
        until(lambda: not os.path.exists(f"/proc/{number}"), "the end")


def test_an_accepted_model_is_saved_and_read_at_the_next_start(start, open_folder):
    """Also with the filter of system calls. A model that the operator gives comes before it."""
    options = with_flash(open_folder, "--state-dir", str(open_folder), "--label-mode", "paper", "--training-window", "1s",
                         "--flashiness-horizon", "1s")
    daemon = start(*options, "--seccomp", "on")
    assert classifier(daemon)["model_origin"] == "none"
    keep_trained(daemon)
    until((open_folder / "model.json").exists, "the file")
    assert daemon.stop() == 0
    saved = json.loads((open_folder / "model.json").read_text())
    assert saved["label_mode"] == "paper" and saved["horizon_ms"] == 1000
    assert not (open_folder / "model.json.new").exists()
    options[options.index("1s")] = "1d"
    daemon = start(*options)
    rows = classifier(daemon)
    assert (rows["model_origin"], int(rows["model_samples"])) == ("saved", saved["samples"])
    assert abs(float(rows["bias"]) - saved["bias"]) < 1e-5
    assert daemon.stop() == 0
    given = write(open_folder / "given.json", label_mode="paper")
    assert classifier(start(*options, "--model", str(given)))["model_origin"] == "imported"


@pytest.mark.parametrize("changes,said", [
    ({"version": 0}, '"version" is not 1'),
    ({"version": 2}, '"version" is not 1'),
    ({"bias": float("nan")}, "line 1, column"),
    ({"features": [{"name": name} for name in FEATURES]}, '"features[0].weight" is missing'),
    ({"label_mode": "paper"}, '"label_mode" is "paper"'),
    ({"features": MODEL["features"][:8]}, '"features" is not a list of 9 features'),
])
def test_a_saved_model_that_cant_be_used_is_a_line_in_the_log(start, open_folder, log, changes, said):
    path = write(open_folder / "model.json", **changes)
    daemon = start(*with_flash(open_folder, "--state-dir", str(open_folder)), stderr=log.open("w"))
    assert classifier(daemon)["model_origin"] == "none"
    assert f"warning: classifier: starts without the saved model: {path}: {said}" in log.read_text()


def test_a_state_directory_without_a_model_is_nothing_to_tell(start, open_folder, log):
    daemon = start(*with_flash(open_folder, "--state-dir", str(open_folder)), stderr=log.open("w"))
    assert classifier(daemon)["model_origin"] == "none"
    assert "saved model" not in log.read_text()
