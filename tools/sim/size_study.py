# SPDX-License-Identifier: BSD-3-Clause
"""The runs that a search for sizes asks for: pairs of memory and flash to outcomes, with the budget of flash writes held."""
import dataclasses

import options
import worker

ENGINE = "flashield"
ATTEMPTS = 4  # at a CLWA that holds the budget
TOLERANCE = 0.05  # of the budget
UNUSED = 0.15  # of a budget in bytes per second, before the CLWA is raised
MOST_CLWA = 100
PLENTY = 1000  # times the working set
LOOK_IS = 0.02  # of the progress
WHOLE_RUNS = 3
DAY_S = 86400
MIB = 1 << 20


class Trouble(Exception):
    """Nothing can be found; its text says why."""


class Interrupted(Exception):
    """The user ended a run."""


@dataclasses.dataclass
class Outcome:
    """What a pair does, in bytes of the whole trace; why tells why it can't be used."""
    memory_bytes: int
    flash_bytes: int
    hit_ratio: float | None = None
    clwa: float | None = None
    clwa_budget: float = 0
    app_bytes_per_day: float = 0
    flash_bytes_per_day: float = 0
    why: str | None = None


def segment_of(memory, flash, share):
    """The daemon's default segment for these sizes, but not below 64 KiB of the sample."""
    wanted = max(min(memory // 32, 512 * MIB), min(memory // 16, MIB), flash // 16000)
    return max(min(wanted, memory // 8, max(flash // 8, 1)), share * 64 * 1024)


class Study:
    """Knows the trace after look(). outcomes are those of the sample, by pair."""

    def __init__(self, chosen):
        self.chosen, self.outcomes = chosen, {}
        self.trace, self.app_bytes_per_s = None, 0
        self.bar = worker.Bar(chosen.quiet)
        self.is_engine = chosen.policy.partition(":")[0] == ENGINE

    def run_of(self, sizes, clwa, share):
        chosen = self.chosen
        run = {"policy": chosen.policy, **sizes, "clwa": clwa or None, "segment_bytes": chosen.segment, "warmup_us": chosen.warmup,
               "train_us": chosen.train, "horizon_us": chosen.horizon, "sample": share, "accounting": "full",
               "changed_is_update": chosen.changed_sizes == "update",
               "options": ",".join(chosen.option) if chosen.option else None}
        if self.is_engine and share > 1 and chosen.segment is None and sizes.get("flash_bytes") and "memory_bytes" in sizes:
            run["segment_bytes"] = segment_of(sizes["memory_bytes"], sizes["flash_bytes"], share)
        return run

    def expect(self, runs):
        """Further runs of the sample, and a few with all objects."""
        self.bar.expected = runs + (WHOLE_RUNS * self.chosen.sample if self.chosen.sample > 1 else 0)

    def play(self, runs):
        self.bar.weight = self.chosen.sample / runs[0]["sample"]
        answers, complete = worker.play(options.around_runs(self.chosen, runs), self.bar)
        if answers.interrupted:
            raise Interrupted
        if not complete and not answers.errors:
            raise Trouble("")  # the worker has said why
        self.trace = answers.trace
        return answers

    def look(self):
        """Reads the trace, and plays it with DRAM enough for everything. The hit ratio, which no size surpasses by much."""
        run = self.run_of({"capacity": PLENTY, "ratio": 0}, 0, self.chosen.sample)
        self.bar.expected = 1 / LOOK_IS
        answers = self.play([{**run, "policy": "lru", "options": None}])
        if answers.errors:
            raise Trouble(answers.errors[0])
        result = answers.results[0]
        if result["hit_ratio"] is None:
            raise Trouble("--trace: it has no gets after warm-up")
        self.app_bytes_per_s = self.per_second(result, "app_bytes_written", self.chosen.sample)
        return result["hit_ratio"]

    def per_second(self, result, name, share):
        counted_s = result["series"][-1]["time_s"] - result["warmup_s"] if result["series"] else 0
        return result[name] * share / counted_s if counted_s > 0 else 0

    def outcome(self, pair, result, clwa, share):
        found = Outcome(*pair, result["hit_ratio"], result["clwa"], clwa)
        found.app_bytes_per_day = DAY_S * self.per_second(result, "app_bytes_written", share)
        found.flash_bytes_per_day = DAY_S * self.per_second(result, "flash_bytes_written", share)
        return found

    def used_and_allowed(self, found):
        """Of the budget, in its own unit; None where there is none."""
        budget = self.chosen.write_budget
        if not budget or not found.flash_bytes or found.clwa is None:
            return None
        if budget.clwa:
            return found.clwa, budget.clwa
        return found.flash_bytes_per_day / DAY_S, budget.most_per_s(found.flash_bytes)

    def first_clwa(self, pair):
        budget = self.chosen.write_budget
        if not budget or not pair[1]:
            return 0
        return budget.clwa or min(MOST_CLWA, budget.most_per_s(pair[1]) / max(self.app_bytes_per_s, 1e-9))

    def next_clwa(self, found):
        """Another CLWA by which the budget would be held or used; None: this one does, or nothing helps."""
        pair = self.used_and_allowed(found)
        if not pair or not pair[0]:
            return None
        used, allowed = pair
        is_bound = found.clwa > (1 - UNUSED) * found.clwa_budget  # else there is nothing more that is worth it
        if used > (1 + TOLERANCE) * allowed or (not self.chosen.write_budget.clwa and used < (1 - UNUSED) * allowed and is_bound):
            clwa = min(MOST_CLWA, 0.98 * found.clwa_budget * allowed / used)
            return None if clwa == found.clwa_budget else clwa
        return None

    def judge(self, found):
        pair = self.used_and_allowed(found)
        if pair and pair[0] > (1 + TOLERANCE) * pair[1]:
            found.why = "writes more than the budget"
        if found.hit_ratio is None:
            found.why = "had no gets after warm-up"

    def try_all(self, pairs, share):
        """The outcomes of pairs, with one object of share played. Those that break the budget are run again with less."""
        name = "memory_bytes" if self.is_engine else "dram_bytes"
        left, done = {pair: self.first_clwa(pair) for pair in pairs}, {}
        for _ in range(ATTEMPTS):
            order = list(left.items())
            answers = self.play([self.run_of({name: pair[0], "flash_bytes": pair[1]}, clwa, share) for pair, clwa in order])
            left = {}
            for number, (pair, clwa) in enumerate(order):
                if number in answers.errors:
                    done[pair] = Outcome(*pair, clwa_budget=clwa, why=answers.errors[number])
                    continue
                done[pair] = found = self.outcome(pair, answers.results[number], clwa, share)
                following = self.next_clwa(found)
                if following is not None:
                    left[pair] = following
            if not left:
                break
        for found in done.values():
            if not found.why:
                self.judge(found)
        return [done[pair] for pair in pairs]

    def evaluate(self, pairs):
        """For the search: hit ratios of the sample."""
        found = self.try_all(pairs, self.chosen.sample)
        self.outcomes.update(zip(pairs, found, strict=True))
        return [None if outcome.why else outcome.hit_ratio for outcome in found]
