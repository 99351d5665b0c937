#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a command again and again on a machine that is busy and stalls, and prints how often it failed.

    stall.py [--runs 50] [--busy 12] [--seed N] -- COMMAND ...

So many loops compute beside it, and one process after the other of those that the command has started stands still for 1.5 s.
There is a line for each run, with its last lines if it failed. The very last one is "N runs, N failed, N stops". Exit code 1 if one did.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import threading

STOP_SECONDS = 1.5
PAUSE_SECONDS = 0.1, 2.0  # between two stops
LAST_LINES = 30
LOOP = "while True: pass"


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as opened:
            return [int(word) for word in opened.read().split()]
    except OSError:
        return []


def family(pid):
    """The process and all that it and its children have started."""
    found = [pid]
    for one in found:  # it grows meanwhile
        found += children(one)
    return found


class Stops:
    """Stops processes of a command while it runs."""

    def __init__(self, process, randomness):
        self.process = process
        self.randomness = randomness
        self.over = threading.Event()
        self.count = 0
        self.thread = threading.Thread(target=self.run)

    def stop_one(self):
        pid = self.randomness.choice(family(self.process.pid))
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            return
        self.count += 1
        self.over.wait(STOP_SECONDS)
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass  # it was killed meanwhile

    def run(self):
        while not self.over.wait(self.randomness.uniform(*PAUSE_SECONDS)):
            self.stop_one()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def run_once(command, randomness):
    """(Did it fail? Its output, and the number of stops.)"""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL) as process:
        try:
            with Stops(process, randomness) as stops:
                output = process.communicate()[0].decode(errors="replace")
        except KeyboardInterrupt:
            process.terminate()
            raise
    return process.returncode != 0, output, stops.count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--busy", type=int, default=12, help="loops that compute beside it")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    randomness = random.Random(arguments.seed)
    print(f"seed {arguments.seed}")
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(arguments.busy)]
    failed = stops = 0
    try:
        for number in range(arguments.runs):
            bad, output, count = run_once(arguments.command, randomness)
            failed, stops = failed + bad, stops + count
            print(f"run {number + 1} {'failed' if bad else 'passed'}, {count} stops", flush=True)
            if bad:
                print(*("  " + line for line in output.splitlines()[-LAST_LINES:]), sep="\n", flush=True)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    print(f"{arguments.runs} runs, {failed} failed, {stops} stops")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
