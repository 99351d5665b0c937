# SPDX-License-Identifier: BSD-3-Clause
"""The parts of every study.

    @study("hot", "what it measures", plain=True)
    def hot(s):
        s.describe("title", "explanation", columns)           heads and decimals by name of column
        ours = s.start(FLASHIELD, memory_mb=64)               ends with the study; None: memcached is not here
        for number in s.rounds("hot"):
            result = s.run(ours, kind="get", keys=100, value_bytes=257, operations=1000)
            s.add("row", hot_gets=result.gets)                a sample; another round's is added to it
        s.target("measure", s.median("row", "hot_gets"), at_least=1000)

A study measures and adds figures; it prints nothing itself but progress. Servers that are compared are measured in
turns within a round, in the opposite order in the next one, so that a machine that slows down slows all. Whatever can't
be done here becomes a note. A study that goes wrong raises; its servers and loads end in any case.
"""
import contextlib
import os
import signal
import sys
import time

from figures import NAN, Figures, ratio
from load import Hist, Load, Worker, run_load
from server import FLASHIELD, NotFound, Server, Trouble, WrongValue, tell

STUDIES = {}  # by name, in the order of their registration
SECONDS_LEAST = 0.02

# A load on a server as a row, in each study that loads servers:
#   cpu_us          the server's CPU time, user and kernel, per operation (of a multiget: per key)
#   p50_us ...      latency of a command
#   server_percent  of one CPU that the server used; 100 with one thread: it was the limit
#   load_percent    of its CPU that the load generator used; near 100 it may have been the limit
#   wait_percent    of the time that threads of the server could have run but had no CPU: other processes, or more
#                   threads than CPUs. Where it is not near 0, rate and latency are the neighbours'
SAMPLE_COLUMNS = {
    "cpu_us": ("us CPU /op", -1), "ops_s": ("ops/s", -1), "p50_us": ("p50 us", -1), "p99_us": ("p99 us", -1),
    "p999_us": ("p99.9 us", -1), "server_percent": ("server CPU %", 0), "load_percent": ("load CPU %", 0),
    "wait_percent": ("CPU wait %", 0), "cpu_ratio": ("CPU ratio", 3), "ops_ratio": ("ops/s ratio", 2),
    "p50_ratio": ("p50 ratio", 2), "p99_ratio": ("p99 ratio", 2), "p999_ratio": ("p99.9 ratio", 2),
}


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP has come. The samples that were added until then are printed and kept."""


class Registered:
    def __init__(self, name, text, plain, run):
        self.name, self.text, self.plain, self.run = name, text, plain, run


def study(name, text, plain=False):
    """Registers a study. A plain one runs when the command line names none."""
    def register(run):
        STUDIES[name] = Registered(name, text, plain, run)
        return run
    return register


class Bench:
    def __init__(self, options):
        self.options, self.figures = options, Figures()
        self.children = []  # workers that run

    def scaled(self, count, least=0):
        return max(int(count * self.options.scale), least)

    def seconds(self, seconds):
        """Returns the length of a measurement whose length at scale 1 is given."""
        return max(seconds * self.options.scale, SECONDS_LEAST)

    def progress(self, text):
        if not self.options.quiet:
            print(text, file=sys.stderr, flush=True)


class Study:
    """A study that runs. As a context manager it ends the servers and loads that it started."""

    def __init__(self, bench, name):
        self.bench, self.options, self.figures, self.name = bench, bench.options, bench.figures, name
        self.servers = []
        self.scaled, self.seconds, self.progress = bench.scaled, bench.seconds, bench.progress

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for worker in self.bench.children:
            worker.kill()
        self.bench.children.clear()
        troubles = []
        for server in reversed(self.servers):
            try:
                server.stop()
            except Trouble as trouble:
                troubles.append(trouble)
        self.servers.clear()
        if troubles and error is None:
            raise troubles[0]

    # ---- figures ----

    def describe(self, title, explanation, columns, sampled=True):
        self.figures.study(self.name).update(title=title, explanation=explanation)
        for column, (head, decimals) in ((SAMPLE_COLUMNS if sampled else {}) | columns).items():
            self.figures.column(column, head, decimals)

    def add(self, row, **cells):
        for column, value in cells.items():
            self.figures.add(self.name, row, column, value)

    def note(self, text):
        self.figures.note(self.name, text)

    def median(self, row, column):
        return self.figures.median(self.name, row, column)

    def worst(self, rows, column, pick=max):
        """Returns the largest (or, with min, the least) median of some rows; NaN without any."""
        return pick((value for row in rows if (value := self.median(row, column)) == value), default=NAN)

    def target(self, measure, value, unit="", **limit):
        self.figures.target(measure, value, unit, **limit)

    beside = target  # without a limit

    # ---- servers and loads ----

    def start(self, kind, **spec):
        """Returns a server that ends with the study; None, with a note, where memcached is not here."""
        try:
            server = Server(self.bench, kind, **spec)
        except NotFound:
            if kind == FLASHIELD:
                raise
            self.note(f"memcached ({self.options.memcached}) is not here: nothing to compare with.")
            return None
        self.servers.append(server)
        return server

    def stop(self, server):
        self.servers.remove(server)
        server.stop()

    @contextlib.contextmanager
    def serving(self, kind, **spec):
        """Starts a server, and stops it at the block's end."""
        server = self.start(kind, **spec)
        yield server
        if server:
            self.stop(server)

    def load(self, server, **spec):
        return Load(self.bench, server, **spec)

    def run(self, server, judge=True, **spec):
        return run_load(self.bench, server, self.name, judge, **spec)

    def fill(self, server, keys, read=False, **spec):
        """Sets each key once, in order, and with read reads it at once."""
        return self.run(server, kind="set_get" if read else "set", keys=keys, operations=2 * keys if read else keys,
                        **spec)

    def engine(self, command, **spec):
        """Has the worker measure, and takes its figures over."""
        def event(kind, value):
            if kind == "add":
                self.add(value[0], **{value[1]: NAN if value[2] is None else value[2]})
            elif kind == "note":
                self.note(value)
            else:
                self.progress(f"{self.name}: {value}")
        Worker(self.bench, command, spec).finish(event)

    def sample(self, server, row, **spec):
        """Adds a load as a sample of a row. Returns its Result, which has the row's cells as .cells. Errors become
        notes, and so do missing hits unless expect_misses is given."""
        began, waited = time.monotonic(), server.waited_ns()
        result = self.run(server, judge=False, **spec)
        waited = (server.waited_ns() - waited) / 1e9 / (time.monotonic() - began)
        if not result.operations:
            raise Trouble(f"{row}: no operation was done")
        latency = Hist().merge(result.get_latency).merge(result.set_latency)
        result.cells = {
            "cpu_us": result.cpu_us(), "ops_s": result.operations / result.seconds, "p50_us": latency.us(0.5),
            "p99_us": latency.us(0.99), "p999_us": latency.us(0.999)}
        self.add(row, **result.cells, server_percent=result.server_cpu_ns / 1e7 / result.seconds,
                 load_percent=result.load_cpu_ns / 1e7 / result.seconds, wait_percent=100 * waited)
        if result.errors:
            self.note(f"{row}: {result.errors} operations failed, the first with: {result.first_error}")
        if not spec.get("expect_misses") and result.hits < result.gets:
            self.note(f"{row}: {result.gets - result.hits} of {result.gets} gets missed.")
        if result.wrong:
            self.note(f"{row}: {result.wrong} WRONG VALUES")
        self.judge(result)
        return result

    def judge(self, result, errors=False):
        """Raises WrongValue for a wrong value; with errors, also for commands that failed."""
        if result.wrong or (errors and result.errors):
            tell(f"{self.name}: {result.wrong} wrong values, {result.errors} errors {result.first_error}")
            raise WrongValue(self.name)

    def sample_each(self, servers, row, number, **spec):
        """Puts the same load on ours and on memcached, in turns, and adds their ratios. row turns a server's name into
        a row's."""
        results = {}
        for server in servers[::-1] if number % 2 else servers:
            results[server.kind] = self.sample(server, row(server.kind), **spec)
        if len(servers) == 2:
            ours, theirs = (results[server.kind].cells for server in servers)
            self.add(row(""), **{column.replace("_us", "_ratio").replace("_s", "_ratio"): ratio(ours[column],
                                                                                                  theirs[column])
                                 for column in ours})
        return results

    def rounds(self, what=""):
        for number in range(self.options.rounds):
            self.progress(f"{self.name}: {what}{', ' if what else ''}round {number + 1} of {self.options.rounds}")
            yield number


def interrupt_by_signals():
    def interrupt(number, frame):
        for later in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(later, signal.SIG_IGN)  # the end is under way
        raise Interrupted
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


def cpus():
    return sorted(os.sched_getaffinity(0))
