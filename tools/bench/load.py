# SPDX-License-Identifier: BSD-3-Clause
"""The work of flashield-bench-worker for the studies: loads on servers, raw reads, measurements of the engine.

A load's settings are those of struct load_spec (load.h), by the same names."""
import json
import math
import signal
import subprocess

from server import Trouble, WrongValue, child_setup, tell

SUB_BITS = 6  # of base/hist.h: 64 steps for each power of two


def step_most(bucket):
    """Returns the highest value of a step."""
    if bucket < 1 << SUB_BITS:
        return bucket
    shift = (bucket >> SUB_BITS) - 1
    return (((1 << SUB_BITS) + (bucket & ((1 << SUB_BITS) - 1)) + 1) << shift) - 1


class Hist:
    """Latencies in the form in which the worker counts them: nanoseconds in steps of 1.6 %."""

    def __init__(self, told=None):
        self.steps = dict(told["steps"]) if told else {}
        self.max = told["max"] if told else 0

    def merge(self, other):
        for bucket, count in other.steps.items():
            self.steps[bucket] = self.steps.get(bucket, 0) + count
        self.max = max(self.max, other.max)
        return self

    def us(self, quantile):
        """Returns the value at a quantile, in microseconds; NaN when there is none."""
        total = sum(self.steps.values())
        rank, seen = max(1, math.ceil(quantile * total)), 0
        for bucket in sorted(self.steps):
            seen += self.steps[bucket]
            if seen >= rank:
                return min(step_most(bucket), self.max) / 1e3
        return math.nan


class Result:
    """The result of a load: the fields of struct load_result by name, with latencies as Hist."""

    def __init__(self, told):
        self.__dict__.update(told)
        for name, value in told.items():
            if isinstance(value, dict):
                setattr(self, name, Hist(value))

    def cpu_us(self, operations=None):
        """Returns the server's CPU time per operation."""
        return self.server_cpu_ns / 1e3 / (operations or self.operations)


class Worker:
    """A flashield-bench-worker with a command under way. The functions get its lines, except "result", by `events`. The
    pipe holds a whole result, so that the worker ends although nobody reads it yet."""

    def __init__(self, bench, command, spec):
        self.name, self.result = command, None
        self.process = subprocess.Popen([bench.options.worker, command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, preexec_fn=child_setup(), pipesize=1 << 20)
        bench.children.append(self)
        self.bench = bench
        try:
            json.dump(spec, self.process.stdin)
            self.process.stdin.close()
        except BrokenPipeError:  # it has said why
            pass

    def read(self, events):
        """Takes lines to the end, or until an event's function returns True."""
        for line in self.process.stdout:
            (kind, value), = json.loads(line).items()
            if kind == "result":
                self.result = value
            elif events(kind, value):
                return

    def kill(self):
        self.process.kill()
        self.process.wait()

    def finish(self, events=lambda kind, value: False):
        """Waits for its end. Its exit status may raise WrongValue or Trouble; a load that broke off may have met a
        wrong value before."""
        self.read(events)
        status = self.process.wait()
        self.bench.children.remove(self)
        if status == 1 or (status != 0 and self.result and self.result.get("wrong")):
            raise WrongValue(f"{self.name}: a wrong value")
        if status != 0:
            raise Trouble(f"{self.name} failed")
        return self.result


class Load:
    """A load in the background. join() is to be called before the server is stopped."""

    def __init__(self, bench, server, **spec):
        spec = {"order": "sequential", "cpu": bench.options.load_cpu, "port": server.port, "pid": server.pid} | spec
        for name in ("first_key", "keys", "operations"):
            spec[name] = int(spec.get(name, 0))
        self.worker = Worker(bench, "load", spec)
        self.worker.read(lambda kind, value: True)  # until all connections are open

    def running(self):
        return self.worker.process.poll() is None

    def stop(self):
        """Asks it to end early, within a second."""
        if self.running():
            self.worker.process.terminate()

    def forget(self):
        """Forgets the counts so far, amid the load: for servers whose queues must be full when the count begins."""
        if self.running():
            self.worker.process.send_signal(signal.SIGUSR1)

    def join(self, what, judge=True):
        """Returns its result. With judge a wrong value raises WrongValue, and so does an answer that is none."""
        result = Result(self.worker.finish())
        if judge and result.wrong:
            tell(f"{what}: {result.wrong} wrong values")
            raise WrongValue(what)
        return result


def run_load(bench, server, what, judge=True, **spec):
    return Load(bench, server, **spec).join(what, judge)


def raw_reads(bench, **spec):
    return Result(Worker(bench, "raw", spec).finish())


def sleeps_until_end(load, seconds):
    """Waits for a load's end for at most so long. Is it still running?"""
    try:
        load.worker.process.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        return True
