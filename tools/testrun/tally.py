# SPDX-License-Identifier: BSD-3-Clause
"""Counts what passed and failed, prints it, and ends with the names of all failures.

TEST_RECORD names a file that carries the counts from one run to the next, so that the last line of the second run is the
sum of both (.ci/run). Steps run side by side: each call prints its lines whole.
"""
import json
import os
import threading

# Plain output of a test is shown only when it failed, and then its end.
SHOWN_LINES = 60

lock = threading.Lock()
counts = {"passed": 0, "failed": 0, "skipped": 0}
failures = []
second_tries = []  # names of tests


def say(text):
    with lock:
        print(text, flush=True)


def tail(output):
    lines = output.rstrip().splitlines()
    cut = ["  ..."] if len(lines) > SHOWN_LINES else []
    return "\n".join(cut + ["  " + line for line in lines[-SHOWN_LINES:]])


def passed(n=1):
    with lock:
        counts["passed"] += n


def failed(name, output="", n=1):
    with lock:
        counts["failed"] += n
        failures.append(name)
    say(f"FAILED {name}" + ("\n" + tail(output) if output.strip() else ""))


def skipped(name, why="", n=1):
    with lock:
        counts["skipped"] += n
    say(f"skipped {name}{': ' + why if why else ''}")


def tried_again(name):
    """This test ran a second time; passed() or failed() tells how that went."""
    with lock:
        second_tries.append(name)
    say(f"TRIED AGAIN {name}")


def begin():
    """Takes over the counts of an earlier run."""
    record = os.environ.get("TEST_RECORD")
    if record and os.path.exists(record) and os.path.getsize(record):
        with open(record, encoding="utf-8") as opened:
            earlier = json.load(opened)
        for word in counts:
            counts[word] += earlier["counts"][word]
        failures.extend(earlier["failures"])
        second_tries.extend(earlier["second_tries"])


def end():
    """Prints the names of the failures and the sums. The exit code."""
    record = os.environ.get("TEST_RECORD")
    if record:
        with open(record, "w", encoding="utf-8") as opened:
            json.dump({"counts": counts, "failures": failures, "second_tries": second_tries}, opened)
    if counts["skipped"]:
        say(f"{counts['skipped']} skipped")
    if second_tries:
        say("\n".join(["tried again, as a wait had run out:"] + [f"  {name}" for name in second_tries]))
    if failures:
        say("\n".join(["failed:"] + [f"  {name}" for name in failures]))
    say(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0
