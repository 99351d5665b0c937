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
    """The share that is done, on a terminal's standard error."""

    WIDTH = 40

    def __init__(self, quiet):
        self.drawn = False
        self.on = not quiet and sys.stderr.isatty()

    def show(self, share, note):
        if self.on:
            full = int(share * self.WIDTH)
            print(f"\r[{'#' * full}{'-' * (self.WIDTH - full)}] {share:4.0%} {note}\x1b[K", end="", file=sys.stderr, flush=True)
            self.drawn = True

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


def take(line, answers, bar, runs):
    said = json.loads(line)
    if "progress" in said:
        bar.show(said["progress"], f"{said['done']} of {runs} runs")
    elif "result" in said:
        answers.results[said["result"]["run"]] = said["result"]
    elif "error" in said:
        answers.errors[said["run"]] = said["error"]
    elif "trace" in said:
        answers.trace = said["trace"]


def play(spec, quiet):
    """The answers, and whether all runs were played. An interrupt leaves those that were ready."""
    answers, bar, runs = Answers(), Bar(quiet), len(spec["runs"])
    bar.show(0, "reading the trace")
    with subprocess.Popen([worker_path(), "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        try:
            with worker.stdin as to:
                json.dump(spec, to)
            for line in worker.stdout:
                take(line, answers, bar, runs)
        except BrokenPipeError:
            pass  # it has said why
        except KeyboardInterrupt:
            worker.terminate()
            bar.clear()
            tell("interrupted")
            answers.interrupted = True
        finally:
            bar.clear()
    return answers, worker.returncode == 0 and len(answers.results) == runs
