# SPDX-License-Identifier: BSD-3-Clause
"""tests/bounds: its cache agrees with the simulator's, its labels are what came, and its trees learn what counts can't tell."""
import json
import os
import subprocess
import sys

import pytest

from helpers import ROOT
from test_sim import SIM, sim

sys.path.insert(0, os.path.join(ROOT, "tests", "bounds"))
TREES = os.path.join(ROOT, "tests", "bounds", "trees.py")
PATIENCE = 500
HEADER = "time_ms,app,op,key,key_size,value_size,ttl_s"


def bound(*options):
    """What each rule did, by name."""
    done = subprocess.run([sys.executable, TREES, *map(str, options)], capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode and "pip" in done.stderr:
        pytest.skip(f"PyPI's packages can't be installed: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return {line["policy"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.skipif(not os.path.exists(SIM), reason=f"{SIM} is not built")
def test_its_freq_is_the_simulators(tmp_path):
    path, kept = tmp_path / "trace.csv", tmp_path / "runs.json"
    rows = [f"{number * 700},0,{'set' if number % 11 == 0 else 'delete' if number % 97 == 0 else 'get'},"
            f"{number * number % 2003 if number % 3 else number % 4001},{20 + number % 5},{200 + number * number % 2003 % 700},0"
            for number in range(30000)]
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    ours = bound("--trace", path, "--rule", "freq", "--clwa", 0.3, "--changed-sizes", "update")["freq"]
    sim("run", "--trace", path, "--policy", "freq", "--capacity", "10%", "--clwa", 0.3, "--changed-sizes", "update", "--json", kept)
    theirs = json.loads(kept.read_text())
    assert (ours["gets"], ours["dram_bytes"], ours["flash_bytes"]) == (theirs["gets"], theirs["dram_bytes"], theirs["flash_bytes"])
    assert ours["hit_ratio"] == pytest.approx(theirs["hit_ratio"], abs=1e-3)
    assert ours["clwa"] == pytest.approx(theirs["clwa"], rel=0.02)


def test_trees_learn_what_counts_cannot_tell(tmp_path):
    """Of eight gets seven are for a new key that is never asked for again, one is for one of 2000 keys in turn. The count prefers
    the former, whose gaps tell a tree what they are."""
    path = tmp_path / "trace.csv"
    rows = [f"{number * 1000},0,get,{number // 8 % 2000 if number % 8 == 0 else 2000 + number // 8},10,500,0" for number in range(160000)]
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    found = bound("--trace", path, "--clwa", 0.3, "--horizon", 1)
    assert found["trees"]["trainings"] >= 10
    assert all(line["clwa"] < 0.32 for line in found.values())
    assert found["freq"]["hit_ratio"] == pytest.approx(6 / 8, abs=0.02)
    assert found["trees"]["hit_ratio"] > found["freq"]["hit_ratio"] + 0.04


def test_labels_count_what_came_within_the_horizon(tmp_path):
    np = pytest.importorskip("numpy")
    from tracefile import Labels, Trace
    path = tmp_path / "trace.csv"
    rows = ["0,0,get,7,10,100,0", "1000,0,get,7,10,100,0", "2000,0,get,9,10,100,0", "3000,0,get,7,10,100,0", "4000,0,set,7,10,100,0",
            "5000,0,get,7,10,100,0", "6000,0,get,9,10,200,0", "7000,0,get,9,10,200,0"]
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    kept, updated = (Labels(Trace(path, changed_is_update)) for changed_is_update in (False, True))
    keys, times = np.array([0, 0, 0, 1]), np.array([0, 0, 4, 2]) * 10**6
    assert kept.accesses(keys, times, 10**6).tolist() == [1, 1, 1, 0]
    assert kept.accesses(keys, times, 10**9).tolist() == [2, 2, 1, 2]  # the set at 4 s ends it
    assert updated.accesses(keys, times, 10**9).tolist() == [2, 2, 1, 0]  # as does the size that changed at 6 s


def test_features_are_of_the_past_alone(tmp_path):
    np = pytest.importorskip("numpy")
    from tracefile import AGES, Trace
    path = tmp_path / "trace.csv"
    rows = [f"{second * 1000},0,get,{second % 2},10,100,0" for second in range(64)]
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    known = Trace(path, False).features()
    path.write_text("\n".join([HEADER, *rows[:32], *(row.replace(",0,get", ",0,delete") for row in rows[32:])]) + "\n")
    assert np.array_equal(Trace(path, False).features()[:32], known[:32])
    assert known[0][:AGES].tolist() == [1] * AGES  # log2(1 + a count of one)
    assert (np.diff(known[10:40:2, AGES - 1]) > 0).all()  # the longest half-life goes on counting
    assert known[4][AGES] == pytest.approx(np.log2(1 + 2))  # two seconds since the key's last request
