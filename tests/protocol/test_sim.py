# SPDX-License-Identifier: BSD-3-Clause
"""flashield-sim end to end: usage, its table and JSON, what is counted, and the referee's miss ratios."""
import csv
import json
import os
import pathlib
import subprocess

import pytest

from helpers import ROOT

BUILD = os.environ.get("FLASHIELD_BUILD", os.path.join(ROOT, "build"))
SIM = os.path.join(BUILD, "flashield-sim")
TRACES = pathlib.Path(ROOT).parent / "shared" / "traces"
PATIENCE = 300
HEAD = "time_ms,app,op,key,key_size,value_size,ttl_s"
FIELDS = {"policy", "dram_bytes", "flash_bytes", "requests", "gets", "get_hits", "hit_ratio", "byte_hit_ratio",
          "app_bytes_written", "flash_bytes_written", "flash_bytes_merged", "clwa", "reads_per_flash_hit", "reads_per_miss",
          "apps", "fixed_bytes", "copy_share", "segment_fill", "index_bytes", "extents", "false_matches", "series"}

pytestmark = pytest.mark.skipif(not os.path.exists(SIM), reason=f"{SIM} is not built")


def sim(*options, check=True):
    return subprocess.run([SIM, *map(str, options)], capture_output=True, text=True, timeout=PATIENCE, check=check)


def results(*options):
    done = sim("run", "--json", "-", *options)
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def trace_file(path, rows):
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """a b c d, a b c d, ...: two applications, values of 100 bytes, a request each second."""
    rows = [f"{second * 1000},{second % 2},get,{second % 4},10,100,0" for second in range(400)]
    return trace_file(tmp_path_factory.mktemp("sim") / "trace.csv", rows)


@pytest.mark.parametrize("options,named", [
    ([], "run|size|train|paper|policies"),
    (["walk"], "walk"),
    (["run"], "--trace"),
    (["run", "--trace", "x", "--policy", "lru"], "--dram"),
    (["run", "--trace", "-", "--policy", "lru", "--dram", "1m"], "--trace"),
    (["run", "--trace", "x", "--policy", "lru", "--dram", "1m", "--capacity", "10%"], "--capacity"),
    (["run", "--trace", "x", "--policy", "lru", "--dram", "1q"], "--dram"),
    (["run", "--trace", "x", "--policy", "lru", "--dram", ""], "--dram"),
    (["run", "--trace", "x", "--policy", "lru", "--capacity", "0"], "--capacity"),
    (["run", "--trace", "x", "--policy", "lru", "--capacity", "101%"], "up to 100%"),
    (["run", "--trace", "x", "--policy", "lru", "--capacity", "10%", "--ratio", "7"], "--ratio"),
    (["run", "--trace", "x", "--policy", "lru", "--capacity", "10%", "--flash", "1m"], "--flash"),
    (["run", "--trace", "x", "--policy", "lru", "--dram", "1m", "--clwa", "-1"], "from 0 to 100"),
    (["run", "--trace", "x", "--policy", "lru", "--dram", "1m", "--warmup", "1 week"], "--warmup"),
    (["run", "--trace", "x", "--policy", "lru", "--dram", "1m", "--copies", "0"], "--copies"),
    (["run", "--trace", "x", "--policy", "lru", "--dram", "1m", "--sample", "2/3"], "--sample"),
    (["run", "--trace", "x", "--policy", "lru", "--dram", "1m", "--referee", "own-C"], "--referee"),
    (["run", "--trace", "x", "--policy", "lru", "--dram", "1m", "--option", "name"], "--option"),
    (["run", "--trace", "x", "--policy", "flashield", "--dram", "1m", "--json", "/nowhere/x"], "/nowhere/x"),
    (["run", "--trace", "/nowhere/x", "--policy", "lru", "--dram", "1m"], "/nowhere/x"),
    (["run", "--trace", "x", "--policy", "nothing", "--dram", "1m"], "nothing"),
    (["run", "--trace", "x", "--policy", "lru:reinsert", "--dram", "1m"], "reinsert"),
    (["run", "--trace", "x", "--policy", "random-p:2", "--dram", "1m"], "from 0 to 1"),
    (["run", "--trace", "x", "--policy", "lru", "--memory", "1m"], "--memory"),
    (["run", "--trace", "x", "--policy", "victim", "--dram", "1m", "--referee", "own-A"], "--referee"),
    (["run", "--trace", "x", "--policy", "lru", "--dram", "1m", "--option", "a=b"], "--option"),
    (["paper", "--scale", "16"], "--scale"),
    (["paper", "--trace", "-"], "--trace"),
    (["paper", "--capacity", "0"], "--capacity"),
    (["paper", "--json", "/nowhere/x"], "/nowhere/x"),
])
def test_bad_usage_names_the_option_and_exits_2(options, named):
    done = sim(*options, check=False)
    assert done.returncode == 2
    assert named in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_a_warm_up_as_long_as_the_trace_is_refused(trace):
    done = sim("run", "--trace", trace, "--policy", "lru", "--dram", "1m", "--warmup", "400s", check=False)
    assert done.returncode == 2
    assert "--warmup" in done.stderr


