#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests: run-tests.py [short|rest|all|STEP...]. Without a word: short.

The last line is "N passed, N failed", after the names of what failed; exit code 1 on failures. short is what "make test"
runs, all is "make test-all", rest is what all has beside short. tools/testrun/steps.py lists the steps.
"""
import os
import signal
import sys
import threading
import time
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, "tools"))

from testrun import builds, process, steps, tally  # noqa: E402 (it needs the path above)

# With less than this left of the whole, it is told at each step.
SHORT_OF_TIME_SECONDS = 1200


def enough_time(step):
    left = process.left()
    if left is None:
        return True
    if left <= 0:
        tally.failed(f"{step.name}: not run, as the time for all tests together is over")
        return False
    if left < SHORT_OF_TIME_SECONDS:
        tally.say(f"   TIME GETS SHORT: {left / 60:.0f} min are left for {step.name} and what comes after it")
    return True


def run_step(step):
    if not enough_time(step):
        return
    before, cpu = time.monotonic(), process.Cpu()
    process.count_cpu(cpu)
    try:
        step.run()
    except Exception:  # whatever it is, the other steps are run
        tally.failed(f"{step.name}: the step itself failed", traceback.format_exc())
    tally.say(f"   {step.name} took {time.monotonic() - before:.0f} s, {cpu.seconds:.0f} s of CPU")


def run_lane(lane):
    for step in lane:
        run_step(step)


def end_at_once(number, _):
    process.end_all()
    os._exit(128 + number)


def main():
    signal.signal(signal.SIGINT, end_at_once)
    signal.signal(signal.SIGTERM, end_at_once)
    words = sys.argv[1:] or ["short"]
    for unknown in set(words) - set(steps.NAMES) - (set(steps.SETS) if len(words) == 1 else set()):
        sys.exit(f"run-tests: {unknown} is not one of {' '.join([*steps.SETS, *steps.NAMES])}")
    os.chdir(TOP)
    tally.begin()
    sets = steps.chosen(words)
    builds.wanted([need for lanes in sets for lane in lanes for step in lane for need in step.needs])
    for lanes in sets:
        threads = [threading.Thread(target=run_lane, args=(lane,)) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
