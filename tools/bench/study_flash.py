# SPDX-License-Identifier: BSD-3-Clause
"""Studies of objects on flash: flash, pause, capacity, real."""
import math
import os
import subprocess
import time

from figures import NAN, ratio
from flash_fill import EXTSTORE_ONE, EXTSTORE_THREADED, OURS, flash_fill, flash_hits
from load import Hist, raw_reads, sleeps_until_end
from server import EXTSTORE, FLASHIELD, MIB
from study import study

ABSENT = 1000000000000  # keys from here on are never set
DROP_SECONDS = 0.02
SHARE_LEAST = 0.99  # of the hits of a measurement that flash must serve

# ---- flash -----------------------------------------------------------------------------------

# These hold for the fill, and for the objects of the server that keeps all in DRAM.
SIZES = {"257 B": ({"value_bytes": 257, "wanted": 20000, "filler": 40000, "cycles": 24}, 80000),
         "4 KB": ({"value_bytes": 4096, "wanted": 2000, "filler": 4000, "cycles": 20}, 6000)}
CASES = {"c1": (1, 1), "c16": (16, 1), "c50": (50, 1), "mget c4": (4, 100)}  # connections, keys per get
IN_DRAM, RAW = "flashield DRAM", "raw reads"
CONTENDERS = {  # all run all the while; the one in DRAM keeps all objects there
    "flashield": (FLASHIELD, 2 << 30, OURS), IN_DRAM: (FLASHIELD, 256 * MIB, OURS),
    "extstore": (EXTSTORE, 2 << 30, EXTSTORE_ONE), "extstore 16 threads": (EXTSTORE, 2 << 30, EXTSTORE_THREADED)}
COUNTED = ["flash_reads", "flash_pages_read", "flash_key_bytes_read", "flash_reads_on_hit", "flash_lookups_hit",
           "flash_reads_on_miss", "flash_lookups_miss"]


def counts(server):
    stats = server.stats("flash") if server.kind == FLASHIELD else {}
    return {"hits": server.stat("", "get_hits"), "gets": server.stat("", "cmd_get"), "flash_hits": flash_hits(server),
            "disk_bytes": server.proc("io", "read_bytes")} | {name: float(stats.get(name, NAN)) for name in COUNTED}


def cold_load(s, server, **spec):
    """Returns a load's result with a cold page cache, and the counts meanwhile, warm-up included. This process shares
    the load generator's CPU, not the server's."""
    server.drop_cache()
    before = counts(server)
    load = s.load(server, **spec)
    allowed = os.sched_getaffinity(0)
    if s.options.load_cpu >= 0:
        os.sched_setaffinity(0, {s.options.load_cpu})
    try:
        while load.running():
            server.drop_cache()
            sleeps_until_end(load, DROP_SECONDS)
    finally:
        os.sched_setaffinity(0, allowed)
    result = load.join(s.name)
    after = counts(server)
    return result, {name: after[name] - before[name] for name in after}


