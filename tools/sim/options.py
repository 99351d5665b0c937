# SPDX-License-Identifier: BSD-3-Clause
"""The command line of flashield-sim, and the spec for its worker (tools/sim/spec.h)."""
import argparse
import itertools
import os
import sys

import endurance

SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
COUNTS = {"k": 10**3, "m": 10**6, "g": 10**9}
TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}
MOST_BYTES = 1 << 50
MOST_RUNS = 4096

DESCRIPTION = """\
Plays a trace in virtual time against the daemon's engine and other cache policies, and tells hit ratios
and the bytes that each writes to flash. "policies" lists them.
"""
PAPER = """\
Prints tables 2 to 8 and figures 2, 4 and 8 of the Flashield paper, with ours beside the paper's. The Memcachier trace is
private: ours are of a trace with its published statistics, by flashield-tracegen. A figure that can't be produced at the
scale is left out, and a note says why.
"""
EPILOG = """\
Several policies, sizes and budgets are combined, each with each. A policy is NAME, NAME:reinsert, or
NAME:NUMBER for one with a parameter; "flashield-sim policies" tells them.
"flashield-sim paper" prints the Flashield paper's tables with ours beside, with --scale 1/N or --quick: see
"flashield-sim paper --help". "flashield-sim --version" prints the version.
Sizes take k, m, g, t (powers of 1024), counts k, m, g (powers of 1000), times us, ms, s, m, h, d.
Exit status: 0 all runs were played; 2 bad usage, a run that failed, or interrupted.
"""
SIZE_DESCRIPTION = """\
Finds the cheapest memory and flash with which the cache reaches a hit ratio on a trace, within a budget of flash writes.
"""
SIZE_EPILOG = """\
At least one of --hit-ratio and --write-budget is needed. The default prices are those of the Flashield paper's table 1.
Exit status: 0 found; 1 the target can't be reached; 2 bad usage, runs that failed, or interrupted.
"""
TRAIN_DESCRIPTION = """\
Plays a trace with the daemon's engine, and writes the last model that its guard has accepted. The daemon starts with it
by its option "model", and "flashield-sim run" by --option model=FILE.
"""
TRAIN_EPILOG = """\
Sizes and rules should be the daemon's, as a model learns what is read again within their time.
Exit status: 0 written; 1 no model was accepted; 2 bad usage, a run that failed, or interrupted.
"""


def refuse(text, wanted):
    raise argparse.ArgumentTypeError(f'"{text}" is not {wanted}')


def number(text, wanted, low, high, kind=float):
    try:
        value = kind(text)
    except ValueError:
        refuse(text, wanted)
    return value if low <= value <= high else refuse(text, wanted)


def whole(text, units, wanted, low, high):
    digits, unit = (text[:-1], text[-1].lower()) if text[-1:].lower() in units else (text, "")
    if not (digits.isascii() and digits.isdigit()):
        refuse(text, wanted)
    value = int(digits) * units.get(unit, 1)
    return value if low <= value <= high else refuse(text, wanted)


def size(text):
    return whole(text, SIZES, "a size from 0 to 1024t (k, m, g, t: powers of 1024)", 0, MOST_BYTES)


def positive_size(text):
    return whole(text, SIZES, "a size from 1 to 1024t (k, m, g, t: powers of 1024)", 1, MOST_BYTES)


def count_to(high):
    def count(text):
        return whole(text, COUNTS, f"a whole number from 1 to {high} (k, m, g: thousands)", 1, high)
    return count


def time_us(text):
    wanted = "a time from 0 to 36500d (us, ms, s, m, h, d)"
    unit = next((unit for unit in sorted(TIMES, key=len, reverse=True) if text.endswith(unit)), "")
    return round(number(text[:len(text) - len(unit)], wanted, 0, 36500 * 86400 / TIMES.get(unit, 1)) * TIMES.get(unit, 1) * 1e6)


def share(text):
    wanted = "a share above 0% and up to 100%"
    digits, scale = (text[:-1], 100) if text.endswith("%") else (text, 1)
    try:
        return number(digits, wanted, 1e-9 * scale, scale) / scale
    except argparse.ArgumentTypeError:
        refuse(text, wanted)


def ratio(text):
    wanted = "a ratio of DRAM to flash as 1:7, the second from 0 to 1000000 times the first"
    dram, colon, flash = text.partition(":")
    if not colon:
        refuse(text, wanted)
    return number(flash, wanted, 0, 1e12) / number(dram, wanted, 1e-6, 1e6)


def budget(text):
    return number(text, "a number from 0 to 100", 0, 100)


def price(text):
    return number(text, "a price from 0 to 1000000", 0, 1e6)


