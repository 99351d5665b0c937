# SPDX-License-Identifier: BSD-3-Clause
"""A fresh Debian 12 in which packages for arm64 are built: a compiler for it, and its libraries beside the machine's own."""
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "package"))

import chroot  # noqa: E402 (it needs the path above)

COMPILER = "aarch64-linux-gnu-gcc"
EMULATOR = "qemu-aarch64-static"
BUILT = "/srv/built"
BUILD_SECONDS = 2400  # a bound for what hangs
# What a cross build needs of this machine's kind; of the other kind is what links, and what tests ask for.
TOOLS = ["build-essential", "crossbuild-essential-arm64", "make", "git", "python3", "pkgconf", "debhelper", "dh-apparmor", "systemd-dev|systemd",
         "qemu-user-static"]
MACHINE_TOOLS = ["qemu-system-arm", "kmod", "cpio", "e2fsprogs"]
TARGET = ["libcmocka-dev", "libsasl2-modules", "busybox-static"]
NOT_TARGET = {"build-essential"}
# Programs and folders that need asynchronous I/O or the kernel's own figures, which qemu-user hasn't: they run in the machine.
KERNEL = re.compile(r"^(segments/|server/store/|base/test_alloc$|base/test_resident$|server/test_seccomp$|tools/bench/test_(load|raw)$)")
# Much arithmetic and nothing that depends on the kind of machine: half an hour in software. They run on x86-64 alone.
TOO_LONG = re.compile(r"^(flashindex/test_load|server/store/cleaner/test_tables|server/store/test_keep_all|server/store/test_random|"
                      r"server/store/test_power)$")


def packages():
    with open(os.path.join(TOP, "packaging", "debian-packages.txt"), encoding="utf-8") as lines:
        listed = [line.split()[1] for line in lines if line.startswith("build ")]
    return [f"{name}:arm64" for name in [*listed, *TARGET] if name not in NOT_TARGET]


class Cross:
    """The system, with the tree at /src."""

    def __init__(self, work, base):
        self.system = chroot.System(work, "cross", base)
        os.makedirs(self.system.path("/src"))
        chroot.mount(TOP, self.system.path("/src"), None, flags=["--bind", "--read-only"])
        chroot.mount("tmpfs", self.system.path("/dev/shm"), "tmpfs")

    def run(self, *command, env=None, seconds=BUILD_SECONDS):
        return self.system.run(*command, env=env, seconds=seconds)

    def command(self, *words):
        """A command in the system, for who reads what it prints while it runs. It has a bound of its own."""
        return ["chroot", self.system.root, "env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", *words]

    def install(self, machine):
        """Everything that is needed, for an emulated machine too or not: (exit code, output)."""
        self.run("dpkg", "--add-architecture", "arm64")
        code, output = self.system.apt("update")
        if code != 0:
            return code, output
        tools = [word.split("|")[0] if self.run("apt-cache", "show", word.split("|")[0])[0] == 0 else word.split("|")[-1]
                 for word in TOOLS + (MACHINE_TOOLS if machine else [])]
        return self.system.apt("install", *tools, *packages())

    def make_deb(self):
        """The package for arm64, by the rules of any other: a warning is an error."""
        return self.run("/src/packaging/build-deb.sh", f"{BUILT}/deb",
                        env={"WERROR": "1", "DEB_HOST_ARCH": "arm64", "DEB_BUILD_OPTIONS": "nocheck"})

    def tree(self):
        """Where the package was built."""
        return self.find(f"{BUILT}/deb", r"flashield-[0-9.]+")

    def make_tests(self, machine):
        """The unit tests beside the package's programs, with its flags: those for qemu-user, or all and the model's client."""
        goals = ["unit-build", "model"] if machine else [f"debian/build/release-{COMPILER}/tests/{name}" for name in self.tests()
                                                         if not KERNEL.match(name)]
        return self.run("sh", "-ec", "cd $0 && exec dpkg-architecture -a arm64 -c env "
                        "'DEB_BUILD_MAINT_OPTIONS=hardening=+all optimize=-lto' BUILD=debian/build VARIANT=release WERROR=1 "
                        'dh_auto_build -- "$@"', self.tree(), *goals)

    def built(self):
        return f"{self.tree()}/debian/build/release-{COMPILER}"

    def tests(self):
        """Names of the unit tests: "base/test_hist"."""
        code, output = self.run("make", "-s", "-C", "/src", f"CC={COMPILER}", f"BUILD={BUILT}", "list-unit-tests")
        assert code == 0, output
        return [line.partition("/tests/")[2] for line in output.split() if not TOO_LONG.match(line.partition("/tests/")[2])]

    def unpack(self, deb, folder):
        """The files of a package, and nothing else, in a new folder."""
        shutil.rmtree(self.system.path(folder), ignore_errors=True)
        return self.run("dpkg-deb", "-x", deb, folder)

    def find(self, folder, pattern):
        """The one path in a folder that fits."""
        found = [name for name in os.listdir(self.system.path(folder)) if re.fullmatch(pattern, name)]
        assert len(found) == 1, f"{found} fit {pattern} in {folder}"
        return f"{folder}/{found[0]}"

    def kernel(self):
        """Debian's for arm64, unpacked: the folder, or None with what apt said."""
        name = next(line.split()[1] for line in self.run("apt-cache", "depends", "linux-image-arm64:arm64")[1].splitlines()
                    if "Depends: linux-image-" in line)
        code, output = self.run("sh", "-ec", "mkdir -p /srv/kernel && cd /srv/kernel && "
                                "exec apt-get -q -o APT::Sandbox::User=root download $0", name if ":" in name else f"{name}:arm64")
        if code == 0:
            code, output = self.unpack(self.find("/srv/kernel", r"linux-image-.*\.deb"), "/srv/kernel/unpacked")
        return ("/srv/kernel/unpacked" if code == 0 else None), output

    def close(self):
        self.system.close()