class FlashSize:
    """The measurements of one size of value."""

    def __init__(self, s, size):
        self.s, self.size = s, size
        self.fill, self.dram_keys = SIZES[size]
        self.servers, self.loads = {}, {}
        self.total = dict.fromkeys(COUNTED, 0)  # of all loads on ours

    def start(self):
        s = self.s
        for name, (kind, flash_bytes, extra) in CONTENDERS.items():
            server = s.start(kind, memory_mb=64, flash_bytes=flash_bytes, extra=extra)
            if not server:
                continue
            s.progress(f"flash: {self.size}, filling {name}")
            if name == IN_DRAM:
                load = {"keys": s.scaled(self.dram_keys, 100), "value_bytes": self.fill["value_bytes"]}
                s.fill(server, connections=8, pipeline=8, **load)
            else:
                load = flash_fill(s, server, **self.fill)
            if load:
                self.servers[name], self.loads[name] = server, load
            else:
                s.note(f"{self.size}: no keys of {name} lie on its flash: not measured.")
                s.stop(server)

    def measured(self, row, result, latency, cpu_ns, operations):
        cells = {"cpu_us": cpu_ns / 1e3 / operations, "ops_s": operations / result.seconds, "p50_us": latency.us(0.5),
                 "p99_us": latency.us(0.99), "server_percent": cpu_ns / 1e7 / result.seconds}
        self.s.add(row, **cells)
        return cells

    def of_server(self, name, row, number, connections, keys_per_get, seconds=0.8, **spec):
        """Returns a row's cells, and the counts."""
        result, counted = cold_load(self.s, self.servers[name], kind="get", order="uniform", connections=connections,
                                    keys_per_get=keys_per_get, seconds=self.s.seconds(seconds), warmup_share=0.1,
                                    seed=number + 1, **(self.loads[name] | spec))
        if not result.operations:
            return None, counted
        cells = self.measured(row, result, result.get_latency, result.server_cpu_ns, result.operations)
        self.s.add(row, load_percent=result.load_cpu_ns / 1e7 / result.seconds)
        if result.errors:
            self.s.note(f"{row}: commands failed, the first with: {result.first_error}")
        if name == "flashield":
            kind = ("flash_reads_on_miss", "flash_lookups_miss") if spec else COUNTED[:5]
            for counter in kind:
                self.total[counter] += counted[counter]
        if not spec:
            self.sources(name, row, result, counted)
        return cells, counted

    def sources(self, name, row, result, counted):
        """Notes a measurement whose hits did not come from where they should."""
        share = ratio(counted["flash_hits"], counted["hits"])
        self.s.add(row, hit_percent=100 * ratio(result.hits, result.gets), flash_percent=100 * share)
        if name != IN_DRAM:
            self.s.add(row, disk_bytes=ratio(counted["disk_bytes"], counted["flash_hits"]))
        if not (share <= 1 - SHARE_LEAST if name == IN_DRAM else share >= SHARE_LEAST):
            self.s.note(f"{row}: hits were not from where they should be (see flash %).")

    def of_raw(self, row, number, connections, keys_per_get):
        """Reads from the part of our file that holds segments, with as many bytes per read as ours took so far. A short
        run first tells how many reads fill the time."""
        ours = self.servers["flashield"]
        read, unit = counts(ours), int(ours.flash_stat("flash_read_unit"))
        spec = {"path": ours.flash_path, "bytes": int(ours.flash_stat("segments_used") * ours.flash_stat("segment_bytes")),
                "unit": unit, "read_bytes": unit * round(read["flash_key_bytes_read"] / read["flash_reads"] / unit),
                "depth": connections * keys_per_get, "cpu": self.s.options.server_cpu, "seed": number + 1}
        probe = raw_reads(self.s.bench, reads=500, **spec)
        result = raw_reads(self.s.bench, reads=500 + int(500 / probe.seconds * self.s.seconds(0.8)), **spec)
        cells = self.measured(row, result, result.latency, result.cpu_ns, result.reads)
        self.s.add(row, read_bytes=spec["read_bytes"])
        return cells

    def case(self, case, number):
        cells = {}
        contenders = [*self.servers, RAW]
        for name in contenders[::-1] if number % 2 else contenders:
            row = f"{self.size} {case} {name}"
            cells[name] = (self.of_raw(row, number, *CASES[case]) if name == RAW else
                           self.of_server(name, row, number, *CASES[case])[0])
        ours, dram, raw = (cells[name] for name in ("flashield", IN_DRAM, RAW))
        row = f"{self.size} {case}"
        if not ours or not dram:
            return
        self.s.add(row, cpu_share=ours["cpu_us"] / (dram["cpu_us"] + 1.3 * raw["cpu_us"]),
                   cpu_beyond_us=ours["cpu_us"] - dram["cpu_us"] - raw["cpu_us"])
        if CASES[case][1] == 1:
            self.s.add(row, beyond_us=ours["p50_us"] - dram["p50_us"] - raw["p50_us"])
        for name, column in (("extstore", "ops_ratio"), ("extstore 16 threads", "threaded_ratio")):
            if cells.get(name):
                self.s.add(row, **{column: ours["ops_s"] / cells[name]["ops_s"]})

    def measure(self):
        for number in self.s.rounds(self.size):
            for case in CASES:
                self.case(case, number)
            self.of_server("flashield", f"{self.size} c50 miss flashield", number, *CASES["c50"], seconds=0.5,
                           first_key=ABSENT, expect_misses=True)
        total = self.total
        self.s.add(f"{self.size} reads flashield",
                   reads_per_hit=ratio(total["flash_reads_on_hit"], total["flash_lookups_hit"]),
                   reads_per_miss=ratio(total["flash_reads_on_miss"], total["flash_lookups_miss"]),
                   pages=ratio(total["flash_pages_read"], total["flash_reads"]),
                   read_bytes=ratio(total["flash_key_bytes_read"], total["flash_reads"]))

    def stop(self):
        for server in self.servers.values():
            self.s.stop(server)


