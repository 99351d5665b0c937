# SPDX-License-Identifier: BSD-3-Clause
"""Studies of stress: the effects on clients of a drive that is slow, hangs or is full. tools/slowdrive emulates the
drive; extstore is measured beside."""
import math
import os
import statistics
import time

from figures import NAN, ratio
from flash_fill import EXTRA, ITEM_EXTRA_BYTES, flash_fill, flash_hits
from load import Hist
from server import EXTSTORE, FLASHIELD, MEMCACHED, MIB, Trouble
from study import study

KEY_BYTES = 30
HOT_FIRST = 2000000000  # keys that lie in DRAM
SETS_BYTES_PER_SECOND = 40e6  # our cleaner, which shares the CPU, keeps up then and writes all that it has to


def has_drive(s):
    """Returns whether the emulated drive is here. Where it is not, a note tells it."""
    if os.access(s.options.slowdrive, os.R_OK):
        return True
    s.note(f"The emulated drive ({s.options.slowdrive}) is not here.")
    return False


def resident_limit_mib(memory_mb):
    """Returns the target of resident memory for -m."""
    return 1.1 * memory_mb + 24


def keys_of(size, value_bytes):
    """Returns how many objects with such values make so many bytes, keys and headers included."""
    return int(max(1, size / (value_bytes + ITEM_EXTRA_BYTES)))


def sets(keys, value_bytes, bytes_per_second=0, **spec):
    """Returns a load that sets new keys in order; with bytes_per_second 0 as fast as it goes."""
    reads = spec.get("kind") == "set_get"
    return {"kind": "set", "keys": keys, "value_bytes": value_bytes, "connections": 8,
            "pipeline": 8 if value_bytes < 8192 else 1, "operations": 2 * keys if reads else keys,
            "rate": (2 if reads else 1) * bytes_per_second / (value_bytes + ITEM_EXTRA_BYTES)} | spec


def start_filled(s, kind, cycles, threads=1, **spec):
    """Returns a server on an emulated drive and the load's settings for keys on its flash; None if it can't be compared
    with."""
    server = s.start(kind, threads=threads, slow_drive=True, **spec)
    if not server:
        return None
    s.progress(f"{s.name}: filling {kind} -t {threads}")
    load = flash_fill(s, server, value_bytes=257, wanted=20000, filler=40000, cycles=cycles)
    if load:
        return server, load
    s.note(f"No keys of {kind} -t {threads} lie on its flash: not measured.")
    s.stop(server)
    return None


def dram_items(server):
    """Returns the number of objects in DRAM; for extstore, of those that are not on its flash."""
    if server.kind == FLASHIELD:
        return server.flash_stat("dram_items")
    items = server.stat("", "curr_items")
    return items - server.stat("", "extstore_objects_used") if server.kind == EXTSTORE else items


def dram_hits(server):
    if server.kind == FLASHIELD:
        return server.flash_stat("dram_hits")
    return server.stat("", "get_hits") - server.stat("", "get_extstore")


class Counts:
    """Counters with the time of each reading, so that rates are right although the questions wait in a busy server."""
    READ = {
        "flash_hits": flash_hits, "misses": lambda server: server.stat("", "get_misses"),
        "shed": lambda server: server.flash_stat("flash_reads_shed") if server.kind == FLASHIELD else NAN,
        "shared": lambda server: server.flash_stat("flash_reads_shared") if server.kind == FLASHIELD else NAN,
        "drive_reads": lambda server: server.drive.reads.done, "cpu": lambda server: server.cpu_seconds()}

    def __init__(self, server):
        self.values = {name: (read(server), time.monotonic()) for name, read in self.READ.items()}

    def rate(self, later, name):
        (before, began), (after, ended) = self.values[name], later.values[name]
        return (after - before) / (ended - began)


# ---- stress_overload -------------------------------------------------------------------------

TIMEOUT_SECONDS = 0.2
UNDER_WAY_SHARE = 1.25  # of the keys that are asked for in the read timeout
WAYS = {"mget": (5000, 100, 0), "get": (1000, 1, 0), "pipe": (5000, 1, 64)}
# The ways to raise the load: reads a second of the drive, keys per get, connections, whose pipelines grow then; with 0
# connections these grow.
FACTORS = [0.5, 1, 2, 4, 8, 16]
CONTENDERS = [(FLASHIELD, 1), (EXTSTORE, 1), (FLASHIELD, 2), (EXTSTORE, 2)]
HOT = {"first_key": HOT_FIRST, "keys": 100, "value_bytes": 16}  # extstore keeps such small ones in DRAM