def sample(text):
    one, slash, rest = text.partition("/")
    if not slash or one != "1":
        refuse(text, "a share from 1/1 to 1/1000000")
    return whole(rest, {}, "a share from 1/1 to 1/1000000", 1, 10**6)


def option(text):
    name, equals, value = text.partition("=")
    return text if name and equals and value and "," not in text else refuse(text, "NAME=VALUE without a comma")


def several(kind):
    def parse_all(text):
        return [kind(part) for part in text.split(",")]
    return parse_all


class Parser(argparse.ArgumentParser):
    """One line about what is wrong, and exit status 2."""

    def error(self, message):
        self.exit(2, f"flashield-sim: {message.removeprefix('argument ')}; see --help\n")


class Formatter(argparse.RawDescriptionHelpFormatter):
    """The same width everywhere."""

    def __init__(self, prog):
        super().__init__(prog, max_help_position=26, width=110)


def add_trace(parser):
    what = parser.add_argument_group("What is played")
    what.add_argument("--trace", metavar="FILE", required=True, help="a trace, also compressed")
    what.add_argument("--format", choices=["auto", "flashield", "memcachier", "twitter", "meta"], default="auto",
                      help="its format  (auto)")
    what.add_argument("--copies", metavar="N", type=count_to(4096), default=1,
                      help="disjoint copies of the trace, started evenly through it  (1)")
    what.add_argument("--limit", metavar="N", type=count_to(10**15), help="end after so many requests of the trace")
    what.add_argument("--sample", metavar="1/N", type=sample, default=1,
                      help="play a share of the objects, with sizes scaled  (1/1)")
    return what


def add_times(rules, warmup):
    rules.add_argument("--warmup", metavar="T", type=time_us, help=f"trace time that is in no count  ({warmup})")
    rules.add_argument("--train", metavar="T", type=time_us, help="what a model is trained on first  (a 7th of the trace)")
    rules.add_argument("--horizon", metavar="T", type=time_us,
                       help="how far a model looks ahead  (as the engine measures; a 168th of the trace in mode paper)")


def add_changed_sizes(rules):
    rules.add_argument("--changed-sizes", choices=["hit", "update"], default="hit",
                       help="a get with another size than the object's is a hit, or a miss and a set  (hit)")


def add_engine(rules):
    rules.add_argument("--option", metavar="NAME=VALUE", type=option, action="append", help="for the engine; may repeat")
    rules.add_argument("--seed", metavar="N", type=count_to(2**53), default=1, help="of what is random  (1)")


def add_output(parser):
    output = parser.add_argument_group("Output")
    output.add_argument("--jobs", metavar="N", type=count_to(1024), default=len(os.sched_getaffinity(0)),
                        help="runs at a time  (the CPUs)")
    return output


def add_last(output):
    output.add_argument("--quiet", action="store_true", help="no progress bar")
    output.add_argument("--help", action="help", help="prints this")


def add_sizes(parser):
    sizes = parser.add_argument_group("Sizes")
    sizes.add_argument("--dram", metavar="SIZE[,SIZE...]", type=several(size), help="bytes of objects in DRAM")
    sizes.add_argument("--memory", metavar="SIZE[,SIZE...]", type=several(positive_size),
                       help="in place of --dram: the daemon's -m, every cost counted; flashield only")
    sizes.add_argument("--flash", metavar="SIZE[,SIZE...]", type=several(size), help="bytes of flash  (0)")
    sizes.add_argument("--capacity", metavar="SHARE[,SHARE...]", type=several(share),
                       help="in place of these: DRAM and flash together, as a share of the working set, as in 10%%")
    sizes.add_argument("--ratio", metavar="D:F[,D:F...]", type=several(ratio), help="DRAM to flash of --capacity  (1:7)")
    sizes.add_argument("--segment", metavar="SIZE", type=positive_size, help="the unit of writing  (the policy's default)")


def add_clwa(rules):
    rules.add_argument("--clwa", metavar="X[,X...]", type=several(budget),
                       help="the budget: bytes written to flash per byte that applications write; 0: none  (none; for flashield the daemon's)")