@study("flash", "hits from flash beside DRAM hits, raw reads and extstore", plain=True)
def flash(s):
    """flash hit <= DRAM hit + 1.3 x raw read        server CPU, as many reads under way
    flash hit <= DRAM hit + raw read + 20 us      median latency, one connection

    Flashield reads its file with O_DIRECT. Extstore reads through the page cache, which is dropped all the while."""
    s.describe("hits from flash, beside DRAM hits, raw reads and extstore",
               "Rows: value size, cN: N connections with one get each, mget: of 100 keys. Keys have 30 B, drawn uniformly "
               "from those that lie on the server's flash. All servers: -t 1, -m 64, 2 GiB of flash; the page cache of "
               "their files is dropped every 20 ms. CPU is the server's per key; latency a command's. flash %: of the "
               "hits, served from flash; disk B: bytes that the kernel fetched for the server, per hit. raw "
               "reads: libaio, O_DIRECT, of our file, on the servers' CPU, with our bytes per read and reads under way. "
               "extstore: one I/O thread, its default, or 16.\n"
               "Rows without a server, per round: CPU share: a flash hit's over a DRAM hit's + 1.3 raw reads'; beyond: "
               "what a flash hit takes more than a DRAM hit and a raw read (CPU, p50); rates over extstore's.",
               {"hit_percent": ("hit %", 2), "flash_percent": ("flash %", 2), "disk_bytes": ("disk B", 0),
                "pages": ("pages /read", 2), "read_bytes": ("B /read", 0), "cpu_share": ("CPU share", 3), "cpu_beyond_us": ("us CPU beyond", 2),
                "beyond_us": ("p50 us beyond", 1), "threaded_ratio": ("ops/s ratio, 16 threads", 2),
                "reads_per_hit": ("reads /hit", 4), "reads_per_miss": ("reads /miss", 5)})
    try:
        for size in SIZES:
            one = FlashSize(s, size)
            one.start()
            if "flashield" in one.servers:
                one.measure()
            one.stop()
    finally:
        def figure(row, column):
            return s.median(f"257 B {row}", column)
        s.target("server CPU per flash hit, c50, against DRAM hit + 1.3 x raw read", figure("c50", "cpu_share"), "x",
                 at_most=1.0)
        s.beside("  flash hit, server CPU", figure("c50 flashield", "cpu_us"), "us")
        s.beside("  DRAM hit, server CPU", figure("c50 flashield DRAM", "cpu_us"), "us")
        s.beside("  raw read, CPU", figure("c50 raw reads", "cpu_us"), "us")
        s.target("the same in multigets of 100", figure("mget c4", "cpu_share"), "x", at_most=1.0)
        s.target("flash hits per second, c50, against extstore", figure("c50", "ops_ratio"), "x", at_least=1.5)
        s.beside("  against extstore with 16 I/O threads", figure("c50", "threaded_ratio"), "x")
        s.target("p50 of a flash hit beyond DRAM hit + raw read, c1", figure("c1", "beyond_us"), "us", at_most=20)
        s.target("flash reads per hit", figure("reads flashield", "reads_per_hit"), at_most=1.01)
        s.target("flash reads per miss", figure("reads flashield", "reads_per_miss"), at_most=0.01)


# ---- read_units --------------------------------------------------------------------------------

UNITS = {"block": [], "page": ["--flash-read-unit=page"]}
RAW_BYTES = [512, 1024, 2048, 4096, 8192]
DEPTHS = [1, 16, 64]
MIX = {"wanted": 20000, "filler": 40000, "cycles": 24, "value_bytes": 257}


