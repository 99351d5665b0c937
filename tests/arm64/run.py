#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the package for arm64 and tries it, on a machine of another kind: run.py [PART]...

Parts: user (unit tests under qemu-user), machine (unit tests and the daemon in an emulated machine); without one, both. A line
per check, as tests/package/run.py prints them. Needs root and Debian's mirror. Exit code 1 when anything failed.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import traceback

from cross import EMULATOR, KERNEL, TOP, Cross

import chroot  # tests/package, whose path cross.py adds
from release import RELEASES
from report import Report

INSIDE = "FLASHIELD_ARM64_TEST_INSIDE"
TMPFS = "size=8g,mode=755"  # taken only as far as it is used: some 4 GiB
BASE = RELEASES["bookworm"]
DEBOOTSTRAP_SECONDS = 900
TEST_SECONDS = 1200
LINE = ("PASS ", "FAIL ", "skip ", "  ")


def why_not():
    """Why this can't run here, or None."""
    if os.geteuid() != 0:
        return "needs root, for chroot and namespaces"
    if os.uname().machine != "x86_64":
        return "the cross build was tried on x86-64 alone"
    return BASE.why_not()


def tail(text, lines=40):
    return "\n".join(text.splitlines()[-lines:])


def refusals(report, cross):
    """A machine that the code isn't made for."""
    for what, command in (("32 bits", ["gcc", "-m32"]), ("big endian", ["aarch64-linux-gnu-gcc", "-mbig-endian"])):
        code, output = cross.run(*command, "-E", "/src/base/machine.h")
        report.check(f"a build for {what} ends with the reason", code != 0 and "#error" in output, tail(output))


def prepare(report, cross, machine):
    code, output = cross.install(machine)
    report.need("a compiler for arm64 and its libraries install", code == 0, tail(output))
    refusals(report, cross)
    code, output = cross.make_deb()
    report.need("the package for arm64 builds without a warning", code == 0, tail(output))
    code, output = cross.make_tests(machine)
    report.need("and so do its unit tests", code == 0, tail(output))


def under_user(report, cross):
    """Unit tests that need no kernel for arm64."""
    def run(name):  # in the tree, as some ask for files beside their source
        return cross.run("env", "-C", cross.tree(), EMULATOR, f"{cross.built()}/tests/{name}",
                         env={"CMOCKA_MESSAGE_OUTPUT": "TAP"}, seconds=TEST_SECONDS)

    names = [name for name in cross.tests() if not KERNEL.match(name)]
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for name, (code, output) in zip(names, pool.map(run, names)):
            said = "\n".join(line for line in output.splitlines() if not line.startswith("ok "))
            report.check(f"under qemu-user: {name}", code == 0, tail(said))


def in_machine(report, cross):
    """Debian's kernel for arm64, its asynchronous I/O, a drive, and the daemon of the package."""
    kernel, output = cross.kernel()
    report.need("a kernel for arm64 is had", kernel, output)
    code, output = cross.unpack(cross.find("/srv/built/deb", r"flashield_.*_arm64\.deb"), "/srv/package")
    report.need("the package unpacks", code == 0, output)
    names = [name for name in cross.tests() if KERNEL.match(name)]
    said = []
    with subprocess.Popen(cross.command("python3", "/src/tests/arm64/machine.py", "/srv/machine", "/srv/package", cross.built(), kernel,
                                        *names), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as machine:
        for line in machine.stdout:
            said.append(line.decode("utf-8", "replace").rstrip())
            if said[-1].startswith(LINE):
                print(said[-1], flush=True)
            report.failed += said[-1].startswith("FAIL ")
    report.check("the machine comes to its end", machine.returncode == 0 and "over" in said,
                 f"{machine.returncode}\n" + "\n".join(said[-40:]))


PARTS = {"user": under_user, "machine": in_machine}


def run_inside(arguments):
    """This script again as the first process of its own: whatever it starts or mounts ends with it."""
    command = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc",
               sys.executable, os.path.abspath(__file__), *arguments]
    with tempfile.TemporaryDirectory(prefix="arm64-") as work:
        return subprocess.run(command, env=dict(os.environ, **{INSIDE: work}), check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.environ.get("BUILD", os.path.join(TOP, "build")))
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS])
    arguments = parser.parse_args()
    if INSIDE not in os.environ:
        why = why_not()
        if why:
            print(f"skip arm64: {why}", flush=True)
            return 0
        return run_inside(sys.argv[1:])

    work = os.environ[INSIDE]
    chroot.mount("tmpfs", work, "tmpfs", TMPFS)
    report = Report()
    report.scenario = "arm64"
    log_path = os.path.join(work, "debootstrap.log")
    with open(log_path, "wb") as log:
        base = chroot.debootstrap(BASE, os.path.join(work, "base"), os.path.join(os.path.abspath(arguments.build), "package"), log)
    if not report.check("debootstrap", base.wait(DEBOOTSTRAP_SECONDS) == 0):
        return report.result()
    cross = Cross(work, os.path.join(work, "base"))
    try:
        parts = arguments.parts or list(PARTS)
        prepare(report, cross, "machine" in parts)
        for part in parts:
            PARTS[part](report, cross)
    except Exception:  # whatever it is, it is told
        report.check("runs to its end", False, traceback.format_exc())
    finally:
        cross.close()
    return report.result()


if __name__ == "__main__":
    sys.exit(main())
