# SPDX-License-Identifier: BSD-3-Clause
"""Study "frugal": small objects on flash with a slot for each, and without, at several shares of columns in memory."""
import time

from figures import ratio
from flash_fill import EXTSTORE_THREADED, OBJECT_EXTRA_BYTES, fill_as_written
from server import EXTSTORE, FLASHIELD, MIB, Trouble
from study import study
from study_flash import ABSENT, cold_load

MEMORY_MB, LEAST_MEMORY_MB = 24, 8
FLASH_MB, LEAST_FLASH_MB = 512, 32
VALUES = {"value_bytes": 150, "value_bytes_most": 250}
OBJECT_BYTES = 196 + OBJECT_EXTRA_BYTES  # on average; the sizes are log-uniform
DRAM_OBJECT_BYTES = 300
TURNS = 1.1  # of the flash, are filled
SHARE_ASKED = 0.65  # of the objects that the flash holds, the youngest: overwriting has left no gap that reaches them
DRAM_MARGIN = 1.5  # times what DRAM holds, are set behind the overwritten keys, which leave it; and aren't asked for
SHARE_OVERWRITTEN = 0.05
PARTS = 64  # of the memory: what is set at a time, as soon as memory has room for two
EXT_KEYS, EXT_KEYS_LEAST = 400000, 80000  # more than extstore has memory for

OURS = ["--admission", "all", "--segment-size", "1m", "--flash-object-size", "240", "--promote=off",
        "--flash-read-timeout", "30s"]
SLOTS, DEFAULT, EXT = "slots", "frugal, 25 %", "extstore"
FRUGAL = {"frugal, all": 100, DEFAULT: 25, "frugal, 10 %": 10}
CONTENDERS = {SLOTS: (FLASHIELD, OURS),
              **{name: (FLASHIELD, [*OURS, "--index=frugal", f"--frugal-memory={percent}"])
                 for name, percent in FRUGAL.items()},
              EXT: (EXTSTORE, EXTSTORE_THREADED)}

CASES = {"c1": (1, 1), "c16": (16, 1), "c50": (50, 1), "mget c4": (4, 50)}  # connections, keys per get
SECONDS = 0.8
SETS = {"c1": (1, 30000), "c50": (50, 60000)}  # connections, sets
SETS_LEAST = 5000
QUIET_SECONDS, PATIENCE_SECONDS = 0.05, 30  # without work for so long, a server has done what sets have left it
QUIET_SHARE = 0.1