class Contender:
    def __init__(self, s, server, load):
        self.s, self.server, self.load = s, server, load
        self.name = f"{server.kind} -t {server.threads}"

    def time_hot(self):
        """Returns the median of three thirds' p99 of gets of hot keys: a moment's disturbance of the machine is no
        figure of the server's."""
        thirds = []
        for _ in range(3):
            result = self.s.run(self.server, kind="get", order="uniform", rate=2000, urgent=True,
                                seconds=self.s.seconds(3.0) / 3, **HOT)
            if result.hits < result.gets:
                self.s.note(f"{self.server.kind}: some gets of hot keys were misses.")
            thirds.append(result.get_latency.us(0.99))
        return statistics.median(thirds)

    def set_hot(self):
        """Keys that are set lie in DRAM, and stay there while nothing else is set."""
        self.s.fill(self.server, **HOT)

    def alone(self):
        self.set_hot()
        before = flash_hits(self.server)
        p99 = self.time_hot()
        if flash_hits(self.server) > before:
            self.s.note(f"Some hot keys of {self.server.kind} lie on flash.")
        return p99

    def point(self, way, factor):
        """Measures flash hits a second, and p99 of hot keys beside. Figures are taken amid the load, when its queues
        are full."""
        reads_per_second, keys_per_get, connections = WAYS[way]
        rate = factor * reads_per_second
        under_way = math.ceil(rate * TIMEOUT_SECONDS * UNDER_WAY_SHARE)
        pipeline = math.ceil(under_way / connections) if connections else 1
        server, row = self.server, f"{self.name} {way} x{factor:g}"
        self.s.progress(f"stress_overload: {row}")
        self.set_hot()
        server.drive.reads.per_second = reads_per_second
        load = self.s.load(server, kind="get", order="uniform", connections=connections or math.ceil(
            under_way / keys_per_get), pipeline=pipeline, keys_per_get=keys_per_get, seconds=1e6, rate=rate,
            timed_from_sending=True, **self.load)
        time.sleep(1.5)  # queues of a server are full by then
        load.forget()
        before = Counts(server)
        hot_us = self.time_hot()
        after = Counts(server)
        load.stop()
        result = load.join("stress_overload")
        hits_s = self.add_point(row, result, before, after, hot_us)
        self.drain()
        return hits_s, hot_us

    def add_point(self, row, result, before, after, hot_us):
        # Ours counts a flash hit when it is answered. Extstore counts a read that it then has no memory to answer from,
        # so its hits are the client's; its queues are as full when the load is stopped, so that the rest is answered at
        # the same rate.
        if self.server.kind == FLASHIELD:
            hits_s, misses_s = before.rate(after, "flash_hits"), before.rate(after, "misses")
        else:
            hits_s, misses_s = result.hits / result.seconds, (result.gets - result.hits) / result.seconds
        # Some keys of the range lie in DRAM: where nothing else is hit, their latency is not that of a flash hit.
        from_flash = hits_s > result.hits / result.seconds / 2
        self.s.add(row, dram_p99_us=hot_us, asked_s=hits_s + misses_s, flash_hits_s=hits_s, misses_s=misses_s,
                   hit_p50_ms=result.hit_latency.us(0.5) / 1e3 if from_flash else NAN,
                   hit_p99_ms=result.hit_latency.us(0.99) / 1e3 if from_flash else NAN,
                   all_p99_ms=result.get_latency.us(0.99) / 1e3, drive_reads_s=before.rate(after, "drive_reads"),
                   shed_s=before.rate(after, "shed"), shared_s=before.rate(after, "shared"),
                   server_percent=100 * before.rate(after, "cpu"))
        if result.errors:
            self.s.note(f"{row}: commands failed, the first with: {result.first_error}")
        return hits_s

    def drain(self):
        """Lets the drive work without limits until it has had nothing to do for a while (bounded)."""
        reads = self.server.drive.reads
        reads.per_second = 0
        end, quiet_since, done = time.monotonic() + 60, time.monotonic(), 0
        while time.monotonic() < min(end, quiet_since + 0.2):
            if reads.done != done or reads.held:
                quiet_since = time.monotonic()
            done = reads.done
            time.sleep(0.01)


