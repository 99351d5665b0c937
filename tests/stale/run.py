#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The never-stale checker in all its configurations: a daemon that is stopped and killed under load, and stale_worker.

One line each: "PASS stale/debug/clean ..." or "FAIL stale/debug/clean ...", then what there is to see. "LATE" is one in which nothing
was wrong, but a wait ran out or a share was missed; the next line is the command that runs it alone. The daemons have the policy that
everybody has, but for the configurations whose options name another.
FLASHIELD_BIN names the daemon; the worker beside it is used. Exit code 1 if one failed.
"""
import argparse
import concurrent.futures
import os
import random
import shlex
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

from checked import Failure, Instant, Late, Run  # noqa: E402 (it needs the path above)

REPORTING = threading.Lock()
BUILD = os.path.join(HERE, "..", "..", "build")
MOVING = "flash_hits,segments_written,segments_reclaimed,index_slots_cleared"
FRUGAL = "flash_hits,segments_written,segments_reclaimed,frugal_kills"
ALL_COLUMNS = "--index=frugal --frugal-memory=100"
CHAIN = "--index=frugal --frugal-memory=6"  # of 31 segments: a merge behind each second one
FEW_TAGS = "--tag-bits 2 --hash-functions 2"
PAUSES = "cleaner_pause_before_commit=every:3,store_reclaim_visit=every:20,index_force_relocation=every:3,store_promote=every:4"
DEVICE = ("device_read_again=every:50,device_read_slow=every:200,device_read_eio=every:100-3000,"
          "device_read_corrupt=every:100-3000,device_write_eio=after:5-300,reclaim_walk_fails=every:1000-4000,"
          "store_revalidation_fails=every:7,")

# So few that the flash never goes offline: an instant that isn't reached any more would fail the run.
DEVICE_ONCE = ("device_read_again=every:50,device_read_slow=every:200,device_read_eio=after:5-500,"
               "device_read_corrupt=after:5-500,device_write_eio=after:5-300,store_revalidation_fails=every:7,")

SLOT_CLEAR, COMMIT = Instant("killed_at_slot_clear", 4000), Instant("killed_in_commit", 2000)
RECLAIM, CLOSE = Instant("killed_in_reclaim", 500), Instant("killed_in_close", 20)
WORK = (SLOT_CLEAR, COMMIT, RECLAIM, CLOSE, Instant("killed_in_row", 40), Instant("killed_in_relocation", 400))
FLUSH = Instant("killed_in_flush", 6)
TAKE_OVER = Instant("killed_in_take_over", 5, warm=False)  # before a journal has begun, nothing is left of the last one
SAVE = Instant("killed_in_save", 1, at_stop=True)
ATTACH = (Instant("killed_in_take_over", 5), SAVE, Instant("killed_in_recount", 8, after="KILL", over="index_slots_uncounted"))
RESIZE = (Instant("killed_in_table", 2, fresh=True, warm=False), Instant("killed_in_extent_move", 6, fresh=True))
JOURNAL = Instant("killed_in_journal", 200)
REBUILD = Instant("killed_in_rebuild", 20, after="KILL", over="rebuild_segments")


# What these are for is reached in their time only if all objects may go to flash. All others have the default policy.
ADMIT_ALL = set("""clean promote-sketch journal journal-region moves-journal instants-faults instants-journal frugal-faults
    frugal-instants chain-faults chain-moves chain-instants""".split())


def config(name, text, ends="TERM", daemon="", faults="", worker="", require=MOVING, region=False, needs=None, m=2,
           flash="4m", segment="128k", steady=True, measured=True, moves=False, instants=(), stale=False):
    """faults: of "5-300" each daemon gets a number. ends: the signals that end the daemon, in turn. region: with --region-dir,
    where the daemon has it; KILL then expects a warm start. needs: an option without which the configuration is skipped.
    steady: no fault of the device is armed, so that starts are warm as they should be. measured: and nothing else takes flash
    objects away, so that they are the same before and after. moves: in each life the flash moves to another file. instants: where
    daemons kill themselves; the signals end those that come between. stale: a violation must be found."""
    admission = ["--admission", "all"] if name in ADMIT_ALL else []
    return dict(name=name, text=text, ends=ends.split(), daemon=daemon.split() + admission, faults=faults, worker=worker.split(),
                require=require.split(","), region=region, needs=needs, m=m, flash=flash, segment=segment,
                steady=steady, measured=measured and steady, moves=moves, instants=instants, stale=stale)


CONFIGS = [
    config("clean", "clean stops"),
    config("kills", "kill -9, without values that expire, so that each object on flash can be counted", "KILL", region=True,
           worker="--lasting"),
    config("mixed", "kill -9 and clean stops in turn, while commits and reclaims are slowed down", "KILL TERM",
           faults=PAUSES, region=True, require=MOVING + ",index_moves,flash_promotions,flash_dead_on_commit"),
    config("recount", "kill -9 again and again while the slots that were left are counted", "KILL", "--admission all",
           faults="recount_slow=always,index_force_relocation=every:3", region=True),
    config("promote", "kill -9 and clean stops in turn, with copies of whatever is read on flash", "KILL TERM",
           "--promote lru --promote-share 0.2", region=True,
           require=MOVING + ",flash_promotions,flash_copy_hits,flash_copies_dropped", needs="--promote"),
    config("promote-second", "kill -9 and clean stops in turn, with copies of what is read on flash again, in a share that moves",
           "KILL TERM", "--promote second --promote-share auto --promote-miss-cost 0", region=True,
           require=MOVING + ",flash_promotions,flash_copy_hits", needs="--promote"),
    config("promote-sketch", "kill -9 and clean stops in turn, with copies of what the sketch counts", "KILL TERM",
           "--promote sketch --promote-threshold 0 --promote-share 0.2", region=True,
           require=MOVING + ",flash_promotions,flash_copy_hits", needs="--promote"),
    config("flush", "flush_all, at once and delayed, over clean stops", worker="--flush-ms 300",
           require="flash_hits,segments_written", flash="8m", measured=False),
    config("flush-kills", "flush_all, at once and delayed, over clean stops and kills", "TERM KILL", region=True,
           worker="--flush-ms 300", require="flash_hits,segments_written", flash="8m", measured=False),
    config("tags", "narrow tags: most reads meet records of others first", "TERM KILL", FEW_TAGS,
           "index_force_relocation=every:3,store_promote=every:3", m=4, flash="1280k", segment="256k", region=True,
           require=MOVING + ",false_matches,index_moves,flash_promotions"),
    config("faults", "a device that fails now and then", "TERM KILL", faults=DEVICE + PAUSES, region=True, steady=False,
           require="flash_hits,segments_written,flash_read_errors,flash_checksum_errors,flash_write_errors"),
    config("cuckoo", "kill -9 and clean stops in turn, with cuckoo filters", "KILL TERM",
           "--filter=cuckoo --filter-bits 8 --tag-bits 4 --admission all",
           PAUSES, region=True, needs="--filter=", require=MOVING + ",index_moves,flash_promotions,filter_rejects"),
    config("filter-units", "kill -9 and clean stops in turn, with filters whose units come and go", "KILL TERM",
           FEW_TAGS + " --filter-units 4 --filter-bits 4", PAUSES, m=4, flash="1280k", segment="64k", region=True,
           needs="--filter-units", require=MOVING + ",index_moves,flash_promotions,filter_rejects,filter_units_loaded"),
    # In so little memory a rebuild leaves segments out, so that the share of objects that come back says nothing.
    config("journal", "kill -9 with a journal", "KILL", "--journal=sync", needs="--journal", measured=False),
    config("journal-region", "kill -9 and clean stops in turn, with a journal and a region", "KILL TERM", "--journal=sync",
           faults=PAUSES, region=True, needs="--journal"),
    config("moves", "kill -9 and clean stops in turn, while the flash moves from file to file", "KILL TERM", "--enable-move", PAUSES,
           region=True, moves=True),
    config("moves-journal", "kill -9 and clean stops in turn, with a journal, while the flash moves from file to file", "KILL TERM",
           "--enable-move --journal=sync", PAUSES, needs="--journal", moves=True, measured=False),
    config("instants", "daemons that kill themselves in the middle of a change", "KILL TERM", "--flash-object-size 8000",
           faults=PAUSES, region=True, worker="--lasting", instants=(*WORK, *ATTACH, *RESIZE)),
    config("instants-faults", "the same while the device fails now and then, and with flush_all", "KILL TERM",
           faults=DEVICE_ONCE + PAUSES, region=True, steady=False, worker="--flush-ms 300",
           instants=(SLOT_CLEAR, COMMIT, RECLAIM, CLOSE, FLUSH), require="flash_hits,segments_written"),
    config("instants-journal", "the same with a journal in place of the region", "KILL TERM", "--journal=sync", needs="--journal",
           faults=PAUSES, measured=False, instants=(*WORK, TAKE_OVER, JOURNAL, REBUILD)),
    config("instants-both", "the same with a journal and a region, and with flush_all", "KILL TERM", "--journal=sync --admission all",
           needs="--journal", faults=PAUSES, region=True, measured=False, worker="--flush-ms 300",
           instants=(SLOT_CLEAR, RECLAIM, FLUSH, ATTACH[0], SAVE, JOURNAL), require="flash_hits,segments_written"),
    config("frugal", "kill -9 and clean stops in turn, with the frugal index", "KILL TERM", ALL_COLUMNS, PAUSES, region=True,
           needs="--index", measured=False, require=FRUGAL + ",flash_dead_on_commit"),
    config("frugal-faults", "the same while the device fails now and then, with flush_all", "TERM KILL", ALL_COLUMNS,
           faults=DEVICE + PAUSES, region=True, needs="--index", steady=False, worker="--flush-ms 300",
           require="flash_hits,segments_written,frugal_kills"),
    config("frugal-moves", "kill -9 and clean stops in turn, while the flash moves from file to file", "KILL TERM",
           ALL_COLUMNS + " --enable-move --admission all", PAUSES, region=True, needs="--index", measured=False, moves=True, require=FRUGAL),
    config("frugal-instants", "daemons with the frugal index that kill themselves in the middle of a change", "KILL TERM",
           ALL_COLUMNS, faults=PAUSES, region=True, needs="--index", measured=False,
           instants=(COMMIT, RECLAIM, CLOSE, Instant("killed_in_row", 40), ATTACH[0], SAVE), require=FRUGAL),
    config("chain", "kill -9 and clean stops in turn, with most columns of the frugal index on flash", "KILL TERM", CHAIN, PAUSES,
           region=True, needs="--frugal-memory", measured=False, require=FRUGAL + ",frugal_merges,frugal_chain_reads"),
    config("chain-faults", "the same while the device fails now and then, with flush_all", "TERM KILL", CHAIN,
           faults=DEVICE + PAUSES, region=True, needs="--frugal-memory", steady=False, worker="--flush-ms 300",
           require="flash_hits,segments_written,frugal_kills,frugal_merges,frugal_chain_reads"),
    config("chain-moves", "kill -9 and clean stops in turn, with a chain, while the flash moves from file to file", "KILL TERM",
           CHAIN + " --enable-move", PAUSES, region=True, needs="--frugal-memory", measured=False, moves=True,
           require=FRUGAL + ",frugal_merges"),
    config("chain-instants", "daemons with a chain that kill themselves in the middle of a change", "KILL TERM",
           CHAIN, faults=PAUSES, region=True, needs="--frugal-memory", measured=False,
           instants=(COMMIT, RECLAIM, CLOSE, Instant("killed_in_row", 40), Instant("killed_in_merge", 20), ATTACH[0], SAVE),
           require=FRUGAL + ",frugal_merges"),
    config("seeded", "a daemon that forgets to clear slots: the checker must find it", daemon="--admission all",
           faults="store_slots_kept=every:20", stale=True, require="flash_hits"),
]


def find_binary(variant):
    folder = BUILD if variant == "release" else os.path.join(BUILD, variant or "debug")
    return os.path.abspath(os.environ.get("FLASHIELD_BIN") or os.path.join(folder, "flashield"))


def variant_of(binary):
    words = os.path.dirname(binary).replace("-", "/").split("/")
    return next((v for v in ("debug", "asan", "tsan") if v in words), "release")


def again(run):
    """The command that runs it alone."""
    return shlex.join(["tests/stale/run.py", "--variant", run.arguments.variant, "--seconds", f"{run.arguments.seconds:g}",
                       "--seed", str(run.seed), run.config["name"]])


def report(run, wrong, late):
    name = f"stale/{run.arguments.variant}/{run.config['name']}"
    with REPORTING:
        if not wrong:
            print(f"PASS {name}: seed {run.seed}, {run.summary()}", flush=True)
            return
        print(f"{'LATE' if late else 'FAIL'} {name}: {wrong}\n  again: {again(run)}")
        print(f"  seed {run.seed}, {run.summary()}\n  {' '.join(run.command())}\n  FLASHIELD_FAULTS={run.config['faults']}")
        print("".join(f"  {line}\n" for line in run.said[-60:]), end="")
        print("".join(f"  daemon: {line}\n" for line in run.log_lines()[-40:]), flush=True)


def run_one(binary, c, arguments, seed):
    run = Run(binary, c, arguments, seed)
    missing = run.missing_option()
    if missing or (c["faults"] and arguments.variant == "release"):
        with REPORTING:
            print(f"skip stale/{arguments.variant}/{c['name']}: " +
                  (f"the daemon has no {missing}" if missing else "a release build has no fault points"), flush=True)
        return True
    wrong, late = "", False
    with run:
        try:
            run.go()
            if c["stale"]:
                wrong, late = "no stale value was found in a daemon that serves some", True
        except Failure as failure:
            wrong, late = str(failure), isinstance(failure, Late) and not any("VIOLATION" in line for line in run.said)
        if c["stale"] and any("STALE" in line for line in run.said):
            wrong, late = "", False
        report(run, wrong, late)
    return not wrong


def run_all(arguments, seeds):
    """All chosen configurations, once. How many failed."""
    binary = find_binary(arguments.variant)
    arguments.variant = arguments.variant or variant_of(binary)
    chosen = [c for c in CONFIGS if not arguments.names or c["name"] in arguments.names]
    jobs = [(c, arguments.seed or seeds.randrange(1, 1 << 32)) for c in chosen]
    with concurrent.futures.ThreadPoolExecutor(max_workers=arguments.jobs) as pool:
        return sum(not good for good in pool.map(lambda job: run_one(binary, job[0], arguments, job[1]), jobs))


def soak(arguments, seeds):
    """All chosen configurations again and again, each for a minute or more. It ends with the first round that failed."""
    end = time.monotonic() + arguments.minutes * 60
    names = [c for c in CONFIGS if not arguments.names or c["name"] in arguments.names]
    arguments.seconds = arguments.seconds or max(10, min(120, arguments.minutes * 60 / len(names)))
    failed = 0
    while time.monotonic() < end and not failed:
        failed = run_all(arguments, seeds)
    return failed


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="configurations; all by default")
    parser.add_argument("--seconds", type=float, help="for each configuration (default 6)")
    parser.add_argument("--life", type=float, help="seconds of a daemon's life, at most (default: an eighth of --seconds, 0.5 to 5)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--soak", action="store_true", help="all of them again and again, for --minutes")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--variant", choices=["release", "debug", "asan", "tsan"], help="of the daemon (default debug)")
    parser.add_argument("--worker", help="stale_worker to use (default: beside the daemon)")
    parser.add_argument("--jobs", type=int, default=1, help="configurations at a time (default 1)")
    parser.add_argument("--directory", help="where flash files are made (default: the system's)")
    parser.add_argument("--list", action="store_true", help="names the configurations")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if arguments.list:
        print("".join(f"{c['name']:12} {c['text']}\n" for c in CONFIGS), end="")
        return 0
    unknown = set(arguments.names) - {c["name"] for c in CONFIGS}
    if unknown:
        sys.exit(f"run.py: {' '.join(unknown)}: no such configuration")
    seeds = random.Random(arguments.seed or None)
    if arguments.soak:
        return 1 if soak(arguments, seeds) else 0
    arguments.seconds = arguments.seconds or 6
    return 1 if run_all(arguments, seeds) else 0


if __name__ == "__main__":
    sys.exit(main())
