# SPDX-License-Identifier: BSD-3-Clause
"""Puts objects on a server's flash, and tells which they are.

What flash_fill stores, in cycles: `wanted` new keys are set and read, then `filler` new ones only set, which push them out of
DRAM. Under OURS only the wanted ones are written to flash; extstore writes both. The wanted keys are numbers from 0."""
import time

from figures import NAN
from server import FLASHIELD, MIB, Trouble

# An object that is read once after it is set goes to flash, and all others stay in DRAM: so the load decides what lies
# where.
OURS = ["--admission", "read-once"]
# By default extstore moves memory from values to the headers of values on flash only after half a minute of pressure:
# until then 64 MiB hold 17,000 objects on flash, with this 550,000.
EXTSTORE_ONE = ["-o", "slab_automove=2"]
EXTSTORE_THREADED = ["-o", "slab_automove=2,ext_threads=16"]

BYTES_PER_SECOND = 40e6  # stored, so that our cleaner keeps up, which shares the CPU
ITEM_EXTRA_BYTES = 90  # a key, a header
CYCLES_LEAST = 10  # what the last few have stored is partly still in DRAM
FIRST_FILLER = 1000000000
PROBES = 400  # gets per cycle
SHARE_WANTED = 0.995  # of the probes: what is measured then stays above 99 %

# Of fill_as_written.
OBJECT_EXTRA_BYTES = 62  # a key, a record's header
PARTS = 4  # of a segment, each set at once
PATIENCE_SECONDS = 60
EXT_PART, EXT_BYTES_SECOND = 128, 16 * MIB  # what extstore is given: faster, it evicts what it has not yet written

# The extra arguments by kind, for a server whose objects are to lie on flash.
EXTRA = {FLASHIELD: OURS, "extstore": EXTSTORE_THREADED}


def flash_hits(server):
    return server.flash_stat("flash_hits") if server.kind == FLASHIELD else server.stat("", "get_extstore")


def longest_run(shares):
    """Returns first and length of the longest run whose mean share is enough, the later one of equals."""
    runs = [(end - first, first) for first in range(len(shares)) for end in range(first + 1, len(shares) + 1)
            if sum(shares[first:end]) >= SHARE_WANTED * (end - first)]
    length, first = max(runs, default=(0, 0))
    return first, length


def flash_fill(s, server, wanted, filler, cycles, value_bytes):
    """Stores all cycles, as many as the scale says. Returns the load's settings for keys of which nearly all lie on
    flash, or None, when there are none."""
    cycles = s.scaled(cycles, CYCLES_LEAST)
    load = {"value_bytes": value_bytes, "connections": 8, "pipeline": 8}
    rate = BYTES_PER_SECOND / (value_bytes + ITEM_EXTRA_BYTES) if server.kind == FLASHIELD else 0
    for cycle in range(cycles):
        s.fill(server, wanted, read=True, first_key=cycle * wanted, rate=2 * rate, **load)
        s.fill(server, filler, first_key=FIRST_FILLER + cycle * filler, rate=rate, **load)
    shares = []
    for cycle in range(cycles):
        before = flash_hits(server)
        s.run(server, kind="get", order="uniform", first_key=cycle * wanted, keys=wanted, operations=PROBES, seed=cycle,
              **load)
        shares.append((flash_hits(server) - before) / PROBES)
    first, length = longest_run(shares)
    if length == 0:
        return None
    return {"first_key": first * wanted, "keys": length * wanted, "value_bytes": value_bytes}


def has_room(server, room_bytes):
    stats = server.stats("flash")
    return float(stats.get("dram_budget", NAN)) - float(stats.get("dram_bytes", NAN)) >= room_bytes


def fill_as_written(s, server, keys, first_key=0, order="sequential", operations=0, part_bytes=0, **load):
    """Sets each of so many keys, or with another order as many drawn from them, all of which are to go to flash. A server
    may be late to move objects there, and would evict what it has not moved: of ours each part, a quarter of a segment by
    default, waits until memory has room for two, and extstore is filled at a rate that it can follow."""
    load = {"connections": 8, "pipeline": 8} | load
    object_bytes = max(load["value_bytes"], load.get("value_bytes_most", 0)) + OBJECT_EXTRA_BYTES
    ours = server.kind == FLASHIELD
    part_bytes = part_bytes or server.flash_stat("segment_bytes") / PARTS
    part = max(int(part_bytes / object_bytes), 1) if ours else EXT_PART
    began = time.monotonic()
    operations = operations or keys
    for done in range(0, operations, part):
        if ours:
            await_room(server, 2 * part_bytes)
        else:
            time.sleep(max(began + done * object_bytes / EXT_BYTES_SECOND - time.monotonic(), 0))
        count = min(part, operations - done)
        if order == "sequential":
            s.fill(server, count, first_key=first_key + done, **load)
        else:
            s.run(server, kind="set", order=order, first_key=first_key, keys=keys, operations=count, seed=done + 1, **load)


def await_room(server, room_bytes):
    end = time.monotonic() + PATIENCE_SECONDS
    while not has_room(server, room_bytes):
        if time.monotonic() > end:
            raise Trouble("the cleaner doesn't make room")
        time.sleep(0.004)
