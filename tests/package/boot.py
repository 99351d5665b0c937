# SPDX-License-Identifier: BSD-3-Clause
"""A system whose systemd runs: the first process of namespaces of its own, in a control group of its own."""
import contextlib
import os
import shlex
import subprocess
import time

BOOT_SECONDS = 300
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
RUNNING = ("running", "degraded")  # degraded: some unit of Debian's doesn't like a container


class CantBoot(Exception):
    """Why not."""


def control_groups():
    """Where the machine has control groups of version 2, which may be beside those of version 1."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        for line in mounts:
            fields = line.split()
            if fields[2] == "cgroup2":
                return fields[1]
    raise CantBoot("no control groups of version 2 are mounted")


class Booted:
    """Use with "with"; systemd and all that it runs have ended afterwards."""

    def __init__(self, system):
        self.system = system
        self.group = os.path.join(control_groups(), f"package-test-{os.getpid()}-{time.monotonic_ns()}")
        try:
            os.mkdir(self.group)
        except OSError as why:
            raise CantBoot(f"no control group can be made: {why}") from why
        root = shlex.quote(system.root)
        script = f"mount -t proc proc {root}/proc && mount -t cgroup2 cgroup2 {root}/sys/fs/cgroup && " \
                 f"mount -t tmpfs tmpfs {root}/run && mount -t tmpfs tmpfs {root}/tmp && " \
                 f"exec env -i PATH={PATH} container=other chroot {root} /lib/systemd/systemd --system"
        with system.network.entered():
            self.process = subprocess.Popen(
                ["unshare", "--cgroup", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "sh", "-c", script],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=self.join)
        try:
            self.wait("it to boot", lambda: self.run("systemctl", "is-system-running")[1].strip() in RUNNING)
        except AssertionError as why:
            self.close()
            raise CantBoot(f"systemd doesn't come up: {why}") from why

    def join(self):
        with open(os.path.join(self.group, "cgroup.procs"), "w", encoding="utf-8") as processes:
            processes.write("0")

    def first(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="utf-8") as children:
            return children.read().split()[0]

    def run(self, *command):
        """(exit code, output) of a command beside systemd, as root. There is no network but loopback."""
        try:
            target = self.first()
        except (OSError, IndexError):
            return 125, "not there yet"
        done = subprocess.run(["nsenter", "-t", target, "-a", "--root", "--wd=/", "env", "-i", f"PATH={PATH}", "LC_ALL=C.UTF-8",
                               "DEBIAN_FRONTEND=noninteractive", *command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=600)
        return done.returncode, done.stdout

    def apt(self, *words):
        return self.run("apt-get", "-q", "-y", "--no-install-recommends", "-o", "APT::Sandbox::User=root", "-o", "Dpkg::Use-Pty=0",
                        "--allow-downgrades", *words)

    def show(self, unit="flashield"):
        """Properties of a unit."""
        lines = self.run("systemctl", "show", "-p", "ActiveState,SubState,MainPID,NRestarts,Result,StatusText,UnitFileState",
                         unit)[1].splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def journal(self):
        return self.run("journalctl", "-q", "--no-pager", "-n", "30", "-t", "flashield")[1]

    @staticmethod
    def wait(what, condition):
        end = time.monotonic() + BOOT_SECONDS
        while not condition():
            assert time.monotonic() < end, f"waited {BOOT_SECONDS} s for {what}"
            time.sleep(0.1)

    def close(self):
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            with open(os.path.join(self.group, "cgroup.kill"), "w", encoding="utf-8") as kill:
                kill.write("1")
        end = time.monotonic() + 10
        while os.path.isdir(self.group) and time.monotonic() < end:
            for folder, _, _ in os.walk(self.group, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
