# SPDX-License-Identifier: BSD-3-Clause
"""The parts of flashield-sim size by themselves: the search over a cache that is a formula, budgets, and how a sample is corrected."""
import argparse
import itertools
import os
import sys
import types

import pytest

from helpers import ROOT

sys.path.insert(0, os.path.join(ROOT, "tools", "sim"))

import endurance  # noqa: E402
import search  # noqa: E402
import size  # noqa: E402
import size_study as studies  # noqa: E402

MIB = 1 << 20


class Formula:
    """A cache that hits by memory and flash; counts what it is asked."""

    def __init__(self, worth, index=0, error=0.0):
        self.worth, self.index, self.error = worth, index, error
        self.asked, self.rounds = [], 0

    def hit_ratio(self, pair):
        memory, flash = pair[0] - self.index * pair[1], pair[1]
        return None if memory <= 0 else 1 - 1 / (1 + (memory + self.worth * flash) / (64 * MIB))

    def __call__(self, pairs):
        self.rounds += 1
        self.asked += pairs
        ratios = [self.hit_ratio(pair) for pair in pairs]
        return [None if ratio is None else ratio + self.error for ratio in ratios]


def cost_of(dram, flash):
    return lambda pair: pair[0] * dram + pair[1] * flash


def cheapest(cache, cost, target, memories=(MIB, 1024 * MIB), flashes=(4 * MIB, 4096 * MIB), ceiling=1):
    return search.Search(cache, cost, ceiling).cheapest(target, memories, flashes)


@pytest.mark.parametrize("worth,index", [(0.8, 0), (0.8, 0.02), (0.3, 0.05)])
@pytest.mark.parametrize("target", [0.5, 0.7, 0.9])
def test_it_finds_what_trying_all_finds(worth, index, target):
    cost, cache = cost_of(30, 1.2), Formula(worth, index)
    found = cheapest(cache, cost, target)
    fine = [MIB * 2 ** (n / 8) for n in range(81)]
    best = min(cost(pair) for pair in itertools.product(fine, [0] + [4 * size for size in fine])
               if (cache.hit_ratio(pair) or 0) >= target)
    assert cache.hit_ratio(found) >= target - 1e-9
    assert cost(found) <= 1.2 * best
    assert len(cache.asked) == len(set(cache.asked)) < 150
    assert cache.rounds < 25


def test_dear_flash_leaves_dram_alone_and_free_flash_takes_all_it_needs():
    assert cheapest(Formula(0.8), cost_of(1, 30), 0.7)[1] == 0
    memory, flash = cheapest(Formula(0.8), cost_of(30, 0), 0.7)
    assert memory == MIB and flash > 100 * MIB


def test_without_flash_only_memory_is_searched():
    cache = Formula(0.8)
    found = cheapest(cache, cost_of(30, 1), 0.5, flashes=None)
    assert found[1] == 0 and all(pair[1] == 0 for pair in cache.asked)
    assert 64 * MIB <= found[0] <= 1.2 * 64 * MIB


def test_a_target_out_of_reach_is_told_and_above_the_ceiling_at_once():
    cache = Formula(0.8)
    assert cheapest(cache, cost_of(30, 1), 0.999, ceiling=0.99) is None
    assert cache.rounds == 1 and len(cache.asked) == 2
    assert cheapest(Formula(0.8), cost_of(30, 1), 0.999) is None  # found out by the search itself
    assert cheapest(Formula(0.8), cost_of(30, 1), 0.9, ceiling=0.8) is not None  # the ceiling was none


def test_pairs_that_can_not_be_used_are_passed_over():
    cache = Formula(0.8, index=0.5)  # the index of much flash takes all memory
    found = cheapest(cache, cost_of(30, 1.2), 0.7)
    assert cache.hit_ratio(found) >= 0.7


def test_sizes_are_tidy_and_within_their_range():
    assert search.tidy(1.5) == 2 and search.tidy(MIB + 1) == MIB + 65536 and search.tidy(64 * MIB + 4096) == 65 * MIB
    assert search.ladder(10, 80, 2) == [10, 20, 40, 80] and search.ladder(10, 70, 2) == [10, 20, 40, 70]
    assert search.ladder(5, 5, 2) == [5]
    assert search.around(0, 2, 4, 1, 100) == [0]
    assert search.around(100, 2, 4, 60, 150) == [60, 100, 150]


def test_neighbours_are_the_nearest():
    finder = search.Search(lambda pairs: [0.5] * len(pairs), cost_of(1, 1))
    finder.ask([(100, 1000), (110, 1000), (100, 5000), (900, 1000)])
    assert finder.neighbours((100, 1000), 2) == [(100, 5000), (110, 1000)]


# ---- budgets ---------------------------------------------------------------------------------