@pytest.mark.parametrize("option", ["no-such=1", "filter=none", "filter-bits=17", "filter-units=9", "tag-bits=1", "slot-record=1023"])
def test_an_option_that_the_engine_does_not_know_fails_that_run_alone(trace, option):
    done = sim("run", "--trace", trace, "--policy", "flashield", "--dram", "1m", "--option", option, check=False)
    assert done.returncode == 2
    assert option.partition("=")[0] in done.stderr


def test_help_and_policies_tell_every_policy():
    assert "--policy" in sim("run", "--help").stdout
    listed = sim("policies").stdout
    for name in ("flashield", "lru", "fifo", "clock1", "clock2", "clock3", "victim", "ripq", "extstore", "s3fifo",
                 "slsm", "slsm-keys", "random-p", "second-hit", "read-or-second-hit", "read-once", "freq", "oracle"):
        assert any(line.startswith(name) for line in listed.splitlines()), name
    assert sim("--version").stdout.startswith("flashield-sim (Flashield) ")


def test_counts_after_warm_up_only(trace):
    # Four objects of 110 bytes and 36 in DRAM fit: all but the first of each is a hit.
    [all_of_it] = results("--trace", trace, "--policy", "lru", "--dram", 4 * 146, "--warmup", 0)
    assert FIELDS <= all_of_it.keys()
    assert (all_of_it["requests"], all_of_it["gets"], all_of_it["get_hits"]) == (400, 400, 396)
    assert all_of_it["app_bytes_written"] == 4 * 110
    [later] = results("--trace", trace, "--policy", "lru", "--dram", 4 * 146, "--warmup", "100s")
    assert (later["gets"], later["get_hits"], later["app_bytes_written"]) == (300, 300, 0)
    assert later["hit_ratio"] == later["byte_hit_ratio"] == 1
    assert later["clwa"] is None and later["reads_per_flash_hit"] is None
    assert [app["gets"] for app in later["apps"]] == [150, 150]
    assert later["series"][-1]["requests"] == 400 and later["series"][-1]["time_s"] == 399
    [short] = results("--trace", trace, "--policy", "lru", "--dram", 3 * 146, "--warmup", 0)
    assert short["get_hits"] == 0


def test_sizes_policies_and_budgets_are_combined_in_order(trace):
    runs = results("--trace", trace, "--policy", "lru,freq", "--dram", "100,200", "--flash", "1k", "--clwa", "0.1,0.2", "--jobs", 3)
    assert [(run["dram_bytes"], run["policy"], run["clwa_budget"]) for run in runs] == [
        (dram, policy, clwa) for dram in (100, 200) for policy in ("lru", "freq") for clwa in (0.1, 0.2)]


def test_capacity_is_a_share_of_the_working_set(trace):
    [run] = results("--trace", trace, "--policy", "victim", "--capacity", "50%", "--ratio", "1:3", "--copies", 3)
    assert (run["dram_bytes"], run["flash_bytes"]) == (150, 450)  # of three times four values of 100 bytes
    [run] = results("--trace", trace, "--policy", "victim", "--capacity", "100%", "--sample", "1/2")
    assert run["dram_bytes"] + run["flash_bytes"] in (199, 200)


def test_the_same_seed_gives_the_same_result(trace):
    options = ["--trace", trace, "--policy", "random-p:0.5,flashield", "--dram", "64k", "--flash", "1m", "--segment", "64k"]
    first, second = results(*options, "--seed", 3), results(*options, "--seed", 3)
    for run in first + second:
        del run["cpu_seconds"], run["requests_per_second"]
    assert first == second


