# SPDX-License-Identifier: BSD-3-Clause
"""flashield-sim size end to end, on small traces: usage, sizes that reach the target, budgets, and a target out of reach."""
import json
import os
import pty
import random
import re
import subprocess

import pytest

from test_sim import SIM, sim, trace_file

pytestmark = pytest.mark.skipif(not os.path.exists(SIM), reason=f"{SIM} is not built")


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A hundred popular objects, a thousand others, and some that never come back."""
    order = random.Random(7)
    keys = [order.choices([order.randrange(100), 100 + order.randrange(1000), 10000 + second], [5, 4, 1])[0] for second in range(20000)]
    rows = [f"{second * 1000},0,get,{key},10,300,0" for second, key in enumerate(keys)]
    return trace_file(tmp_path_factory.mktemp("size") / "trace.csv", rows)


def found(*options, status=0):
    done = sim("size", "--json", "-", *options, check=False)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("options,named", [
    (["--trace", "x"], "--hit-ratio, --write-budget"),
    (["--hit-ratio", "80%"], "--trace"),
    (["--trace", "-", "--hit-ratio", "80%"], "--trace"),
    (["--trace", "x", "--hit-ratio", "0"], "up to 100%"),
    (["--trace", "x", "--hit-ratio", "101%"], "--hit-ratio"),
    (["--trace", "x", "--write-budget", "fast"], "1200TBW/5y"),
    (["--trace", "x", "--write-budget", "0"], "--write-budget"),
    (["--trace", "x", "--hit-ratio", "0.5", "--dram-price", "-1"], "from 0 to 1000000"),
    (["--trace", "x", "--hit-ratio", "0.5", "--flash-price", "much"], "--flash-price"),
    (["--trace", "x", "--hit-ratio", "0.5", "--endurance", "1DWPD"], "1DWPD/5y"),
    (["--trace", "x", "--hit-ratio", "0.5", "--most-dram", "0"], "--most-dram"),
    (["--trace", "x", "--hit-ratio", "0.5", "--policy", "nothing"], "--policy"),
    (["--trace", "x", "--hit-ratio", "0.5", "--policy", "lru"], "one tier"),
    (["--trace", "/nowhere/x", "--hit-ratio", "0.5"], "/nowhere/x"),
    (["--trace", "x", "--hit-ratio", "0.5", "--json", "/nowhere/x"], "--json"),
])
def test_bad_usage_names_the_option_and_exits_2(options, named):
    done = sim("size", *options, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert named in done.stderr and len(done.stderr.splitlines()) == 1


def test_an_option_that_the_engine_does_not_know_is_told(trace):
    done = sim("size", "--trace", trace, "--hit-ratio", "0.5", "--option", "no-such=1", check=False)
    assert done.returncode == 2 and "no-such" in done.stderr


@pytest.mark.parametrize("more", [[], ["--sample", "1/4"]], ids=["all", "sample"])
def test_one_progress_for_the_whole_search(trace, more):
    """It never goes back, though the number of runs follows from what is found."""
    master, terminal = pty.openpty()
    with subprocess.Popen([SIM, "size", "--trace", trace, "--policy", "freq", "--hit-ratio", "75%", *more], stdout=subprocess.DEVNULL,
                          stderr=terminal) as process:
        os.close(terminal)
        with open(master, "rb", buffering=0) as screen:
            shown = b""
            try:
                while part := screen.read(4096):
                    shown += part
            except OSError:  # how a terminal ends
                pass
    assert process.returncode == 0
    shares = [int(share) for share in re.findall(rb"\] +(\d+)%", shown)]
    runs = [int(number) for number in re.findall(rb"% (\d+) runs", shown)]
    assert shares == sorted(shares) and runs == sorted(runs)
    assert shares[0] == 0 and 50 <= shares[-1] <= 100 and len(set(shares)) > 5 and runs[-1] > 5


def test_what_is_found_does_so_when_it_is_run(trace):
    answer = found("--trace", trace, "--policy", "freq", "--hit-ratio", "80%", "--write-budget", "0.3", "--endurance", "1DWPD/5y")
    chosen, alone = answer["chosen"], answer["dram_only"]
    assert chosen["flash_bytes"] and chosen["hit_ratio"] >= 0.8 and chosen["clwa"] <= 0.315 and chosen["cost"] < alone["cost"]
    assert alone["flash_bytes"] == 0 and alone["hit_ratio"] >= 0.8 and alone["flash_bytes_per_day"] == 0
    run = json.loads(sim("run", "--json", "-", "--trace", trace, "--policy", "freq", "--dram", chosen["memory_bytes"], "--flash",
                         chosen["flash_bytes"], "--clwa", chosen["clwa_budget"]).stdout)
    assert (run["hit_ratio"], run["clwa"]) == (chosen["hit_ratio"], chosen["clwa"])
    days = (run["series"][-1]["time_s"] - run["warmup_s"]) / 86400
    assert chosen["flash_bytes_per_day"] == pytest.approx(run["flash_bytes_written"] / days)
    assert chosen["drive_life_years"] == pytest.approx(5 / chosen["drive_writes_per_day"])
    assert chosen["cost"] == pytest.approx((chosen["memory_bytes"] * 7700 / 256 + chosen["flash_bytes"] * 1200 / 1024) / 2**30)
    cheaper = [one for one in answer["tried"] if one["cost"] < chosen["cost"] and not one["why"]]
    assert cheaper and all(one["hit_ratio"] < 0.8 for one in cheaper)


def test_prices_decide(trace):
    options = ["--trace", trace, "--policy", "freq", "--hit-ratio", "80%"]
    dear = found(*options, "--dram-price", 1, "--flash-price", 2)
    assert dear["chosen"]["flash_bytes"] == 0 and dear["chosen"] == dear["dram_only"] and dear["price_source"] is None


def test_a_rate_is_held(trace):
    answer = found("--trace", trace, "--policy", "freq", "--hit-ratio", "75%", "--write-budget", "30/s")
    assert answer["chosen"]["flash_bytes_per_day"] <= 1.05 * 30 * 86400


def test_without_a_hit_ratio_it_is_near_the_most(trace):
    answer = found("--trace", trace, "--policy", "freq", "--write-budget", "0.5")
    assert not answer["target_given"] and answer["chosen"]["hit_ratio"] >= answer["target_hit_ratio"] > 0.8


def test_a_target_out_of_reach_exits_1_and_tells_the_best(trace):
    options = ["--trace", trace, "--policy", "freq", "--hit-ratio", "99%"]
    answer = found(*options, status=1)
    assert answer["chosen"] is None and 0.8 < answer["best"]["hit_ratio"] < 0.99
    done = sim("size", *options, check=False)
    assert "The best is" in done.stdout and done.stderr == ""
    assert found("--trace", trace, "--policy", "freq", "--hit-ratio", "80%", "--most-dram", "20k", "--most-flash", "20k",
                 status=1)["best"]["memory_bytes"] <= 20 << 10


def test_a_sample_is_checked_with_all_objects(trace):
    answer = found("--trace", trace, "--policy", "freq", "--hit-ratio", "75%", "--sample", "1/4")
    chosen = answer["chosen"]
    part = next(one for one in answer["tried"] if (one["memory_bytes"], one["flash_bytes"]) == (chosen["memory_bytes"], chosen["flash_bytes"]))
    assert chosen["hit_ratio"] >= 0.75
    assert answer["sample_error"] == pytest.approx(part["hit_ratio"] - chosen["hit_ratio"])


def test_the_engine_and_the_text(trace):
    done = sim("size", "--trace", trace, "--hit-ratio", "50%", "--copies", 4, "--endurance", "600TBW", "--segment", "64k")
    for said in ("Target: a hit ratio of 50.00 %", "cheapest", "DRAM only", "-m", "drive life", "Sizes beside it",
                 "30.08 for a GiB of DRAM", "table 1"):
        assert said in done.stdout, said
    assert done.stderr == ""