@study("stress_overload", "a drive that does fewer reads than are asked for, extstore beside")
def stress_overload(s):
    s.describe(
        "a drive that does fewer reads than are asked for, extstore beside",
        "The drive is emulated (tools/slowdrive); it does N reads a second. xF: F x N keys a second are asked for, paced, drawn "
        "uniformly from those on flash. mget: N = 5000, multigets of 100; get: N = 1000, single gets; both have as many "
        "connections as have F x N x 0.25 s keys under way. pipe: N = 5000, 64 connections, whose pipelines have as many. "
        "Where all connections wait, less is asked for. 257 B values, keys of 30 B. -m 64, --flash-read-timeout 200ms, the "
        "server on one CPU; extstore has 16 I/O threads and no timeout. hit p50, p99: of commands with at least one hit, where "
        "most hits are from flash; all: of all commands, from when they are sent. share: of the best flash hits/s of the same "
        "server and way. shed, shared: flash_reads_shed and flash_reads_shared. DRAM p99: of 2000 gets a second of objects in "
        "memory, on a connection beside, the median of those of three thirds of the time; ratio: to the same without a flash "
        "load, the median of three measurements of the round.",
        {"asked_s": ("asked /s", -1), "flash_hits_s": ("flash hits/s", -1), "share_percent": ("share %", 0),
         "hit_p50_ms": ("hit p50 ms", -1), "hit_p99_ms": ("hit p99 ms", -1), "all_p99_ms": ("all p99 ms", -1),
         "drive_reads_s": ("drive reads/s", -1), "misses_s": ("misses /s", -1), "shed_s": ("shed /s", -1),
         "shared_s": ("shared /s", -1), "server_percent": ("server CPU %", 0), "dram_p99_us": ("DRAM p99 us", 0),
         "dram_ratio": ("DRAM ratio", 2)}, sampled=False)
    if not has_drive(s):
        return
    contenders = []
    for kind, threads in CONTENDERS:
        extra = EXTRA[kind] + (["--flash-read-timeout", "200ms"] if kind == FLASHIELD else [])
        if filled := start_filled(s, kind, 12, threads, memory_mb=64, flash_bytes=1 << 30, max_connections=8192,
                                  extra=extra):
            contenders.append(Contender(s, *filled))
    for number in s.rounds():
        alone, beside = {one: [] for one in contenders}, {one: {} for one in contenders}
        for way in WAYS:
            for one in contenders:
                alone[one].append(one.alone())
            hits = {one: {} for one in contenders}
            for factor in FACTORS:
                for one in contenders[::-1] if number % 2 else contenders:
                    hits[one][factor], beside[one][way, factor] = one.point(way, factor)
            for one in contenders:  # of the best of the same server, way and round
                for factor, hits_s in hits[one].items():
                    s.add(f"{one.name} {way} x{factor:g}", share_percent=100 * ratio(hits_s, max(hits[one].values())))
        for one in contenders:
            for (way, factor), hot_us in beside[one].items():
                s.add(f"{one.name} {way} x{factor:g}", dram_ratio=ratio(hot_us, statistics.median(alone[one])))

    def rows(kind, factors):
        return [f"{kind} -t {threads} {way} x{factor:g}" for threads in (1, 2) for way in WAYS for factor in factors]

    for measure, column, factors, pick, unit, limit in (
            ("overload x16: flash hits/s, of the best (worst case)", "share_percent", FACTORS[-1:], min, "%",
             {"at_least": 90}),
            ("overload: p99 of all answers (worst case)", "all_p99_ms", FACTORS, max, "ms",
             {"at_most": 1000 * TIMEOUT_SECONDS * 1.1}),
            ("overload: p99 of DRAM hits, against no flash load (worst case)", "dram_ratio", FACTORS, max, "x",
             {"at_most": 2})):
        s.target(measure, s.worst(rows(FLASHIELD, factors), column, pick), unit, **limit)
        s.beside("  extstore", s.worst(rows(EXTSTORE, factors), column, pick), unit)


# ---- stress_hang -----------------------------------------------------------------------------

FAULTS = {"reads": (True, False), "writes": (False, True), "both": (True, True)}  # do reads, do writes hang?
RETURN_SECONDS = 90  # how long the end of a hang is waited for
PROMPT_SECONDS = 5  # the target
WATCHDOG_SECONDS = 10
LOOK_SECONDS = 0.05


def hang_seconds(s):
    """Returns a time longer than the target, so that "never" is no success."""
    return max(60 * s.options.scale, 6)


def is_offline(server):
    return server.flash_stat("flash_offline") > 0


class Watch:
    """Observations of a server over some time."""

    def __init__(self, server, seconds):
        self.server, self.began = server, time.monotonic()
        self.peak_mib, self.items, self.unfed = 0, [], NAN
        self.offline_after = self.told_after = self.rate = self.least = NAN
        first = mark = (self.commands(), time.monotonic())
        while time.monotonic() < self.began + seconds and server.alive():
            self.look()
            if time.monotonic() >= mark[1] + 0.5:
                now = (self.commands(), time.monotonic())
                least = (now[0] - mark[0]) / (now[1] - mark[1])
                self.least = least if math.isnan(self.least) else min(self.least, least)
                self.rate = (now[0] - first[0]) / (now[1] - first[1])
                mark = now
            time.sleep(LOOK_SECONDS)

    def commands(self):
        """Returns the DRAM hits and sets so far."""
        return dram_hits(self.server) + self.server.stat("", "cmd_set")

    def look(self):
        server, seconds = self.server, time.monotonic() - self.began
        self.peak_mib = max(self.peak_mib, server.resident_mib())
        self.items.append(dram_items(server))
        if math.isnan(self.offline_after) and is_offline(server):
            self.offline_after = seconds
        # A write that isn't answered for a second is told.
        if math.isnan(self.told_after) and (is_offline(server) or server.flash_stat("flash_waited_ms") >= 1000):
            self.told_after = seconds
        if server.watchdog:
            unfed = server.watchdog.unfed_seconds()
            self.unfed = unfed if math.isnan(self.unfed) else max(self.unfed, unfed)

    def mean_items(self):
        return statistics.mean(self.items) if self.items else NAN


def watch_return(server):
    """Returns the seconds until the first hit from flash and until the flash is online; NaN if that is not in time, or
    if it never was offline."""
    began, was_offline, hits = time.monotonic(), is_offline(server), flash_hits(server)
    first_hit = online = NAN
    while (math.isnan(first_hit) or (was_offline and math.isnan(online))) and (
            time.monotonic() < began + RETURN_SECONDS and server.alive()):
        if math.isnan(first_hit) and flash_hits(server) > hits:
            first_hit = time.monotonic() - began
        if was_offline and math.isnan(online) and not is_offline(server):
            online = time.monotonic() - began
        time.sleep(LOOK_SECONDS / 2)
    return first_hit, online


