#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Boosted trees as an admission rule: a bound for what a model could win over counts. See README.md.

  trees.py --trace FILE [--clwa X] [--capacity SHARE] [--ratio N] [--changed-sizes update] [--rule trees|freq|both]
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = pathlib.Path(os.environ.get("BOUNDS_CACHE", HERE.parents[1] / "build" / "bounds"))
PACKAGES = ["lightgbm==4.7.0", "numpy==2.4.6", "scipy==1.17.1"]  # from PyPI; the only place that uses them


def python_with_packages():
    """The interpreter of a virtual environment that has the packages; made when it isn't there."""
    python, stamp = FOLDER / "venv" / "bin" / "python", FOLDER / "stamp"
    wanted = repr((PACKAGES, sys.version_info[:2]))
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(FOLDER / "venv")], check=True)
        subprocess.run([str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *PACKAGES], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return str(python)


def play(trace, rule, options):
    """The figures of one rule, after warm-up of a 7th of the trace's time."""
    from cache import Cache
    from tracefile import DELETE, GET
    capacity = int(options.capacity * trace.working_set() + 1e-6)
    dram = int(capacity / (1 + options.ratio))
    cache = Cache(dram, capacity - dram, options.clwa, rule)
    warmup, counting = trace.span_us // 7, False
    gets = hits = app_bytes = written = 0
    requests = zip(trace.time_us.tolist(), trace.op.tolist(), trace.key.tolist(), trace.bytes.tolist(), trace.changed.tolist(), strict=True)
    for number, (cache.now, op, key, size, changed) in enumerate(requests):
        if not counting and cache.now >= warmup:
            counting, gets, hits, app_bytes, written = True, 0, 0, 0, cache.written
        rule.note(key, number, cache)
        if op == DELETE:
            cache.forget(key)
            continue
        gets += op == GET
        if op == GET and not changed and cache.get(key):
            hits += 1
            continue
        app_bytes += size
        cache.set(key, size)
    return {"hit_ratio": hits / gets, "clwa": (cache.written - written) / app_bytes, "gets": gets, "dram_bytes": dram,
            "flash_bytes": capacity - dram}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--trace", required=True, help="a trace in the format flashield, also compressed")
    parser.add_argument("--clwa", type=float, default=0.2, help="the budget  (0.2)")
    parser.add_argument("--capacity", type=float, default=0.1, help="DRAM and flash, as a share of the working set  (0.1)")
    parser.add_argument("--ratio", type=float, default=7, help="flash over DRAM  (7)")
    parser.add_argument("--changed-sizes", choices=["hit", "update"], default="hit", help="what a get of another size is  (hit)")
    parser.add_argument("--rule", choices=["trees", "freq", "both"], default="both", help="what is played  (both)")
    parser.add_argument("--horizon", type=float, default=0.25, help="the label's, over the residence on flash  (0.25)")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    if os.environ.get("BOUNDS_INSIDE") != "1":
        python = python_with_packages()
        os.execve(python, [python, __file__, *arguments], {**os.environ, "BOUNDS_INSIDE": "1", "PYTHONDONTWRITEBYTECODE": "1"})
    from cache import Freq
    from forest import Trees
    from tracefile import Trace
    trace = Trace(options.trace, options.changed_sizes == "update")
    rules = {"freq": lambda: Freq(trace.keys), "trees": lambda: Trees(trace, options.horizon)}
    for name in rules if options.rule == "both" else [options.rule]:
        began, rule = time.monotonic(), rules[name]()
        figures = play(trace, rule, options)
        print(json.dumps({"policy": name, **figures, **getattr(rule, "figures", dict)(), "seconds": round(time.monotonic() - began)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
