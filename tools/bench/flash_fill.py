# SPDX-License-Identifier: BSD-3-Clause
"""Puts objects on a server's flash, and tells which they are.

What is stored, in cycles: `wanted` new keys are set and read, then `filler` new ones only set, which push them out of
DRAM. Under OURS only the wanted ones are written to flash; extstore writes both. The wanted keys are numbers from 0."""
from server import FLASHIELD

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
