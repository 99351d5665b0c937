#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""flashield-bench: reads the options, runs the studies one after the other, prints each one's table when it is there,
then the targets and the comparison, and keeps all samples as JSON."""
import getopt
import os
import subprocess
import sys

sys.dont_write_bytecode = True  # where it is installed, nothing is written

import machine  # noqa: E402
import study_dram  # noqa: E402, F401 (studies register themselves, in this order)
import study_flash  # noqa: E402, F401
import study_engine  # noqa: E402, F401
import study_elastic  # noqa: E402, F401
import study_promotion  # noqa: E402, F401
import study_frugal  # noqa: E402, F401
import study_chain  # noqa: E402, F401
import study_sim  # noqa: E402, F401
import study_instructions  # noqa: E402, F401
import study_stress  # noqa: E402, F401
import study_restart  # noqa: E402, F401
import study_device  # noqa: E402
from figures import Figures, show  # noqa: E402
from server import Trouble, WrongValue, tell  # noqa: E402
from study import STUDIES, Bench, Interrupted, Study, cpus, interrupt_by_signals  # noqa: E402
from table9 import table9  # noqa: E402

EXIT_WRONG, EXIT_TROUBLE = 1, 2
ORDER = ["ops", "flash", "pause", "capacity", "memory", "held", "threads", "placement", "index", "index_ablation", "elastic",
         "chain", "sim", "instructions", "real", "stress_overload", "stress_hang", "stress_memory", "stress_clwa", "stress_hot",
         "stress_index", "restart", "read_units", "promotion", "frugal", "device"]

HELP = """\
Usage: flashield-bench [OPTION]... [STUDY]...
Measures the daemon, and memcached beside it in the same run: starts both, loads them in turns
from one thread, and prints medians, ratios and the targets. Without a STUDY the plain ones run.

Studies (* plain)
{studies}

What is measured
  --daemon PATH       the daemon  (flashield beside this program)
  --memcached PATH    what it is compared with  (memcached in PATH)
  --slowdrive PATH    the emulated drive of studies of stress  (slowdrive.so beside this program)
  --dir DIR           where flash files are made and removed; a disk with O_DIRECT, no tmpfs
                      (/var/tmp)
  --cpus S,L          the servers' CPU and the load generator's; "none": both unpinned
                      (the first two that this process may use)
  --rounds N          rounds of alternating measurements, whose medians are reported  (3)
  --scale F           1: as the published figures; 0.05: a quick look with shorter runs and
                      fewer objects  (1)

Output
  --json FILE         all samples as JSON, kept for --base; - for standard output in place of
                      the tables
  --base FILE         compare with this earlier run's JSON
  --quiet             no progress
  --list              the names of the studies, one per line
  --help  --version

Of the study restart
  --trace FILE        the trace that is played  (one that flashield-tracegen makes)

Of the study device
  --path PATH         the file or block device that is OVERWRITTEN
  --size BYTES        of it that are used  (a block device: all of it; a file: 4g)
  --utilisation F     of the size that holds data, 0.1 to 1  (0.9)
  --total BYTES       written per pattern and unit  (the size once)
  --overwrite         needed before a block device is touched

