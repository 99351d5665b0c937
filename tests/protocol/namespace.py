# SPDX-License-Identifier: BSD-3-Clause
"""A small tmpfs that only a test's own processes see: a mount namespace, as root or, where users may, in a user namespace.

    with SmallTmpfs(folder, "64m") as small:
        daemon = start("--region-dir", str(folder), ..., program=small.program)
        small.fill()
"""
import os
import pathlib
import shlex
import subprocess

from helpers import PATIENCE, flashield_command

IS_ROOT = os.geteuid() == 0
NEW = ["unshare", "-m"] if IS_ROOT else ["unshare", "-r", "-m"]
ENTER = ["-m"] if IS_ROOT else ["-U", "--preserve-credentials", "-m"]
AS_USER = [] if IS_ROOT else ["unshare", "-U", "--map-user=1000"]  # a daemon that takes itself for root asks for -u


class SmallTmpfs:
    """It is mounted on folder, for everybody to write. `refused` says why it can't be had here, or is ""."""

    def __init__(self, folder, size):
        self.folder = pathlib.Path(folder)
        # It lives as long as its input is open.
        script = f"mount -t tmpfs -o size={size},mode=1777 tmpfs {shlex.quote(str(folder))} && echo mounted && exec cat"
        self.holder = subprocess.Popen([*NEW, "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
        self.refused = "" if self.holder.stdout.readline() == "mounted\n" else self.holder.stderr.read().strip()
        # A daemon is a program with options.
        self.program = str(self.folder.parent / "flashield-in-namespace")
        pathlib.Path(self.program).write_text(f"#!/bin/sh\nexec {shlex.join(self.inside(*AS_USER, flashield_command()))} \"$@\"\n")
        os.chmod(self.program, 0o755)

    def inside(self, *command):
        """The command, in the namespace. It is the same process."""
        return ["nsenter", "-t", str(self.holder.pid), *ENTER, *command]

    def run(self, *command):
        return subprocess.run(self.inside(*command), capture_output=True, text=True, timeout=PATIENCE, check=False)

    def fill(self):
        """Another process takes all room that is left."""
        done = self.run("sh", "-c", f"cat /dev/zero >{shlex.quote(str(self.folder))}/others")
        assert "No space left on device" in done.stderr

    def free_bytes(self):
        return int(self.run("stat", "-f", "-c", "%a", str(self.folder)).stdout) * 4096

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.holder.stdin.close()
        self.holder.wait(PATIENCE)
        self.holder.stdout.close()
        self.holder.stderr.close()