def read_like(s, server, row, unit, read_bytes, depth, number):
    """Adds a row of raw reads from the server's file, near a fifth of a second for a start."""
    spec = {"path": server.flash_path, "bytes": int(server.flash_stat("segments_used") * server.flash_stat("segment_bytes")),
            "unit": unit, "read_bytes": read_bytes, "depth": depth, "cpu": s.options.server_cpu, "seed": number + 1}
    probe = raw_reads(s.bench, reads=500, **spec)
    result = raw_reads(s.bench, reads=500 + int(500 / probe.seconds * s.seconds(0.8)), **spec)
    s.add(row, cpu_us=result.cpu_ns / 1e3 / result.reads, ops_s=result.reads / result.seconds,
          p50_us=result.latency.us(0.5), p99_us=result.latency.us(0.99), read_bytes=read_bytes)


@study("read_units", "hits from flash and raw reads by the bytes of a read")
def read_units(s):
    """Two daemons, one that reads the drive's logical blocks and one that reads pages, and raw reads of several lengths."""
    s.describe("hits from flash and raw reads by the bytes of a read",
               "Rows: daemons with --flash-read-unit=block and =page, cN: N connections with one get each of objects of 257 B, "
               "mget: of 100 keys; and raw reads of our file by their bytes and how many are under way (dN), at multiples of "
               "the drive's logical block. -t 1, -m 64, 2 GiB of flash, the page cache kept out.",
               {"flash_percent": ("flash %", 2), "read_bytes": ("B /read", 0), "pages": ("pages /read", 3)})
    servers = {}
    for unit, extra in UNITS.items():
        server = s.start(FLASHIELD, memory_mb=64, flash_bytes=2 << 30, extra=OURS + extra)
        s.progress(f"read_units: filling {unit}")
        load = flash_fill(s, server, **MIX)
        if not load:
            s.note(f"{unit}: no keys lie on its flash: not measured.")
            return
        servers[unit] = server, load
    for number in s.rounds():
        for unit in list(servers)[::-1] if number % 2 else servers:
            server, load = servers[unit]
            for case, (connections, keys) in CASES.items():
                result, counted = cold_load(s, server, kind="get", order="uniform", connections=connections,
                                            keys_per_get=keys, seconds=s.seconds(0.8), warmup_share=0.1, seed=number + 1,
                                            **load)
                s.add(f"{unit} {case}", cpu_us=result.cpu_us(result.operations), ops_s=result.operations / result.seconds,
                      p50_us=result.get_latency.us(0.5), p99_us=result.get_latency.us(0.99),
                      flash_percent=100 * ratio(counted["flash_hits"], counted["hits"]),
                      read_bytes=ratio(counted["flash_key_bytes_read"], counted["flash_reads"]),
                      pages=ratio(counted["flash_pages_read"], counted["flash_reads"]))
        server = servers["block"][0]
        for depth in DEPTHS:
            for length in RAW_BYTES:
                unit = min(int(server.flash_stat("flash_read_unit")), length)
                if length >= int(server.flash_stat("flash_read_unit")):
                    read_like(s, server, f"raw {length} B d{depth}", unit, length, depth, number)


# ---- pause -----------------------------------------------------------------------------------

ALONE, ALONE_DRAM, SETS_DRAM = "hits alone", "hits alone, no flash", "hits + sets, no flash"
UNDER_WAY, BETWEEN = "hits + sets, a segment under way", "hits + sets, between segments"
HOT = {"keys": 1000, "value_bytes": 2100, "connections": 50}
NEW_FIRST, NEW_BYTES, NEW_RATE = 1000000000, 257, 20000  # the rate counts sets and gets, half of each
WINDOW_SECONDS = 0.2