def add_run(commands):
    run = commands.add_parser("run", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False, add_help=False,
                              usage="flashield-sim run --trace FILE --policy P[,P...] SIZES [OPTION]...\n"
                                    "       flashield-sim size --trace FILE [--hit-ratio X] [--write-budget B] [OPTION]...\n"
                                    "       flashield-sim train --trace FILE SIZES --output FILE [OPTION]...\n"
                                    "       flashield-sim paper [OPTION]...\n"
                                    "       flashield-sim policies", formatter_class=Formatter)
    what = add_trace(run)
    what.add_argument("--policy", metavar="P[,P...]", required=True, type=several(str), help="the policies")
    add_sizes(run)
    rules = run.add_argument_group("Rules")
    add_clwa(rules)
    add_times(rules, "a 7th; --referee: 0")
    rules.add_argument("--value-bytes-only", action="store_true", help="objects have no keys, headers and other costs")
    rules.add_argument("--count-objects", action="store_true", help="sizes are numbers of objects, which all count 1")
    add_changed_sizes(rules)
    rules.add_argument("--referee", choices=["own-A", "own-B"],
                       help="textbook rules: value bytes only, a set is an access, sizes are kept (A) or renewed (B)")
    add_engine(rules)
    output = add_output(run)
    output.add_argument("--json", metavar="FILE", help="an object for each run, one per line; -: in place of the table")
    output.add_argument("--report", metavar="FILE.html", help="a page with plots and tables; needs python3-matplotlib")
    output.add_argument("--apps", action="store_true", help="rows for each application in the table")
    add_last(output)


def add_size(commands):
    size_parser = commands.add_parser("size", description=SIZE_DESCRIPTION, epilog=SIZE_EPILOG, allow_abbrev=False, add_help=False,
                                      usage="flashield-sim size --trace FILE [--hit-ratio X] [--write-budget B] [OPTION]...",
                                      formatter_class=Formatter)
    what = add_trace(size_parser)
    what.add_argument("--policy", metavar="P", default="flashield", help="the policy, of two tiers  (flashield, whose memory is -m)")
    target = size_parser.add_argument_group("Target")
    target.add_argument("--hit-ratio", metavar="X", type=share, help="as in 0.8 or 80%%  (half a point less than a cache "
                        "in DRAM that holds everything)")
    target.add_argument("--write-budget", metavar="B", type=endurance.budget,
                        help="what may go to flash: a CLWA as 0.2, 20m/s, 1200TBW/5y, 1DWPD, or 1DWPD/1920g  (the policy's own default)")
    target.add_argument("--most-dram", metavar="SIZE", type=positive_size, help="the most memory to try  (all objects in DRAM)")
    target.add_argument("--most-flash", metavar="SIZE", type=size, help="the most flash to try; 0: none  (all objects on flash)")
    prices = size_parser.add_argument_group("Prices")
    prices.add_argument("--dram-price", metavar="P", type=price, help="of a GiB of DRAM with its share of the server  (30.08, dollars)")
    prices.add_argument("--flash-price", metavar="P", type=price, help="of a GiB of flash  (1.17, dollars)")
    prices.add_argument("--endurance", metavar="E", type=endurance.endurance,
                        help="the drive's, for its life: 1200TBW, or 1DWPD/5y of the flash size")
    rules = size_parser.add_argument_group("Rules")
    rules.add_argument("--segment", metavar="SIZE", type=positive_size, help="the unit of writing  (the policy's default)")
    add_times(rules, "a 7th")
    add_changed_sizes(rules)
    add_engine(rules)
    output = add_output(size_parser)
    output.add_argument("--json", metavar="FILE", help="one object; -: in place of the text")
    add_last(output)


def add_train(commands):
    train = commands.add_parser("train", description=TRAIN_DESCRIPTION, epilog=TRAIN_EPILOG, allow_abbrev=False, add_help=False,
                                usage="flashield-sim train --trace FILE SIZES --output FILE [OPTION]...", formatter_class=Formatter)
    add_trace(train)
    add_sizes(train)
    rules = train.add_argument_group("Rules")
    add_clwa(rules)
    add_times(rules, "a 7th")
    add_changed_sizes(rules)
    add_engine(rules)
    output = train.add_argument_group("Output")
    output.add_argument("--output", metavar="FILE", required=True, help="the model, as JSON")
    add_last(output)
    train.set_defaults(policy=["flashield"], value_bytes_only=False, count_objects=False, referee=None, report=None, jobs=1)


def add_paper(commands):
    paper = commands.add_parser("paper", description=PAPER, allow_abbrev=False, add_help=False, formatter_class=Formatter,
                                usage="flashield-sim paper [OPTION]...")
    paper.add_argument("--scale", metavar="1/N", type=sample, default=16,
                       help="of the published requests, keys and memory; tables 2 to 5 have a tenth of it  (1/16)")
    paper.add_argument("--quick", action="store_true", help="a quarter of the scale")
    paper.add_argument("--trace", metavar="FILE", help="tables 5 to 8 of this trace instead, without the paper's beside them")
    paper.add_argument("--format", choices=["auto", "flashield", "memcachier", "twitter", "meta"], default="auto",
                       help="the format of --trace  (auto)")
    paper.add_argument("--capacity", metavar="SHARE", type=share, default=0.1,
                       help="memory for --trace: DRAM and flash together, as a share of the working set  (10%%)")
    paper.add_argument("--seed", metavar="N", type=count_to(2**32), default=1, help="of the trace and of what is random  (1)")
    paper.add_argument("--jobs", metavar="N", type=count_to(1024), default=len(os.sched_getaffinity(0)), help="runs at a time  (the CPUs)")
    paper.add_argument("--json", metavar="FILE", help="an object for each table, one per line; -: in place of the tables")
    paper.add_argument("--report", metavar="FILE.html", help="a page with the tables and plots of figures 4 and 8; needs python3-matplotlib")
    paper.add_argument("--quiet", action="store_true", help="no progress bar")
    paper.add_argument("--help", action="help", help="prints this")