def hang_case(s, row, server, keys, fault):
    reads, writes = FAULTS[fault]
    common = {"seconds": 1e6, "silence_seconds": hang_seconds(s) + RETURN_SECONDS, "timed_from_sending": True}
    s.fill(server, read=True, connections=4, **HOT)
    # Each connection that asks for flash is free again after the read timeout of a second.
    loads = [s.load(server, kind="get", order="uniform", connections=1500, rate=3000, **common, **keys),
             s.load(server, kind="mixed", order="uniform", set_share=0.1, connections=4, **common, **HOT)]
    if writes:
        loads.append(s.load(server, kind="set_get", first_key=3000000000, keys=1 << 30, value_bytes=257, connections=4,
                            rate=8000, **common))
    connections = server.stat("", "curr_connections")
    time.sleep(2)
    before = Watch(server, 4)
    server.drive.reads.hang, server.drive.writes.hang = reads, writes
    during = Watch(server, hang_seconds(s))
    server.drive.reads.hang = server.drive.writes.hang = 0
    first_hit, online = watch_return(server)
    after = Watch(server, 4)
    items, peak = before.mean_items(), max(during.peak_mib, after.peak_mib)
    s.add(row, hang_before_mib=before.peak_mib, hang_peak_mib=peak, hang_bound_percent=100 * peak / resident_limit_mib(64),
          hang_items=items, hang_items_least_percent=100 * ratio(min(during.items, default=NAN), items),
          hang_items_after_percent=100 * ratio(after.mean_items(), items), hang_told_s=during.told_after,
          hang_offline_s=during.offline_after, hang_first_hit_s=first_hit, hang_online_s=online,
          hang_unfed_s=during.unfed, hang_rate=before.rate, hang_rate_ratio=ratio(during.rate, before.rate),
          hang_rate_least_ratio=ratio(during.least, before.rate),
          hang_lost=connections - server.stat("", "curr_connections"))
    if not server.alive():
        s.note(f"{row}: THE SERVER ENDED.")
    for load in loads:
        load.stop()
    for load in loads:
        try:
            result = load.join(row)
            if result.errors:
                s.note(f"{row}: commands failed, the first with: {result.first_error}")
        except Trouble as trouble:  # it has said why; that is a figure here, not the end of the study
            s.note(f"{row}: a load broke off: {trouble}")


@study("stress_hang", "a drive that answers nothing for a while, extstore beside")
def stress_hang(s):
    """One round is enough: a hang takes a minute, and its effect on memory hardly depends on the machine's mood."""
    s.describe(
        "a drive that answers nothing for a while, extstore beside",
        f"The drive is emulated (tools/slowdrive); its reads, writes or both hang for {hang_seconds(s):.0f} s, and then it works "
        "again. 1,500 connections ask for 3000 objects on flash a second, one at a time. 4 connections get and set (10 %) "
        "objects in DRAM as fast as it goes; where writes hang, 4000 new objects a second are set and read. 257 B values. -m 64 "
        "-t 1, the default read timeout of a second. of bound: 1.1 x -m + 24 MiB. Items: in DRAM, the mean before; least: during "
        "the hang, of that. told: the flash is offline, or a write has waited for a second; both from the hang's begin. first "
        "hit, online: from its end. unfed: the longest time in the hang without food for the watchdog, which wants some every "
        f"{WATCHDOG_SECONDS} s. DRAM/s: hits and sets; during: of the rate before, in the mean and of the worst half second. An "
        "object that moves to flash and is asked for is waited for. lost: connections.",
        {"hang_before_mib": ("MiB before", 1), "hang_peak_mib": ("MiB peak", 1), "hang_bound_percent": ("% of bound", 0),
         "hang_items": ("items", 0), "hang_items_least_percent": ("least %", 1), "hang_items_after_percent": ("after %", 1),
         "hang_told_s": ("told s", 1), "hang_offline_s": ("offline s", 1), "hang_first_hit_s": ("first hit s", 2),
         "hang_online_s": ("online s", 2), "hang_unfed_s": ("unfed s", 1), "hang_rate": ("DRAM /s", -1),
         "hang_rate_ratio": ("during x", 2), "hang_rate_least_ratio": ("worst x", 2), "hang_lost": ("lost", 0)}, sampled=False)
    if not has_drive(s):
        return
    for fault in FAULTS:
        for kind in (FLASHIELD, EXTSTORE):
            filled = start_filled(s, kind, 12, memory_mb=64, flash_bytes=1 << 30, extra=EXTRA[kind],
                                  watchdog_seconds=WATCHDOG_SECONDS if kind == FLASHIELD else 0)
            if filled:
                s.progress(f"stress_hang: {kind}, {fault}, a hang of {hang_seconds(s):.0f} s")
                hang_case(s, f"{kind}, {fault}", *filled, fault)
                s.stop(filled[0])
    for fault, (reads, _) in FAULTS.items():
        hang_targets(s, fault, reads)


