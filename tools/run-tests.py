#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests: run-tests.py [gate|rest|all|STEP...]. Without a word: gate.

gate is what "make test" runs, rest is what .ci/run has beside it, all is "make test-all": both, and what takes long. The steps are in
tools/testrun/steps.py, the outcomes of a test in tools/testrun/tally.py. The last line is "N passed, N failed", after the names of
what was not good. Exit code 1 on failures; 75 when the machine was broken, so that the run says nothing.
"""
import os
import signal
import sys
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, "tools"))

from testrun import builds, machine, process, reports, steps, tally  # noqa: E402 (it needs the path above)

# With less than this left of the whole, it is told at each step.
SHORT_OF_TIME_SECONDS = 1200


def enough_time(step, whole):
    left = process.left()
    if left is None:
        return True
    if left <= 0:
        whole.add(tally.collect(step.name, lambda: tally.failed(f"{step.name}: not run, as the time for all tests together is over")))
        return False
    if left < SHORT_OF_TIME_SECONDS:
        tally.say(f"   TIME GETS SHORT: {left / 60:.0f} min are left for {step.name} and what comes after it")
    return True


def attempt(step):
    """Returns what the step counted, and why that says nothing, or None."""
    before, cpu = time.monotonic(), process.Cpu()
    process.count_cpu(cpu)
    with machine.Watch() as watch:
        results = tally.collect(step.name, step.run, step.kind)
    tally.say(f"   {step.name} took {time.monotonic() - before:.0f} s, {cpu.seconds:.0f} s of CPU")
    if results.broken:
        return results, results.broken[0]
    return results, watch.why if results.wrong or results.late else None


def run_step(step, whole):
    """What a broken machine made of it is not counted; its second attempt is."""
    if whole.broken:
        tally.say(f"-- {step.name}: not run, as the machine is broken")
        return
    for number in ("first", "second"):
        if not enough_time(step, whole):
            return
        results, why = attempt(step)
        if not why:
            whole.add(results)
            return
        tally.say(f"BROKEN MACHINE in the {number} attempt of {step.name}: {why}")
        builds.forget_failures()
    whole.add_broken(step.name, why)


def run_lane(lane, whole):
    for step in lane:
        run_step(step, whole)


def end_at_once(number, _):
    process.end_all()
    os._exit(128 + number)


def main():
    signal.signal(signal.SIGINT, end_at_once)
    signal.signal(signal.SIGTERM, end_at_once)
    words = sys.argv[1:] or ["gate"]
    for unknown in set(words) - set(steps.NAMES) - (set(steps.SETS) if len(words) == 1 else set()):
        sys.exit(f"run-tests: {unknown} is not one of {' '.join([*steps.SETS, *steps.NAMES])}")
    os.chdir(TOP)
    whole = tally.Whole()
    reports.returned_frames = words == ["all"]
    sets = steps.chosen(words)
    builds.wanted([need for lanes in sets for lane in lanes for step in lane for need in step.needs])
    for lanes in sets:
        threads = [threading.Thread(target=run_lane, args=(lane, whole)) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    whole.try_again()
    return whole.end()


if __name__ == "__main__":
    sys.exit(main())
