# SPDX-License-Identifier: BSD-3-Clause
"""What happens to keys while a node of several goes away and comes back. Every read is judged."""
import itertools

from checker import Checker, value_of
from clients import Failed
from helpers import until

KEYS = 300
WRITTEN, DELETED, LEFT = "written", "deleted", "left"  # what becomes of a key while its node is away
probes = itertools.count()


class Life:
    """A cluster, a client of it, and what the client has written."""

    def __init__(self, cluster, client):
        self.cluster = cluster
        self.client = client
        self.checker = Checker()
        self.keys = [f"app{number % 3}:{number}" for number in range(KEYS)]
        self.fates = dict(zip(self.keys, itertools.cycle([WRITTEN, DELETED, LEFT, WRITTEN])))

    def write(self, key):
        """Until it is stored: a node that has just gone away costs some failures before it is left out."""
        def stored():
            return self.client.set(key, self.checker.next_value(key))
        until(stored, f"{key} to be stored")
        self.checker.stored(key)

    def delete(self, key):
        until(lambda: self.client.delete(key), f"{key} to be deleted")
        self.checker.deleted(key)

    def read(self, key):
        """What an application sees: the value or None."""
        try:
            value = self.client.get(key)
        except Failed:
            return None
        self.checker.read(key, value)
        return value

    def read_all(self):
        return sum(self.read(key) is not None for key in self.keys)

    def write_all(self):
        for key in self.keys:
            self.write(key)

    def meanwhile(self):
        """What is written and deleted while a node is away."""
        for key in self.keys:
            if self.fates[key] == WRITTEN:
                self.write(key)
            elif self.fates[key] == DELETED:
                self.delete(key)

    def goes_to(self, node):
        """Does the client use this node again? Asked by keys of no other use, as only what is written tells."""
        key = f"probe:{next(probes)}"
        return self.client.set(key, value_of(key, 1)) and bool(node.holds([key]))

    def returned(self, node):
        until(lambda: self.goes_to(node), "the node to be taken back")