def hang_targets(s, fault, reads):
    row, hang = f"{FLASHIELD}, {fault}", hang_seconds(s)
    for what, column, never, unit, limit in (
            ("peak of resident memory", "hang_peak_mib", 0, "MiB", {"at_most": resident_limit_mib(64)}),
            ("least DRAM items, of before", "hang_items_least_percent", 0, "%", {"at_least": 95}),
            # While reads are answered, the flash is of use.
            ("offline after" if reads else "told after", "hang_offline_s" if reads else "hang_told_s", hang, "s",
             {"at_most": PROMPT_SECONDS}),
            ("flash hits again after", "hang_first_hit_s", RETURN_SECONDS, "s", {"at_most": PROMPT_SECONDS}),
            ("connections lost", "hang_lost", 0, "", {"at_most": 0}),
            ("longest time without food for the watchdog", "hang_unfed_s", 0, "s", {"at_most": WATCHDOG_SECONDS})):
        value = s.median(row, column)
        # An event that didn't come counts with the time for which it was awaited.
        if math.isnan(value) and never:
            s.note(f"{row}: {what}: never, within {never:.0f} s.")
            value = never
        s.target(f"hang of {fault}: {what}", value, unit, **limit)


# ---- stress_memory ---------------------------------------------------------------------------

# The sizes of values, one after the other; the last one is measured.
SHIFTS = {"100 B": [100], "300 B": [300], "4 KiB": [4096], "1000 B, then 256 B": [1000, 256]}
OURS_NAMES = ["flashield", "flashield + flash"]
HOLDERS = {"flashield": (FLASHIELD, False), "memcached": (MEMCACHED, False), "flashield + flash": (FLASHIELD, True),
           "extstore": (EXTSTORE, True)}


def items_percent(server):
    """Returns DRAM items as a part of the memory that index and filters leave of -m. memcached's `bytes` are items'
    bytes, and it has no other part; extstore counts objects on flash too."""
    size = server.memory_mb * MIB
    if server.kind == EXTSTORE:
        return NAN
    if server.kind == MEMCACHED:
        return 100 * server.stat("", "bytes") / size
    if server.flash_bytes:
        size -= sum(server.flash_stat(name) for name in ("index_bytes", "filter_bytes", "index_other_bytes"))
    return 100 * server.flash_stat("dram_bytes") / size


def hold(s, row, server, shift):
    """Uses two thirds of each size to fill the memory, and one to look. Each key is read right after it was set, and
    must be there."""
    size = server.memory_mb * MIB
    total = size + 1.5 * server.flash_bytes if server.flash_bytes else 3 * size
    rate = SETS_BYTES_PER_SECOND if server.kind == FLASHIELD and server.flash_bytes else 0
    next_key = missing = 0
    percents, payloads = [], []
    for value_bytes in SHIFTS[shift]:
        third = keys_of(total / 3, value_bytes)
        for keys, looks in ((2 * third, False), (third, value_bytes == SHIFTS[shift][-1])):
            load = s.load(server, **sets(keys, value_bytes, rate, kind="set_get", first_key=next_key))
            while looks and load.running():
                percents.append(items_percent(server))
                payloads.append(100 * dram_items(server) * (KEY_BYTES + value_bytes) / size)
                time.sleep(0.1)
            result = load.join(row)
            missing += result.gets - result.hits
            next_key += keys
    if not percents:
        return
    peak = server.peak_mib()
    s.add(row, mem_items_percent=statistics.mean(percents), mem_items_least_percent=min(percents))
    if not math.isnan(percents[0]):
        s.add(row, mem_payload_percent=statistics.mean(payloads))
    s.add(row, mem_missing=missing, mem_peak_mib=peak,
          mem_bound_percent=100 * peak / resident_limit_mib(server.memory_mb))


@study("stress_memory", "what of -m is items, small and large memories, memcached and extstore beside")
def stress_memory(s):
    """One round is enough: the contents of memory hardly depend on the machine's mood."""
    s.describe("what of -m is items, memcached and extstore beside",
               "New keys of 30 B are set, and each is read in the next batch: three times the memory without flash; with "
               "flash the memory and 1.5 times the flash (--admission all, 2 x -m, at least 128 MiB, 40 MB/s). Items: bytes "
               "of DRAM items, of -m less index and filters; mean and least over the last third. payload: keys and values "
               "of items in DRAM, of -m (extstore doesn't tell). missing: set, and a miss in the next batch. peak: VmHWM, "
               "bound: 1.1 x -m + 24 MiB. -t 1.",
               {"mem_items_percent": ("items %", 1), "mem_items_least_percent": ("least %", 1),
                "mem_payload_percent": ("payload %", 1), "mem_missing": ("missing", 0), "mem_peak_mib": ("peak MiB", 1),
                "mem_bound_percent": ("% of bound", 0)}, sampled=False)
    memories = {8: 60, 64: 88, s.scaled(1024, 128): 94}  # -m: the target of items in percent
    for memory_mb in memories:
        for shift in SHIFTS:
            for name, (kind, flash) in HOLDERS.items():
                if kind != FLASHIELD and memory_mb < 64:
                    continue  # less memory is no set-up for memcached
                row = f"-m {memory_mb}, {shift}, {name}"
                with s.serving(kind, memory_mb=memory_mb, flash_bytes=max(2 * memory_mb, 128) * MIB if flash else 0,
                               extra=["--admission", "all"] if name == "flashield + flash" else []) as server:
                    if server:
                        s.progress(f"stress_memory: {row}")
                        hold(s, row, server, shift)
    for memory_mb, percent in memories.items():
        rows = [f"-m {memory_mb}, {shift}, {name}" for shift in SHIFTS for name in OURS_NAMES]
        s.target(f"-m {memory_mb}: items, of what index and filters leave (worst case)",
                 s.worst(rows, "mem_items_percent", min), "%", at_least=percent)
        s.target(f"-m {memory_mb}: peak of resident memory, of its bound (worst case)", s.worst(rows, "mem_bound_percent"),
                 "%", at_most=100)
        s.target(f"-m {memory_mb}: set and gone in the next batch (worst case)", s.worst(rows, "mem_missing"), at_most=0)


