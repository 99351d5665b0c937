# SPDX-License-Identifier: BSD-3-Clause
"""Studies of objects in DRAM, beside memcached: ops, memory, held, threads."""
import math

from server import FLASHIELD, MEMCACHED, MIB
from study import cpus, study

ABSENT = 1000000000000  # keys from here on are never set

# ---- ops -------------------------------------------------------------------------------------

# Name: bytes of a value, first key, objects. Each size has keys of its own, so that all are there at the same time:
# some 600 MB together. The size that the memory figures are about comes first, because the objects of later sizes
# partly fit into the room that it left over.
SIZES = {"257 B": (257, 100000000, 400000), "4 KB": (4096, 200000000, 40000), "100 KB": (102400, 300000000, 2000),
         "64 B": (64, 0, 500000)}
KINDS = {"set": {"kind": "set"}, "get": {"kind": "get"}, "miss": {"kind": "get", "expect_misses": True},
         "mixed": {"kind": "mixed", "set_share": 0.1}, "mget": {"kind": "get", "keys_per_get": 100}}


def ops_cases():
    """Yields kind, size, connections and pipeline: 257 B with all numbers of connections and pipelined, the other sizes
    as most applications use them."""
    for connections in (1, 50, 1000):
        for pipeline in (1, 16):
            yield from ((kind, "257 B", connections, pipeline) for kind in ("set", "get", "miss", "mixed"))
        yield "mget", "257 B", connections, 1
    for size in ("64 B", "4 KB", "100 KB"):
        yield from ((kind, size, 50, 1) for kind in ("set", "get", "mixed"))


@study("ops", "sets, DRAM hits, misses, multigets, a mix: CPU, latency and rate beside memcached", plain=True)
def ops(s):
    """Both servers run all the while and hold the same objects; an idle one costs nothing."""
    s.describe("operations in DRAM, memcached beside",
               "Rows: operation, value size, cN: N connections, xN: N commands under way on each (else one). mget: of "
               "100 keys. mixed: 90 % gets, 10 % sets. miss: keys that were never set. Keys have 30 B and are drawn "
               "uniformly; every object is in DRAM. Both servers: -t 1, -m 1024, ours without flash: with it a set "
               "clears slots and the classifier takes samples.\n"
               "CPU (user and kernel) is the server's per operation, of a multiget per key; latency is a command's. "
               "CPU wait: the server could have run but others did; where it isn't near 0, rate and latency are "
               "theirs. Ratios: flashield / memcached, within a round. fill: growth of resident memory per object "
               "stored, and how much of it is not the value.",
               {"objects": ("objects", 0), "dram_bytes": ("DRAM B per object", 1),
                "dram_overhead_bytes": ("beside the value", 1)})
    servers = [server for kind in (FLASHIELD, MEMCACHED) if (server := s.start(kind, memory_mb=1024))]
    fills = {}
    try:
        for size, (value_bytes, first_key, objects) in SIZES.items():
            for server in servers:
                before = server.resident_mib()
                result = s.fill(server, s.scaled(objects, 100), first_key=first_key, value_bytes=value_bytes,
                                connections=8, pipeline=8)
                if result.stored < result.operations:
                    s.note(f"{server.kind} stored only {result.stored} of {result.operations} values of {size}: "
                           f"{result.first_error}")
                if result.stored:
                    fills[f"fill {size} {server.kind}"] = (result.stored, value_bytes,
                                                           (server.resident_mib() - before) * MIB / result.stored)
        for number in s.rounds():
            for kind, size, connections, pipeline in ops_cases():
                value_bytes, first_key, objects = SIZES[size]
                name = f"{kind} {size} c{connections}{f' x{pipeline}' if pipeline > 1 else ''}"
                s.sample_each(servers, lambda server, name=name: f"{name} {server}".strip(), number, **KINDS[kind],
                              order="uniform", first_key=first_key + (ABSENT if kind == "miss" else 0),
                              keys=s.scaled(objects, 100), value_bytes=value_bytes, connections=connections,
                              pipeline=pipeline, seconds=s.seconds(0.9), warmup_share=0.1, seed=number + 1)
    finally:
        for row, (objects, value_bytes, dram_bytes) in fills.items():
            s.add(row, objects=objects, dram_bytes=dram_bytes, dram_overhead_bytes=dram_bytes - value_bytes)
        for what, row in (("DRAM hit", "get"), ("set", "set"), ("miss", "miss"), ("multiget key", "mget")):
            s.target(f"server CPU per {what}, against memcached", s.median(f"{row} 257 B c50", "cpu_ratio"), "x",
                     at_most=0.9)
        for what, row in (("DRAM hit", "get"), ("set", "set"), ("miss", "miss")):
            s.target(f"server CPU per {what}, 16 pipelined, against memcached",
                     s.median(f"{row} 257 B c50 x16", "cpu_ratio"), "x", at_most=0.4)


# ---- memory ----------------------------------------------------------------------------------

