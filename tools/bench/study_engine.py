# SPDX-License-Identifier: BSD-3-Clause
"""Studies of the engine's parts without a server: placement, index, index_ablation. The worker measures them."""
import math

from figures import NAN
from machine import line_of
from study import study

MIB = 1 << 20

# ---- placement -------------------------------------------------------------------------------

RATIOS = ["1x", "1.1x", "1.25x", "1.5x", "2x", "3x"]
PAPER_ROW = "512 MB, paper's figure 8, 16"


@study("placement", "segment fill by candidates, functions and sizes, and what planning costs", plain=True)
def placement(s):
    """Plans are simulated, nothing is written."""
    # Smaller segments would not tell large objects from small ones as real segments do.
    full, table, steady = (s.scaled(mib * MIB, 4 * MIB) for mib in (512, 64, 16))
    s.describe("Segment fill and planning",
               'A row: placement, sizes, hash functions. Candidates are records of 32 B header, key and value; "x" is '
               "their bytes over the segment's. equal: 30 B keys, 257 B values; log: the same with log-normal values of "
               "that mean; mix: the keys of the twenty Memcachier applications as flashield-tracegen draws them. Fill is "
               'of the areas that records may lie in, "whole" of the segment with header and footer. First '
               f"{full / MIB:.0f} MiB segments, then a steady state of {steady / MIB:.0f} MiB segments where candidates "
               'that found no place wait for the next ("waiting": their mean length), the same with large objects (log-normal, '
               "mean 45 KB) of which those above a length get an extent, then the table, "
               f"{table / MIB:.0f} MiB segments. Whole, pages (in which a record below 1 KiB lies), hashes, speed (10^6 B "
               "of segment per CPU second) and memory "
               "(peak, per candidate) at 2 x. Paper: figure 8, 512 MB segments, 16 functions, about 1 GB of candidates.",
               {f"fill_{ratio}_pct": ("fill % 1x" if ratio == "1x" else ratio, 2) for ratio in RATIOS} |
               {"whole_2x_pct": ("whole %", 2), "pages_2x": ("pages", 3), "hashes_2x": ("hashes", 2), "plan_2x_mb_s": ("MB/s", 0),
                "memory_2x_b": ("mem B", 1), "waiting_b": ("waiting B", 0), "extents_pct": ("extents %", 1)}, sampled=False)
    # The first row sets the order of the columns.
    s.add(PAPER_ROW, **{f"fill_{ratio}_pct": 99 if ratio == "2x" else NAN for ratio in RATIOS}, hashes_2x=8.2)
    s.engine("placement", rounds=s.options.rounds, full_bytes=full, steady_bytes=steady, table_bytes=table)
    mix, equal, paper = (f"{full // 4096 * 4096 / MIB:.0f} MiB {row}, 16" for row in ("sweep mix", "sweep equal",
                                                                                     "paper mix"))
    s.target("segment fill at 2 x candidates, Memcachier-like mix", s.median(mix, "fill_2x_pct"), "%", at_least=99)
    s.target("segment fill at 2 x candidates, equal sizes", s.median(equal, "fill_2x_pct"), "%", at_least=97)
    s.beside("segment fill, the paper's placement here, mix", s.median(paper, "fill_2x_pct"), "%")
    s.beside("segment fill, the paper's figure 8", 99, "%")
    s.beside("hashes per placed object, mix", s.median(mix, "hashes_2x"))
    s.beside("hashes per placed object, the paper's figure 8", 8.2)
    s.beside("planning, mix, per CPU second", s.median(mix, "plan_2x_mb_s"), "MB")


# ---- index -----------------------------------------------------------------------------------

MILLION = 1000000
LARGEST = 1000 * MILLION
MODEL_SEGMENTS = 1023  # of the rows that are one series
SHAPES = [{"slots": millions * MILLION, "segments": MODEL_SEGMENTS} for millions in (10, 30, 100, 300, 1000)] + [
    {"slots": 30 * MILLION, "segments": MODEL_SEGMENTS, "small_pages": True},
    {"slots": 10 * MILLION, "segments": 16383, "filter_bits": 1}]
COSTS = {"hit_ns": "hit ns", "miss_ns": "miss", "hit_touch_ns": "hit+touch", "hand_ns": "hand",
         "clear_nothing_ns": "clear none", "clear_ns": "clear", "insert_ns": "insert", "insert_full_ns": "at 0.95"}