class Contender:
    """A server with its flash full, and the keys on it."""

    def __init__(self, s, name):
        kind, extra = CONTENDERS[name]
        self.s, self.name = s, name
        memory_mb, flash_bytes = s.scaled(MEMORY_MB, LEAST_MEMORY_MB), s.scaled(FLASH_MB, LEAST_FLASH_MB) * MIB
        self.memory_bytes = memory_mb * MIB
        self.held = flash_bytes // OBJECT_BYTES
        self.after = int(DRAM_MARGIN * self.memory_bytes / DRAM_OBJECT_BYTES)
        self.keys = int(TURNS * self.held) + self.after
        self.server = s.start(kind, memory_mb=memory_mb, flash_bytes=flash_bytes, extra=extra)
        self.asked = {}  # the load's settings for keys on flash

    def fill(self):
        self.s.progress(f"frugal: filling {self.name}")
        if self.server.kind == FLASHIELD:
            self.fill_ours()
        else:
            self.fill_extstore()

    def fill_ours(self):
        load = VALUES | {"part_bytes": self.memory_bytes / PARTS}
        before, overwritten, cpu = self.keys - self.after, int(SHARE_OVERWRITTEN * self.keys), self.server.cpu_seconds()
        fill_as_written(self.s, self.server, before, **load)
        fill_as_written(self.s, self.server, before, order="uniform", operations=overwritten, **load)
        fill_as_written(self.s, self.server, self.after, first_key=before, **load)
        settle(self.server)
        sets = self.keys + overwritten
        self.s.add(f"fill {self.name}", cpu_us=1e6 * (self.server.cpu_seconds() - cpu) / sets, **self.moved({}, sets))
        self.ask(self.keys - int(SHARE_ASKED * self.held), before)

    def fill_extstore(self):
        self.keys = self.s.scaled(EXT_KEYS, EXT_KEYS_LEAST)
        fill_as_written(self.s, self.server, self.keys, **VALUES)
        held = int(self.server.stat("", "curr_items"))
        self.s.add(f"held {self.name}", objects=held)
        self.ask(self.keys - int(0.8 * held), self.keys - int(0.4 * held))

    def ask(self, first, end):
        if end <= first:
            raise Trouble(f"{self.name}: no keys lie on its flash")
        self.asked = VALUES | {"first_key": first, "keys": end - first}

    def moved(self, before, sets):
        """Returns what went to flash since "stats flash" was as before, for each set; and how many were lost."""
        after = self.server.stats("flash")
        written = float(after["flash_objects_written"]) - float(before.get("flash_objects_written", 0))
        return {"moved_percent": 100 * written / sets}

    def held_ours(self):
        """Adds what the index is and takes."""
        stats = {name: float(value) for name, value in self.server.stats("flash").items() if is_number(value)}
        objects = stats["flash_items"] + stats["flash_ghosts"] if self.name == SLOTS else stats["frugal_items"]
        self.s.add(f"held {self.name}", objects=objects, dram_bytes=stats["dram_bytes_per_flash_item"])
        if self.name != SLOTS:
            parts = {part: ratio(stats[f"frugal_{part}_bytes"], objects) for part in ("column", "prefilter", "kill")}
            self.s.add(f"held {self.name}", **{f"{part}_bytes": value for part, value in parts.items()},
                       rest_bytes=stats["dram_bytes_per_flash_item"] - sum(parts.values()),
                       columns=stats["frugal_columns"], chain_columns=stats["frugal_chain_columns"],
                       watermarks=stats["frugal_watermarks"])

    def written_ours(self):
        """Adds what was written to the device since the start."""
        stats = {name: float(value) for name, value in self.server.stats("flash").items() if is_number(value)}
        written = stats["flash_bytes_written"]
        self.s.add(f"held {self.name}", written_byte=ratio(written, stats["flash_object_bytes_written"]),
                   chain_percent=100 * ratio(stats["frugal_chain_bytes_written"], written),
                   fill_percent=100 * stats["segment_fill"])

    def gets(self, case, number, absent):
        """Adds a load of gets to its row. Returns the cells that are compared."""
        connections, keys_per_get = CASES[case]
        row = f"{'absent' if absent else 'get'} {case} {self.name}"
        load = self.asked | ({"first_key": ABSENT, "expect_misses": True} if absent else {})
        result, counted = cold_load(self.s, self.server, kind="get", order="uniform", connections=connections,
                                    keys_per_get=keys_per_get, seconds=self.s.seconds(SECONDS), warmup_share=0.1,
                                    seed=number + 1, **load)
        self.s.judge(result)
        cells = load_cells(result, result.get_latency, result.cpu_us())
        self.s.add(row, **cells)
        if self.server.kind == FLASHIELD:
            kind = "miss" if absent else "hit"
            self.s.add(row, reads=ratio(counted[f"flash_reads_on_{kind}"], counted[f"flash_lookups_{kind}"]),
                       pages=ratio(counted["flash_pages_read"], counted[f"flash_lookups_{kind}"]))
        if not absent:
            self.s.add(row, hit_percent=100 * ratio(result.hits, result.gets),
                       flash_percent=100 * ratio(counted["flash_hits"], counted["hits"]))
        if result.errors:
            self.s.note(f"{row}: {result.errors} gets failed, the first with: {result.first_error}")
        return cells

    def sets(self, case):
        """Adds a load of sets of new keys to its row. The CPU time is counted until the server has moved them."""
        connections, sets = SETS[case]
        sets = self.s.scaled(sets, SETS_LEAST)
        row, before, cpu = f"set {case} {self.name}", self.server.stats("flash"), self.server.cpu_seconds()
        result = self.s.fill(self.server, sets, first_key=self.keys, connections=connections, **VALUES)
        settle(self.server)
        self.keys += sets
        cells = load_cells(result, result.set_latency, 1e6 * (self.server.cpu_seconds() - cpu) / sets)
        self.s.add(row, **cells)
        if self.server.kind == FLASHIELD:
            self.s.add(row, **self.moved(before, sets))
        return cells


def is_number(text):
    try:
        return float(text) is not None
    except ValueError:
        return False


def load_cells(result, latency, cpu_us):
    return {"cpu_us": cpu_us, "ops_s": result.operations / result.seconds, "p50_us": latency.us(0.5),
            "p99_us": latency.us(0.99), "server_percent": result.server_cpu_ns / 1e7 / result.seconds,
            "load_percent": result.load_cpu_ns / 1e7 / result.seconds}


