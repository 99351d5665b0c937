# SPDX-License-Identifier: BSD-3-Clause
"""flashield-sim train: a trace becomes a model, with which a run starts better."""
import json
import os
import subprocess

import pytest

from helpers import PATIENCE, until
from test_sim import HEAD, SIM, results, sim

pytestmark = pytest.mark.skipif(not os.path.exists(SIM), reason=f"{SIM} is not built")

STEPS, REGULAR = 12000, 2000
SIZES = ["--dram", "256k", "--flash", "1m", "--segment", "64k", "--clwa", 0.3]
LIMIT = 30  # bytes a second: unlike a share, it holds while the flash fills


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Keys that are read at long intervals, again and again, between keys that are read three times in a row and never again:
    their counts say the opposite of what is worth flash."""
    keys = [key for step in range(STEPS) for key in (step % REGULAR, *3 * [REGULAR + step])]
    path = tmp_path_factory.mktemp("train") / "trace.csv"
    path.write_text("\n".join([HEAD, *(f"{second * 1000},0,get,{key},10,200,0" for second, key in enumerate(keys))]) + "\n")
    return path


@pytest.fixture(scope="module")
def model(trace, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.json"
    done = sim("train", "--trace", trace, *SIZES, f"--option=flash-write-limit={LIMIT}", "--output", path)
    assert done.stderr == "" and str(path) in done.stdout and "in use: " in done.stdout
    return path


def run(trace, *options):
    [result] = results("--trace", trace, "--policy", "flashield", *SIZES, "--warmup", 0, *(f"--option={option}" for option in options))
    return result


@pytest.mark.parametrize("options,named", [
    ([], "--dram"),
    (["--dram", "1m,2m"], "one size and one budget"),
    (["--dram", "1m", "--clwa", "0.1,0.2"], "one size and one budget"),
    (["--dram", "1m", "--policy", "lru"], "--policy"),
    (["--dram", "1m", "--option", "model=/nowhere/x"], "/nowhere/x: No such file"),
    (["--dram", "1m", "--flash", "1m", "--segment", "64k", "--option", "model-pinned=2"], "model-pinned"),
])
def test_bad_usage_names_the_option_and_exits_2(trace, tmp_path, options, named):
    done = sim("train", "--trace", trace, "--flash", "1m", "--output", tmp_path / "m", *options, check=False)
    assert done.returncode == 2 and named in done.stderr and done.stdout == ""
    assert not list(tmp_path.iterdir())


def test_an_output_that_cant_be_written(trace):
    done = sim("train", "--trace", trace, *SIZES, "--output", "/nowhere/model.json", check=False)
    assert done.returncode == 2 and done.stderr == "flashield-sim: --output: /nowhere/model.json: No such file or directory\n"


def test_an_output_that_is_no_file_stays_what_it_is(trace, tmp_path):
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    for path in (pipe, folder):
        done = sim("train", "--trace", trace, *SIZES, "--output", path, check=False)
        assert done.returncode == 2 and done.stderr == f"flashield-sim: --output: {path}: it is there, and not a regular file\n"
    assert pipe.is_fifo() and folder.is_dir()


def test_a_signal_leaves_nothing_behind(tmp_path):
    """The trace is a pipe that nobody writes to, so that the run is under way for as long as the test wants."""
    trace, folder = tmp_path / "trace.csv", tmp_path / "out"
    os.mkfifo(trace)
    folder.mkdir()
    with subprocess.Popen([SIM, "train", "--trace", trace, *map(str, SIZES), "--output", folder / "model.json", "--quiet"],
                          stderr=subprocess.PIPE, text=True) as process:
        until(lambda: list(folder.iterdir()), "the folder beside the output")
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert process.returncode != 0 and not list(folder.iterdir())


def test_no_output_is_bad_usage(trace):
    assert "--output" in sim("train", "--trace", trace, *SIZES, check=False).stderr


def test_without_a_model_the_reason_is_told(trace, tmp_path):
    """And the file that was there stays."""
    path = tmp_path / "model.json"
    path.write_text("old")
    done = sim("train", "--trace", trace, "--limit", 500, *SIZES, "--output", path, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("flashield-sim: no model was accepted: ") and "are needed" in done.stderr
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_run_starts_better_with_it(trace, model):
    """Than without, and than freq, which rules until the first training is over."""
    limit = f"flash-write-limit={LIMIT}"
    freq, untrained, trained = run(trace, limit, "admission=freq"), run(trace, limit), run(trace, limit, f"model={model}")
    assert trained["hit_ratio"] > untrained["hit_ratio"] + 0.02 > freq["hit_ratio"] + 0.02
    # The cap lets a segment be written ahead of the limit; the second is the one that passes it.
    assert trained["flash_bytes_written"] < LIMIT * 4 * STEPS + 2 * 65536
    assert (freq["model_origin"], untrained["model_origin"], trained["model_origin"]) == ("none", "trained", "trained")


def test_a_pinned_model_stays(trace, model):
    pinned = run(trace, f"flash-write-limit={LIMIT}", f"model={model}", "model-pinned=yes")
    assert pinned["model_origin"] == "pinned" and pinned["model_reason"].startswith("pinned; else in use: ")
    assert pinned["precision"] > 0


def test_a_broken_model_is_named(trace, model, tmp_path):
    text = json.loads(model.read_text())
    text["features"][2]["scale"] = -1
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(text))
    done = sim("run", "--trace", trace, "--policy", "flashield", *SIZES, f"--option=model={path}", check=False)
    assert done.returncode == 2 and "is not a number from 0 to 1000000" in done.stderr
    done = sim("run", "--trace", trace, "--policy", "flashield", *SIZES, f"--option=model={model}", "--option=label-mode=paper", check=False)
    assert done.returncode == 2 and '"label_mode" is "full"' in done.stderr