def test_filters_spare_false_matches_and_a_short_bound_of_slots_makes_extents(tmp_path):
    rows = [f"{second * 1000},1,get,{second % 20000},10,300,0" for second in range(40000)]
    path = trace_file(tmp_path / "trace.csv", rows)
    options = ["--trace", path, "--policy", "flashield", "--memory", "4m", "--flash", "8m", "--segment", "256k", "--warmup", 0,
               "--option", "admission=all", "--option", "tag-bits=2"]
    [bare] = results(*options, "--option", "filter-bits=0")
    [cuckoo] = results(*options, "--option", "filter-bits=16", "--option", "filter=cuckoo")
    assert bare["flash_objects"] > 1000 and bare["extents"] == 0
    assert bare["false_matches"] > 2 * cuckoo["false_matches"]
    assert cuckoo["index_bytes"] > bare["index_bytes"]
    path = trace_file(tmp_path / "larger.csv", [f"{second * 1000},1,get,{second % 6000},10,2000,0" for second in range(12000)])
    [large] = results("--trace", path, *options[2:], "--option", "slot-record=1024")
    assert large["extents"] > 100


def test_values_alone_headers_and_clwa(trace):
    [run] = results("--trace", trace, "--policy", "random-p:1", "--dram", 100, "--flash", 400, "--value-bytes-only", "--warmup", 0)
    assert run["flash_bytes_written"] == 300 and run["app_bytes_written"] == 400 and run["clwa"] == 0.75  # d stays in DRAM
    assert run["reads_per_flash_hit"] == 1
    [run] = results("--trace", trace, "--policy", "random-p:1", "--dram", 146, "--flash", "10k", "--warmup", 0)
    assert run["flash_bytes_written"] == 3 * (110 + 32) and run["app_bytes_written"] == 4 * 110


def test_a_changed_size_is_an_update_where_that_is_asked_for(tmp_path):
    path = trace_file(tmp_path / "sizes.csv", [f"{second * 1000},0,get,0,10,{100 + second % 2},0" for second in range(10)])
    options = ["--trace", path, "--policy", "lru", "--dram", "1k", "--warmup", 0]
    assert [results(*options, "--changed-sizes", how)[0]["get_hits"] for how in ("hit", "update")] == [9, 0]


def test_under_the_referee_a_set_is_an_access(tmp_path):
    path = trace_file(tmp_path / "sets.csv", [f"{second * 1000},0,{op},0,10,100,0" for second, op in enumerate(["set", "set", "get"])])
    options = ["--trace", path, "--policy", "lru", "--dram", "1k"]
    [run] = results(*options, "--referee", "own-A")
    assert (run["gets"], run["get_hits"], run["warmup_s"]) == (3, 2, 0)
    [run] = results(*options, "--warmup", 0)
    assert (run["gets"], run["get_hits"], run["sets"]) == (1, 1, 2)


def test_the_table_has_a_row_for_each_run_and_application(trace, tmp_path):
    path = tmp_path / "runs.json"
    done = sim("run", "--trace", trace, "--policy", "lru,victim", "--dram", "1k", "--flash", "1k", "--apps", "--json", path)
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines if line][1:] == ["policy", "lru", "0", "1", "victim", "0", "1"]
    assert len(path.read_text().splitlines()) == 2
    assert done.stderr == ""


def referee_rows(name, unit):
    with open(TRACES / "referee.tsv", encoding="utf-8") as file:
        return {(int(row["cache_size"]), row["policy"].lower()): float(row["miss_ratio"])
                for row in csv.DictReader(file, delimiter="\t")
                if row["trace"] == name and row["unit"] == unit and row["policy"] in ("LRU", "FIFO", "Clock1", "Clock2", "Clock3")}


@pytest.mark.parametrize("unit", ["bytes", "objects"])
@pytest.mark.parametrize("name", ["cloudphysics_rw", "tencent_7vol", "mt_shared"])
def test_textbook_policies_agree_with_the_referee(name, unit):
    if not (TRACES / "referee.tsv").exists():
        pytest.skip(f"{TRACES} is not there")
    rows = referee_rows(name, unit)
    if not rows:
        pytest.skip(f"the referee has no rows of {name} in {unit}")
    sizes, policies = (sorted({row[i] for row in rows}) for i in (0, 1))
    runs = results("--trace", TRACES / f"{name}.csv.gz", "--policy", ",".join(policies), "--dram", ",".join(map(str, sizes)),
                   "--referee", "own-A", *(["--count-objects"] if unit == "objects" else []))
    assert len(runs) == len(rows)
    for run in runs:
        assert round(1 - run["hit_ratio"], 6) == rows[run["dram_bytes"], run["policy"]], (run["policy"], run["dram_bytes"])
