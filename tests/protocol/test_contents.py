# SPDX-License-Identifier: BSD-3-Clause
"""stats contents: objects and bytes by application and tier, and what they are like, as far as samples tell. Figures are estimates: the
bounds are many times their usual error."""
import re

import pytest

from binary import SET, BinaryClient, store
from helpers import fill_turn, free_port, is_frugal, until
from metrics import scrape

ALL = "(all)"
MEASURES = ["size", "age", "ttl", "idle"]
FIGURES = ["samples", "objects", "bytes", "value_bytes"]


def contents(client):
    """{(application, tier): {figure: number, or {bucket: objects}}}"""
    found = {}
    for name, value in client.stats(b"contents").items():
        app, tier, figure = name.rsplit(":", 2)
        of = found.setdefault((app, tier), {})
        if figure in MEASURES:
            of[figure] = {bucket: int(objects) for bucket, objects in (word.split("=") for word in value.split(" "))}
        else:
            of[figure] = int(value)
    return found


def seen(client, samples, app=ALL, tier="dram"):
    """The report, once there are so many samples."""
    return until(lambda: (found := contents(client)).get((app, tier), {}).get("samples", 0) >= samples and found, f"{samples} samples")


def set_all(client, prefix, count, length, exptime=0):
    client.all(b"".join(b"set %s:%d 0 %d %d noreply\r\n%s\r\n" % (prefix, n, exptime, length, b"v" * length) for n in range(count)))


def test_an_empty_cache_has_nothing(start):
    with start().client() as client:
        assert client.stats(b"contents") == {}


def test_no_samples_are_taken_when_disabled(start):
    daemon = start("--sample-contents=off")
    with daemon.client() as client, start().client() as other:
        for one in (client, other):
            set_all(one, b"app", 3000, 100)
        seen(other, 1000)
        assert client.stats(b"contents") == {}


def test_two_applications_in_memory(start):
    """Three times as many objects, other sizes, other times to live."""
    with start("-m", "64").client() as client:
        set_all(client, b"small", 6000, 50)
        set_all(client, b"large", 2000, 3000, exptime=1000)
        assert client.set(b"alone", b"v") == b"STORED\r\n"
        found = seen(client, 2000)
        every, small, large = (found[app, "dram"] for app in (ALL, "small", "large"))
        assert every["objects"] == 8001
        assert 4500 < small["objects"] < 7000 and 1200 < large["objects"] < 3300
        assert small["objects"] + large["objects"] == pytest.approx(8001, abs=100)
        for of in (small, large):
            assert [figure for figure in of if figure not in MEASURES] == FIGURES
            for measure in MEASURES:
                assert sum(of[measure].values()) == pytest.approx(of["objects"], abs=10), measure
        assert small["size"]["64"] == pytest.approx(small["objects"], abs=2) and large["size"]["4k"] == pytest.approx(large["objects"], abs=2)
        assert small["ttl"]["never"] == pytest.approx(small["objects"], abs=2) and large["ttl"]["1h"] == pytest.approx(large["objects"], abs=2)
        assert small["value_bytes"] == pytest.approx(50 * small["objects"], rel=0.02)
        assert small["bytes"] > small["value_bytes"] and large["bytes"] > 3000 * large["objects"]
        assert sum(small["age"][bucket] for bucket in ("10s", "1m", "10m")) == pytest.approx(small["objects"], abs=2)


def test_names_of_any_bytes(start):
    """An application's name comes from a key."""
    daemon = start()
    with BinaryClient(daemon.port) as binary:
        for n in range(200):
            binary.ask(store(SET, b"a b\r\n\xff(all):%d" % n, b"value"))
    with daemon.client() as client:
        seen(client, 50)
        lines = client.all(b"stats contents\r\n").split(b"\r\n")
        assert all(re.fullmatch(rb"STAT \S+ [!-~ ]+|END|", line) for line in lines), lines
        assert ("a%20b%0D%0A%FF%28all%29", "dram") in contents(client)


def test_objects_on_flash(start, flash_options):
    """By reads of records that the index chooses at random: an application that is there alone is all of it."""
    daemon = start(*flash_options)
    with daemon.client() as client:
        for turn in range(3):
            set_all(client, b"kept%d" % turn, 1000, 200, exptime=100000)
            fill_turn(client)
        until(lambda: client.count("flash_items") > 200, "objects on flash")
        found = seen(client, 15, tier="flash")
        every = found[ALL, "flash"]
        assert every["objects"] == pytest.approx(client.count("flash_items"), rel=0.3)
        assert sum(every["size"].values()) == pytest.approx(every["objects"], abs=15)
        assert sum(every["idle"].values()) + every["read_on_flash"] == pytest.approx(every["objects"], abs=15)
        assert set(every["size"]) > {"64", "1k", "more"}
        steps = ("256", "1k", "4k") if is_frugal() else ("256", "1k")  # of the fillers
        assert every["size"]["64"] == 0 and sum(every["size"][step] for step in steps) == pytest.approx(every["objects"], abs=15)
        assert client.count("flash_read_errors") == 0 and client.count("flash_checksum_errors") == 0


def test_metrics_by_application(start):
    port = free_port()
    with start(f"--metrics-listen=127.0.0.1:{port}").client() as client:
        set_all(client, b"shop", 3000, 100)
        set_all(client, b"others", 1000, 100)
        assert client.set(b"alone", b"v") == b"STORED\r\n"
        seen(client, 1500, app="shop")
        found = scrape(port)
        items = {dict(labels)["application"]: value for labels, value in found["flashield_application_items"].items()
                 if dict(labels)["tier"] == "dram"}
        assert 2000 < items["shop"] < 4000 and 300 < items["others"] < 2000  # an application of that name, and all without one
        assert sum(items.values()) == pytest.approx(4001, abs=1)
        sizes = {dict(labels)["up_to"]: value for labels, value in found["flashield_contents_items"].items()
                 if dict(labels)["measure"] == "size" and dict(labels)["tier"] == "dram"}
        assert sizes["128"] == pytest.approx(4000, abs=50) and sizes["1m"] == 0
        assert all(value > 0 for value in found["flashield_application_item_bytes"].values())
