# SPDX-License-Identifier: BSD-3-Clause
"""flashield-sim-worker: finds it, hands it runs, shows how far they are, and takes its answers."""
import json
import os
import subprocess
import sys


def tell(text):
    sys.stdout.flush()
    print(f"flashield-sim: {text}", file=sys.stderr)


def worker_path():
    """The program that was built or installed with this one."""
    folder = os.path.dirname(os.path.abspath(sys.argv[0]))
    names = "flashield-sim-worker", "../lib/flashield/flashield-sim-worker"
    paths = [os.path.normpath(os.path.join(folder, name)) for name in names]
    return next(filter(os.path.exists, paths), paths[0])


def ask(*command):
    return subprocess.run([worker_path(), *command], stdout=subprocess.PIPE, text=True, check=True).stdout


def version():
    return f"flashield-sim (Flashield) {ask('version').strip()}"


class Bar:
    """The share that is done, on a terminal's standard error. Several plays may share one, of which nobody knows how many there
    will be: their user sets expected, the work of further plays, before each play, and the bar never goes back."""

    WIDTH = 40

    def __init__(self, quiet):
        self.drawn = False
        self.on = not quiet and sys.stderr.isatty()
        self.share = self.work = self.runs = 0  # work and runs: of plays that are over
        self.weight = 1  # work of each run of the play under way
        self.expected = 0

    def begin(self, runs):
        self.runs_now = runs
        self.show(0, 0)

    def show(self, share, done):
        """The share of the play under way, and its runs that are done."""
        work = self.weight * self.runs_now
        self.share = max(self.share, (self.work + share * work) / (self.work + work + self.expected))
        if self.on:
            full = int(self.share * self.WIDTH)
            alone = not self.runs and not self.expected
            runs = f"{done} of {self.runs_now} runs" if alone else f"{self.runs + done} runs"
            note = runs if self.share or self.runs else "reading the trace"
            print(f"\r[{'#' * full}{'-' * (self.WIDTH - full)}] {self.share:4.0%} {note}\x1b[K", end="", file=sys.stderr, flush=True)
            self.drawn = True

    def end(self):
        self.work += self.weight * self.runs_now
        self.runs += self.runs_now
        self.clear()

    def clear(self):
        if self.drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self.drawn = False


class Answers:
    """What the worker said."""

    def __init__(self):
        self.trace, self.results, self.errors = {}, {}, {}
        self.interrupted = False

    def in_order(self):
        return [self.results[number] for number in sorted(self.results)]


def take(line, answers, bar):
    said = json.loads(line)
    if "progress" in said:
        bar.show(said["progress"], said["done"])
    elif "result" in said:
        answers.results[said["result"]["run"]] = said["result"]
    elif "error" in said:
        answers.errors[said["run"]] = said["error"]
    elif "trace" in said:
        answers.trace = said["trace"]


def play(spec, bar):
    """The answers, and whether all runs were played. An interrupt leaves those that were ready."""
    answers, runs = Answers(), len(spec["runs"])
    bar.begin(runs)
    with subprocess.Popen([worker_path(), "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        try:
            with worker.stdin as to:
                json.dump(spec, to)
            for line in worker.stdout:
                take(line, answers, bar)
        except BrokenPipeError:
            pass  # it has said why
        except KeyboardInterrupt:
            worker.terminate()
            bar.clear()
            tell("interrupted")
            answers.interrupted = True
        finally:
            bar.end()
    return answers, worker.returncode == 0 and len(answers.results) == runs
