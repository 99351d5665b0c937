#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Thousands of scripted sessions, generated from the tables of commands, with memcached and with ours: the same bytes must
come back, the same connections be closed, the same counters move. First Debian's memcached, then the newest one (tests/upstream).

    run.py [--seed N] [--only REGEX] [--release debian|newest]

A line for each group: "PASS 1.6.18 text set: 1187 sessions, 0 differences, 34 intended". FLASHIELD_BIN and MEMCACHED_BIN (Debian's)
name the daemons. Exit code 1 if one differs in a way that intended.py doesn't have, or if an entry there excuses nothing.
"""
import argparse
import collections
import os
import pathlib
import random
import re
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
import source
import text_sessions
import udp
from helpers import Daemon, as_memcached, memcached_command, memcached_release, memcached_version
from pair import Difference, Pair
from session import Session

FLASH_NAME = "ours in DRAM, ours on flash"
FLASH_SESSIONS = 1500
SESSIONS_PER_HIT = 20  # at least one hit from flash in so many sessions, as a busy machine pushes few objects there
UDP_SESSIONS = 1000

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
        if setting["count"]:
            sessions = chance.sample(sessions, min(setting["count"], len(sessions)))
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


def run_pair(report, setting, chosen, folder):
    users = folder / "users"
    options = [str(users) if option == "%users" else option for option in ["-m", "64", *setting["options"]]]
    with Daemon([*options, *as_memcached()], stderr=subprocess.DEVNULL) as ours, \
            Daemon([*options, "-U", "0", *setting["theirs"]], program=memcached_command(), stderr=subprocess.DEVNULL) as theirs:
        both = Pair(ours, theirs, setting["width"])
        if setting["login"]:
            login = Session("login", setting["login"], binary="-S" in setting["options"])
            assert all(found[0].answer.find(b"STORED") >= 0 or found[0].answer.find(b"Authenticated") >= 0
                       for found in both.outcomes([login])), "nobody can log in"
        for name, sessions in chosen.items():
            report.group(name, sessions, both, counters=setting["counters"])
        report.excused += both.excused


class Report:
    def __init__(self):
        self.sessions = self.differences = self.failed = 0
        self.excused = collections.Counter()

    def line(self, name, count, different, rest, fails=False):
        self.sessions += count
        self.differences += len(different)
        self.failed += bool(different or fails)
        print(f"{'FAIL' if different or fails else 'PASS'} {memcached_version()} {name}: {count} sessions, {len(different)} differences, {rest}", flush=True)
        show(different)

    def group(self, name, sessions, pair, **options):
        before = time.monotonic()
        different, excused = pair.compare(sessions, **options)
        self.line(name, len(sessions), different, f"{excused} intended ({time.monotonic() - before:.1f} s)")

    def reports(self):
        """The reports of stats under sets of options."""
        different = [Difference(Session(f"options {options!r}"), found, "") for options in reports.OPTION_SETS
                     for found in reports.compare_with(options, stderr=subprocess.DEVNULL)]
        self.line("reports", len(reports.OPTION_SETS), different, "sets of options")

    def datagrams(self, groups, arguments):
        count, different, excuses = udp.compare(groups, arguments.seed, UDP_SESSIONS)
        self.line("datagrams", count, different, f"{sum(excuses.values())} intended")
        self.excused += excuses

    def places(self, groups, arguments, folder):
        """Ours in DRAM beside ours on flash."""
        folder.chmod(0o777)
        count, different, hits = flash.compare(groups, arguments.seed, FLASH_SESSIONS, folder, stderr=subprocess.DEVNULL)
        self.line(FLASH_NAME, count, different, f"{hits} hits on flash", hits < count // SESSIONS_PER_HIT)

    def end(self, everything):
        for entry in intended.of_release(memcached_release()):
            if everything and entry.sessions and not self.excused[entry.name]:
                print(f"FAIL {memcached_version()} intended difference '{entry.name}' excuses nothing")
                self.failed += 1
        print(f"{memcached_version()}: {self.sessions} sessions, {self.differences} differences, {sum(self.excused.values())} excused by "
              f"{len(+self.excused)} intended ones: " + ", ".join(f"{name} {count}" for name, count in self.excused.items()))
        return self.failed


def compare_with(arguments):
    """All of it with the memcached of memcached_command(). How much has failed."""
    report = Report()
    groups = all_groups(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        sasl = write_credentials(pathlib.Path(folder))
        for setting in PAIRS:
            chosen = choose(setting, groups, arguments)
            if chosen and "-S" in setting["options"] and not sasl:
                print(f"SKIP {setting['name']}: saslpasswd2 (sasl2-bin) is not installed")
            elif chosen:
                run_pair(report, setting, chosen, pathlib.Path(folder))
        if re.search(arguments.only, "datagrams"):
            report.datagrams(groups, arguments)
        if re.search(arguments.only, "reports"):
            report.reports()
        if re.search(arguments.only, FLASH_NAME):
            report.places(groups, arguments, pathlib.Path(folder))
    return report.end(not arguments.only)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--release", choices=["debian", "newest"])
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    failed = 0
    if arguments.release != "newest":
        if shutil.which(memcached_command()):
            failed += compare_with(arguments)
        else:
            print("SKIP comparison with Debian's memcached: it is not installed")
    if arguments.release != "debian":
        try:
            os.environ["MEMCACHED_BIN"] = str(source.built() / "memcached")
            failed += compare_with(arguments)
        except source.Missing as why:
            print(f"SKIP comparison with memcached {source.VERSION}: {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    os.chdir(HERE)
    sys.exit(main())
