# SPDX-License-Identifier: BSD-3-Clause
"""Values that name their key and version, and what a cache may answer for them.

A cache may forget: a miss is always right. It may not answer with what was overwritten or deleted before. A write that
was not acknowledged may or may not have happened, so from then on its version is right too.
"""


def value_of(key, version, length=300):
    """A value that says whose it is. length is that of a small object; the same for all versions of a key."""
    return f"{key}#{version}#".ljust(length, "v")


class Checker:
    """The versions that each key may have. One thread."""

    def __init__(self):
        self.versions = {}  # key: the last one that was tried
        self.right = {}  # key: the versions that a read may find
        self.wrong = []  # what was read and should not have been
        self.hits = 0
        self.misses = 0

    def next_value(self, key):
        """What to write next."""
        version = self.versions.get(key, 0) + 1
        self.versions[key] = version
        self.right.setdefault(key, set()).add(version)
        return value_of(key, version)

    def stored(self, key):
        """The last value is the key's only one from here on."""
        self.right[key] = {self.versions[key]}

    def deleted(self, key):
        self.right[key] = set()

    def read(self, key, value):
        """Judges a get's answer: text, or None for a miss."""
        if value is None:
            self.misses += 1
            return
        self.hits += 1
        if not any(value == value_of(key, version) for version in self.right.get(key, ())):
            self.wrong.append(f"{key}: {value[:40].rstrip('v')!r}, right are versions {sorted(self.right.get(key, ()))}")
