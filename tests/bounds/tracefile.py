# SPDX-License-Identifier: BSD-3-Clause
"""A trace in the format flashield as arrays, and what its requests alone tell: changes, gaps, aged counts."""
import gzip

import numpy as np

GET, SET, DELETE = 0, 1, 2
KEY_BYTES = 30  # where a trace doesn't know; flashield-sim takes the same
AGES = 4  # aged counts
COLUMNS = 7


class Trace:
    """Arrays with an entry for each request: time_us from 0, op, key, bytes (key and value), changed, ttl."""

    def __init__(self, path, changed_is_update):
        with (gzip.open if str(path).endswith(".gz") else open)(path, "rb") as file:
            text = file.read().partition(b"\n")[2]
        for word, code in ((b"get", b"0"), (b"set", b"1"), (b"delete", b"2")):
            text = text.replace(b"," + word + b",", b"," + code + b",")
        rows = np.fromstring(text.replace(b"\n", b",").rstrip(b","), dtype=np.int64, sep=",").reshape(-1, COLUMNS)
        self.time_us = (rows[:, 0] - rows[0, 0]) * 1000
        if (rows[:, 0] < 0).all():
            self.time_us = np.arange(len(rows)) * (7 * 86400 * 10**6 // len(rows))
        self.span_us = int(self.time_us[-1])
        self.op, self.ttl = rows[:, 2], rows[:, 6]
        self.key = np.unique(rows[:, 3], return_inverse=True)[1]
        self.keys = int(self.key.max()) + 1
        self.value_bytes = rows[:, 5]
        self.bytes = np.where(rows[:, 4] < 0, KEY_BYTES, np.maximum(rows[:, 4], 1)) + self.value_bytes
        self.order = np.argsort(self.key, kind="stable")  # requests by key, in their order
        same = np.zeros(len(rows), dtype=bool)
        same[1:] = self.key[self.order][1:] == self.key[self.order][:-1]
        self.before = np.full(len(rows), -1)  # the key's request before this one
        self.before[self.order[1:]] = np.where(same[1:], self.order[:-1], -1)
        known = self.before >= 0
        self.changed = np.zeros(len(rows), dtype=bool)
        if changed_is_update:
            self.changed = known & (self.op == GET) & (self.value_bytes != self.value_bytes[self.before]) & (self.op[self.before] != DELETE)

    def working_set(self):
        """The bytes of the keys' first values."""
        firsts = self.order[self.before[self.order] < 0]
        return int(np.maximum(self.value_bytes[firsts], 1).sum())

    def gap(self, earlier):
        """Seconds from the key's request `earlier` requests before the one before to that one; a week where there is none."""
        at, then = np.arange(len(self.before)), self.before
        for _ in range(earlier):
            at, then = np.where(then >= 0, then, -1), np.where(then >= 0, self.before[then], -1)
        return np.where(then >= 0, (self.time_us[at] - self.time_us[then]) / 1e6, 7 * 86400.0)

    def aged_counts(self):
        """A column for each half-life, from a 2048th of the span to a quarter of it."""
        order, before = self.order, self.before
        first = before[order] < 0
        gaps = np.where(first, 0, self.time_us[order] - self.time_us[before[order]])
        columns = []
        for age in range(AGES):
            kept = np.where(first, 0, np.exp2(-gaps / (self.span_us / 2048 * 8**age)))
            counts, count = np.empty(len(order), dtype=np.float32), 0.0
            for place, share in enumerate(kept.tolist()):
                count = count * share + 1
                counts[place] = count
            column = np.empty_like(counts)
            column[order] = counts
            columns.append(column)
        return columns

    def features(self):
        """What is known of a key after each request, in logarithms: a row for each."""
        rank = np.empty(len(self.order), dtype=np.int64)
        place = np.arange(len(self.order))
        starts = np.maximum.accumulate(np.where(self.before[self.order] < 0, place, 0))
        rank[self.order] = place - starts
        columns = [*self.aged_counts(), *(self.gap(earlier) for earlier in range(3)), rank, self.bytes, self.ttl]
        return np.log2(1 + np.stack(columns, axis=1).astype(np.float32))


class Labels:
    """How often a key was asked for between two moments, until a set, a delete or a changed size."""

    def __init__(self, trace):
        self.width = 2 * trace.span_us + 2  # of a key's part of the numbers: no time leads beyond it
        moments = trace.key * self.width + trace.time_us
        served = (trace.op == GET) & ~trace.changed
        self.gets, self.ends = np.sort(moments[served]), np.sort(moments[~served])

    def accesses(self, keys, times, horizon):
        begin = keys * self.width + times
        until = begin + min(horizon, self.width // 2)
        at = np.searchsorted(self.ends, begin, side="right")
        end = np.append(self.ends, np.iinfo(np.int64).max)[at]
        last = np.minimum(until, np.where(end < (keys + 1) * self.width, end - 1, until))
        return np.searchsorted(self.gets, last, side="right") - np.searchsorted(self.gets, begin, side="right")
