# SPDX-License-Identifier: BSD-3-Clause
"""The cheapest pair of memory and flash that reaches a hit ratio, in few runs and few rounds of them.

More memory never lowers the hit ratio; of flash that isn't taken for granted, because its index takes memory. So for each size
of flash the least memory is found by halving, some sizes of flash in each round, and a size of flash is given up as soon as
nothing cheaper than the best pair is left of it. First in steps of 2, then in finer ones around the best pair.
"""
import dataclasses
import math

STEPS = (2, 2 ** 0.5, 2 ** 0.25)
RECENTRED = 2  # times at the most that a finer grid follows the best pair
ENOUGH = 1e-9  # of a hit ratio: what rounding may cost


def tidy(value):
    """A size that can be written down: whole MiB from 64 MiB on, below that 64 KiB, bytes below 1 MiB."""
    unit = 1 << 20 if value >= 64 << 20 else 1 << 16 if value >= 1 << 20 else 1
    return math.ceil(value / unit - 1e-6) * unit


def ladder(low, high, step):
    """Sizes from low to high, each so much larger than the last."""
    rungs = max(0, math.ceil(math.log(high / low) / math.log(step) - 1e-9)) if high > low else 0
    return sorted({tidy(min(low * step**rung, high)) for rung in range(rungs + 1)})


def around(size, step, width, least, most):
    """Sizes from size / width to size * width, and from least to most. 0 stays alone."""
    if not size:
        return [0]
    rungs = round(math.log(width) / math.log(step))
    return sorted({tidy(min(max(size * step**rung, least), most)) for rung in range(-rungs, rungs + 1)} | {size})


@dataclasses.dataclass
class Column:
    """A size of flash: memories up to index low are too little, those from high on are enough."""
    flash: int
    low: int
    high: int


class Search:
    """evaluate takes a list of (memory, flash) and returns hit ratios, None for a pair that can't be used; a pair is asked for
    once. cost takes a pair. Above the ceiling, a hit ratio, few pairs are asked for before the search gives up.
    width: pairs in a round, at the most. expect is told before each round how many pairs may follow it, by a rough guess."""

    def __init__(self, evaluate, cost, ceiling=1, width=4, expect=lambda pairs: None):
        self.evaluate, self.cost, self.ceiling, self.width, self.expect = evaluate, cost, ceiling, width, expect
        self.known = {}
        self.grids = 0  # finer ones that are still to come

    def ask(self, pairs):
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self.known]
        if new:
            self.known.update(zip(new, self.evaluate(new), strict=True))
        return [self.known[pair] for pair in pairs]

    def enough(self, hit_ratio, target):
        return hit_ratio is not None and hit_ratio >= target - ENOUGH

    def best_known(self, flashes, target):
        pairs = [pair for pair, hit_ratio in self.known.items() if self.enough(hit_ratio, target) and pair[1] in flashes]
        return min(pairs, key=lambda pair: (self.cost(pair), pair), default=None)

    def left(self, column, memories, limit):
        """The memories of a column that are neither judged nor too dear. The middle one is asked about next."""
        return [index for index in range(column.low + 1, column.high) if self.cost((memories[index], column.flash)) < limit]

    def on_grid(self, memories, flashes, target, best):
        """The cheapest pair on a grid, or best where none is cheaper."""
        columns = [Column(flash, -1, len(memories)) for flash in flashes]
        while True:
            limit = self.cost(best) if best else math.inf
            lefts = [(column, self.left(column, memories, limit)) for column in columns]
            probes = [(column, left[len(left) // 2]) for column, left in lefts if left]
            if not probes:
                return best
            middle = best[1] if best else flashes[len(flashes) // 2]
            probes.sort(key=lambda probe: abs(math.log((probe[0].flash + 1) / (middle + 1))))
            probes = probes[:self.width]  # what these find may spare the others
            halvings = sum(len(left).bit_length() for _, left in lefts)
            self.expect(halvings - len(probes) + self.width * (2 * self.grids + 1))
            answers = self.ask([(memories[index], column.flash) for column, index in probes])
            for (column, index), hit_ratio in zip(probes, answers, strict=True):
                if not self.enough(hit_ratio, target):
                    column.low = index
                    continue
                column.high = index
                pair = memories[index], column.flash
                if best is None or self.cost(pair) < self.cost(best):
                    best = pair

    def cheapest(self, target, memories, flashes):
        """memories and flashes: (least, most); flashes None: DRAM only. The pair, or None where none reaches the target."""
        grid = ladder(*memories, STEPS[0])
        columns = [0] + (ladder(*flashes, STEPS[0]) if flashes else [])
        least_flash, most_flash = columns[min(1, len(columns) - 1)], columns[-1]
        if target > self.ceiling:  # it isn't worth a search unless the largest sizes do it
            top = [(grid[-1], flash) for flash in sorted({0, most_flash})]
            if not any(self.enough(hit_ratio, target) for hit_ratio in self.ask(top)):
                return None
        self.grids = len(STEPS) - 1
        best = self.on_grid(grid, columns, target, self.best_known(columns, target))
        if best is None:
            return None
        for width, step in zip(STEPS, STEPS[1:], strict=False):
            self.grids -= 1
            for _ in range(RECENTRED):
                centre = best
                best = self.on_grid(around(best[0], step, width, grid[0], grid[-1]),
                                    around(best[1], step, width, least_flash, most_flash), target, best)
                if best == centre:
                    break
        return best

    def neighbours(self, pair, most):
        """The pairs nearest to this one that were asked about, by the factors between their sizes."""
        def distance(other):
            factors = [abs(math.log((one + 1) / (two + 1))) for one, two in zip(pair, other, strict=True)]
            return math.hypot(*factors)
        return sorted(sorted((other for other in self.known if other != pair), key=distance)[:most])