def parse(arguments, version):
    """The options; ends the program where they are wrong. version returns the line of --version."""
    if arguments[:1] == ["--version"]:
        print(version())
        sys.exit(0)
    parser = Parser(prog="flashield-sim", allow_abbrev=False, usage="flashield-sim run|size|train|paper|policies [OPTION]...",
                    add_help=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="run|size|train|paper|policies")
    add_run(commands)
    add_size(commands)
    add_train(commands)
    add_paper(commands)
    if arguments[:1] in (["--help"], ["-h"]):
        print("\n".join(commands.choices[name].format_help() for name in ("run", "size", "train", "paper")), end="")
        sys.exit(0)
    commands.add_parser("policies", allow_abbrev=False)
    chosen = parser.parse_args(arguments)
    if chosen.command != "policies" and chosen.trace == "-":
        parser.error("--trace: it is read from a file, not from standard input")
    if getattr(chosen, "report", None) == "-":
        parser.error("--report: it is written to a file, not to standard output")
    if chosen.command in ("run", "train"):
        check(chosen, parser)
    if chosen.command == "size" and chosen.hit_ratio is None and chosen.write_budget is None:
        parser.error("one of --hit-ratio, --write-budget is needed, or both")
    return chosen


def check(chosen, parser):
    given = [name for name in ("dram", "memory", "capacity") if getattr(chosen, name) is not None]
    if len(given) != 1:
        parser.error("one of --dram, --memory, --capacity is needed" if not given else
                     f"only one of --{', --'.join(given)} can be given")
    if chosen.capacity and chosen.flash:
        parser.error("--flash: --capacity gives it already, divided by --ratio")
    if chosen.ratio and not chosen.capacity:
        parser.error("--ratio: it divides --capacity, which is not given")
    if chosen.value_bytes_only and chosen.count_objects:
        parser.error("only one of --value-bytes-only, --count-objects can be given")
    if chosen.referee and chosen.changed_sizes == "update":
        parser.error("--changed-sizes: --referee says already what a changed size is")
    if chosen.command == "train" and len(sizes_of(chosen)) * len(chosen.clwa or [0]) != 1:
        parser.error("one size and one budget are needed, as one model is trained")


def sizes_of(chosen):
    """Each pair of DRAM and flash, as fields of a run."""
    if chosen.capacity:
        return [{"capacity": part, "ratio": pair} for part, pair in itertools.product(chosen.capacity, chosen.ratio or [7])]
    name = "dram" if chosen.dram is not None else "memory"
    return [{f"{name}_bytes": dram, "flash_bytes": flash}
            for dram, flash in itertools.product(getattr(chosen, name), chosen.flash or [0])]


def spec_of(chosen):
    """What the worker reads. Sizes change slowest, budgets fastest."""
    values = chosen.value_bytes_only or chosen.referee
    rules = {
        "segment_bytes": chosen.segment, "warmup_us": chosen.warmup, "train_us": chosen.train, "horizon_us": chosen.horizon,
        "sample": chosen.sample, "accounting": "objects" if chosen.count_objects else "values" if values else "full",
        "referee": chosen.referee, "changed_is_update": chosen.changed_sizes == "update",
        "options": ",".join(chosen.option) if chosen.option else None,
    }
    runs = [{"policy": policy, **pair, "clwa": clwa, **rules}
            for pair, policy, clwa in itertools.product(sizes_of(chosen), chosen.policy, chosen.clwa or [None])]
    if len(runs) > MOST_RUNS:
        print(f"flashield-sim: these are {len(runs)} runs; {MOST_RUNS} are the most", file=sys.stderr)
        sys.exit(2)
    return around_runs(chosen, runs)


def around_runs(chosen, runs):
    return {"trace": {"path": chosen.trace, "format": chosen.format, "copies": chosen.copies, "limit": chosen.limit},
            "jobs": chosen.jobs, "seed": chosen.seed, "runs": runs}
