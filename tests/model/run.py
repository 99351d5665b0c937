#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The model test in all its configurations: a fresh daemon, tiny memory and flash, model_client.

One line each: "PASS model/plain ..." or "FAIL model/plain ...", then what there is to see. "LATE model/plain" is one in which nothing
was wrong, but which did not reach what it is for in time, or took too much time or memory; the next line is the command that runs it alone.
The daemons have the policy that everybody has, but for the configurations whose options name another.
FLASHIELD_BIN names the daemon; the client beside it is used. Exit code 1 if one failed.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "protocol"))

from helpers import free_port  # noqa: E402 (it needs the path above)

REPORTING = threading.Lock()  # reports are printed whole, and the shared allowance of extra time is counted
BUILD = os.path.join(HERE, "..", "..", "build")
ITEM_LIMIT = 128 << 10
RATE = {"release": 20000, "debug": 15000, "asan": 8000, "tsan": 5000}  # commands per second, each thread
MOVING = "flash_hits,segments_written,segments_reclaimed"
MIB = 1 << 20
NOT_REACHED, NO_END = 3, "no end"  # exit codes of the client; run.c has the first
UNANSWERED = re.compile(r"no answer for \d+ s")


def config(name, daemon="", faults="", client="", require=MOVING, strict=True, m=4, flash="2m", segment="128k",
           short=True):
    return dict(name=name, daemon=daemon.split(), faults=faults, client=client.split(), require=require,
                strict=strict, m=m, flash=flash, segment=segment, short=short)


FEW_TAGS = "--tag-bits 2 --hash-functions 2"
REVALIDATE = "index_force_relocation=every:3,store_revalidation_fails=every:7"
SLOW_STEPS = "cleaner_pause_before_commit=every:3,store_reclaim_visit=every:20,store_promote=every:4"
DEVICE = ("device_read_again=every:5,device_read_slow=every:50,device_read_eio=prob:5,"
          "device_read_corrupt=prob:5,reclaim_walk_fails=every:5000")
