# SPDX-License-Identifier: BSD-3-Clause
"""Study "instructions": instructions per operation in user space, by callgrind: figures that no neighbour on the
machine disturbs. Each case is run twice, with N operations and with 2 N; the difference is what N cost, without the
start, the filling and what is done once."""
import glob
import os
import re
import shutil

from figures import NAN
from flash_fill import OURS, flash_hits
from server import FLASHIELD, MEMCACHED, MIB, Trouble
from study import study

ABSENT = 1000000000  # keys from here on are never set
CONNECTIONS, DESCRIPTORS = 244, 256  # valgrind keeps 12 for itself
EVENT_LOOP = "event_base_loop"
NOTED = 10  # of the most expensive functions
FLASH_KEYS = 16000  # set and read, which makes them candidates for flash

# The load's settings; misses and flash choose the keys that are asked for. The cost of a flash hit follows from those
# of a get and a miss, which come before it.
GET, GET_PIPELINED, MISS = "get, one at a time", "get, 16 pipelined", "miss, one at a time"
CASES = {
    GET: {"kind": "get"}, GET_PIPELINED: {"kind": "get", "pipeline": 16},
    "get, 50 connections": {"kind": "get", "connections": 50}, MISS: {"kind": "get", "expect_misses": True},
    "multiget of 100, per key": {"kind": "get", "keys_per_get": 100}, "set, one at a time": {"kind": "set"},
    "set, 16 pipelined": {"kind": "set", "pipeline": 16}, "set, 50 connections": {"kind": "set", "connections": 50}}
FLASH_CASES = {"flash hit, one at a time": {"kind": "get"}, "flash hit, 16 pipelined": {"kind": "get", "pipeline": 16},
               "flash hit, copied, 16 pipelined": {"kind": "get", "pipeline": 16}}
# memcached has no limits. Keys are of the application "bench", which stays below its ceiling.
LIMITED_CASES = {"set, 16 pipelined, others limited": {"kind": "set", "pipeline": 16},
                 "set, 16 pipelined, limited": {"kind": "set", "pipeline": 16}}
# The copies' share is so small that nearly each hit makes a copy and drops one.
EXTRA = {"flash hit, copied, 16 pipelined": ["--promote=lru", "--promote-share=0.01"],
         "set, 16 pipelined, others limited": ["--app-limit", "other:dram=1m-32m,write=1m"],
         "set, 16 pipelined, limited": ["--app-limit", "bench:dram=1m-32m,write=1m"]}
COLUMNS = {FLASHIELD: "flashield_instructions", MEMCACHED: "memcached_instructions"}

NAMED = ("fn=", "cfn=", "ob=", "cob=")
NAME = re.compile(r"(c?fn|c?ob)=\((\d+)\)(?: (.*))?$")


class Profile:
    """The counts of callgrind: the total, and the self cost of each function by its name.

    Its file gives every function and object a number at its first mention, then a line per source line with the cost
    there; a line after "calls=" is the cost of a call and belongs to the callee's own lines. ValueError: the file isn't
    callgrind's, or has no total."""

    def __init__(self, lines):
        self.costs, self.total = {}, None
        self.objects, self.functions = {}, {}  # names by their numbers
        self.object, self.callee_object, self.current = "", None, None
        is_callee = False
        for line in lines:
            line = line.rstrip("\n")
            if line.startswith(NAMED):
                self.name_line(line)
            elif line[:1].isdigit() or line.startswith(("+", "-", "*")):
                if not is_callee:
                    self.cost_line(line)
                is_callee = False
            elif line.startswith("calls="):
                is_callee = True
            elif line.startswith("totals:"):
                self.total = (self.total or 0) + float(line.split()[1])
        if self.total is None:
            raise ValueError("no total")

    def cost_line(self, line):
        words = line.split()
        if self.current is None or len(words) < 2:
            raise ValueError(f"a cost of no function: {line}")
        self.costs[self.current] = self.costs.get(self.current, 0) + float(words[1])

    def name_line(self, line):
        match = NAME.match(line)
        if not match:
            raise ValueError(f"a name without a number: {line}")
        kind, number, name = match.groups()
        names = self.objects if kind.endswith("ob") else self.functions
        of_callee = kind == "cfn" and self.callee_object is not None
        if name and names is self.objects:
            names.setdefault(number, os.path.basename(name))
        elif name:  # without a symbol it is an address, of which the object tells more
            owner = self.callee_object if of_callee else self.object
            names.setdefault(number, f"{owner} {name}" if name.startswith("0x") else name)
        if number not in names:
            raise ValueError(f"a number that has no name: {line}")
        if kind == "fn":
            self.current = names[number]
        elif kind == "ob":
            self.object = names[number]
        else:  # of the callee that follows, or of none
            self.callee_object = names[number] if kind == "cob" else None


def read_worker(path):
    """The profile of the thread that turned its event loop most. The other threads are left out: what they do goes by
    the clock (memcached's crawls its lists, the cleaner writes segments), and under valgrind the clock runs fifty times
    as fast for them."""
    profiles = []
    for name in glob.glob(glob.escape(path) + "-*"):
        with open(name, encoding="utf-8", errors="replace") as lines:
            try:
                profiles.append(Profile(lines))
            except ValueError as error:
                raise Trouble(f"{name}: {error}") from error
    if not profiles:
        raise Trouble(f"callgrind left no profile in {path}")
    return max(profiles, key=lambda profile: profile.costs.get(EVENT_LOOP, 0))