def test_budgets_and_endurances_are_read():
    assert endurance.budget("0.2").clwa == 0.2
    assert endurance.budget("20m/s").bytes_per_s == 20 * MIB
    assert endurance.budget("1200TBW/5y").bytes_per_s == pytest.approx(1200e12 / (5 * 365 * 86400))
    assert endurance.budget("1DWPD/1.92t").bytes_per_s == endurance.budget("1dwpd/1920GB").bytes_per_s == pytest.approx(1.92e12 / 86400)
    assert endurance.budget("0.3DWPD").most_per_s(960e9) == pytest.approx(3.33e6, rel=0.01)
    assert endurance.endurance("600TBW").life_years(10**12, 600e12 / 365) == pytest.approx(1)
    assert endurance.endurance("1DWPD/5y").life_years(10**12, 0.5e12) == pytest.approx(10)
    assert endurance.endurance("1TBW").life_years(1, 0) is None


@pytest.mark.parametrize("text", ["", "0", "-1", "101", "x", "20m", "1200TBW", "1200TBW/5", "1200TBW/0y", "0DWPD", "1DWPD/5y", "nan", ".5", "1.", "0.5/s", "20b/s",
                                  "1001DWPD", "1DWPD/", "1DWPD/0", "1DWPD/1920gib", "1TBW/101y", "0TBW/5y", "0.000000001TBW/5y"])
def test_a_wrong_budget_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        endurance.budget(text)


@pytest.mark.parametrize("text", ["", "0TBW", "1DWPD", "1DWPD/101y", "5y", "0.2"])
def test_a_wrong_endurance_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        endurance.endurance(text)


class Played(studies.Study):
    """Runs that write as much as their CLWA budget says, or as a policy that knows none does."""

    def __init__(self, budget, fixed_clwa=None):
        super().__init__(types.SimpleNamespace(policy="freq", write_budget=endurance.budget(budget) if budget else None, sample=1,
                                               segment=None, warmup=None, train=None, horizon=None, changed_sizes="hit", option=None, quiet=True))
        self.fixed_clwa, self.rounds, self.app_bytes_per_s = fixed_clwa, [], 1

    def play(self, runs):
        self.rounds.append([run["clwa"] for run in runs])
        results = {}
        for number, run in enumerate(runs):
            clwa = self.fixed_clwa if self.fixed_clwa is not None else run["clwa"]
            written = 2000 * clwa if run["flash_bytes"] else 0  # 20 bytes of sets per second, for 100 seconds
            results[number] = {"hit_ratio": 0.5, "clwa": written / 2000, "app_bytes_written": 2000, "flash_bytes_written": written,
                               "warmup_s": 100, "series": [{"time_s": 200}]}
        return types.SimpleNamespace(results=results, errors={})


def test_a_clwa_is_passed_on_but_not_without_flash():
    study = Played("0.2")
    assert [found.why for found in study.try_all([(100, 1000), (100, 0)], 1)] == [None, None]
    assert study.rounds == [[0.2, None]]


def test_bytes_per_second_become_a_clwa():
    study = Played("2/s")  # a guess of 2 by an application's byte per second; in truth there are 20
    [found] = study.try_all([(100, 1000)], 1)
    assert found.flash_bytes_per_day / 86400 == pytest.approx(2, rel=0.05) and not found.why
    assert study.rounds[0] == [2]
    [found] = Played("100/s").try_all([(100, 1000)], 1)
    assert found.flash_bytes_per_day / 86400 == pytest.approx(100, rel=0.05)


def test_a_policy_that_knows_no_budget_can_not_be_used_beyond_it():
    [found] = Played("0.2", fixed_clwa=1.5).try_all([(100, 1000)], 1)
    assert "budget" in found.why
    [found] = Played("0.2", fixed_clwa=0.1).try_all([(100, 1000)], 1)
    assert found.why is None
    [found] = Played(None, fixed_clwa=1.5).try_all([(100, 1000)], 1)
    assert found.why is None


# ---- a sample and all objects ----------------------------------------------------------------


class Sampled:
    """A study whose sample errs by a known amount."""

    def __init__(self, error):
        self.part, self.truth = Formula(0.8, error=error), Formula(0.8)
        self.chosen, self.outcomes = types.SimpleNamespace(sample=8, jobs=2), {}

    def expect(self, pairs):
        assert pairs >= 0

    def evaluate(self, pairs):
        ratios = self.part(pairs)
        self.outcomes.update({pair: studies.Outcome(*pair, ratio) for pair, ratio in zip(pairs, ratios, strict=True)})
        return ratios

    def try_all(self, pairs, share):
        assert share == 1
        return [studies.Outcome(*pair, self.truth.hit_ratio(pair)) for pair in pairs]


@pytest.mark.parametrize("error", [-0.03, 0, 0.03])
def test_what_is_chosen_reaches_the_target_with_all_objects(error):
    study, prices = Sampled(error), size.Prices(30, 1.2)
    finder = size.Finder(study, prices, (MIB, 1024 * MIB), (4 * MIB, 4096 * MIB))
    pair = finder.cheapest(0.7, finder.flashes)
    assert 0.7 <= study.truth.hit_ratio(pair) < 0.74
    assert finder.error(pair) == pytest.approx(error)