CONFIGS = [
    config("plain", require=MOVING + ",flash_objects_reinserted"),
    config("all", "--admission all"),
    config("tags", FEW_TAGS, flash="1280k", segment="256k", require=MOVING + ",false_matches,exact_rejects"),
    config("frugal", "--index=frugal --frugal-memory=100", SLOW_STEPS, require=MOVING + ",frugal_kills,flash_objects_reinserted"),
    config("frugal-device", "--index=frugal --frugal-memory=100 --reinsertion live", DEVICE, strict=False,
           require="flash_hits,segments_written,frugal_kills,flash_read_errors,flash_checksum_errors"),
    config("chain", "--index=frugal --frugal-memory=7", SLOW_STEPS,
           require=MOVING + ",frugal_kills,flash_objects_reinserted,frugal_merges,frugal_chain_reads"),
    config("chain-device", "--index=frugal --frugal-memory=7 --reinsertion live", DEVICE, strict=False,
           require="flash_hits,segments_written,frugal_kills,flash_read_errors,flash_checksum_errors,frugal_chain_reads"),
    config("paused", faults="cleaner_pause_before_commit=always", require=MOVING + ",flash_dead_on_commit"),
    config("revalidate", faults=REVALIDATE, require=MOVING + ",flash_revalidations,index_moves"),
    config("freeze", FEW_TAGS, "store_revalidation_fails=prob:700,cleaner_pause_before_commit=every:2,"
           "device_read_slow=every:5", client="--connections 8 --keys 12000 --rmw-percent 50",
           require=MOVING + ",flash_freezes"),
    config("promote", "--promote lru --promote-share 0.2",
           require=MOVING + ",flash_promotions,flash_copy_hits,flash_copies_dropped"),
    config("promote-second", "--promote second --promote-share auto --promote-miss-cost 0",
           require=MOVING + ",flash_promotions,flash_copy_hits,flash_copies_dropped"),
    config("promote-sketch", "--promote sketch --promote-threshold 0 --promote-share 0.2",
           require=MOVING + ",flash_promotions,flash_copy_hits"),
    config("cuckoo", "--filter cuckoo --filter-bits 8 --tag-bits 4", "store_promote=every:5",
           require=MOVING + ",filter_rejects,flash_promotions"),
    config("filter-units", FEW_TAGS + " --filter-units 4 --filter-bits 4", "store_promote=every:5", flash="1280k", segment="64k",
           require=MOVING + ",filter_rejects,filter_units_loaded,flash_promotions"),
    config("device", faults=DEVICE, strict=False,
           require=MOVING + ",flash_reads_deferred,flash_read_errors,flash_checksum_errors"),
    config("timeout", "--flash-read-timeout 5ms", "device_read_slow=every:20,device_read_again=every:7",
           strict=False, require=MOVING + ",flash_read_timeouts"),
    config("write-errors", faults="device_write_eio=prob:20", strict=False,
           require="flash_hits,segments_written,flash_write_errors"),
    config("race", FEW_TAGS, "device_read_slow=every:8,index_force_relocation=every:5,store_promote=every:4",
           client="--connections 8 --keys 12000 --rmw-percent 50", require=MOVING + ",flash_revalidations"),
    config("expiry", faults="cleaner_pause_before_commit=every:2", client="--ttl-percent 25", flash="12m",
           require="flash_hits,segments_written,flash_dead_on_commit"),
    config("live", "--reinsertion live --clock-mode mfu --placement paper", "store_reclaim_visit=every:20",
           require=MOVING + ",flash_objects_reinserted"),
    config("everything", FEW_TAGS + " --reinsertion live --admission all",
           REVALIDATE + ",store_promote=every:2,cleaner_pause_before_commit=every:3", flash="1280k", segment="256k",
           require=MOVING + ",false_matches,flash_promotions,flash_revalidations"),
    config("trouble", FEW_TAGS, REVALIDATE + ",store_promote=every:3,cleaner_pause_before_commit=every:3,"
           "device_write_eio=prob:5," + DEVICE, flash="1280k", segment="256k", strict=False, short=False,
           require="flash_hits,segments_written,flash_promotions,flash_revalidations"),
    config("sweep", faults="reclaim_walk_fails=every:40,store_promote=every:2", short=False,
           require=MOVING + ",segments_swept"),
    config("no-filters", FEW_TAGS + " --filter-bits 0 --admission read-once", flash="1280k", segment="256k",
           short=False, require=MOVING + ",false_matches"),
    config("small-segments", "--reinsertion live", "store_promote=every:3", segment="64k", flash="6m", m=2,
           short=False),
    config("buffered", "--direct-io off --admission second-hit --filter-bits 8", short=False),
    config("write-limit", "--flash-write-limit 512k", short=False, require="flash_hits,segments_written"),
    config("trained", "--training-window 2s --flashiness-horizon 2s",
           require="flash_hits,segments_written"),
    config("crowd", FEW_TAGS, "device_read_slow=every:20,store_promote=every:4",
           client="--threads 4 --connections 40 --keys 24000", short=False),
    config("bigger", client="--keys 100000 --shared-keys 2000", m=32, flash="24m", segment="512k", short=False),
    config("dram-only", flash=None, short=False, require="evictions"),
    config("tiny", m=1, segment="64k", flash="1m", short=False),
]


def resident(pid):
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