class Pause:
    def __init__(self, s):
        self.s, self.rate, self.next_key = s, 0, NEW_FIRST
        self.windows = {UNDER_WAY: 0, BETWEEN: 0}

    def new_keys(self, keys, **spec):
        """Returns the settings of a load that sets so many new keys and reads them."""
        first, self.next_key = self.next_key, self.next_key + keys
        return {"kind": "set_get", "first_key": first, "keys": keys, "value_bytes": NEW_BYTES, "connections": 4,
                "operations": 2 * keys} | spec

    def run(self, server, **spec):
        result = self.s.run(server, **spec)
        self.s.judge(result, errors=True)
        return result

    def start(self, flash_bytes):
        """Sets new keys first, so that flash is full, and then the hot ones, which nothing has pushed out when they are
        read."""
        server = self.s.start(FLASHIELD, memory_mb=128, flash_bytes=flash_bytes)
        self.s.progress(f"pause: filling {'flash' if flash_bytes else 'DRAM'}")
        self.run(server, **self.new_keys(int(1.1 * (flash_bytes + 128 * MIB) / 319), connections=16, pipeline=8))
        self.run(server, kind="set_get", operations=2 * HOT["keys"], **HOT)
        return server

    def measure_windows(self, server, row):
        """Puts short loads into one row. With sets on flash there are two rows: a load belongs to "under way" if a
        segment was under way at its beginning, at its end or wholly within it."""
        seen = {}
        for _ in range(math.ceil(self.s.seconds(5.0) / WINDOW_SECONDS)):
            into = row
            before = server.stats("flash")
            result = self.run(server, kind="get", order="uniform", seconds=WINDOW_SECONDS, rate=self.rate, **HOT)
            if row == UNDER_WAY:
                after = server.stats("flash")
                if before.get("plan_bytes") == after.get("plan_bytes") == "0" and (
                        before.get("segments_written") == after.get("segments_written")):
                    into = BETWEEN
                self.windows[into] += 1
            if result.hits < result.gets:
                self.s.note("Some hits were misses.")
            latency, seconds, hits = seen.get(into, (Hist(), 0, 0))
            seen[into] = latency.merge(result.get_latency), seconds + result.seconds, hits + result.hits
        for into, (latency, seconds, hits) in seen.items():
            self.s.add(into, ops_s=hits / seconds, p50_us=latency.us(0.5), p99_us=latency.us(0.99),
                       p999_us=latency.us(0.999), max_us=latency.us(1))

    def measure_beside_sets(self, server, row):
        load = self.s.load(server, **self.new_keys(1 << 30, rate=NEW_RATE))
        self.measure_windows(server, row)
        load.stop()
        self.s.judge(load.join("pause"), errors=True)


@study("pause", "latency of DRAM hits while segments are written and reclaimed", plain=True)
def pause(s):
    """Hits on hot keys at a fixed rate, far below the most that the server can do, alone and beside slow sets of new
    keys; on a server with flash, where each segment that these fill takes the place of one that has to be reclaimed,
    and on one without, where they only evict. The hot keys' values are larger than those that are set: a size group of
    its own, of which never enough wait to fill a segment, so that they stay in DRAM although they are worth flash."""
    s.describe("latency of DRAM hits while segments are written and reclaimed",
               "Hits: 50 connections, one get at a time, 2100 B values, at 20 % of the rate that the server reaches. "
               "Sets: 10,000 new keys per second of 257 B, each read once. -m 128 -t 1, 256 MiB of flash, full; server "
               "and cleaner on one CPU. Windows of 0.2 s; under way: a segment was being gathered, planned, written or "
               "committed, or the one in its place reclaimed, in some part of the window.", {"max_us": ("max us", 0)})
    run = Pause(s)
    on_flash, dram = run.start(256 * MIB), run.start(0)
    result = run.run(on_flash, kind="get", order="uniform", seconds=1, **HOT)
    run.rate = 0.2 * result.operations / result.seconds
    for _ in s.rounds():
        run.measure_windows(on_flash, ALONE)
        run.measure_beside_sets(on_flash, UNDER_WAY)
        run.measure_windows(dram, ALONE_DRAM)
        run.measure_beside_sets(dram, SETS_DRAM)
    s.note(f"{run.windows[UNDER_WAY]} of {sum(run.windows.values())} windows with sets on flash had a segment under way.")
    s.target("p99 of DRAM hits while a segment is written and one reclaimed, against idle",
             s.figures.ratio("pause", UNDER_WAY, ALONE, "p99_us"), "x", at_most=2)
    s.beside("  the same sets without flash, against idle", s.figures.ratio("pause", SETS_DRAM, ALONE_DRAM, "p99_us"),
             "x")


# ---- capacity --------------------------------------------------------------------------------

# By default a fifth of what is set goes to flash at most.
ADMIT_EACH = ["--admission=read-once", "--flash-write-ratio=0"]


