# SPDX-License-Identifier: BSD-3-Clause
"""A client library's view: pymemcache."""
import pytest

pymemcache = pytest.importorskip("pymemcache")


@pytest.fixture
def library(dram_daemon):
    client = pymemcache.Client(("127.0.0.1", dram_daemon.port), default_noreply=False)
    yield client
    client.close()


def test_round_trip(library):
    """set, get, add, replace, append, prepend, delete."""
    assert library.set("lib", "value")
    assert library.get("lib") == b"value"
    assert not library.add("lib", "x")
    assert library.replace("lib", "1")
    assert library.append("lib", "2") and library.prepend("lib", "0")
    assert library.get("lib") == b"012"
    assert library.delete("lib")
    assert library.get("lib") is None


def test_many(library):
    """set_many, get_many, delete_many."""
    objects = {f"many{i}": str(i).encode() for i in range(200)}
    assert library.set_many(objects) == []
    assert library.get_many(objects) == objects
    assert library.delete_many(objects)
    assert library.get_many(objects) == {}


def test_cas(library):
    """gets and cas."""
    library.set("lib-cas", "1")
    _, cas = library.gets("lib-cas")
    assert library.cas("lib-cas", "2", cas)
    assert library.cas("lib-cas", "3", cas) is False
    assert library.cas("lib-none", "3", cas) is None


def test_counting_and_touch(library):
    """incr, decr, touch, stats."""
    library.set("lib-n", "5")
    assert library.incr("lib-n", 3) == 8
    assert library.decr("lib-n", 10) == 0
    assert library.incr("lib-none", 1) is None
    assert library.touch("lib-n", 100) and not library.touch("lib-none", 100)
    assert library.stats()[b"version"] == b"1.6.45"