def per_operation(more, less, operations):
    """Returns the cost of one operation in all, and by function, the most expensive first."""
    costs = {name: (cost - less.costs.get(name, 0)) / operations for name, cost in more.costs.items()}
    return (more.total - less.total) / operations, sorted(costs.items(), key=lambda cost: (-cost[1], cost[0]))


def counted_run(s, kind, case, operations, flash, extra=()):
    """A server under callgrind: objects are stored, the load runs, the server ends. Returns its worker's profile, the
    load's result and the hits from flash."""
    path = os.path.join(s.options.dir, f"bench-{os.getpid()}.callgrind")
    wrapper = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=yes", "--fair-sched=try",
               f"--callgrind-out-file={path}", "--separate-threads=yes"]
    if kind == MEMCACHED:
        # It lowers its limit of descriptors to its connections, for good; valgrind refuses that unless they are just as
        # many as it leaves a program.
        wrapper = ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}", *wrapper]
    # The memory is so small that a load pushes objects out of it in a few seconds, in spite of valgrind.
    spec = {"memory_mb": 16, "flash_bytes": 64 * MIB, "extra": [*OURS, "--segment-size", "256k", *extra]} if flash else {
        "memory_mb": 64, "extra": extra}
    keys = FLASH_KEYS if flash else 10000
    try:
        with s.serving(kind, max_connections=CONNECTIONS, wrapper=wrapper, **spec) as server:
            s.fill(server, keys, read=flash, value_bytes=257)
            if flash:  # only set, which pushes the others out of memory
                s.fill(server, 8000, first_key=ABSENT // 2, value_bytes=4000, rate=3000)
            hits = flash_hits(server) if flash else NAN
            result = s.run(server, **{"order": "uniform", "keys": keys, "value_bytes": 257, "operations": operations,
                                      "first_key": ABSENT if "expect_misses" in case else 0, "seed": 1} | case)
            result.flash_hits = flash_hits(server) - hits if flash else NAN
            result.copies = server.flash_stat("flash_promotions") if flash else NAN
        return read_worker(path), result
    finally:
        for name in glob.glob(glob.escape(path) + "*"):
            os.unlink(name)


def measure(s, name, case, kind, operations, number=0):
    flash = name in FLASH_CASES
    runs = [counted_run(s, kind, case, operations * times, flash, EXTRA.get(name, ())) for times in (1, 2)]
    (less, fewer), (more, result) = runs
    total, costs = per_operation(more, less, operations)
    cost = total
    if flash:
        # A few of the gets for objects on flash are served from DRAM, and a few miss: each is taken out at the cost of
        # its kind.
        on_flash = result.flash_hits - fewer.flash_hits
        hits, gets = result.hits - fewer.hits, result.gets - fewer.gets
        get = s.median(GET_PIPELINED if "pipeline" in case else GET, COLUMNS[kind])
        cost = (total * operations - (hits - on_flash) * get - (gets - hits) * s.median(MISS, COLUMNS[kind])) / on_flash
        s.add(name, flash_percent=100 * result.flash_hits / result.gets, copies=(result.copies - fewer.copies) / on_flash)
    s.add(name, **{COLUMNS[kind]: cost})
    if number == 0 and (flash or name == GET):
        s.note(f"{name}, {kind}, of {total:.0f}: " + ", ".join(f"{function} {self:.0f}"
                                                             for function, self in costs[:NOTED]))


@study("instructions", "instructions per operation by callgrind, memcached beside")
def instructions(s):
    s.describe("instructions per operation in user space, memcached beside",
               "Counted by callgrind in the worker thread (-t 1), libraries included, the kernel not: the difference of two "
               "runs, the second with twice the operations. Keys have 30 B, values 257 B; sets replace. Flash hits: gets "
               "that were served otherwise (flash %) are taken out. 16 pipelined: on one connection. 50 connections: under "
               "valgrind the server is slow, so that it finds all of them with a command. Notes: self cost of the most "
               "expensive functions.",
               {"flashield_instructions": ("flashield", 0), "memcached_instructions": ("memcached", 0),
                "instructions_ratio": ("instr. ratio", 3), "flash_percent": ("flash %", 2), "copies": ("copies /hit", 3)}, sampled=False)
    if not shutil.which("valgrind"):
        s.note("valgrind is not here: nothing was counted.")
        return
    if "%" in s.options.dir:  # valgrind takes it for a pattern
        s.note(f"the name of {s.options.dir} can't be given to valgrind: nothing was counted.")
        return
    with s.serving(MEMCACHED, memory_mb=64) as server:  # without valgrind, whose failure would look the same
        has_memcached = server is not None
    operations = s.scaled(20000, 2000)
    for name, case in CASES.items():
        s.progress(f"instructions: {name}")
        measure(s, name, case, FLASHIELD, operations)
        if has_memcached:
            measure(s, name, case, MEMCACHED, operations)
            ours, theirs = (s.median(name, column) for column in COLUMNS.values())
            s.add(name, instructions_ratio=ours / theirs)
    for name, case in LIMITED_CASES.items():
        s.progress(f"instructions: {name}")
        measure(s, name, case, FLASHIELD, operations)
    for name, case in FLASH_CASES.items():
        for number in s.rounds(name):  # only flash hits depend on timing, so that more than one round tells more
            measure(s, name, case, FLASHIELD, operations, number)
