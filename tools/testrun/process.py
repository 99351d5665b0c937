# SPDX-License-Identifier: BSD-3-Clause
"""Runs a command with a bound for a hang, and adds up the CPU time that commands took.

A bound is many times what the command takes on an idle machine: it ends what hangs, and judges no speed. TEST_UNTIL, in
seconds of the wall clock, bounds all steps together where the machine itself is taken away then (.ci/run).
"""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

CPUS = os.cpu_count() or 1
CCACHE = "/usr/lib/ccache"
# Debian's, which has the modules that the tests need.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable

running = set()  # commands, which have sessions of their own and would outlive this program
local = threading.local()  # .cpu: seconds that the commands of this thread's step took


def left():
    """Seconds until all must be over; None without such a bound."""
    until = os.environ.get("TEST_UNTIL")
    return float(until) - time.time() if until else None


def environment(more):
    env = dict(os.environ, **(more or {}))
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):  # the outer make's job server isn't ours
        env.pop(name, None)
    if os.path.isdir(CCACHE) and CCACHE not in env.get("PATH", "").split(":"):
        env["PATH"] = f"{CCACHE}:{env.get('PATH', '/usr/bin:/bin')}"
        # Trees in other folders find the same objects.
        env.setdefault("CCACHE_NOHASHDIR", "1")
    return env


class Cpu:
    """CPU seconds of a step, which several threads add to."""

    def __init__(self):
        self.lock = threading.Lock()
        self.seconds = 0.0

    def add(self, usage):
        with self.lock:
            self.seconds += usage.ru_utime + usage.ru_stime


def count_cpu(cpu):
    """Commands that this thread runs from now on are counted there."""
    local.cpu = cpu


def counted():
    """Returns the place where this thread's commands are counted, for the threads that it starts."""
    return getattr(local, "cpu", None)


def end_group(process):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def end_all():
    """For when this program is told to end."""
    for process in list(running):
        end_group(process)


def run(command, seconds, env=None, cpu=None):
    """(exit code, output). A command that takes too long is ended with all its children: 124."""
    rest = left()
    bound = seconds if rest is None else max(1.0, min(seconds, rest))
    late = threading.Event()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   env=environment(env), start_new_session=True)
        running.add(process)
        timer = threading.Timer(bound, lambda: (late.set(), end_group(process)))
        timer.daemon = True
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        end_group(process)  # what it left behind
        running.discard(process)
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu = cpu or counted()
        if cpu:
            cpu.add(usage)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    if late.is_set():
        why = "its bound for a hang" if rest is None or seconds <= rest else "all that was left of the whole"
        return 124, text + f"\nended after {bound:.0f} s, {why}\n"
    return process.returncode, text


def make(*words, seconds=1800):
    return run(["make", f"-j{CPUS}", "-k", "--no-print-directory", *words], seconds)
