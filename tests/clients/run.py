#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs other people's clients against the daemon: run.py [--place dram|flash|full|plain]... [--jobs N] [SUITE]...

A line per suite and place: "PASS name (place): passed N failed M", "FAIL ..." followed by the end of its output, or
"skip name: why". Place "plain" is Debian's memcached, for a look at the suite itself. FLASHIELD_BIN names the
daemon. What is downloaded is kept in build/clients (CLIENTS_CACHE). Exit code 1 when anything failed.
"""
import argparse
import concurrent.futures
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

import fetch
import servers
import suites
from suite import Context

SHOWN_LINES = 40


def execute(command, env, folder, seconds):
    """(exit code, output); the command is ended with all its children when it takes too long."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env=env, cwd=folder, text=True, errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return 124, output + f"\nended after {seconds} s\n"
    return process.returncode, output


def tail(text):
    """The last lines, and before them what a check of ours found, which a client that logs much pushes out of these."""
    lines = text.rstrip().splitlines()
    found = [line for line in lines[:-SHOWN_LINES] if line.startswith("FAIL ")]
    return "\n".join("  " + line for line in found + lines[-SHOWN_LINES:])


def one(suite, place):
    """As once(). A set clears every slot that may be its key's, rarely another key's too (innocent_drops in stats flash):
    an object that is lost so is a miss that the design allows. So a suite that fails in the flash place is run again,
    and both runs are told: what goes wrong twice is no such loss."""
    word, text = once(suite, place)
    if word != "FAIL" or place != "flash":
        return word, text
    again, second = once(suite, place)
    head, _, rest = second.partition("\n")
    return again, f"{head}, in a second run\n{rest}\n  the first time: " + text.replace("\n", "\n  ")


def once(suite, place):
    """(word, text): how this suite went in this place."""
    name = f"{suite.name} ({place})"
    if place == "plain" and suite.not_plain:
        return "skip", f"{name}: {suite.not_plain}"
    try:
        tools = {need.__name__: need() for need in suite.needs}
    except fetch.Missing as why:
        return "skip", f"{name}: {why}"
    before = time.monotonic()
    try:
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="clients-"))
            os.chmod(folder, 0o777)
            setup = suite.setup(folder, place)
            running = [stack.enter_context(servers.Server(place, setup.options, setup.env, tls=setup.tls))
                       for _ in range(suite.servers)]
            context = Context(place, folder, [f"127.0.0.1:{server.port}" for server in running], tools, setup)
            env = dict(os.environ, **suites.drop_in(folder, place), **setup.env)
            code, output = execute(suite.command(context), env, folder, suite.seconds)
            passed, failed = suite.count(output, folder)
            from_flash = 0
            if place == "flash" and suite.least_from_flash:
                from_flash = sum(server.flash_hits() for server in running)
            ends = [end for end in [server.stop() for server in running] if end]
    except OSError as error:
        return "FAIL", f"{name}: passed 0 failed 1\n  {error}"
    if from_flash < suite.least_from_flash and place == "flash":
        failed += 1
        output += f"\n{from_flash} hits on flash, expected at least {suite.least_from_flash}\n"
    for end in ends:
        failed += 1
        output += "\n" + end
    if code != 0 or not passed:
        failed = max(failed, 1)
        output += f"\nexit code {code}\n"
    more = f", {from_flash} hits on flash" if from_flash else ""
    line = f"{name}: passed {passed} failed {failed}{more}, {time.monotonic() - before:.1f} s"
    return ("FAIL", line + "\n" + tail(output)) if failed else ("PASS", line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--place", action="append", choices=list(servers.PLACES))
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("suites", nargs="*")
    arguments = parser.parse_args()
    chosen = [suite for suite in suites.SUITES
              if not arguments.suites or any(suite.name.startswith(word) for word in arguments.suites)]
    if arguments.list:
        print("\n".join(suite.name for suite in chosen))
        return 0
    if not chosen:
        sys.exit(f"run.py: no suite is called {' '.join(arguments.suites)}")
    words = set()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = [pool.submit(one, suite, place) for suite in chosen
                for place in arguments.place or ["dram", "flash", "full"] if place == "plain" or place in suite.places]
        skipped = set()
        for run in concurrent.futures.as_completed(runs):
            word, text = run.result()
            words.add(word)
            if word == "skip":  # for the same reason everywhere: one line
                text = text.replace(" (dram)", "").replace(" (flash)", "").replace(" (full)", "")
                if text in skipped:
                    continue
                skipped.add(text)
            print(word, text, flush=True)
    return 1 if "FAIL" in words else 0


if __name__ == "__main__":
    sys.exit(main())
