# SPDX-License-Identifier: BSD-3-Clause
"""Study "sim": how fast flashield-sim plays a trace."""
import json
import os
import subprocess
import sys

from server import Trouble
from study import study

MILLION = 1000000
SIZES = {"10 % of the working set": ["--capacity", "10%"], "8 MiB + 56 MiB": ["--dram", "8m", "--flash", "56m"]}
LEAST = {"lru": 1.0, "flashield": 0.3}  # 10^6 requests per second of CPU


def beside(name):
    """A program that was built or installed with this one."""
    return os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), name)


def answer_of(command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Trouble(f"{os.path.basename(command[0])}: {error}") from error


@study("sim", "requests per second of flashield-sim: lru, and the daemon's engine", plain=True)
def sim(s):
    """A run's own CPU time counts, without the reading of the trace."""
    requests = s.scaled(2 * MILLION, MILLION // 2)  # of fewer, 10 % are no two segments
    s.describe("flashield-sim's speed",
               f"10^6 requests per second of CPU, on a trace of {requests} requests by flashield-tracegen (--no-fit, seed 1), a "
               "budget of 0.2, one run at a time on one core. A get that misses and the set that follows it are one request. Best: "
               "of the rounds, as neighbours only take time away.",
               {"lru_m_s": ("lru M/s", 2), "flashield_m_s": ("flashield M/s", 3), "lru_best_m_s": ("lru best", 2),
                "flashield_best_m_s": ("flashield best", 3), "hit_percent": ("flashield hit %", 2), "clwa": ("CLWA", 3)},
               sampled=False)
    path = os.path.join(s.options.dir, f"bench-{os.getpid()}.csv")
    best = {}
    try:
        answer_of([beside("flashield-tracegen"), "--requests", str(requests), "--no-fit", "--quiet", "--output", path])
        for _ in s.rounds():
            for row, size in SIZES.items():
                lines = answer_of([beside("flashield-sim"), "run", "--trace", path, "--policy", "lru,flashield", *size, "--clwa",
                                   "0.2", "--jobs", "1", "--quiet", "--json", "-"])
                for result in map(json.loads, lines.splitlines()):
                    policy, speed = result["policy"], result["requests_per_second"] / MILLION
                    s.add(row, **{f"{policy}_m_s": speed})
                    best[row, policy] = max(speed, best.get((row, policy), 0))
                    if policy == "flashield":
                        s.add(row, hit_percent=100 * result["hit_ratio"], clwa=result["clwa"])
    finally:
        if os.path.exists(path):
            os.unlink(path)
    for (row, policy), speed in best.items():
        s.add(row, **{f"{policy}_best_m_s": speed})
        s.target(f"{policy}, {row}, best round", speed, "M/s", at_least=LEAST[policy])
