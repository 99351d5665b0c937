#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs other people's clients against the daemon: run.py [--place dram|flash|full|plain]... [--beside debian|newest] [--jobs N] [--wrong N] [SUITE]...

A line per suite and place: "PASS name (place): passed N failed M", "FAIL ..." followed by the end of its output, or
"skip name: why". The first run counts. "LATE ..." is a suite in which nothing but waits ran out; the next line is the command that
runs it alone. --wrong N changes one result in N, which must be told. Place "plain" is Debian's memcached, for a look at the suite
itself. --beside runs each suite with a memcached too: Debian's (MEMCACHED_BIN), or the newest (tests/upstream). Ours answers as
that version does, and its counts must be that one's, or better; in the place "full" those of a memcached that has been filled as
ours. FLASHIELD_BIN names the daemon, FLASHIELD_FAULTS_BIN that of the place "flash". What is downloaded is kept in build/clients
(CLIENTS_CACHE). Exit code 1 when anything failed.
"""
import argparse
import concurrent.futures
import contextlib
import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree
from dataclasses import dataclass

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "upstream"))

import fetch
import servers
import source
import suites
from suite import Context

SHOWN_LINES = 40
ENDED = 124  # the exit code of what took too long
WAITED = re.compile(r"timed out|time out|timeout|TIMEOUT|no answer on port")


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
        return ENDED, output + f"\nended after {seconds} s\n"
    return process.returncode, output


def tail(text):
    """The last lines, and before them what a check of ours found, which a client that logs much pushes out of these."""
    lines = text.rstrip().splitlines()
    found = [line for line in lines[:-SHOWN_LINES] if line.startswith("FAIL ")]
    return "\n".join("  " + line for line in found + lines[-SHOWN_LINES:])


@dataclass
class Outcome:
    """How a suite went in a place: PASS, FAIL, LATE or skip, what is told of it, and what it counted."""
    word: str
    text: str
    counts: tuple = None  # (passed, failed)
    faults: int = 0  # beside these: daemons that ended badly, objects that weren't read from flash

    def good(self, reference):
        """Without a reference all has passed; with one the counts are the same, or more of the same tests have passed."""
        if reference is None:
            return self.word == "PASS"
        return self.counts is not None and sum(self.counts) == sum(reference.counts) and self.counts[1] <= reference.counts[1] and \
            not self.faults


def faults_of(output, folder):
    """What each fault of a suite says: those of a report of pytest's, or of a script of ours."""
    report = os.path.join(folder, "junit.xml")
    if os.path.exists(report):
        with contextlib.suppress(xml.etree.ElementTree.ParseError):
            return [f"{fault.get('message')} {fault.text}" for kind in ("failure", "error")
                    for fault in xml.etree.ElementTree.parse(report).iter(kind)]
    return re.findall(r"^FAIL .*(?:\n(?!FAIL |.*: passed \d).*)*", output, re.MULTILINE)


def is_late(code, output, folder):
    """Has nothing gone wrong but that waits ran out?"""
    faults = faults_of(output, folder)
    return code == ENDED or bool(faults) and all(WAITED.search(fault) for fault in faults)


class Results:
    """Changes one result in so many, and knows which must be told as failures."""
    one_in = 0
    numbers = itertools.count(1)
    changed = set()
    lock = threading.Lock()

    @classmethod
    def of(cls, name, passed, failed):
        with cls.lock:
            if not cls.one_in or not passed or next(cls.numbers) % cls.one_in:
                return passed, failed
            cls.changed.add(name)
        return passed - 1, failed + 1


def once(suite, place):
    name = f"{suite.name} ({place})"
    try:
        tools = {need.__name__: need() for need in suite.needs}
    except fetch.Missing as why:
        return Outcome("skip", f"{name}: {why}")
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
            passed, failed = Results.of(name, *suite.count(output, folder))
            late = is_late(code, output, folder)
            from_flash = 0
            if place == "flash":
                from_flash = sum(server.flash_hits() for server in running)
            ends = [end for end in [server.stop() for server in running] if end]
    except OSError as error:
        late = WAITED.search(str(error))
        return Outcome("LATE" if late else "FAIL", f"{name}: passed 0 failed 1\n{again(suite, place)}  {error}", (0, 1), 1)
    if code != 0 or not passed:
        failed = max(failed, 1)
        output += f"\nexit code {code}\n"
    faults = len(ends)
    late = late and not ends
    if place == "flash" and not from_flash:
        late = False
        faults += 1
        output += "\nno hit on flash\n"
    for end in ends:
        output += "\n" + end
    more = f", {from_flash} hits on flash" if from_flash else ""
    line = f"{name}: passed {passed} failed {failed + faults}{more}, {time.monotonic() - before:.1f} s"
    if not failed and not faults:
        return Outcome("PASS", line, (passed, failed))
    return Outcome("LATE" if late else "FAIL", f"{line}\n{again(suite, place)}{tail(output)}", (passed, failed), faults)


