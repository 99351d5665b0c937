#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Thousands of scripted sessions, generated from the tables of commands, with memcached and with ours: the same bytes must
come back, the same connections be closed, the same counters move. First Debian's memcached, then the newest one (tests/upstream).

    run.py [--seed N] [--only REGEX] [--release debian|newest] [--one-in N] [--wrong N]

A line for each group: "PASS 1.6.18 text set: 1187 sessions, 0 differences, 34 intended". The first difference fails it, and is told
with both answers and the command that runs this group alone. LATE is a group in which somebody waited for an answer in vain.
--one-in N runs that part of the sessions of each group, and at least ten.
--wrong N changes one answer of ours in N: each must be told. A run does so with some sessions of its own at its beginning.
FLASHIELD_BIN and MEMCACHED_BIN (Debian's) name the daemons. Exit code 1 if one differs in a way that intended.py doesn't have, if one
is late, or if an entry there excuses nothing.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "protocol"), str(HERE.parent / "upstream")]

import intended
import admin_sessions
import binary as b
import binary_sessions
import flash
import meta_sessions
import pipelines
import reports
import seconds
import source
import text_sessions
import udp
from helpers import Daemon, as_memcached, memcached_command, memcached_release, memcached_version
from pair import Difference, Found, Pair
from session import Session

# The policy that everybody has comes first.
FLASH_NAMES = {"ours in DRAM, ours on flash": ([], 1000), "ours in DRAM, ours on flash: all of it": (["--admission", "all"], 500)}
SESSIONS_PER_HIT = 2  # at least one hit from flash in so many sessions
UDP_SESSIONS = 1000
CHANGED_NAME = "a sample, of which some answers are changed"
WRONG_ONE_IN, WRONG_SESSIONS = 500, 2000

SHOWN = 4  # differences of a group

PLAIN = r"text|meta|pipelines|binary"
LOGIN = b"set login 0 0 11\r\nuser secret\r\n"


def SASL_LOGIN(_keys, _cas):
    return b.packet(b.SASL_AUTH, b"PLAIN", b"\0user\0secret")


def pair(name="", groups=PLAIN, options="", theirs="", count=None, width=48, counters=True, login=None):
    """Options are both daemons', theirs memcached's alone. Of each group so many sessions (None: all), so many at a time."""
    return dict(name=name, groups=groups, options=options.split(), theirs=theirs.split(), count=count, width=width,
                counters=counters, login=login)


PAIRS = [
    pair(),
    pair(groups="admin", width=1),
    pair("lru, slabs: parts off", r"admin (lru|slabs)$", theirs="-o no_lru_maintainer,no_slab_reassign", width=1),
    pair("-C", options="-C", count=120),
    pair("-M", options="-M", count=40),
    pair("-R 1", PLAIN, "-R 1", count=60),
    pair("-I 512k", r"text|meta|binary|pipelines", "-I 512k", count=120),
    pair("-X -W -F", "admin", "-X -W -F", count=80, width=1),
    pair("-F", "binary empty", "-F"),
    pair("-D /", r"pipelines|text (get|set|delete)", "-D /", count=100),
    pair("-B ascii", PLAIN, "-B ascii", count=20),
    pair("-B binary", PLAIN, "-B binary", count=20, counters=False),
    pair("-Y", r"text|meta|pipelines", "-Y %users", count=60, counters=False, login=LOGIN),
    pair("-S", "binary", "-S -B binary", count=40, counters=False, login=SASL_LOGIN),
    pair("-S, strangers", r"text|meta|binary", "-S -B binary", count=20, counters=False),
    pair("-c 100 -t 1", r"pipelines", "-c 100 -t 1", count=200),
    pair("parts off", r"text|meta|pipelines", "-o no_lru_crawler,no_lru_maintainer", count=40),
]


def all_groups(seed):
    return {**text_sessions.groups(), **meta_sessions.groups(seed), **binary_sessions.groups(seed), **pipelines.groups(seed),
            **admin_sessions.groups()}


