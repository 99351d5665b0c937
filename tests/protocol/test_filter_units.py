# SPDX-License-Identifier: BSD-3-Clause
"""Filters in units: figures tell them, and gets through them find what was set."""
import pytest

from conftest import FLASH
from helpers import Daemon, fill_turn, until

KEYS = 500
VALUE = b"v" * 200


@pytest.mark.slots("small objects have no filter units with the frugal one")
def test_units_are_told_and_deny_nothing(open_folder):
    options = ["--flash-path", str(open_folder / "flash"), "--filter-units", "4", "--filter-bits", "4", *FLASH]
    with Daemon(options) as daemon, daemon.client() as client:
        for n in range(KEYS):
            client.all(b"set key-%d 0 0 %d noreply\r\n%s\r\n" % (n, len(VALUE), VALUE))
        fill_turn(client)
        until(lambda: int(daemon.stats(b"flash")["filter_units"]) > 0, "units")
        for n in range(KEYS):
            for name, _, data, _ in client.get(b"key-%d" % n, b"nobody-%d" % n):
                assert name.startswith(b"key-") and data == VALUE
        assert daemon.stats(b"settings")["filter_units"] == "4"