def again(suite, place):
    """The command that runs this suite in this place alone."""
    release = servers.Beside.release
    beside = ["--beside", release] if release and place in servers.MEMCACHED else []
    return f"  again: {shlex.join(['tests/clients/run.py', '--place', place, *beside, '--suite', suite.name])}\n"


def alone(suite, places):
    """The outcomes of a suite in these places."""
    return [once(suite, place) if place in servers.MEMCACHED or servers.Beside.newest or not suite.not_plain else
            Outcome("skip", f"{suite.name} ({place}): {suite.not_plain}") for place in places]


def beside(suite, places):
    """Its outcomes beside memcached's: the counts must be the same, or more of the same tests pass: memcached finds no place for large
    objects among slabs that are full. What fails with both is no fault."""
    theirs = {}
    outcomes = []
    for place in places:
        plain = servers.MEMCACHED[place]
        if plain not in theirs:
            theirs[plain] = alone(suite, [plain])[0]
        reference = theirs[plain]
        ours = once(suite, place)
        if ours.word != "skip" and reference.word != "skip":
            head, _, rest = ours.text.partition("\n")
            passed, failed = reference.counts
            line = f"{head}, memcached {servers.Beside.version}: passed {passed} failed {failed}"
            ours = Outcome("PASS", line) if ours.good(reference) else \
                Outcome("LATE" if "LATE" in (ours.word, reference.word) else "FAIL", f"{line}\n{rest}\n  memcached: " + reference.text.replace("\n", "\n  "))
        elif ours.word != "skip":
            ours.text += f"\n  not compared: {reference.text}"
        outcomes.append(ours)
    return outcomes


def take_memcached(release):
    """Names the memcached that ours is compared with."""
    if release == "newest":
        os.environ["MEMCACHED_BIN"] = str(source.built() / "memcached")
        servers.Beside.newest = True
    servers.Beside.release = release
    servers.Beside.version = subprocess.run([servers.program_of("plain"), "-V"], capture_output=True, text=True,
                                            check=True).stdout.split()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--place", action="append", choices=list(servers.PLACES))
    parser.add_argument("--beside", choices=["debian", "newest"], help="compare the counts with this memcached's")
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--suite", action="append", default=[], help="a suite of exactly this name")
    parser.add_argument("--wrong", type=int, default=0, metavar="N", help="change one result in N, which must be told")
    parser.add_argument("suites", nargs="*")
    arguments = parser.parse_args()
    chosen = [suite for suite in suites.SUITES
              if not arguments.suites and not arguments.suite or suite.name in arguments.suite or
              any(suite.name.startswith(word) for word in arguments.suites)]
    if arguments.list:
        print("\n".join(suite.name for suite in chosen))
        return 0
    if not chosen:
        sys.exit(f"run.py: no suite is called {' '.join(arguments.suites)}")
    places = arguments.place or list(servers.MEMCACHED)
    how = alone
    if arguments.beside:
        how = beside
        places = [place for place in places if place in servers.MEMCACHED]
        try:
            take_memcached(arguments.beside)
        except (source.Missing, OSError) as why:
            print(f"skip clients beside memcached: {why}")
            return 0
    Results.one_in = arguments.wrong
    words, failed = set(), set()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        # Beside memcached its counts are taken once for all places of a suite; alone each place is a task.
        groups = [places] if arguments.beside else [[place] for place in places]
        runs = [pool.submit(how, suite, wanted) for suite in chosen for group in groups
                if (wanted := [place for place in group if place not in servers.MEMCACHED or place in suite.places])]
        skipped = set()
        for outcome in (outcome for run in concurrent.futures.as_completed(runs) for outcome in run.result()):
            words.add(outcome.word)
            text = outcome.text
            if outcome.word == "FAIL":
                failed.add(text.partition(":")[0])
            if outcome.word == "skip":  # for the same reason everywhere: one line
                text = text.replace(" (dram)", "").replace(" (flash)", "").replace(" (full)", "")
                if text in skipped:
                    continue
                skipped.add(text)
            print(outcome.word, text, flush=True)
    if arguments.wrong:
        untold = Results.changed - failed
        print(f"{'FAIL' if untold or not failed else 'PASS'} changed results: {len(Results.changed) - len(untold)} of {len(Results.changed)} were told")
        return bool(untold or not failed)
    return 1 if words & {"FAIL", "LATE"} else 0


if __name__ == "__main__":
    sys.exit(main())
