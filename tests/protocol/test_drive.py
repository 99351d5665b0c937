# SPDX-License-Identifier: BSD-3-Clause
"""The socket by which tests drive a daemon that has fault points (server/drive.h)."""
import pytest

from helpers import SEGMENT, Client, on_flash


@pytest.fixture
def driven(start, flash_options):
    return start(*flash_options, driven=True)


def test_objects_are_placed(driven):
    """Those that are named, of any size, and no others; also those of a long command."""
    with driven.client() as client:
        keys = [b"key-%d" % n for n in range(300)]
        for n, key in enumerate(keys):
            assert client.set(key, b"v" * (n * 10)) == b"STORED\r\n"
        driven.place(keys[::2])
        for n, key in enumerate(keys):
            assert on_flash(client, key) == (n % 2 == 0)
        driven.drive(b"place none", b"PLACED 0")


def test_all_objects_are_placed(driven):
    """But those that may not lie on flash: larger ones than a quarter of a segment, and ones with a mark."""
    with driven.client() as client:
        keys = [b"key-%d" % n for n in range(300)]
        for key in keys:
            assert client.set(key, b"v" * 100) == b"STORED\r\n"
        assert client.set(b"large", b"v" * (SEGMENT // 4)) == b"STORED\r\n"
        assert client.ask(b"ms marked 1\r\nv\r\n") == b"HD\r\n"
        assert client.ask(b"md marked I\r\n") == b"HD\r\n"
        driven.drive(b"place", b"PLACED 300")
        assert [key for key in keys if not on_flash(client, key)] == []
        assert not on_flash(client, b"large") and not on_flash(client, b"marked")
        driven.drive(b"place", b"PLACED 0")


def test_the_clock_is_driven(driven):
    """It stands, and an object expires when it is moved."""
    with driven.client() as client:
        driven.clock("stand")
        assert client.ask(b"ms key 1 T100\r\nv\r\n") == b"HD\r\n"
        assert client.ask(b"mg key t\r\n") == b"HD t100\r\n"
        driven.clock(99000)
        assert client.ask(b"mg key t\r\n") == b"HD t1\r\n"
        driven.clock(1000)
        assert client.ask(b"mg key t\r\n") == b"EN\r\n"
        driven.clock("go")


def test_it_comes_to_rest(driven):
    """Also while nothing is to be done."""
    driven.rest()
    with driven.client() as client:
        client.all(b"".join(b"set key-%d 0 0 900 noreply\r\n%s\r\n" % (n, b"v" * 900) for n in range(10000)))
    driven.rest()


@pytest.mark.parametrize("line", [b"", b"places", b"unknown", b"clock", b"clock x", b"clock 1x"])
def test_what_it_does_not_know(driven, line):
    driven.drive(line, b"ERROR")


def test_a_stop_ends_it(driven):
    """Also while a client is connected."""
    with Client(0, driven.drive_path()) as idle:
        assert idle.ask(b"rest\n") == b"RESTS\n"
        assert driven.stop() == 0