def row_of(shape):
    name = f"{shape['slots'] // MILLION} M"
    if "filter_bits" in shape:
        return f"{name}, {shape['segments']} segments, {shape['filter_bits']} filter bit"
    return f"{name} slots{', 4 KiB pages' if 'small_pages' in shape else ''}"


def of_model(shape):
    return len(shape) == 2


def bytes_of(shape):
    """Returns the most bytes that a shape takes: slots, stripes, segments, shards; and a segment's hashes and filter
    while the filter is built."""
    slots = shape["slots"]
    return (4 * slots * 65 // 64 + (64 << 20) + slots * shape.get("filter_bits", 0) // 8 +
            16 * slots // shape["segments"])


def available_bytes():
    """Returns the memory that is available. fits() leaves a third of it free: a bench must not make the machine swap."""
    text = line_of("/proc/meminfo", "MemAvailable:").split()
    return int(text[0]) * 1024 if text[0].isdigit() else 0


def fits(shape):
    return bytes_of(shape) <= available_bytes() / 3 * 2


class Model:
    """cost = a + b log2(slots), by least squares. The work of an operation is the same at any size. But in a larger
    index its two buckets lie deeper in the hierarchy of caches, translation buffers and page tables, of which each
    level is a few times the size of the one before.

    It is a lower bound: smaller sizes know nothing of the step that comes where the slots outgrow the reach of the
    translation buffers. (A random read of 1.2 GB in huge pages took 200 ns on the machine that it was tried on, one of
    4 GB 330; a hit in 300 M slots 223 ns, in 1 G 406, foretold 233.)"""

    def __init__(self, points):
        """points are (slots, cost). Fewer than two sizes give NaN."""
        points = [(math.log2(slots), cost) for slots, cost in points]
        self.slope = self.base = NAN
        if len({x for x, _ in points}) < 2:
            return
        mean_x, mean_y = (sum(values) / len(points) for values in zip(*points, strict=True))
        self.slope = (sum((x - mean_x) * (y - mean_y) for x, y in points) /
                      sum((x - mean_x) ** 2 for x, _ in points))
        self.base = mean_y - self.slope * mean_x

    def predict(self, slots):
        return self.base + self.slope * math.log2(slots)


def model_of(s, column, below=math.inf):
    """Makes a model of the measured sizes below a limit."""
    return Model([(shape["slots"], cost) for shape in SHAPES if of_model(shape) and shape["slots"] < below
                  for cost in s.figures.samples("index", row_of(shape), column)])


def extrapolate(s, shape):
    for column in COSTS:
        s.add(f"{row_of(shape)}, EXTRAPOLATED", **{column: model_of(s, column).predict(shape["slots"])})
    reason = "--scale leaves these sizes out"
    if not fits(shape):
        reason = f"{available_bytes() / 1e9:.1f} GB of memory are available, and a third is to stay free"
    s.note(f"EXTRAPOLATED: {reason}. Model: cost = a + b log2(slots), least squares over the sizes measured (a hit: "
           f"{model_of(s, 'hit_ns').slope:.1f} ns more for each doubling). A lower bound: a size that outgrows the reach "
           "of the address translation buffers costs more than smaller ones foretell")


def note_model_error(s, shape):
    """Notes how well the model of the other sizes foretells the largest measured one."""
    columns = ("hit_ns", "miss_ns", "insert_ns")
    foretold = [model_of(s, column, shape["slots"]).predict(shape["slots"]) for column in columns]
    if math.isnan(foretold[0]):
        return
    measured = ", ".join(f"{s.median(row_of(shape), column):.0f}" for column in columns)
    s.note("the model cost = a + b log2(slots), fitted to the smaller sizes, would have foretold "
           f"{row_of(shape)} as hit {foretold[0]:.0f}, miss {foretold[1]:.0f}, insert {foretold[2]:.0f} ns; measured "
           f"{measured}")


@study("index", "index operations, memory and false matches, 10 M to 1 G slots", plain=True)
def index(s):
    """Sizes for which memory is short are extrapolated, and marked as such."""
    s.describe("The index by its size",
               "CPU nanoseconds per operation of one thread, at a load of 0.95 (insert: mean while it fills, and the last "
               "ones), on random keys and without overlap of one operation with the next; hashing the key's bytes is not "
               "in it. Hit+touch: as of a get from flash. Clear none: a set or delete of a key that is not on flash. "
               "Hand: per live slot passed. B/slot: all of the index's memory over slots in use. 1023 segments leave 15 "
               "bits of tag and need no filters; 16383 segments leave 11, to which the daemon adds a filter of a bit per "
               "key. Huge: share of the slots in huge pages.",
               {column: (head, 1 if column == "hand_ns" else 0) for column, head in COSTS.items()} |
               {"false_matches_per_miss": ("false/miss", 5), "moves_per_insert": ("moves", 3), "drops": ("drops", 0),
                "bytes_per_slot": ("B/slot", 3), "tag_bits": ("tag", 0), "huge_pages_pct": ("huge %", 0)}, sampled=False)
    setting = line_of("/sys/kernel/mm/transparent_hugepage/enabled")
    s.note(f"transparent huge pages: {setting} (the index asks for them by madvise)")
    largest = s.scaled(LARGEST, SHAPES[1]["slots"])  # two make a model
    for shape in SHAPES:
        if shape["slots"] <= largest and fits(shape):
            s.progress(f"index: {row_of(shape)}")
            s.engine("index", row=row_of(shape), rounds=s.options.rounds, operations=s.scaled(MILLION // 2, 100000),
                     **shape)
            if shape["slots"] == LARGEST:
                note_model_error(s, shape)
        elif of_model(shape):
            extrapolate(s, shape)


# ---- what of the index does what -----------------------------------------------------------------

TURNS = 3
PAPER_READS_PER_HIT = 1.03  # section 3.2 of the paper
PAPER_TABLE = {"paper": True, "filter_bits": 10}
ABLATION = {
    "filters of 10 bits, paper's table, 0.50 full": {**PAPER_TABLE, "load": 0.5},
    "filters of 10 bits, paper's table, 0.75 full": {**PAPER_TABLE, "load": 0.75},
    "filters of 10 bits, paper's table, 0.85 full": {**PAPER_TABLE, "load": 0.85},
    "filters of 10 bits, paper's table, 0.95 full": {**PAPER_TABLE, "load": 0.95},
    **{f"tags of {bits} bits": {"tag_bits": bits} for bits in (8, 11, 13, 15)},
    **{f"tags of 11 bits, filters of {bits}": {"tag_bits": 11, "filter_bits": bits} for bits in (1, 2, 4, 10)},
    "tags of 8 bits, filters of 10": {"tag_bits": 8, "filter_bits": 10},
}


@study("index_ablation", "reads per hit and miss by the index's tags and filters, the paper's index beside", plain=True)
def index_ablation(s):
    """The daemon chooses filters by the bits that are left for the tag: none from 12 on, one bit per key with 11."""
    slots = s.scaled(2 * MILLION, 100000)
    s.describe("Tags and filters, after three turns of the flash",
               f"An index of {slots} slots over {MODEL_SEGMENTS} segments, 0.95 full unless the row says otherwise. The flash "
               f"is filled and then written over {TURNS} times with new keys. A slot that a lookup returns is a read. Reads "
               "per hit: until the key's own record; no collision is learned. B/object: slots and filters over the keys "
               "that still have a slot. Lost: keys whose slot another one took. ns: CPU of a lookup without the "
               "hash of the key's bytes, one overlapping the next. Paper's table: 16 single slots a key, no tags, no relocation, a "
               "filter for each segment, all of them in DRAM (3.2).",
               {"reads_per_hit": ("reads /hit", 5), "reads_per_miss": ("reads /miss", 5),
                "bytes_per_object": ("B /object", 3), "lost_pct": ("lost %", 3), "filters_per_miss": ("filters asked /miss", 2),
                "hit_ns": ("hit ns", 0), "miss_ns": ("miss", 0)}, sampled=False)
    for row, shape in ABLATION.items():
        s.progress(f"index_ablation: {row}")
        s.engine("ablation", row=row, turns=TURNS, rounds=s.options.rounds, lookups=s.scaled(MILLION, 100000), slots=slots,
                 segments=MODEL_SEGMENTS, **{"load": 0.95, **shape})
    for row in ("tags of 11 bits, filters of 1", "tags of 13 bits"):
        s.target(f"reads per hit, {row}", s.median(row, "reads_per_hit"), at_most=1.01)
        s.target(f"reads per miss, {row}", s.median(row, "reads_per_miss"), at_most=0.01)
    s.beside("reads per hit, paper's table, 0.75 full", s.median("filters of 10 bits, paper's table, 0.75 full", "reads_per_hit"))
    s.beside("reads per hit, the paper's section 3.2", PAPER_READS_PER_HIT)
