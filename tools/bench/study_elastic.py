# SPDX-License-Identifier: BSD-3-Clause
"""Study of filter units (ElasticBF) without a server: the paper's table 1, and units behind tags. The worker measures them."""
from study import study

MILLION = 1000000
TABLES = 16000  # 1, 15, 144, 1440, 14400: five levels, as the paper's 50,000
TABLE_KEYS = 1024
ORDERS = {"uniform": 0, "zipf 0.99": 0.99, "zipf 1.1": 1.1, "zipf 1.2": 1.2}
BITS = (1, 2, 4, 8)
LEVEL_UNITS = 6
PAPER_BITS = 4
PAPER = {"uniform": (1525595, 628225), "zipf 0.99": (1585605, 578553), "zipf 1.1": (1634752, 550658),
         "zipf 1.2": (1667947, 545345)}
SEGMENTS = 1023
SLOTS = 2 * MILLION
LOAD = 0.95
SLOT_UNITS = 4
SPLIT_BITS = (11, 12, 13, 15)  # tag and filter together: 32, 33, 34 and 36 bits an object with 14 bits of segment number
SLOT_FILTERS = (0, 1, 2, 4)
LEAST_TAG = 7


def kind_of(units):
    return f"{units} units" if units else "fixed"


@study("elastic", "filter units that come and go (ElasticBF): reads beside the paper's, and behind tags", plain=True)
def elastic(s):
    """Flash is not there: a filter or a slot that passes is a read."""
    s.describe("Filters of fixed size, and of units that come and go, at equal memory",
               f"Half of the gets are for keys that were never written. Levels: {TABLES} sorted tables of {TABLE_KEYS} keys in "
               "five levels, each ten times the one before, as in the paper; a get asks a table in each level until it has met "
               f"its key. Paper: its table 1, with {PAPER_BITS} bits per key (50,000 tables, LevelDB beside ElasticBF). Slots: "
               f"our index of {SEGMENTS} segments, {LOAD} full, with known collisions as in the daemon; \"11 + 2\" is 11 bits of "
               "tag and 2 of filter for each object. Reads and loads of units are for a million gets; /miss and /hit: reads in "
               "vain for a get of such a key. Bits: in memory for each key at the end, with all that filters take.",
               {"reads": ("reads", 0), "reads_in_vain": ("in vain", 0), "in_vain_per_miss": ("/miss", 5),
                "in_vain_per_hit": ("/hit", 5), "unit_loads": ("unit loads", 0), "filter_bits": ("bits", 2)}, sampled=False)
    levels(s)
    slots(s)


def levels(s):
    for order, exponent in ORDERS.items():
        s.add(f"paper, {order}, {PAPER_BITS} bits, fixed", reads=PAPER[order][0])
        s.add(f"paper, {order}, {PAPER_BITS} bits, units", reads=PAPER[order][1])
        for bits in BITS:
            for units in (0, LEVEL_UNITS):
                row = f"levels, {order}, {bits} bits, {kind_of(units)}"
                s.progress(f"elastic: {row}")
                s.engine("elastic", row=row, levels=True, segments=s.scaled(TABLES, TABLES // 100), keys_each=TABLE_KEYS,
                         bits=bits, units=units, exponent=exponent, gets=s.scaled(MILLION, 20000))


def slots(s):
    for order in ("uniform", "zipf 0.99"):
        for total in SPLIT_BITS:
            for bits in SLOT_FILTERS:
                for units in (0, SLOT_UNITS) if bits else (0,):
                    if total - bits < LEAST_TAG:
                        continue
                    row = f"slots, {order}, {total - bits} + {bits}, {kind_of(units)}"
                    s.progress(f"elastic: {row}")
                    s.engine("elastic", row=row, segments=SEGMENTS, keys_each=s.scaled(int(SLOTS * LOAD / SEGMENTS), 64),
                             tag_bits=total - bits, bits=bits, units=units, exponent=ORDERS[order], learns=True,
                             gets=s.scaled(MILLION, 20000))