class Daemon:
    """One daemon for one configuration; its resident memory is looked at ten times a second."""

    def __init__(self, binary, c, directory):
        self.port = free_port()
        self.log = open(os.path.join(directory, "daemon.log"), "wb+")
        command = [binary, "-l", "127.0.0.1", "-p", str(self.port), "-t", "2", "-m", str(c["m"]), "-I",
                   str(ITEM_LIMIT), "--metrics-listen=off"]
        if os.geteuid() == 0:
            command += ["-u", "root"]
        if c["flash"]:
            command += ["--flash-path", os.path.join(directory, "flash"), "--flash-size", c["flash"],
                        "--segment-size", c["segment"]]
            if c["strict"]:  # however busy the machine is, no read is answered as a miss for its sake
                command += ["--flash-read-timeout", "60s"]
        self.command = command + c["daemon"]
        env = dict(os.environ, FLASHIELD_FAULTS=c["faults"])
        self.process = subprocess.Popen(self.command, stderr=self.log, stdout=self.log, env=env)
        self.peak = 0
        self.running = True
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()

    def watch(self):
        while self.running:
            self.peak = max(self.peak, resident(self.process.pid))
            time.sleep(0.1)

    def wait_until_up(self):
        for _ in range(1800):
            if self.process.poll() is not None:
                return False
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            except OSError:
                time.sleep(0.1)
        return False

    def stop(self):
        """Its exit code after SIGTERM; None when it had to be killed."""
        self.running = False
        self.watcher.join()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(300)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def text(self):
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")


def client_command(client, c, port, arguments):
    wait = min(max(arguments.seconds * 3, 60), arguments.extra)
    command = [client, "--server", f"127.0.0.1:{port}", "--name", c["name"], "--seconds", str(arguments.seconds),
               "--wait", f"{wait:.1f}", "--item-limit", str(ITEM_LIMIT), "--value-max", "100000", "--large", "2048",
               "--keys", "16000",
               "--rate", str(arguments.rate), "--flush-every", str(max(3.0, arguments.seconds * 0.6)),
               "--require", c["require"]]
    if arguments.seed:
        command += ["--seed", str(arguments.seed)]
    if c["strict"] and arguments.variant in ("release", "debug"):
        command.append("--strict-miss")
    return command + ["--patience", "180"] + c["client"]  # for what hangs: whoever is slow isn't wrong


def judge(daemon, output, code, exit_code, c, variant):
    """What is wrong and what is late, in a few words each."""
    wrong, late = [], []
    log = daemon.text()
    if code == NOT_REACHED:
        late.append("it did not reach what it is for")
    elif code == NO_END or UNANSWERED.search(output):
        late.append("the client did not end" if code == NO_END else UNANSWERED.search(output).group())
    elif code != 0:
        wrong.append(f"client ended with {code}")
    if exit_code is None:
        late.append("daemon did not stop")
    elif exit_code != 0:
        wrong.append(f"daemon ended with {exit_code}")
    if re.search(r"Sanitizer|runtime error:", log):
        wrong.append("sanitizer report")
    limit = int(1.1 * c["m"] * MIB) + 24 * MIB
    if variant in ("release", "debug") and daemon.peak > limit:
        late.append(f"resident memory {daemon.peak / MIB:.1f} MiB, limit {limit / MIB:.1f}")
    return wrong, late


def talk(client, c, daemon, arguments):
    """What the client printed, and its exit code."""
    if not daemon.wait_until_up():
        return "the daemon did not start\n", 1
    try:
        done = subprocess.run(client_command(client, c, daemon.port, arguments), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=arguments.seconds * 5 + 900, check=False)
        return done.stdout.decode("utf-8", "replace"), done.returncode
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode("utf-8", "replace"), NO_END


def again(c, arguments):
    """The command that runs it alone."""
    command = ["tests/model/run.py", "--variant", arguments.variant, "--seconds", f"{arguments.seconds:g}", c["name"]]
    return shlex.join(command + (["--seed", str(arguments.seed)] if arguments.seed else []))


def report(daemon, c, arguments, output, wrong, late):
    name = f"model/{arguments.variant}/{c['name']}"
    if not wrong and not late:
        summary = output.strip().splitlines()[-1] if output.strip() else ""
        print(f"PASS {name} (peak {daemon.peak / MIB:.1f} MiB) {summary}", flush=True)
        return
    print(f"{'FAIL' if wrong else 'LATE'} {name}: {'; '.join(wrong + late)}\n  again: {again(c, arguments)}")
    print(f"  {' '.join(daemon.command)}\n  FLASHIELD_FAULTS={c['faults']}")
    print("".join(f"  {line}\n" for line in output.splitlines()))
    print("".join(f"  daemon: {line}\n" for line in daemon.text().splitlines()[-60:]), flush=True)