@study("memory", "resident memory while object sizes shift from 100 B to 1 KiB and back, memcached beside", plain=True)
def memory(s):
    """The allocator's pages that held one size must come free for the other. memcached keeps slab pages by class."""
    s.describe("resident memory while sizes shift",
               "Each phase sets three times the memory in new keys, each read once after it was set: values of 100 B, "
               "then of 1 KiB, then of 100 B. peak: VmHWM so far. -t 1, -m 64 (times the scale); with flash: 512 MiB.",
               {"objects_set": ("objects set", 0), "held": ("objects held", 0), "resident_mib": ("resident MiB", 1),
                "peak_mib": ("peak MiB", 1)}, sampled=False)
    memory_mb = s.scaled(64, 16)
    peaks = {}
    for name, kind, flash_bytes in (("flashield", FLASHIELD, 0), ("flashield + flash", FLASHIELD, 512 * MIB),
                                    ("memcached", MEMCACHED, 0)):
        s.progress(f"memory: {name}")
        with s.serving(kind, memory_mb=memory_mb, flash_bytes=flash_bytes) as server:
            if not server:
                continue
            for number, (phase, value_bytes) in enumerate((("100 B", 100), ("1 KiB", 1024), ("100 B again", 100))):
                keys = int(3 * memory_mb * MIB / (140 + value_bytes))
                s.fill(server, keys, read=True, first_key=number * 100000000, value_bytes=value_bytes, connections=50,
                       pipeline=16)
                s.add(f"{name}, {phase}", objects_set=keys, held=server.stat("", "curr_items"),
                      resident_mib=server.resident_mib(), peak_mib=server.peak_mib())
            peaks[name] = server.peak_mib()
    limit = 1.1 * memory_mb + 24
    s.target("peak of resident memory over size shifts", peaks["flashield"], "MiB", at_most=limit)
    s.target("the same, with flash", peaks["flashield + flash"], "MiB", at_most=limit)
    if "memcached" in peaks:
        s.beside("  memcached, the same load", peaks["memcached"], "MiB")


# ---- held ------------------------------------------------------------------------------------

# Bytes of a key, and of a value or the least and the most of one. The allocator's size classes decide what some bytes
# less beside the data are worth for a single size.
HELD = [(key_bytes, *values) for key_bytes in (16, 30) for values in ((100, 0), (257, 0), (50, 600))]


@study("held", "objects that -m holds, by key and value, and bytes of each beside its data, memcached beside")
def held(s):
    s.describe("objects held",
               "New keys are set until they would take twice the memory, without flash. held: curr_items then. item: bytes of "
               "the allocator for an object, table: of what leads to it (hash_bytes); both by the server's own counts, and "
               "memcached doesn't tell the first. beside: both, less key and value. -t 1, -m 1024 (times the scale).",
               {"held": ("objects held", 0), "item_bytes": ("item B", 1), "table_bytes": ("table B", 1),
                "beside_bytes": ("beside B", 1)}, sampled=False)
    memory_mb = s.scaled(1024, 16)
    for key_bytes, value_bytes, most in HELD:
        size = f"{value_bytes} to {most}" if most else str(value_bytes)
        mean = (most - value_bytes) / math.log(most / value_bytes) if most else value_bytes  # sizes are log-uniform
        for kind in (FLASHIELD, MEMCACHED):
            row = f"key {key_bytes}, value {size} B, {kind}"
            s.progress(f"held: {row}")
            with s.serving(kind, memory_mb=memory_mb) as server:
                if not server:
                    continue
                s.fill(server, int(2 * memory_mb * MIB / (key_bytes + mean + 40)), key_bytes=key_bytes,
                       value_bytes=value_bytes, value_bytes_most=most, connections=8, pipeline=16)
                count = server.stat("", "curr_items")
                item, table = server.flash_stat("dram_bytes") / count, server.stat("", "hash_bytes") / count
                s.add(row, held=count, item_bytes=item, table_bytes=table, beside_bytes=item + table - key_bytes - mean)


# ---- threads ---------------------------------------------------------------------------------

@study("threads", "CPU per operation and rate with 1, 2, 4, 8 worker threads, memcached beside", plain=True)
def threads(s):
    """Waiting for locks and moving cache lines between cores grow with the threads. Through the network both servers of
    a thread count run together; without it, threads of the worker drive the store."""
    s.describe("worker threads",
               "get and set: 257 B values in DRAM, 50 connections, one command at a time on each, servers unpinned, -m "
               "512, one load generator. ctx sw.: voluntary context switches of the server's threads; one that waits "
               "for a lock goes to sleep, but so does one that waits for commands.\n"
               "store: threads of one process on the store itself, without network or protocol; drawn keys, 16 "
               "operations a turn of a worker. CPU is that of the threads; here they sleep for locks only.",
               {"switches": ("ctx sw. /op", 3), "store_cpu_ns": ("ns CPU /op", 0), "store_ops_s": ("ops/s", -1),
                "store_switches": ("ctx sw. /M ops", -1), "store_growth": ("CPU, x of 1 thread", 2)})
    s.note(f"This run may use {len(cpus())} CPUs: threads beyond that number take turns, and the load generator needs "
           "one.")
    load = {"keys": s.scaled(100000, 100), "value_bytes": 257, "connections": 50}
    for count in (1, 2, 4, 8):
        servers = [server for kind in (FLASHIELD, MEMCACHED)
                   if (server := s.start(kind, memory_mb=512, threads=count, unpinned=True))]
        for server in servers:
            s.fill(server, pipeline=16, **load)
        for number in s.rounds(f"servers with -t {count}"):
            for kind in ("get", "set"):
                before = {server.kind: server.sleeps() for server in servers}
                # No warm-up: the switches are those of all operations.
                results = s.sample_each(servers, lambda server, kind=kind: f"{kind} -t {count} {server}".strip(),
                                        number, kind=kind, order="uniform", seconds=s.seconds(0.7), seed=number + 1,
                                        **load)
                for server in servers:
                    s.add(f"{kind} -t {count} {server.kind}", switches=(server.sleeps() - before[server.kind]) /
                          results[server.kind].operations)
        for server in servers:
            s.stop(server)
    s.progress("threads: the store in a process of its own")
    s.engine("store", rounds=s.options.rounds, keys=s.scaled(400000, 1000), operations=s.scaled(400000, 1000))
