# SPDX-License-Identifier: BSD-3-Clause
"""Study of the two forms of a chain record without a server: bit-sliced Bloom filters (BloomStore), and fingerprints."""
from study import study

SEARCHES = 1000000
# Columns, and keys of each in the record: 1024 keys in ours; the paper's 96 filters of 64 keys, as one record and in 16.
SHAPES = ((1024, 1), (256, 4), (64, 16), (96, 64), (96, 4))
WRONG = 5  # times as many keys as expected, and as few: objects of 60 B and of 1500 B where 300 B were expected


@study("chain", "records of the frugal index's chain: bit-sliced Bloom filters, fingerprints", plain=True)
def chain(s):
    """Flash is not there: a column that matches in vain would be a read."""
    s.describe("A partition's record of the chain, in two forms of as many bytes",
               "Rows: a Bloom filter for each column, bit-sliced, made for the keys that are expected (BloomStore, section III.A). "
               "Lists: fingerprints of 16 bits by column (flashindex/frugal/cell.h), which expect nothing. Bits: of the record, for each key "
               "that is in it. In vain: columns that a key matches without being in them, and newer ones than its own. The time of "
               "a search includes cache misses, as its record is not in a near cache.",
               {"bits_per_key": ("bits", 2), "in_vain_per_miss": ("in vain/miss", 4), "in_vain_per_hit": ("/hit", 4),
                "miss_ns": ("miss ns", 0), "hit_ns": ("hit ns", 0)}, sampled=False)
    for columns, keys in SHAPES:
        run(s, columns, keys, keys, False)
        run(s, columns, keys, keys, True)
    columns, keys = SHAPES[2]
    for expected in (keys / WRONG, keys * WRONG):
        run(s, columns, keys, expected, True)


def run(s, columns, keys, expected, rows):
    row = f"{columns} columns of {keys}, {'rows' if rows else 'lists'}"
    if expected != keys:
        row += f", {expected:g} expected"
    s.progress(f"chain: {row}")
    s.engine("chain", row=row, columns=columns, keys_each=keys, expected_each=expected, rows=rows,
             searches=s.scaled(SEARCHES, 20000))
