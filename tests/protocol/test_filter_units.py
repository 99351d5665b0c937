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