def turn_over(s, server, objects, **load):
    """Sets further objects until a tenth of the segments was reclaimed. Three times as many as before fill any flash that
    the study gives."""
    for chunk in range(10, 40):
        s.fill(server, objects // 10, read=True, first_key=chunk * (objects // 10), pipeline=8, **load)
        if server.flash_stat("segments_reclaimed") > server.flash_stat("segments_total") / 10:
            return
    s.note("Few segments were reclaimed: the flash had room left.")


@study("capacity", "objects kept with little memory and much flash, extstore beside", plain=True)
def capacity(s):
    """Counts the objects that are still there when all are read once, in order. Then sets go on until our flash turns
    over, for that is when memory per object on flash is what it stays. One round: what is kept hardly depends on the
    machine's mood, and it takes minutes."""
    objects = s.scaled(10000000, 200000)
    share = objects / 10000000
    memory_mb, flash_mb = math.ceil(256 * share), math.ceil(4096 * share)
    s.describe("objects kept with little memory and much flash, extstore beside",
               f"{objects} objects (keys of 30 B, values of 257 B), each set and then read, 50 connections with 8 commands "
               f"under way each, as fast as it goes; afterwards all are read once in the same order. -m {memory_mb} -t 1, "
               f"{flash_mb} MiB of flash, {' '.join(ADMIT_EACH)}, server on one CPU. Set and read: objects per second, the server's CPU for both, "
               "latency. DRAM per object on flash: index, filters and all that serves them, once sets have gone on until "
               "a tenth of the segments was reclaimed.",
               {"objects_s": ("set+read /s", -1), "errors": ("errors", 0), "written_mib": ("MiB written", 0),
                "resident_mib": ("MiB resident", 0), "kept_percent": ("kept %", 2), "wrong": ("wrong values", 0),
                "reads_s": ("reads/s", -1), "dram_bytes": ("DRAM B /object", 3)})
    load = {"value_bytes": 257, "connections": 50}
    for kind, extra in ((FLASHIELD, ADMIT_EACH), (EXTSTORE, EXTSTORE_ONE)):
        with s.serving(kind, memory_mb=memory_mb, flash_bytes=flash_mb * MIB, extra=extra) as server:
            if not server:
                continue
            written = server.written_bytes()  # when it laid out its file
            s.progress(f"capacity: {kind}, {objects} objects set and read")
            result = s.fill(server, objects, read=True, pipeline=8, **load)
            s.add(kind, objects_s=result.sets / result.seconds, cpu_us=result.cpu_us(result.sets),
                  p99_us=result.set_latency.us(0.99), errors=result.errors,
                  written_mib=(server.written_bytes() - written) / MIB, resident_mib=server.resident_mib())
            s.progress(f"capacity: {kind}, all read in order")
            result = s.run(server, kind="get", keys=objects, operations=objects, keys_per_get=20, **load)
            s.add(kind, kept_percent=100 * result.hits / result.gets, wrong=result.wrong,
                  reads_s=result.gets / result.seconds)
            if kind == EXTSTORE:
                continue
            s.progress(f"capacity: {kind}, beyond what fits")
            turn_over(s, server, objects, **load)
            s.add(kind, dram_bytes=server.flash_stat("dram_bytes_per_flash_item"))
    s.target("10 M objects of 257 B, -m 256, 4 GiB of flash: still there", s.median(FLASHIELD, "kept_percent"), "%",
             at_least=95)
    s.beside("  the same with extstore", s.median(EXTSTORE, "kept_percent"), "%")
    s.target("DRAM per object on flash, turning over", s.median(FLASHIELD, "dram_bytes"), "B", at_most=4.5)


# ---- real ------------------------------------------------------------------------------------

def verify(s, server):
    """Checks every byte of the flash, by flashield-inspect beside the daemon."""
    tool = os.path.join(os.path.dirname(os.path.abspath(s.options.daemon)), "flashield-inspect")
    began = time.monotonic()
    try:
        done = subprocess.run([tool, server.flash_path, "verify"], stdout=subprocess.PIPE, text=True, check=False)
    except FileNotFoundError:
        s.note("flashield-inspect is not beside the daemon: not verified.")
        return
    lines = [line for line in done.stdout.splitlines() if line]
    s.note(f"flashield-inspect verify, daemon running, {time.monotonic() - began:.0f} s: {(lines or [''])[-1]}")
    s.target("512 MiB segments: checks that failed (flashield-inspect verify)", int(done.returncode != 0), at_most=0)


@study("real", "4 GiB of DRAM, 16 GiB of flash in 512 MiB segments, filled twice over and verified")
def real(s):
    """--scale shrinks memory, flash and segments together."""
    memory_mb, flash_mb, segment_mb = s.scaled(4096, 32), s.scaled(16384, 128), s.scaled(512, 1)
    s.describe(f"{memory_mb / 1024:.3g} GiB of DRAM, {flash_mb / 1024:.3g} GiB of flash in segments of {segment_mb} MiB, "
               "filled twice",
               "New keys of 30 B with values of 64 B to 1 KiB (log-uniform) are set and then read once, 50 connections, "
               "16 pipelined, until segments of twice the flash have been written; fill: latency of whole pipelines "
               "meanwhile. Gets of recent keys: one at a time, uniform over as many of the youngest keys as there are "
               "objects on flash. -t 1, server not pinned.",
               {"keys_set": ("keys set", 0), "flash_items": ("objects on flash", 0), "written_gib": ("GiB written", 1),
                "clwa": ("CLWA", 3), "fill_percent": ("fill %", 2), "hashes": ("hashes /object", 2),
                "dram_per_object": ("DRAM B /object", 2), "index_load": ("index load", 3), "peak_mib": ("peak MiB", 0),
                "hit_percent": ("hit %", 2), "flash_percent": ("flash %", 2), "reads_per_hit": ("reads /hit", 4),
                "get_p50_us": ("get p50 us", 0), "get_p99_us": ("get p99 us", 0), "set_p50_us": ("set p50 us", 0),
                "set_p99_us": ("set p99 us", 0)})
    disk = os.statvfs(s.options.dir)
    if disk.f_bavail * disk.f_frsize <= 1.1 * MIB * flash_mb:
        s.note(f"{s.options.dir} has no room for a flash of this size.")
        return
    # Worker and cleaner have a core each, as in use.
    server = s.start(FLASHIELD, memory_mb=memory_mb, flash_bytes=flash_mb * MIB, unpinned=True,
                     extra=["--segment-size", f"{segment_mb}m"])
    load = {"value_bytes": 64, "value_bytes_most": 1024, "connections": 50}
    keys, set_latency, get_latency = 0, Hist(), Hist()

    def written_mb():
        return server.flash_stat("segments_written") * segment_mb

    while written_mb() < 2 * flash_mb:
        step = s.scaled(4000000, 1000)
        result = s.fill(server, step, read=True, first_key=keys, pipeline=16, **load)
        s.judge(result, errors=True)
        keys += step
        set_latency.merge(result.set_latency)
        get_latency.merge(result.get_latency)
        s.progress(f"real: {written_mb() / 1024:.1f} of {2 * flash_mb / 1024:.1f} GiB written to flash")
    s.add("fill", get_p50_us=get_latency.us(0.5), get_p99_us=get_latency.us(0.99), set_p50_us=set_latency.us(0.5),
          set_p99_us=set_latency.us(0.99))
    stat, peak = server.flash_stat, server.peak_mib()
    s.add("flash", keys_set=keys, flash_items=stat("flash_items"), written_gib=written_mb() / 1024, clwa=stat("clwa"),
          fill_percent=100 * stat("segment_fill"), hashes=ratio(stat("segment_hashes"), stat("flash_objects_written")),
          dram_per_object=stat("dram_bytes_per_flash_item"), index_load=stat("index_load"), peak_mib=peak)
    s.beside("512 MiB segments: mean fill of live segments", s.median("flash", "fill_percent"), "%")
    s.target("512 MiB segments: peak of resident memory", peak, "MiB", at_most=1.1 * memory_mb + 24)
    s.target("512 MiB segments: DRAM per flash object", s.median("flash", "dram_per_object"), "B", at_most=4.5)
    recent, row = int(stat("flash_items")), "gets of recent keys"
    before = counts(server)
    result = s.sample(server, row, kind="get", order="uniform", first_key=keys - recent, keys=recent,
                      seconds=s.seconds(5), **load)
    after = counts(server)
    gained = {name: after[name] - before[name] for name in after}
    s.add(row, hit_percent=100 * ratio(result.hits, result.gets),
          flash_percent=100 * ratio(gained["flash_hits"], gained["hits"]),
          reads_per_hit=ratio(gained["flash_reads_on_hit"], gained["flash_hits"]))
    verify(s, server)