def run_one(binary, client, c, arguments):
    with tempfile.TemporaryDirectory(prefix="flashield-model-", dir=arguments.directory) as directory:
        daemon = Daemon(binary, c, directory)
        began = time.monotonic()
        exit_code = None
        try:
            output, code = talk(client, c, daemon, arguments)
        finally:  # also when this script is told to end
            exit_code = daemon.stop()
        wrong, late = judge(daemon, output, code, exit_code, c, arguments.variant)
        with REPORTING:
            arguments.extra -= max(0, time.monotonic() - began - arguments.seconds - 2)
            report(daemon, c, arguments, output, wrong, late)
        return not wrong and not late


def find_binary(variant):
    folder = BUILD if variant == "release" else os.path.join(BUILD, variant or "")
    return os.path.abspath(os.environ.get("FLASHIELD_BIN") or os.path.join(folder, "flashield"))


def variant_of(binary):
    words = re.split(r"[/-]", os.path.dirname(binary))
    return next((v for v in ("debug", "asan", "tsan") if v in words), "release")


def run_all(variant, arguments):
    """All chosen configurations with one build of the daemon. How many failed."""
    binary = find_binary(variant)
    client = os.path.abspath(arguments.client or os.path.join(os.path.dirname(binary), "model_client"))
    for program in (binary, client):
        if not os.access(program, os.X_OK):
            sys.exit(f"run.py: {program}: there is no such program; build it with: make model VARIANT={variant}")
    arguments.variant = variant
    arguments.rate = arguments.any_rate or RATE[variant]
    chosen = []
    for c in CONFIGS:
        if c["name"] not in arguments.names if arguments.names else not (c["short"] or arguments.long):
            continue
        if c["faults"] and variant == "release":
            print(f"skip model/release/{c['name']}: a release build has no fault points", flush=True)
            continue
        chosen.append(c)
    with concurrent.futures.ThreadPoolExecutor(max_workers=arguments.jobs) as pool:
        return sum(not good for good in pool.map(lambda c: run_one(binary, client, c, arguments), chosen))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="configurations; all that fit by default")
    parser.add_argument("--seconds", type=float, help="for each configuration (default 6; 25 with --long)")
    parser.add_argument("--long", action="store_true", help="all configurations in debug, asan and tsan builds: half an hour")
    parser.add_argument("--variant", choices=sorted(RATE), help="of the daemon (default debug; with --long also asan and tsan)")
    parser.add_argument("--rate", type=float, dest="any_rate", help="commands per second of each of two threads")
    parser.add_argument("--jobs", type=int, default=1, help="configurations at a time (default 1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--client", help="model_client to use (default: beside the daemon)")
    parser.add_argument("--directory", help="where flash files are made (default: the system's)")
    parser.add_argument("--list", action="store_true", help="names the configurations")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    known = [c["name"] for c in CONFIGS]
    if arguments.list:
        print("\n".join(known))
        return 0
    if set(arguments.names) - set(known):
        sys.exit(f"run.py: {' '.join(set(arguments.names) - set(known))}: no such configuration")
    if os.environ.get("FLASHIELD_BIN"):
        variants = [arguments.variant or variant_of(find_binary(None))]
    elif arguments.variant or not arguments.long:
        variants = [arguments.variant or "debug"]
    else:
        variants = ["debug", "asan", "tsan"]
    arguments.seconds = arguments.seconds or (25 if arguments.long else 6)
    arguments.extra = 600  # seconds in all, for what a busy machine does not reach in time
    failed = sum(run_all(variant, arguments) for variant in variants)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