# ---- stress_clwa -----------------------------------------------------------------------------

OBJECTS_KIB = [2 << i for i in range(10)]
# The kinds of a size: with segments of 32 objects of that size, just below 1/32 of a segment, and just over 1/64.
SHARES = [1, 0.52]
KEPT_SHARE = 0.8  # of the flash, by the newest keys: those must be there


def segment_of(object_kib):
    """No object is more than 1/32 of a segment. From 4 KiB on segments are so small that each object goes through the
    extent table (over 1/64 of a segment); below, header and footer would be much of such a segment."""
    return max(object_kib * 32 << 10, 256 << 10)


def clwa_row(kind, object_kib, share):
    kib = share * object_kib
    return f"{kib:.4g} KiB, " + (f"1/{segment_of(object_kib) / 1024 / kib:.0f} segment" if kind == FLASHIELD else kind)


def clwa_case(s, kind, object_kib, share):
    """Sets large objects once, all admitted, so that flash is a FIFO of them: one turn fills it, and the later turns
    are measured. An object that is written and can't be found again was written in vain."""
    row, segment = clwa_row(kind, object_kib, share), segment_of(object_kib)
    memory_mb = max(segment * 8 >> 20, 16)
    flash_bytes = max(segment * s.scaled(32, 16), s.scaled(64 * MIB, 16 * MIB))
    rate = SETS_BYTES_PER_SECOND if object_kib < 16 else 120e6
    extra = ["-o", "slab_automove=2,ext_threads=16", "-I", "2m"]
    if kind == FLASHIELD:
        rate = min(rate, 50 * segment)  # so that all that is set is written, whatever a segment takes by itself
        extra = ["--admission", "all", "--segment-size", str(segment), "-I", "2m"]
    else:
        memory_mb, flash_bytes = max(memory_mb, 64), max(flash_bytes, 128 * MIB)
    value_bytes = int(share * (object_kib << 10)) - 100  # with a record's header and key it keeps its share
    s.progress(f"stress_clwa: {row}")
    with s.serving(kind, memory_mb=memory_mb, flash_bytes=flash_bytes, extra=extra, slow_drive=True) as server:
        if not server:
            return
        turn = keys_of(flash_bytes, value_bytes)
        next_key = 0

        def set_keys(keys):
            nonlocal next_key
            result = s.run(server, **sets(keys, value_bytes, rate, first_key=next_key))
            next_key += keys
            if result.errors:
                s.note(f"{row}: sets failed, the first with: {result.first_error}")

        def written():
            return (server.drive.writes.bytes, server.flash_stat("flash_objects_written"),
                    server.flash_stat("flash_dead_on_commit"))

        set_keys(turn + turn // 4)
        before = written()
        set_keys(3 * turn)
        device, objects, dead = (after - earlier for after, earlier in zip(written(), before, strict=True))
        set_bytes = 3 * turn * (KEY_BYTES + value_bytes)
        s.add(row, clwa_set_mib=set_bytes / MIB, clwa=device / set_bytes, clwa_written_percent=100 * objects / (3 * turn),
              clwa_of_written=ratio(device / set_bytes, objects / (3 * turn)), clwa_dead_percent=100 * ratio(dead, objects))
        kept = int(max(1, KEPT_SHARE * turn))
        result = s.run(server, **sets(kept, value_bytes, kind="get", order="uniform", first_key=next_key - kept,
                                      operations=400))
        s.add(row, clwa_kept_percent=100 * result.hits / result.gets)


@study("stress_clwa", "bytes written per byte set, large objects set once, extstore beside")
def stress_clwa(s):
    """One round is enough: bytes hardly depend on the machine's mood."""
    s.describe(
        "bytes written per byte set, large objects set once, extstore beside",
        "New objects (keys of 30 B) are set at 40 MB/s, from 16 KiB on at 120 MB/s, ours at 50 segments a second at most, "
        "--admission all, -t 1: 1.25 turns of the flash, and then three more, which are measured. An object with its record's "
        "header is just below 1/32 of a segment, or just over 1/64, but segments have at least 256 KiB. The flash has 32 "
        "segments (times the scale, at least 16) and at least 64 MiB (times the scale); -m is 8 segments, at least 16. extstore: "
        "at least -m 64 and 128 MiB. CLWA: bytes to the drive over keys and values set. written: objects written to flash, of "
        "those set; the others were evicted before. WA: bytes to the drive over keys and values of objects written. dead: of "
        "those written, no longer current or without a place in the index. kept: of the newest keys that 80 % of the flash has "
        "room for.",
        {"clwa_set_mib": ("MiB set", 0), "clwa": ("CLWA", 3), "clwa_written_percent": ("written %", 1),
         "clwa_of_written": ("WA", 3), "clwa_dead_percent": ("dead %", 1), "clwa_kept_percent": ("kept %", 1)}, sampled=False)
    if not has_drive(s):
        return
    for object_kib in OBJECTS_KIB:
        for share in SHARES:
            clwa_case(s, FLASHIELD, object_kib, share)
        clwa_case(s, EXTSTORE, object_kib, SHARES[0])

    def worst(kind, column):
        return s.worst([clwa_row(kind, kib, share) for kib in OBJECTS_KIB for share in SHARES], column)

    s.target("CLWA of a FIFO of large objects (worst size)", worst(FLASHIELD, "clwa"), at_most=1.05)
    s.beside("  of what was written", worst(FLASHIELD, "clwa_of_written"))
    s.beside("  extstore", worst(EXTSTORE, "clwa"))


# ---- stress_hot ------------------------------------------------------------------------------

DRIVES = {"fast drive": 0, "1 ms drive": 1000}  # microseconds beside the real one's


class HotKeys:
    """Keys that lie on a server's flash, a new one for each measurement."""

    def __init__(self, s, server, load):
        self.s, self.server, self.load, self.used = s, server, load, 0

    def get(self, operations, connections):
        return self.s.run(self.server, **self.load | {"kind": "get", "keys": 1, "operations": operations,
                                                      "first_key": self.load["first_key"] + self.used,
                                                      "connections": connections})

    def find(self):
        """Goes on to the next key that is read from the drive. Returns the drive's reads before that."""
        reads = self.server.drive.reads
        while True:
            self.used += 1
            before = reads.done
            self.get(1, 1)
            if reads.done != before or self.used + 1 >= self.load["keys"]:
                return before

    def measure(self, drive, latency_us):
        reads = self.server.drive.reads
        before = self.find()
        reads.latency_us = latency_us
        result = self.get(self.s.scaled(1000000, 20000), 200)
        reads.latency_us = 0
        done = reads.done - before
        self.s.add(f"{self.server.kind}, {drive}", hot_gets=result.gets, hot_reads=done,
                   hot_reads_percent=100 * done / result.gets, hot_missed=result.gets - result.hits,
                   hot_gets_s=result.gets / result.seconds, hot_p50_us=result.get_latency.us(0.5),
                   hot_p99_us=result.get_latency.us(0.99))


@study("stress_hot", "one object on flash that everybody asks for, extstore beside")
def stress_hot(s):
    """Counts the drive's reads for a million gets, on a fast drive and on one whose reads take a millisecond."""
    s.describe(
        "one object on flash that everybody asks for, extstore beside",
        "One key whose object lies on flash, another in each measurement, is asked for by 200 connections, one get each, a "
        "million times (times the scale) in all. reads: of the emulated drive (tools/slowdrive), which is as fast as the real "
        "one, or takes a millisecond more for each read; the one before, by which the key was found, is among them. 257 B, -m 64 "
        "-t 1. extstore: 16 I/O threads; its default moves one object in 2000 reads back into memory.",
        {"hot_gets": ("gets", -1), "hot_reads": ("drive reads", -1), "hot_reads_percent": ("reads %", 2),
         "hot_missed": ("missed", 0), "hot_gets_s": ("gets/s", -1), "hot_p50_us": ("p50 us", -1),
         "hot_p99_us": ("p99 us", -1)}, sampled=False)
    if not has_drive(s):
        return
    contenders = [HotKeys(s, *filled) for kind in (FLASHIELD, EXTSTORE)
                  if (filled := start_filled(s, kind, 10, memory_mb=64, flash_bytes=512 * MIB, extra=EXTRA[kind]))]
    for _ in s.rounds():
        for drive, latency_us in DRIVES.items():
            for one in contenders:
                one.measure(drive, latency_us)
    for drive in DRIVES:
        s.target(f"one hot object on flash, {drive}: drive reads per get",
                 s.median(f"{FLASHIELD}, {drive}", "hot_reads_percent"), "%", at_most=1)
        s.beside("  extstore", s.median(f"{EXTSTORE}, {drive}", "hot_reads_percent"), "%")


# ---- stress_index ----------------------------------------------------------------------------

OF_TRUTH = {"1/10": 0.1, "1/4": 0.25, "1/2": 0.5, "right": 1, "2": 2, "4": 4, "10": 10}
RECORD_BYTES = 320  # of a value of 257 B on flash: with its header and a key of 30 B


def index_row(name):
    return f"{name} ({RECORD_BYTES * OF_TRUTH[name]:.0f} B)"


def index_case(s, name):
    """After three turns of the flash, what does an object there cost in DRAM, how much of the flash is used, are
    objects lost, does a miss read, and what do sets wait? Sets are timed by a few of their own, beside those that fill
    the flash, in windows: those in which the index has grown are told apart."""
    row, memory_mb = index_row(name), s.scaled(256, 64)
    flash_bytes = 2 * memory_mb * MIB
    turn = flash_bytes // RECORD_BYTES
    growing, steady, grown, timed = Hist(), Hist(), 0, 4000000000
    s.progress(f"stress_index: {row}")
    with s.serving(FLASHIELD, memory_mb=memory_mb, flash_bytes=flash_bytes, slow_drive=True, extra=[
            "--admission", "all", "--flash-object-size", f"{RECORD_BYTES * OF_TRUTH[name]:.0f}"]) as server:
        stat = server.flash_stat
        for number in range(4):
            # The rate is below the most that a server on one CPU can do, because latencies are measured.
            load = s.load(server, **sets(turn, 257, 30e6, first_key=number * turn))
            while load.running():
                slots = stat("index_slots")
                result = s.run(server, **sets(500, 257, first_key=timed, connections=1, pipeline=1, urgent=True) |
                               {"rate": 2000})
                timed += 500
                has_grown = stat("index_slots") > slots
                (growing if has_grown else steady).merge(result.set_latency)
                grown += has_grown
            load.join(row)
        s.add(row, index_objects=stat("flash_items"), index_dram_bytes=stat("dram_bytes_per_flash_item"),
              index_load=stat("index_load"),
              index_mib=(stat("index_bytes") + stat("filter_bytes") + stat("index_other_bytes")) / MIB,
              index_segments_percent=100 * ratio(stat("segments_used"), stat("segments_total")),
              # The bytes of objects that can still be found, of those of all segments.
              index_live_percent=100 * stat("flash_live_bytes") / flash_bytes, index_drops=stat("index_drops"),
              index_grown=grown, index_growing_p99_us=growing.us(0.99), index_set_p99_us=steady.us(0.99),
              index_set_max_us=max(growing.max, steady.max) / 1e3)
        kept = int(KEPT_SHARE * turn)

        def probe(first_key, **spec):
            reads = server.drive.reads.done
            result = s.run(server, **sets(kept, 257, kind="get", order="uniform", first_key=first_key, operations=20000),
                           **spec)
            return result.hits / result.gets, (server.drive.reads.done - reads) / result.gets

        hits, reads = probe(4 * turn - kept)
        s.add(row, index_kept_percent=100 * hits, index_reads_per_get=reads)
        s.add(row, index_reads_per_miss=probe(5000000000, expect_misses=True)[1])


@study("stress_index", "a guess of the objects' size far from the truth")
def stress_index(s):
    """One round is enough: the contents of an index hardly depend on the machine's mood."""
    s.describe(
        "--flash-object-size far from the truth",
        "New keys of 30 B with values of 257 B (320 B on flash) are set at 30 MB/s until the flash has turned over three times "
        "after it was full. Rows: the option, of the truth. -m 256 and 512 MiB of flash, both times the scale; --admission all, "
        "-t 1. DRAM: index, filters and tables, per object on flash. segments: used, of all; live: bytes of objects that can be "
        "found, of the flash. kept: of the newest keys that 80 % of the flash has room for; reads: of the drive per get of "
        "those, and per get of keys that were never set. set p99, max: of 2000 sets a second on a connection beside, in windows "
        "of a quarter of a second; growing: in those in which the index got more slots, grown: how many.",
        {"index_growing_p99_us": ("growing set p99 us", 0), "index_grown": ("grown", 0), "index_set_p99_us": ("set p99 us", 0),
         "index_set_max_us": ("set max us", 0), "index_objects": ("objects on flash", 0),
         "index_dram_bytes": ("DRAM B /object", 2), "index_load": ("index load", 3), "index_mib": ("index MiB", 1),
         "index_segments_percent": ("segments %", 1), "index_live_percent": ("live %", 1), "index_drops": ("drops", 0),
         "index_kept_percent": ("kept %", 2), "index_reads_per_get": ("reads /get", 3),
         "index_reads_per_miss": ("reads /miss", 4)}, sampled=False)
    if not has_drive(s):
        return
    for name in OF_TRUTH:
        index_case(s, name)
    rows = [index_row(name) for name in OF_TRUTH]
    every = "any --flash-object-size"
    s.target(f"{every}: DRAM per object on flash (worst case)", s.worst(rows, "index_dram_bytes"), "B", at_most=4.5)
    s.target(f"{every}: of the flash used (worst case)", s.worst(rows, "index_live_percent", min), "%", at_least=97)
    s.target(f"{every}: drive reads per miss (worst case)", s.worst(rows, "index_reads_per_miss"), at_most=0.01)
    s.beside("  p99 of sets while a table is added (worst case)", s.worst(rows, "index_growing_p99_us"), "us")
    s.beside("  p99 of other sets (worst case)", s.worst(rows, "index_set_p99_us"), "us")

