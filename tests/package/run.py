#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Installs the Debian package into fresh systems and uses it there: run.py [--release NAME] [--deb FOLDER] [SCENARIO]...

A line per check: "PASS scenario: what", "FAIL ..." followed by what was seen, or "skip what: why". FOLDER has the
packages of "make deb", which is run if none is named: for another release than this machine's in a fresh system of that one.
Needs root and the release's mirror. Exit code 1 when anything failed.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import traceback

import build
import chroot
import scenarios
from release import RELEASES
from report import Report

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INSIDE = "FLASHIELD_PACKAGE_TEST_INSIDE"
TMPFS = "size=5g,mode=755"  # taken only as far as it is used: some 600 MiB, and 2 GiB where the package is built in it
# Bounds for what hangs.
DEBOOTSTRAP_SECONDS = 900


def why_not(release):
    """Why this can't run here, or None."""
    if os.geteuid() != 0:
        return "needs root, for chroot and namespaces"
    try:
        subprocess.run(["unshare", "--mount", "--pid", "--net", "--fork", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return "namespaces can't be made here"
    return release.why_not()


def run_inside(arguments):
    """This script again as the first process of its own: whatever it starts or mounts ends with it."""
    command = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc",
               sys.executable, os.path.abspath(__file__), *arguments]
    with tempfile.TemporaryDirectory(prefix="package-") as work:
        return subprocess.run(command, env=dict(os.environ, **{INSIDE: work}), check=False).returncode


def prepare(report, release, work, deb_folder, kept):
    """The folder of the packages, or None. On this machine they are built while the base system is made."""
    bootstrap_log, deb_log = os.path.join(work, "debootstrap.log"), os.path.join(work, "deb.log")
    with open(bootstrap_log, "wb") as log:
        bootstrap = chroot.debootstrap(release, os.path.join(work, "base"), os.path.join(kept, "package"), log)
    if not deb_folder and release.is_here():
        deb_folder = os.path.join(kept, "deb")
        built = build.here(TOP, kept, deb_log)
        if not report.check("make deb", built.wait(build.DEB_SECONDS) == 0, tail(deb_log)):
            return None
    if not report.check("debootstrap", bootstrap.wait(DEBOOTSTRAP_SECONDS) == 0, tail(bootstrap_log)):
        return None
    return deb_folder or build.there(report, TOP, release, work, os.path.join(kept, f"deb-{release.name}"))


def tail(path):
    with open(path, encoding="utf-8", errors="replace") as opened:
        return "".join(opened.readlines()[-30:])


def scenario(report, name, work, deb_folder, **words):
    report.scenario = name
    system = chroot.System(work, name, os.path.join(work, "base"))
    try:
        getattr(scenarios, name)(report, system, deb_folder, **words)
    except Exception:  # whatever it is, the other scenarios are run
        report.check("runs to its end", False, traceback.format_exc())
    finally:
        system.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--release", choices=RELEASES, default="bookworm")
    parser.add_argument("--deb")
    parser.add_argument("--build", default=os.environ.get("BUILD", os.path.join(TOP, "build")))
    parser.add_argument("--pictures", metavar="FOLDER", help="for what \"shown\" draws")
    parser.add_argument("scenarios", nargs="*", choices=[[], *scenarios.NAMES, *scenarios.ASKED])
    arguments = parser.parse_args()
    release = RELEASES[arguments.release]
    if INSIDE not in os.environ:
        why = why_not(release)
        if why:
            print(f"skip package ({release.name}): {why}", flush=True)
            return 0
        return run_inside(sys.argv[1:])

    work = os.environ[INSIDE]
    chroot.mount("tmpfs", work, "tmpfs", TMPFS)
    report = Report()
    folder = prepare(report, release, work, arguments.deb and os.path.abspath(arguments.deb), os.path.abspath(arguments.build))
    if folder:
        report.scenario = "packages"
        scenarios.packages(report, folder, release)
        for name in arguments.scenarios or scenarios.names(release):
            words = {"pictures": arguments.pictures and os.path.abspath(arguments.pictures)} if name in scenarios.ASKED else {}
            scenario(report, name, work, folder, **words)
    return report.result()


if __name__ == "__main__":
    sys.exit(main())