class Falsifier:
    """Changes each Nth answer of ours that nothing could excuse, neither an entry of intended.py nor a second, and takes back what was
    told of them."""

    def __init__(self, seed, one_in):
        self.chance, self.one_in = random.Random(seed), one_in
        self.left = self.chance.randrange(one_in)
        self.changed, self.told = 0, 0
        self.waiting = set()

    def __call__(self, session, answer):
        if intended.may_excuse(session, memcached_release()) or seconds.is_short(session):
            return answer
        self.left -= 1
        if self.left >= 0:
            return answer
        self.left = self.one_in - 1
        self.changed += 1
        self.waiting.add(session)
        end, shown, *rest = answer
        if session.binary:
            return end, shown, rest[0] + b"!"
        place = self.chance.randrange(len(shown) + 1)
        return end, shown[:place] + b"!" + shown[place + 1:]

    def take(self, found):
        told = [difference for difference in found.different if difference.session in self.waiting]
        self.told += len({difference.session for difference in told})
        found.different = [difference for difference in found.different if difference not in told]
        self.waiting.clear()

    def tell(self):
        """How much has failed: any that was not told, or a run too small for one."""
        good = self.changed == self.told > 0
        print(f"{'PASS' if good else 'FAIL'} {memcached_version()} changed answers: {self.told} of {self.changed} were told, "
              f"one in {self.one_in} was changed", flush=True)
        return not good


def show(different):
    for name, ours, theirs in [(found.session.name, found.ours, found.theirs) for found in different[:SHOWN]]:
        print(f"  {name}\n    ours:   {str(ours)[:400]}\n    theirs: {str(theirs)[:400]}")
    if len(different) > SHOWN:
        print(f"  ... and {len(different) - SHOWN} more")


