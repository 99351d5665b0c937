# SPDX-License-Identifier: BSD-3-Clause
"""Filters in units: figures tell them, and gets through them find all that was stored."""
import itertools

import pytest

from conftest import FLASH
from helpers import Daemon, until

BATCH = 200
VALUE = b"v" * 200


@pytest.mark.slots("small objects have no filter units with the frugal one")
def test_units_are_told_and_deny_nothing(open_folder):
    """Under -M nothing that was stored is lost, so that each miss were a filter's."""
    options = ["--flash-path", str(open_folder / "flash"), "--filter-units", "4", "--filter-bits", "4", "-M", *FLASH]
    numbers, stored = itertools.count(), set()

    def store_batch(client):
        for n in itertools.islice(numbers, BATCH):
            if client.set(b"key-%d" % n, VALUE) == b"STORED\r\n":
                stored.add(n)
        return client.count("filter_units") > 0

    with Daemon(options) as daemon, daemon.client() as client:
        until(lambda: store_batch(client), "units")
        assert len(stored) > BATCH
        for n in range(next(numbers)):
            expected = [VALUE] if n in stored else []
            assert [data for _, _, data, _ in client.get(b"key-%d" % n, b"nobody-%d" % n)] == expected, n
        assert client.count("flash_hits") > 0
        assert daemon.stats(b"settings")["filter_units"] == "4"


@pytest.mark.parametrize("options, told", [
    (["--filter-units", "4"], ["--filter-units has no effect while there are no filters: --filter-bits makes them"]),
    (["--filter", "cuckoo"], ["--filter=cuckoo has no effect while there are no filters: --filter-bits makes them"]),
    (["--filter", "cuckoo", "--filter-bits", "2"], ["--filter=cuckoo has no effect with filters of 2 bits for each object: it takes 3"]),
    (["--filter", "cuckoo", "--filter-units", "4", "--filter-bits", "4"], ["--filter=cuckoo has no effect with --filter-units"]),
    (["--filter", "cuckoo", "--filter-bits", "3"], []), (["--filter-units", "4", "--tag-bits", "8"], []), ([], []),
], ids=" ".join)
def test_options_of_filters_that_have_no_effect_are_told(open_folder, options, told):
    """At the start. Of few segments each slot has bits enough, so that there are no filters unless they are asked for."""
    log = open_folder / "log"
    with Daemon(["--flash-path", str(open_folder / "flash"), *options, *FLASH], stderr=log.open("w")):
        pass
    assert [line.partition("warning: ")[2] for line in log.read_text().splitlines() if "no effect" in line] == told
