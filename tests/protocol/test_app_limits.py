# SPDX-License-Identifier: BSD-3-Clause
"""--app-limit: an application that scans can't push another one out, in memory or on flash, and what operators see of it."""
import os
import signal

import pytest

from helpers import until

pytestmark = pytest.mark.slots("the frugal one goes with no limits of applications")

SHOP = 700  # objects of the application that is to be kept, asked for in turn
TURNS = 6
SCAN = 12000  # objects of the other one between two turns: several times the memory, and more than the flash
VALUE = b"v" * 1000
LIMITS = "shop:dram=1500k-,scan:dram=-512k,write=0"


def scan(client, turn):
    client.all(b"".join(b"set scan:%d-%d 0 0 %d noreply\r\n%s\r\n" % (turn, n, len(VALUE), VALUE) for n in range(SCAN)))


def look_aside(client, keys):
    """Gets, and sets what is missing. Returns the number of hits."""
    hits = 0
    for key in keys:
        if client.get(key):
            hits += 1
        else:
            assert client.set(key, VALUE) == b"STORED\r\n"
    return hits


def hit_ratio(daemon):
    """Of the shop, after a turn that fills the cache, while the other application scans."""
    keys = [b"shop:%d" % n for n in range(SHOP)]
    with daemon.client() as client:
        look_aside(client, keys)
        hits = 0
        for turn in range(TURNS):
            scan(client, turn)
            hits += look_aside(client, keys)
        rows = client.stats(b"apps")
    assert int(rows["shop:get_hits"]) == hits
    return hits / (TURNS * SHOP)


@pytest.mark.parametrize("flash", [False, True], ids=["dram", "flash"])
def test_a_scan_pushes_nobody_out(start, tmp_path, flash):
    """Hit ratios of an application beside one that scans, without limits and with them."""
    ratios = []
    for limits in [], ["--app-limit", LIMITS]:
        place = ["--flash-path", str(tmp_path / f"flash-{len(limits)}"), "--flash-size", "8m", "--segment-size", "64k",
                 "--admission", "all"] if flash else []
        daemon = start("-m", "5", "-t", "2", *place, *limits)
        ratios.append(hit_ratio(daemon))
    print(f"hit ratio of the shop: {ratios[0]:.3f} without limits, {ratios[1]:.3f} with them")
    assert ratios[0] < 0.7
    assert ratios[1] > 0.95
    rows = daemon.stats(b"limits")
    assert (rows["applications"], rows["counted"]) == ("2", "1")
    assert int(rows["shop:dram_items"]) == SHOP
    assert int(rows["shop:floor_evictions"]) == 0
    assert (rows["shop:dram_ceiling"], rows["shop:write_limit"]) == ("none", "none")
    assert int(rows["scan:ceiling_evictions"]) > TURNS * SCAN / 2
    assert int(rows["scan:dram_bytes"]) < 1 << 20
    assert (rows["scan:write_limit"], rows["scan:write_bytes"]) == ("0", "0")


@pytest.mark.parametrize("rule", ["freq", "read-once"])
def test_what_a_ceiling_would_evict_goes_to_flash(start, tmp_path, rule):
    """However much memory is free, and others' objects stay where they are. Keys are read again and again, so that each
    rule finds them worth it. The cleaner comes to rest after each piece, so that how fast it is doesn't matter."""
    daemon = start("-m", "64", "-t", "2", "--flash-path", str(tmp_path / "flash"), "--flash-size", "32m", "--segment-size",
                   "64k", "--admission", rule, "--flash-write-ratio", "0", "--app-limit", "report:dram=-2m", driven=True)
    others, keys = [b"shop:%d" % n for n in range(SHOP)], [b"report:%d" % n for n in range(SCAN)]
    with daemon.client() as client:
        look_aside(client, others)
        look_aside(client, others)
        for _ in range(8):
            for first in range(0, SCAN, 100):
                some = keys[first:first + 100]
                client.all(b"".join(b"add %s 0 0 %d noreply\r\n%s\r\n" % (key, len(VALUE), VALUE) for key in some))
                client.get(*some)
                daemon.rest()
            if client.count("report:flash_bytes", b"limits") > 4 << 20:
                break
        rows, flash = client.stats(b"limits"), client.stats(b"flash")
        assert int(rows["report:dram_bytes"]) < 3 << 20
        assert int(rows["report:flash_bytes"]) > 4 << 20
        assert int(flash["dram_bytes"]) < 16 << 20  # of 64 MiB
        assert len(client.get(*others)) == SHOP
        assert int(client.stats(b"flash")["flash_hits"]) == int(flash["flash_hits"])  # they are in memory


