# SPDX-License-Identifier: BSD-3-Clause
"""flashield-bench end to end on real servers: usage, figures, comparison, an early end. No time is judged."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from helpers import ROOT, flashield_command, memcached_command, until

BUILD = os.environ.get("FLASHIELD_BUILD", os.path.join(ROOT, "build"))
BENCH = os.path.join(BUILD, "flashield-bench")
PATIENCE = 120
SERVERS = ["flashield", "memcached"]

# Sanitizer builds of the daemon are other tests' business: here it takes them minutes to be measured.
pytestmark = [
    pytest.mark.skipif(not os.path.exists(BENCH), reason=f"{BENCH} is not built"),
    pytest.mark.skipif(os.path.realpath(os.path.dirname(flashield_command())) != os.path.realpath(BUILD),
                       reason="the daemon is not the one that was built with flashield-bench"),
]


def command(*options):
    return [BENCH, "--daemon", flashield_command(), "--memcached", memcached_command(), *map(str, options)]


def bench(*options, check=True):
    return subprocess.run(command(*options), capture_output=True, text=True, timeout=PATIENCE, check=check)


def rows_of(run, study):
    return run["studies"][study]["rows"]


@pytest.fixture(scope="module")
def ops(tmp_path_factory):
    """What a small run of "ops" printed, and the path of its JSON."""
    if not shutil.which(memcached_command()):
        pytest.skip("memcached is not installed")
    path = tmp_path_factory.mktemp("bench") / "ops.json"
    done = bench("--scale", 0.001, "--rounds", 1, "--quiet", "--json", path, "ops")
    assert done.stderr == ""
    return done.stdout, path


@pytest.mark.parametrize("options,named", [
    (["nothing"], "ops"),
    (["ops", "--scale", "0"], "--scale"),
    (["ops", "--rounds", "0"], "--rounds"),
    (["ops", "--cpus", "1"], "--cpus"),
    (["ops", "--cpus", "0,1000"], "--cpus"),
    (["ops", "--unknown"], "--unknown"),
    (["ops", "--daemon", "/nowhere/at/all"], "/nowhere/at/all"),
    (["ops", "--dir", "/nowhere/at/all"], "/nowhere/at/all"),
    (["ops", "--json", "/nowhere/at/all.json"], "/nowhere/at/all.json"),
    (["ops", "--base", "/nowhere/at/all.json"], "/nowhere/at/all.json"),
    (["ops", "--base", __file__], "test_bench.py:1"),
])
def test_bad_usage_names_the_option_and_exits_2_before_it_measures(options, named):
    done = bench(*options, check=False)
    assert done.returncode == 2
    assert named in done.stderr
    assert done.stdout == ""


def test_the_help_tells_every_study_and_option():
    text = bench("--help").stdout
    studies = bench("--list").stdout.split()
    assert "ops" in studies
    assert all(re.search(rf"^  {study} ", text, re.M) for study in studies)
    assert max(map(len, text.splitlines())) <= 110


def test_ops_compares_the_servers_case_by_case(ops):
    run = json.loads(ops[1].read_text())
    rows = rows_of(run, "ops")
    for name in ["set 257 B c50", "get 257 B c1", "get 257 B c50 x16", "miss 257 B c1000", "mixed 257 B c50",
                 "mget 257 B c50", "get 64 B c50", "set 4 KB c50", "get 100 KB c50"]:
        for server in SERVERS:
            row = rows[f"{name} {server}"]
            for column in ("cpu_us", "ops_s", "p50_us", "p99_us", "p999_us", "load_percent"):
                assert len(row[column]) == 1 and row[column][0] > 0, (name, column)
        ours, theirs = (rows[f"{name} {server}"]["cpu_us"][0] for server in SERVERS)
        assert rows[name]["cpu_ratio"][0] == pytest.approx(ours / theirs, rel=1e-6)
    for server in SERVERS:
        assert rows[f"fill 257 B {server}"]["objects"] == [400]
    assert run["studies"]["ops"]["notes"] in ([], ["This machine doesn't count instructions."])


def test_ops_has_its_targets(ops):
    targets = json.loads(ops[1].read_text())["targets"]
    limits = {target["measure"]: target.get("at_most") for target in targets}
    assert limits["server CPU per DRAM hit, against memcached"] == 0.9
    assert limits["server CPU per DRAM hit, 16 pipelined, against memcached"] == 0.4
    assert all(isinstance(target["value"], float) for target in targets)
    assert "reached" in ops[0] or "missed by" in ops[0]


def test_what_is_printed_fits_and_says_where_it_was_measured(ops):
    text = ops[0]
    lines = text.splitlines()
    for fact in ("machine", "kernel", "date", "flash files"):
        assert any(line.startswith(fact + " ") for line in lines)
    assert {"flashield -t 1 -m 1024", "memcached -t 1 -m 1024"} <= json.loads(ops[1].read_text())["about"].keys()
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("== ops")):]
    assert max(map(len, table)) <= 110


@pytest.fixture(scope="module")
def threads():
    """The JSON of a small run of "threads", as it came on standard output."""
    return bench("--scale", 0.001, "--rounds", 2, "--quiet", "--json", "-", "threads").stdout


def test_json_on_standard_output_stands_alone(threads):
    rows = rows_of(json.loads(threads), "threads")
    for count in (1, 2, 4, 8):
        for kind in ("get", "set"):
            plural = "s" if count > 1 else ""
            assert len(rows[f"store {kind}, {count} thread{plural}"]["store_cpu_ns"]) == 2
            for server in SERVERS if shutil.which(memcached_command()) else SERVERS[:1]:
                assert len(rows[f"{kind} -t {count} {server}"]["switches"]) == 2


def test_a_run_is_compared_with_an_earlier_one(threads, tmp_path):
    path = tmp_path / "base.json"
    path.write_text(threads)
    done = bench("--scale", 0.001, "--rounds", 2, "--quiet", "--base", path, "threads")
    compared = done.stdout.split("== compared with an earlier run ==")[1]
    for line in ("before", "now", "change"):
        assert re.search(rf"^(get -t 1 flashield| *) +{line} ", compared, re.M)
    count = sum(len(row) for row in rows_of(json.loads(threads), "threads").values())
    assert f"of {count} figures changed" in compared


def test_without_memcached_there_is_nothing_to_compare_with(tmp_path):
    path = tmp_path / "run.json"
    bench("--scale", 0.001, "--rounds", 1, "--quiet", "--json", path, "--memcached", "/nowhere/memcached", "ops")
    study = json.loads(path.read_text())["studies"]["ops"]
    assert "get 257 B c50 flashield" in study["rows"]
    assert not any("memcached" in row or row == "get 257 B c50" for row in study["rows"])
    assert any("/nowhere/memcached" in note for note in study["notes"])


def test_the_index_and_the_simulator_are_measured_without_a_server():
    done = bench("--scale", 0.01, "--rounds", 2, "--quiet", "--json", "-", "index_ablation", "sim")
    assert done.stderr == ""
    run = json.loads(done.stdout)
    rows = rows_of(run, "index_ablation")
    assert all(len(row["reads_per_hit"]) == 2 and row["reads_per_hit"][0] >= 1 for row in rows.values())
    assert rows["tags of 8 bits"]["reads_per_miss"][0] > 10 * rows["tags of 15 bits"]["reads_per_miss"][0]
    paper = rows["filters of 10 bits, paper's table, 0.95 full"]
    assert paper["filters_per_miss"][0] > 10 and paper["lost_pct"][0] > 1
    for row in rows_of(run, "sim").values():
        for policy in ("lru", "flashield"):
            assert row[f"{policy}_best_m_s"] == [max(row[f"{policy}_m_s"])]
        assert row["hit_percent"][0] == row["hit_percent"][1]
    measures = [target["measure"] for target in run["targets"] if "at_least" in target]
    assert {"lru, 10 % of the working set, best round", "flashield, 8 MiB + 56 MiB, best round"} <= set(measures)


def children_of(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_early_end_keeps_what_was_measured_and_leaves_no_server(tmp_path, number):
    path = tmp_path / "run.json"
    with subprocess.Popen(command("--scale", 0.01, "--rounds", 99, "--json", path, "ops"), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if "round 1" in line:
                break
        servers = children_of(process.pid)
        assert servers
        process.send_signal(number)
        text, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "interrupted" in errors
    assert "INTERRUPTED" in text
    assert "INTERRUPTED" in json.loads(path.read_text())["about"]
    until(lambda: not any(map(alive, servers)), "the servers to be gone")


def test_a_trace_over_a_restart_shows_what_each_server_still_has(tmp_path):
    """A daemon that starts warm has a hit behind the restart; no share is judged, as so short a trace is no measure."""
    path = tmp_path / "restart.json"
    done = bench("--scale", 0.002, "--rounds", 1, "--quiet", "--json", path, "restart")
    assert done.stderr == ""
    rows = rows_of(json.loads(path.read_text()), "restart")
    assert {"flashield, goes on", "flashield, clean stop", "flashield, kill -9"} <= set(rows)
    for row, cells in rows.items():
        assert cells["before_hit"][0] > 0, row
        assert (cells["stop_ms"][0] is None) == (row == "flashield, goes on")
    assert rows["flashield, clean stop"]["behind_hit"][0] > 0


def test_a_trace_that_is_not_there_fails_the_study(tmp_path):
    done = bench("--scale", 0.002, "--rounds", 1, "--quiet", "--trace", tmp_path / "none.csv", "restart", check=False)
    assert done.returncode == 2
    assert "none.csv" in done.stderr