def settle(server):
    """Waits until the server neither computes nor waits for a CPU: it has moved what it had to move."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        before = server.cpu_seconds() + server.waited_ns() / 1e9
        time.sleep(QUIET_SECONDS)
        if server.cpu_seconds() + server.waited_ns() / 1e9 - before < QUIET_SHARE * QUIET_SECONDS:
            return


def compare(s, row, cells):
    """Adds a round's ratios over the slot index."""
    for name, ours in cells.items():
        if name != SLOTS:
            s.add(f"{row} {name}", **{f"{column}_over_slots": ratio(ours[f"{column}_{unit}"], cells[SLOTS][f"{column}_{unit}"])
                                      for column, unit in (("ops", "s"), ("cpu", "us"), ("p99", "us"))})


def in_turns(contenders, number):
    return contenders[::-1] if number % 2 else contenders


@study("frugal", "small objects on flash with slots and with the frugal index, extstore beside")
def frugal(s):
    """A flash that has turned over, of objects that all went there."""
    s.describe("small objects on flash with slots and with the frugal index, extstore beside",
               f"Values of 150 to 250 B (log-uniform), keys of 30 B; -t 1, -m {s.scaled(MEMORY_MB, LEAST_MEMORY_MB)}, "
               f"{s.scaled(FLASH_MB, LEAST_FLASH_MB)} MiB of flash in segments of 1 MiB, --admission all, --promote=off. The flash is filled "
               f"{TURNS} times, not faster than the cleaner writes, a twentieth of the keys is overwritten, and more new ones push these out "
               "of DRAM. Rows: of the frugal index the share of columns in memory; extstore with 16 I/O threads, which at this -m holds "
               "no more headers than that: it is asked for keys that it holds. Bytes: DRAM for each object on flash, by part; B "
               "written: to the device for each byte of objects moved there, measured at the end. Gets: uniform over keys on flash, "
               "or of absent keys, cN: N connections with one get each, mget: of 50 keys; CPU is the server's per key; reads and "
               "pages: requests to the device, and 4-KiB pages of them, for each key. Sets: of new keys, as fast as it goes; their CPU "
               "time and that of the fill include the moves to flash, and the fill's some microsecond of polls; moved %: objects that went to flash for each set, the others "
               "were evicted or are still in DRAM. Over slots: ratios within a round.",
               {"moved_percent": ("moved %", 1),
                "objects": ("objects", 0), "dram_bytes": ("DRAM B", 2), "column_bytes": ("columns B", 2),
                "prefilter_bytes": ("prefilter B", 2), "kill_bytes": ("kills B", 2), "rest_bytes": ("rest B", 2),
                "columns": ("columns", 0), "chain_columns": ("in chain", 0), "watermarks": ("ranges given up", 0),
                "written_byte": ("B written", 3), "chain_percent": ("of chain %", 1), "fill_percent": ("fill %", 1),
                "reads": ("reads /key", 4), "pages": ("pages /key", 3), "hit_percent": ("hit %", 2),
                "flash_percent": ("flash %", 2), "ops_over_slots": ("ops/s over slots", 2),
                "cpu_over_slots": ("CPU over slots", 2), "p99_over_slots": ("p99 over slots", 2)})
    contenders = [one for one in (Contender(s, name) for name in CONTENDERS) if one.server]
    for one in contenders:
        one.fill()
        if one.server.kind == FLASHIELD:
            one.held_ours()
    for number in s.rounds("gets"):
        for case in CASES:
            for absent in (False, True):
                compare(s, f"{'absent' if absent else 'get'} {case}",
                        {one.name: one.gets(case, number, absent) for one in in_turns(contenders, number)})
    for number in s.rounds("sets"):
        for case in SETS:
            compare(s, f"set {case}", {one.name: one.sets(case) for one in in_turns(contenders, number)})
    for one in contenders:
        if one.server.kind == FLASHIELD:
            one.written_ours()
    s.target(f"{DEFAULT}: DRAM for each object on flash", s.median(f"held {DEFAULT}", "dram_bytes"), "B", at_most=1.2)
    s.beside("  with slots", s.median(f"held {SLOTS}", "dram_bytes"), "B")
    for name in FRUGAL:
        s.beside(f"{name}: gets of keys on flash a second, c50, over slots",
                 s.median(f"get c50 {name}", "ops_over_slots"), "x")
        s.beside(f"{name}: gets of absent keys a second, c50, over slots",
                 s.median(f"absent c50 {name}", "ops_over_slots"), "x")
