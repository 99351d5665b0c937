# SPDX-License-Identifier: BSD-3-Clause
"""Results of runs as lines of plots: which runs share a plot, which points a line joins, and what happened in each window."""
import dataclasses

import table

WINDOWS = 40  # of the trace's time, at the most; a run's series has 200 moments


@dataclasses.dataclass
class Line:
    """Runs of one policy and size. Their points are joined; number chooses the colour, which a policy keeps in all plots."""
    policy: str
    number: int
    runs: list

    @property
    def points(self):
        """CLWA and hit ratio of each run that has both, by CLWA."""
        return sorted((run["clwa"], run["hit_ratio"]) for run in self.runs
                      if run["clwa"] is not None and run["hit_ratio"] is not None)


def size_text(result):
    """DRAM and flash of a run, as a heading."""
    amount = (lambda value: f"{value:.0f} objects") if result["objects_only"] else table.size
    dram = f"-m {table.size(result['memory_bytes'])}" if result["memory_bytes"] else f"{amount(result['dram_bytes'])} of DRAM"
    return f"{dram}, {amount(result['flash_bytes'])} of flash"


def size_of(result):
    return result["memory_bytes"], result["dram_bytes"], result["flash_bytes"]


def policies_of(results):
    """Names in the order of the runs, without repetition."""
    return list(dict.fromkeys(result["policy"] for result in results))


def panels_of(results):
    """[heading, lines] of each size, in the order of the runs."""
    numbers = {policy: number for number, policy in enumerate(policies_of(results))}
    panels = {}
    for result in results:
        heading, lines = panels.setdefault(size_of(result), (size_text(result), {}))
        policy = result["policy"]
        lines.setdefault(policy, Line(policy, numbers[policy], [])).runs.append(result)
    return [(heading, list(lines.values())) for heading, lines in panels.values()]


def distinct(line):
    """(name, run) of those runs of a line that differ: a policy without a budget does the same under each."""
    seen = {}
    for run in line.runs:
        seen.setdefault((run["get_hits"], run["flash_bytes_written"], run["app_bytes_written"]), run)
    runs = list(seen.values())
    several = len(runs) > 1
    return [(f"{line.policy}, budget {run['clwa_budget']:g}" if several and run["clwa_budget"] else line.policy, run) for run in runs]


def calibrations(line, by):
    """(name, place among the line's runs, rows of tenths) of those runs of a line that have samples judged by "model" or "count"."""
    found = [(name, place, (run["calibration"] or {}).get(by)) for place, (name, run) in enumerate(distinct(line))]
    return [one for one in found if one[2]]


def ratio(part, whole):
    return part / whole if whole else None


def windows(result):
    """(middle in seconds, hit ratio, CLWA) of windows of time; None where there is nothing to divide by."""
    series = result["series"]
    step = max(1, -(-len(series) // WINDOWS))
    moments = series[step - 1::step]
    if series and (not moments or moments[-1] is not series[-1]):
        moments.append(series[-1])
    before = {"time_s": 0, "gets": 0, "get_hits": 0, "app_bytes_written": 0, "flash_bytes_written": 0}
    rows = []
    for now in moments:
        change = {name: now[name] - value for name, value in before.items()}
        if change["time_s"] > 0:
            rows.append((before["time_s"] + change["time_s"] / 2, ratio(change["get_hits"], change["gets"]),
                         ratio(change["flash_bytes_written"], change["app_bytes_written"])))
            before = {name: now[name] for name in before}
    return rows