def choose(setting, groups, arguments):
    """{name: sessions} of a pair. A pair with a name makes one group of all."""
    chance = random.Random(arguments.seed)
    chosen = {}
    for group, sessions in groups.items():
        name = setting["name"] or group
        if not re.match(setting["groups"], group) or not re.search(arguments.only, name):
            continue
        count = min(setting["count"] or len(sessions), max(10, len(sessions) // arguments.one_in))
        if count < len(sessions):
            sessions = chance.sample(sessions, count)
        if setting["login"]:
            sessions = [Session(session.name, setting["login"], *session.steps, binary=session.binary, cuts=session.cuts)
                        for session in sessions]
        chosen[name] = chosen.get(name, []) + sessions
    return chosen


def write_credentials(folder):
    """Who may log in: by -Y, and, where Debian's sasl2-bin is installed, by -S. Is it?"""
    users, database, configuration = (folder / name for name in ("users", "sasldb", "memcached.conf"))
    users.write_text("user:secret\n")
    configuration.write_text(f"mech_list: plain\nsasldb_path: {database}\n")
    os.environ["SASL_CONF_PATH"] = str(folder)
    program = shutil.which("saslpasswd2", path="/usr/sbin:/usr/bin")
    if program:
        subprocess.run([program, "-p", "-c", "-a", "memcached", "-u", socket.gethostname(), "-f", str(database), "user"],
                       input=b"secret", check=True)
    for path in (users, configuration, *([database] if program else [])):
        path.chmod(0o644)
    return bool(program)


def run_pair(report, setting, chosen, folder, falsifier=None):
    users = folder / "users"
    options = [str(users) if option == "%users" else option for option in ["-m", "64", *setting["options"]]]
    with Daemon([*options, *as_memcached()], stderr=subprocess.DEVNULL) as ours, \
            Daemon([*options, "-U", "0", *setting["theirs"]], program=memcached_command(), stderr=subprocess.DEVNULL) as theirs:
        both = Pair(ours, theirs, setting["width"], setting["counters"], *([falsifier] if falsifier else []))
        if setting["login"]:
            login = Session("login", setting["login"], binary="-S" in setting["options"])
            assert all(str(found).find("STORED") >= 0 or str(found).find("Authenticated") >= 0 for found in both.outcomes([login])[0]), \
                "nobody can log in"
        for name, sessions in chosen.items():
            report.group(name, sessions, both)
        report.excused += both.excused


class Report:
    def __init__(self, arguments, release):
        self.arguments, self.release = arguments, release
        self.sessions = self.differences = self.failed = 0
        self.excused = collections.Counter()

    def again(self, name):
        return shlex.join(["tests/compare/run.py", "--seed", str(self.arguments.seed), "--release", self.release,
                           "--one-in", str(self.arguments.one_in), "--only", f"^{re.escape(name)}$"])

    def line(self, name, count, found, rest, fails=False):
        """found: a pair.Found."""
        self.sessions += count
        self.differences += len(found.different)
        wrong = found.different or fails
        word = "FAIL" if wrong else "LATE" if found.late else "PASS"
        self.failed += word != "PASS"
        late = f", {len(found.late)} late" if found.late else ""
        again = f", {found.repeated} again as a second began" if found.repeated else ""
        print(f"{word} {memcached_version()} {name}: {count} sessions, {len(found.different)} differences{late}, {rest}{again}")
        if word != "PASS":
            print(f"  again: {self.again(name)}")
        show(found.different + found.late)
        sys.stdout.flush()

    def group(self, name, sessions, pair):
        before = time.monotonic()
        found = pair.compare(sessions)
        if isinstance(pair.falsify, Falsifier):
            pair.falsify.take(found)
        self.line(name, len(sessions), found, f"{found.excused} intended ({time.monotonic() - before:.1f} s)")

    def reports(self):
        """The reports of stats under sets of options."""
        found = Found()
        found.different = [Difference(Session(f"options {options!r}"), differs, "") for options in reports.OPTION_SETS
                           for differs in reports.compare_with(options, stderr=subprocess.DEVNULL)]
        self.line("reports", len(reports.OPTION_SETS), found, "sets of options")

    def datagrams(self, groups, arguments):
        count, found, excuses = udp.compare(groups, arguments.seed, UDP_SESSIONS)
        self.line("datagrams", count, found, f"{sum(excuses.values())} intended")
        self.excused += excuses

    def places(self, name, groups, folder):
        """Ours in DRAM beside ours on flash."""
        folder.chmod(0o777)
        policy, sessions = FLASH_NAMES[name]
        count, found, hits = flash.compare(groups, self.arguments.seed, sessions, folder, policy, stderr=subprocess.DEVNULL)
        self.line(name, count, found, f"{hits} hits on flash", hits < count // SESSIONS_PER_HIT)

    def end(self, everything):
        for entry in intended.of_release(memcached_release()):
            if everything and entry.sessions and not entry.by_chance and not self.excused[entry.name]:
                print(f"FAIL {memcached_version()} intended difference '{entry.name}' excuses nothing")
                self.failed += 1
        print(f"{memcached_version()}: {self.sessions} sessions, {self.differences} differences, {sum(self.excused.values())} excused by "
              f"{len(+self.excused)} intended ones: " + ", ".join(f"{name} {count}" for name, count in self.excused.items()))
        return self.failed


def run_pairs(report, groups, folder, falsifier=None):
    sasl = write_credentials(folder)
    for setting in PAIRS:
        chosen = choose(setting, groups, report.arguments)
        if chosen and "-S" in setting["options"] and not sasl:
            print(f"SKIP {setting['name']}: saslpasswd2 (sasl2-bin) is not installed")
        elif chosen:
            run_pair(report, setting, chosen, folder, falsifier)


def changed_answers(arguments, release, groups, folder):
    """Is each difference told that is there once and never again?"""
    falsifier = Falsifier(arguments.seed, WRONG_ONE_IN)
    sessions = random.Random(arguments.seed).sample([session for name, group in groups.items() if re.match(PLAIN, name) for session in group],
                                                    WRONG_SESSIONS)
    run_pair(Report(arguments, release), pair(), {CHANGED_NAME: sessions}, folder, falsifier)
    return falsifier.tell()


def compare_with(arguments, release):
    """All of it with the memcached of memcached_command(). How much has failed."""
    report = Report(arguments, release)
    groups = all_groups(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        folder = pathlib.Path(name)
        if arguments.wrong:
            falsifier = Falsifier(arguments.seed, arguments.wrong)
            run_pairs(report, groups, folder, falsifier)
            return falsifier.tell() + report.failed
        if re.search(arguments.only, CHANGED_NAME):
            report.failed += changed_answers(arguments, release, groups, folder)
        run_pairs(report, groups, folder)
        if re.search(arguments.only, "datagrams"):
            report.datagrams(groups, arguments)
        if re.search(arguments.only, "reports"):
            report.reports()
        for name in FLASH_NAMES:
            if re.search(arguments.only, name):
                report.places(name, groups, folder)
    return report.end(not arguments.only and arguments.one_in == 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--release", choices=["debian", "newest"])
    parser.add_argument("--one-in", type=int, default=1, metavar="N", help="run one session in N of each group")
    parser.add_argument("--wrong", type=int, metavar="N", help="change one answer in N; each must be told")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    failed = 0
    if arguments.release != "newest":
        if shutil.which(memcached_command()):
            failed += compare_with(arguments, "debian")
        else:
            print("SKIP comparison with Debian's memcached: it is not installed")
    if arguments.release != "debian":
        try:
            os.environ["MEMCACHED_BIN"] = str(source.built() / "memcached")
            failed += compare_with(arguments, "newest")
        except source.Missing as why:
            print(f"SKIP comparison with memcached {source.VERSION}: {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    os.chdir(HERE)
    sys.exit(main())
