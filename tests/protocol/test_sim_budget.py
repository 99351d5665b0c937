# SPDX-License-Identifier: BSD-3-Clause
"""The write budget in virtual time: a trace whose request rate doubles in its middle, under a rate and under a ratio."""
import bisect
import itertools
import json
import os
import random
import subprocess

import pytest

from helpers import ROOT

BUILD = os.environ.get("FLASHIELD_BUILD", os.path.join(ROOT, "build"))
SIM = os.path.join(BUILD, "flashield-sim")
PATIENCE = 300
SECONDS = 20000
INTERVALS = 20
WARM = 2  # intervals, while the counts begin
LEAST, MOST = 0.7, 1.15  # times what is allowed
SEGMENT = 1 << 16
KEYS = 100_000
SIZES = "--dram", "2m", "--flash", "14m", "--segment", str(SEGMENT)

pytestmark = pytest.mark.skipif(not os.path.exists(SIM), reason=f"{SIM} is not built")


def requests(rng):
    """30 gets a second, later 60, by Zipf's law; keys come and go."""
    weights = list(itertools.accumulate((place + 1) ** -0.9 for place in range(KEYS)))
    keys = list(range(KEYS))
    rng.shuffle(keys)
    fresh, now = KEYS, 0.0
    while now < SECONDS:
        now += rng.expovariate(30 if now < SECONDS / 2 else 60)
        if rng.random() < 0.05:
            keys[rng.randrange(KEYS)] = fresh
            fresh += 1
        key = keys[bisect.bisect_left(weights, rng.random() * weights[-1])]
        yield f"{int(now * 1000)},1,get,{key},20,{int(100 * 2 ** (5 * random.Random(key).random()))},0"


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("budget") / "doubles.csv"
    path.write_text("\n".join(["time_ms,app,op,key,key_size,value_size,ttl_s", *requests(random.Random(1))]) + "\n")
    return path


def played(trace, *options):
    done = subprocess.run([SIM, "run", "--quiet", "--json", "-", "--trace", trace, "--policy", "flashield", *SIZES, *options],
                          capture_output=True, text=True, timeout=PATIENCE, check=True)
    return json.loads(done.stdout)["series"]


def gains(series, field):
    """What the sum gained in each interval of time."""
    times = [0, *(point["time_s"] for point in series)]
    sums = [0, *(point[field] for point in series)]

    def until(time):
        at = min(bisect.bisect_left(times, time), len(times) - 1)
        if at == 0 or times[at] == times[at - 1]:
            return sums[at]
        part = (min(time, times[at]) - times[at - 1]) / (times[at] - times[at - 1])
        return sums[at - 1] + part * (sums[at] - sums[at - 1])

    moments = [until(SECONDS * n / INTERVALS) for n in range(INTERVALS + 1)]
    return [after - before for before, after in zip(moments, moments[1:])]


def test_a_budget_of_nothing_is_none(trace):
    """Not the daemon's own, which holds where none is given."""
    none, own, off = (played(trace, "--limit", "100k", *words)[-1]["flash_bytes_written"]
                      for words in (["--clwa", "0"], [], ["--option", "flash-write-ratio=0"]))
    assert none == off > 2 * own


def test_the_load_doubles(trace):
    requests_made = gains(played(trace, "--option", "flash-write-ratio=0.15"), "requests")
    early, late = sum(requests_made[:INTERVALS // 2]), sum(requests_made[INTERVALS // 2:])
    assert 1.9 < late / early < 2.1


@pytest.mark.parametrize("admission", ["freq", "svm"])
@pytest.mark.parametrize("limit", [1000, 2000])
def test_under_a_limit_the_rate_of_writing_stays_though_the_load_doubles(trace, admission, limit):
    series = played(trace, "--option", f"admission={admission}", "--option", "flash-write-ratio=0", "--option",
                    f"flash-write-limit={limit}")
    shares = [gain / (limit * SECONDS / INTERVALS) for gain in gains(series, "flash_bytes_written")]
    assert all(LEAST < share < MOST for share in shares[WARM:]), shares
    # The cap: what may be saved up, and the segment that may begin with the last byte.
    most = max(10 * limit, SEGMENT) + SEGMENT
    assert all(point["flash_bytes_written"] <= limit * (point["time_s"] + 1) + most for point in series)


@pytest.mark.parametrize("admission", ["freq", "svm"])
def test_under_a_ratio_the_ratio_stays_though_the_load_doubles(trace, admission):
    series = played(trace, "--option", f"admission={admission}", "--option", "flash-write-ratio=0.15")
    written, by_apps = gains(series, "flash_bytes_written"), gains(series, "app_bytes_written")
    shares = [flash / (0.15 * apps) for flash, apps in zip(written, by_apps)]
    assert all(LEAST < share < MOST for share in shares[WARM:]), shares
    fill, burst = 14 << 20, (14 << 20) / 64 + 3 * SEGMENT
    assert all(point["flash_bytes_written"] <= fill + 0.15 * point["app_bytes_written"] + burst for point in series)
