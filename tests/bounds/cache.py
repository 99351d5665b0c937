# SPDX-License-Identifier: BSD-3-Clause
"""A look-aside cache at object level, as flashield-sim's policy "freq" has it (tools/sim/tiers.c, flash_log.c, budget.c): LRU in
DRAM before a log on flash, and one threshold of worth per byte that a budget of bytes moves. A rule gives the worth."""
import collections
import math

DRAM_CHARGE, FLASH_CHARGE = 46, 32  # beside key and value
SEGMENTS = 64  # of the log
KEEPS = 4  # segments of which all may be kept in a row
WINDOWS = 16  # of the budget, per flash's bytes that applications write
CLASSES, CLASSES_PER_POWER, CLASS_OF_ONE = 512, 8, 384
FORGET = REPAY = 0.5


class Budget:
    """The threshold above which offers have as many bytes as are allowed."""

    def __init__(self, share, window_bytes):
        self.share, self.window_bytes, self.window_left = share, window_bytes, window_bytes
        self.offered, self.earned, self.balance, self.threshold = [0.0] * CLASSES, 0.0, 0.0, 0

    def end_window(self):
        target, taken, row = self.earned * self.share + self.balance * REPAY, 0.0, CLASSES
        while row > 0 and taken < target:
            row -= 1
            taken += self.offered[row]
        self.threshold = 0 if taken < target else row
        self.offered = [count * FORGET for count in self.offered]
        self.earned *= FORGET
        self.balance = min(self.balance, self.window_bytes * self.share)
        self.window_left = self.window_bytes

    def earn(self, size):
        self.earned += size
        self.balance += size * self.share
        self.window_left -= size
        if self.window_left <= 0:
            self.end_window()

    def admit(self, score, size):
        if self.share <= 0:
            return True
        if not score > 0:
            return False
        row = min(max(math.floor(math.log2(score) * CLASSES_PER_POWER) + CLASS_OF_ONE, 0), CLASSES - 1)
        self.offered[row] += size
        windows = -self.balance / (self.window_bytes * self.share)
        now = self.threshold if windows <= 0 else self.threshold + int(min(windows * CLASSES_PER_POWER, CLASSES))
        if row < now or (row == self.threshold and self.balance <= 0):
            return False
        self.balance -= size
        return True


class Segment:
    def __init__(self, opened_us):
        self.live, self.bytes, self.opened_us = {}, 0, opened_us  # live: objects, in the order of their writing


class Cache:
    """rule: note(object, request's number, cache) at every request of the trace, and worth(object, its bytes on flash, whether it
    lies there, cache) when DRAM evicts it or its segment is reclaimed."""

    def __init__(self, dram_bytes, flash_bytes, clwa, rule):
        self.dram_bytes, self.flash_bytes, self.rule = dram_bytes, flash_bytes, rule
        self.budget = Budget(clwa, flash_bytes / WINDOWS + 1)
        self.dram, self.dram_used = collections.OrderedDict(), 0  # object: bytes; the least recently used first
        self.log, self.place, self.sizes = collections.deque(), {}, {}  # segments, an object's segment, and its bytes there
        self.segment_bytes = max(min(flash_bytes // SEGMENTS, flash_bytes // 2), 1)
        self.flash_used = self.written = self.residence_us = self.now = 0
        self.reads = {}  # since the object was written to DRAM or flash

    def judge(self, number, size, on_flash):
        return self.budget.admit(self.rule.worth(number, size, on_flash, self), size)

    # ---- flash ----

    def put(self, number, size):
        if not self.log or self.log[-1].bytes >= self.segment_bytes:
            self.log.append(Segment(self.now))
        segment = self.log[-1]
        segment.live[number] = None
        segment.bytes += size
        self.place[number], self.sizes[number] = segment, size
        self.flash_used += size
        self.written += size
        self.reads[number] = 0

    def reclaim(self, may_keep):
        victim = self.log.popleft()
        self.flash_used -= victim.bytes
        self.residence_us = self.now - victim.opened_us
        for number in victim.live:
            del self.place[number]
            if may_keep and self.judge(number, self.sizes[number], True):
                self.put(number, self.sizes[number])

    def append(self, number, size):
        if size > self.flash_bytes / 4:
            return
        reclaimed = 0
        while self.flash_used + size > self.flash_bytes:
            self.reclaim(reclaimed < KEEPS)
            reclaimed += 1
        self.put(number, size)

    # ---- requests ----

    def forget(self, number):
        size = self.dram.pop(number, None)
        if size is not None:
            self.dram_used -= size
        segment = self.place.pop(number, None)
        if segment:
            del segment.live[number]

    def leave_dram(self, number, size):
        size += FLASH_CHARGE - DRAM_CHARGE
        if self.flash_bytes and self.judge(number, size, False):
            self.append(number, size)

    def get(self, number):
        if number in self.dram:
            self.dram.move_to_end(number)
        elif number not in self.place:
            return False
        self.reads[number] += 1
        return True

    def set(self, number, size):
        """size: of key and value."""
        self.budget.earn(size)
        self.forget(number)
        self.reads[number] = 0
        size += DRAM_CHARGE
        if size > self.dram_bytes:
            self.leave_dram(number, size)
            return
        self.dram[number] = size
        self.dram_used += size
        while self.dram_used > self.dram_bytes:
            oldest, bytes_ = self.dram.popitem(last=False)
            self.dram_used -= bytes_
            self.leave_dram(oldest, bytes_)


class Freq:
    """flashield-sim's freq: a count of all accesses, halved each half residence of the flash."""

    def __init__(self, objects):
        self.counts, self.epochs, self.epoch, self.epoch_us = [0.0] * objects, [0] * objects, 0, 0

    def note(self, number, _, cache):
        half = cache.residence_us // 2
        if not half:
            self.epoch_us = cache.now
        elif cache.now - self.epoch_us >= half:
            over = (cache.now - self.epoch_us) // half
            self.epoch_us += over * half
            self.epoch += min(over, 64)
        self.counts[number] = self.count(number) + 1

    def count(self, number):
        age = self.epoch - self.epochs[number]
        if age:
            self.counts[number] *= 0.5 ** age if age < 64 else 0.0
            self.epochs[number] = self.epoch
        return self.counts[number]

    def worth(self, number, size, _on_flash, _cache):
        return self.count(number) / size