def test_a_reload_limits_what_is_there(start, open_folder):
    """What was set before is counted and, above a ceiling, evicted; limits that are taken away are gone."""
    path = open_folder / "conf"
    path.write_text("")
    path.chmod(0o644)
    daemon = start("--config", str(path), "-m", "64")

    def reload(text):
        path.write_text(text)
        daemon.process.send_signal(signal.SIGHUP)

    with daemon.client() as client:
        scan(client, 0)
        client.set(b"shop:1", VALUE)
        assert client.stats(b"limits") == {"applications": "0", "counted": "1"}
        reload("app-limit = scan:dram=-1m\n")
        until(lambda: int(client.stats(b"limits").get("scan:ceiling_evictions", 0)) > SCAN / 2, "evictions")
        until(lambda: int(client.stats(b"limits")["scan:dram_bytes"]) <= 1 << 20, "the ceiling")
        assert client.stats(b"limits")["counted"] == "1"
        until(lambda: client.stats(b"settings")["app_limit"] == "scan:dram=-1m", "the setting")
        assert client.get(b"shop:1")
        reload("app-limit = scan:dram=1g-\n")  # more than there is: all stays as it was
        reload("app-limit = shop:dram=1m-2m\n")
        until(lambda: "shop:dram_floor" in client.stats(b"limits"), "the second reload")
        until(lambda: client.stats(b"limits")["counted"] == "1", "the account")
        rows = client.stats(b"limits")
        assert rows["applications"] == "1" and rows["shop:dram_items"] == "1"
        assert not any(name.startswith("scan:") for name in rows)
        scan(client, 1)
        assert int(client.stats()["curr_items"]) > SCAN
        reload("")
        until(lambda: client.stats(b"limits")["applications"] == "0", "the end of limits")
        until(lambda: client.stats(b"settings")["app_limit"] == "NULL", "the setting")


def test_a_reload_without_memory_keeps_what_there_is(start, open_folder):
    """It fails with its reason, and the limits of before hold, in the settings too; the next one is taken."""
    path, log = open_folder / "conf", open_folder / "log"
    path.write_text("app-limit = shop:dram=1m-\n")
    path.chmod(0o644)
    with log.open("w") as stderr:  # the second name that is new gets no memory
        daemon = start("--config", str(path), "-m", "64", stderr=stderr,
                       environment=dict(os.environ, FLASHIELD_FAULTS="limits_memory=after:2"), driven=True)

    def reload(text, line):
        path.write_text(text)
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: line in log.read_text(), repr(line))

    with daemon.client() as client:
        before = client.stats(b"limits")
        reload("app-limit = shop:dram=-2m,scan:dram=-1m,third:write=0\n", "app-limit stays as it was: out of memory")
        assert client.stats(b"limits") == before
        assert client.stats(b"settings")["app_limit"] == "shop:dram=1m-"
        client.set(b"scan:1", VALUE)
        reload("app-limit = scan:dram=-1m\n", "app-limit: shop:dram=1m- -> scan:dram=-1m")
        until(lambda: client.stats(b"limits")["counted"] == "1", "the account")
        assert client.stats(b"limits")["scan:dram_items"] == "1"


def test_settings_without_memory_say_so(start):
    """They don't say that there are no limits; the next time they say which."""
    daemon = start("--app-limit", "shop:dram=1m-", driven=True,
                   environment=dict(os.environ, FLASHIELD_FAULTS="settings_memory=after:1"))
    for shown in "shop:dram=1m-", "(out of memory)", "shop:dram=1m-":
        assert daemon.stats(b"settings")["app_limit"] == shown


def test_after_a_restart_accounts_are_whole(start, open_folder):
    """Objects that a clean stop has saved are in their accounts, and those above the ceiling are not loaded."""
    options = ["-m", "64", "--state-dir", str(open_folder)]
    port = None
    for ceiling, items in ("8m", 1000), ("8m", 1000), ("256k", 0):
        daemon = start(*options, "--app-limit", f"scan:dram=-{ceiling}", **({"port": port} if port else {}))
        port = daemon.port
        with daemon.client() as client:
            if items and int(client.stats(b"limits")["scan:dram_items"]) == 0 and not client.get(b"scan:0"):
                for n in range(1000):
                    client.set(b"scan:%d" % n, VALUE)
            until(lambda: client.stats(b"flash")["dram_loading"] == "0", "the end of loading")
            rows = client.stats(b"limits")
            if items:
                assert int(rows["scan:dram_items"]) == items
            else:
                assert 0 < int(rows["scan:dram_bytes"]) <= 256 << 10
        daemon.stop()