Sizes take k, m, g, t (powers of 1024).
Exit status: 0 measured; 1 a server returned a wrong value; 2 bad usage, a study failed, or
interrupted. A missed target is no failure.
"""
LONG = ["daemon=", "memcached=", "slowdrive=", "dir=", "cpus=", "rounds=", "scale=", "json=", "base=", "quiet", "list",
        "help", "version", "trace=", "path=", "size=", "utilisation=", "total=", "overwrite"]
SUFFIXES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def die(text):
    tell(text)
    sys.exit(EXIT_TROUBLE)


def number(name, text, low, high, kind=float):
    try:
        if low <= (value := kind(text)) <= high:
            return value
    except ValueError:
        pass
    die(f'--{name}: "{text}" is not a {"whole " if kind is int else ""}number from {low:g} to {high:g}')


def size(name, text):
    digits, suffix = (text[:-1], text[-1].lower()) if text[-1:].lower() in SUFFIXES else (text, "")
    value = int(digits) * SUFFIXES.get(suffix, 1) if digits.isascii() and digits.isdigit() else 0
    if not 1 << 20 <= value <= 1 << 50:
        die(f'--{name}: "{text}" is not a size from 1m to 1024t (k, m, g, t: powers of 1024)')
    return value


def beside(name, *others):
    """Returns the path of a file that was built or installed with this program."""
    folder = os.path.dirname(os.path.abspath(sys.argv[0]))
    paths = [os.path.normpath(os.path.join(folder, path)) for path in (name, *others)]
    return next(filter(os.path.exists, paths), paths[0])


class Options:
    """The command line. Its values are constant while studies run."""

    def __init__(self, arguments):
        self.daemon, self.memcached, self.slowdrive = beside("flashield"), "memcached", beside("slowdrive.so")
        self.worker = beside("flashield-bench-worker", "../lib/flashield/flashield-bench-worker")
        self.dir, self.rounds, self.scale, self.quiet, self.overwrite = "/var/tmp", 3, 1.0, False, False
        self.json = self.base = self.trace = self.path = self.size = self.total = None
        self.utilisation = 0.9
        # With only one CPU the scheduler places both.
        self.server_cpu, self.load_cpu = cpus()[:2] if len(cpus()) > 1 else (-1, -1)
        try:
            options, names = getopt.gnu_getopt(arguments, "", LONG)
        except getopt.GetoptError as error:
            die(f"{error}; see --help")
        for option, text in options:
            self.take(option[2:], text)
        self.studies = [name for name in ORDER if STUDIES[name].plain and not names or
                        any(name == asked or name.startswith(asked + "_") for asked in names)]
        for asked in names:
            if not any(name == asked or name.startswith(asked + "_") for name in ORDER):
                die(f'"{asked}" is no study; there are: {", ".join(ORDER)}')
        if not os.access(self.daemon, os.X_OK):
            die(f"--daemon: {self.daemon}: it is not there, or no program")
        if not os.access(self.dir, os.W_OK | os.X_OK):
            die(f"--dir: {self.dir}: it is not there, or not writable")

    def take(self, name, text):
        if name == "help":
            print(HELP.format(studies="\n".join(f"  {study:15} {'*' if STUDIES[study].plain else ' '} "
                                                f"{STUDIES[study].text}" for study in ORDER)), end="")
            sys.exit(0)
        if name == "list":
            print("\n".join(ORDER))
            sys.exit(0)
        if name == "version":
            version = subprocess.run([self.worker, "version"], stdout=subprocess.PIPE, text=True, check=True).stdout
            print("flashield-bench (Flashield)", version.strip())
            sys.exit(0)
        if name == "cpus":
            self.server_cpu, self.load_cpu = self.two_cpus(text)
        elif name in ("quiet", "overwrite"):
            setattr(self, name, True)
        elif name == "rounds":
            self.rounds = number(name, text, 1, 99, int)
        elif name == "scale":
            self.scale = number(name, text, 1e-4, 100)
        elif name == "utilisation":
            self.utilisation = number(name, text, 0.1, 1)
        elif name in ("size", "total"):
            setattr(self, name, size(name, text))
        else:
            setattr(self, name, text)

    @staticmethod
    def two_cpus(text):
        if text == "none":
            return -1, -1
        chosen = [int(word) if word.isascii() and word.isdigit() else -1 for word in text.split(",")]
        if len(chosen) != 2 or min(chosen) < 0:
            die(f'--cpus: "{text}" is not two CPUs as in 0,1, nor none')
        for cpu in chosen:
            if cpu not in cpus():
                die(f"--cpus: this process may not run on CPU {cpu}")
        return chosen


def write_json(bench):
    if bench.options.json:
        try:
            bench.figures.write_json(bench.options.json)
        except OSError as error:
            die(f"--json: {error.filename or bench.options.json}: {error.strerror}")


def run_study(bench, registered):
    """Returns the exit status. A failure becomes a note too."""
    bench.progress(f"{registered.name}: {registered.text}")
    try:
        with Study(bench, registered.name) as running:
            registered.run(running)
        return 0
    except Interrupted:
        bench.figures.note(registered.name, "INTERRUPTED: these figures are not complete.")
        raise
    except (Trouble, WrongValue, OSError) as error:
        tell(f"study {registered.name} failed: {error}")
        bench.figures.note(registered.name, f"FAILED ({error}): these figures are not complete.")
        return EXIT_WRONG if isinstance(error, WrongValue) else EXIT_TROUBLE


def run_studies(bench, printed):
    """Prints and keeps each study's figures when it is over, so that a later one that fails doesn't lose them."""
    status = 0
    for name in bench.options.studies:
        try:
            failed = run_study(bench, STUDIES[name])
            status = EXIT_WRONG if EXIT_WRONG in (status, failed) else status or failed
        except Interrupted:
            tell("interrupted")
            bench.figures.about["INTERRUPTED"] = "not all studies were run to their end"
            return EXIT_TROUBLE
        finally:
            if printed:
                show(bench.figures.study_text(name))
                write_json(bench)
    return status


def main(arguments):
    options = Options(arguments)
    base = None
    if options.base:
        try:
            base = Figures.read_json(options.base)
        except OSError as error:
            die(f"--base: {options.base}: {error.strerror}")
        except ValueError as error:
            die(f"--base: {error}")
    if options.json and options.json != "-":  # a run takes minutes: what can't be written is found out before it
        try:
            os.close(os.open(options.json, os.O_WRONLY | os.O_CREAT, 0o666))
        except OSError as error:
            die(f"--json: {options.json}: {error.strerror}")
    bench = Bench(options)
    if "device" in options.studies:
        study_device.check(options, die)
    printed = options.json != "-"
    interrupt_by_signals()
    machine.about(bench)
    if printed:
        show(bench.figures.about_text())
    status = run_studies(bench, printed)
    table9(bench.figures)
    if printed:
        show(bench.figures.study_text("table9"))
        show(bench.figures.targets_text())
        if base:
            show(bench.figures.comparison_text(base))
    write_json(bench)
    if printed and options.json:
        show(["", f"All samples: {options.json}"])
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
