# SPDX-License-Identifier: BSD-3-Clause
"""Builds the packages: with this machine's compiler, or in a fresh system of another release.

In a fresh system a warning is an error, the unit tests are run as Debian's build machines run them, and lintian is that
release's own.
"""
import os
import re
import shutil
import subprocess

import chroot

DEB_SECONDS = 900
BUILT = "/srv/built"


def here(top, folder, log):
    """Starts "make deb"; the caller waits for the process."""
    with open(log, "wb") as opened:
        return subprocess.Popen(["make", "--no-print-directory", "-C", top, f"BUILD={folder}", "deb"],
                                stdin=subprocess.DEVNULL, stdout=opened, stderr=subprocess.STDOUT)


def there(report, top, release, work, folder):
    """The folder of the packages that are built in a system of that release, or None."""
    system = chroot.System(work, "builder", os.path.join(work, "base"))
    try:
        os.makedirs(system.path("/src"))
        chroot.mount(top, system.path("/src"), None, flags=["--bind", "--read-only"])
        chroot.mount("tmpfs", system.path("/dev/shm"), "tmpfs")
        code, output = system.apt("update")
        if code == 0:
            code, output = system.apt("install", "make", "git", "build-essential", "libcmocka-dev", "libsasl2-modules")
        if not report.check(f"{release.name}: what a build begins with installs", code == 0, tail(output)):
            return None
        code, output = system.run("make", "-C", "/src", f"BUILD={BUILT}", "deb",
                                  env={"WERROR": "1", "DEB_BUILD_OPTIONS": ""}, seconds=3 * DEB_SECONDS)
        if not report.check(f"{release.name}: make deb, without a warning, and its unit tests pass", code == 0,
                            f"{complaints(system)}\n{tail(output)}"):
            return None
        lint(report, system)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for name in os.listdir(system.path(f"{BUILT}/deb")):
            if name.endswith((".deb", ".dsc", ".xz", ".changes", ".buildinfo")):
                shutil.copy(system.path(f"{BUILT}/deb/{name}"), folder)
        return folder
    finally:
        system.close()


def lint(report, system):
    """lintian of that release. It takes the warning about being root for nothing to tell."""
    names = [f"{BUILT}/deb/{name}" for name in os.listdir(system.path(f"{BUILT}/deb")) if name.endswith((".deb", ".dsc"))]
    code, output = system.run("lintian", "--allow-root", "--fail-on", "error,warning", "--no-cfg", *names)
    said = "\n".join(line for line in output.splitlines() if "root privileges" not in line)
    report.check("lintian is silent", code == 0 and not said.strip(), said)


def complaints(system):
    """What a compiler or a test complains of in the build's log."""
    if not system.exists(f"{BUILT}/deb/build.log"):
        return ""
    with open(system.path(f"{BUILT}/deb/build.log"), encoding="utf-8", errors="replace") as log:
        lines = [line.rstrip() for line in log if re.search(r"\[  (FAILED|ERROR)|tests/unit/.*(error|rror:)|: (warning|error):", line)]
    return "\n".join(lines[-40:])


def tail(text):
    return "\n".join(text.splitlines()[-60:])
