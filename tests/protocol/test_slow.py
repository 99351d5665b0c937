# SPDX-License-Identifier: BSD-3-Clause
"""stats slow: requests that took a threshold, with the parts of their time, as far as the operator lets keys be seen. Times are judged
from below alone, where a drive was made slow."""
import re
import signal

import pytest

from binary import GET, SET, BinaryClient, packet, store
from helpers import free_port, in_time, until
from metrics import scrape
from slowdrive import LIBRARY
from test_bad_drive import keys_on_flash, on_the_drive
from test_hotkeys import ODD, ODD_SHOWN

ALL = ["--slow-log-threshold", "1us"]  # every request is slow
WORDS = ["at", "cmd", "status", "from", "hash", "size", "total_us", "queue_us", "run_us", "flash_us", "send_us", "reads", "together", "cfd"]


def slow(client, most=b""):
    """(the other rows, the entries in the order of the answer)"""
    others, entries = {}, []
    for name, value in client.stats(b"slow " + most).items():
        if name.isdigit():
            entries.append({"number": int(name)} | dict(word.split("=", 1) for word in value.split(" ")))
        else:
            others[name] = value
    return others, entries


def entries_of(client, command):
    """The entries of a command, once there is one: it is noted when the answer has been sent."""
    return until(lambda: [entry for entry in slow(client, b"1024")[1] if entry["cmd"] == command], f"a slow {command}")


@pytest.mark.parametrize("words", [b"0", b"1025", b"-1", b"1x", b"all", b"99999999999999999999"])
def test_a_count_that_is_none_is_refused(client, words):
    assert client.ask(b"stats slow %s\r\n" % words) == b"CLIENT_ERROR usage: stats slow [1 to 1024]\r\n"
    assert client.ask(b"mn\r\n") == b"MN\r\n"


def test_it_is_off_at_first(client):
    client.all(b"get a\r\n" * 1000)
    assert client.stats(b"slow") == {"threshold_us": "0", "keys": "no", "slow_requests": "0", "newest": "0"}


def test_rows(start):
    """The newest first, with numbers that a poller goes on from; each row is of words, and its parts are in its total."""
    daemon = start(*ALL, "-t", "1")
    with daemon.client() as client:
        for n in range(30):
            assert client.set(b"key-%d" % n, b"v" * n) == b"STORED\r\n"
        client.get(b"key-5")
        client.get(b"absent")
        assert client.ask(b"delete key-5\r\n") == b"DELETED\r\n"
        entries_of(client, "delete")
        others, entries = slow(client)
        assert others["threshold_us"] == "1" and others["keys"] == "no" and int(others["newest"]) == entries[0]["number"]
        assert int(others["slow_requests"]) >= 33
        assert [entry["number"] for entry in entries] == list(range(entries[0]["number"], entries[0]["number"] - len(entries), -1))
        for entry in entries:
            assert [word for word in entry if word not in ("number", "peer")] == WORDS
            assert re.fullmatch(r"[0-9a-f]{16}", entry["hash"])
            parts = sum(int(entry[f"{part}_us"]) for part in ("queue", "run", "flash", "send"))
            assert parts <= int(entry["total_us"]) <= parts + 4  # each is rounded down
        found = [(entry["cmd"], entry["status"], entry["from"], int(entry["size"])) for entry in entries]
        assert {("set", "stored", "dram", 29), ("get", "found", "dram", 5), ("get", "not_found", "none", 0)} <= set(found)
        assert any(entry.get("peer", "").startswith("127.0.0.1:") for entry in entries)
        newest = slow(client, b"2")[1]
        assert len(newest) == 2 and newest[0]["number"] >= entries[0]["number"]
        assert client.count("slow_requests") >= 33


def test_requests_that_are_answered_together(start):
    """Of a pipeline the log has one, and tells how many there were."""
    daemon = start(*ALL, "-t", "1", "-R", "1000")
    with daemon.client() as client:
        client.all(b"get a\r\n" * 300)
        entries = until(lambda: [entry for entry in slow(client)[1] if int(entry["together"]) > 1], "a batch")
        assert sum(int(entry["together"]) for entry in entries) <= client.count("slow_requests")


@pytest.mark.parametrize("options,keys", [([], False), (["--slow-log-keys"], True), (["--slow-log-keys", "-X"], False)])
def test_keys_are_shown_if_that_is_asked_for(start, options, keys):
    """Keys of any bytes, in one word; with -X none."""
    daemon = start(*ALL, *options)
    with BinaryClient(daemon.port) as binary:
        binary.ask(store(SET, ODD, b"value"))
        binary.ask(packet(GET, ODD))
    with daemon.client() as client:
        client.get(b"k" * 250)
        entries = until(lambda: [entry for entry in slow(client)[1] if entry["status"] == "not_found"], "the miss")
        found = {entry.get("key") for entry in slow(client)[1]}
        assert found == ({ODD_SHOWN, "k" * 250} if keys else {None}), entries
        assert slow(client)[0]["keys"] == ("yes" if keys else "no")
        lines = client.all(b"stats slow\r\n").split(b"\r\n")
        assert all(re.fullmatch(rb"STAT \S+ [!-~ ]+|END|", line) for line in lines), lines


def test_a_reload_switches_it(start, open_folder):
    """On, with keys, and off; the log has a line without a key."""
    path, log = open_folder / "flashield.conf", open_folder / "log"
    path.write_text("")
    path.chmod(0o644)
    daemon = start("--config", str(path), stderr=log.open("w"))

    def reload(text, shown):
        path.write_text(text)
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: client.stats(b"settings")["slow_log_threshold"] == shown, f"slow_log_threshold {shown}")
    with daemon.client() as client:
        client.get(b"before")
        reload("slow-log-threshold = 1us\nslow-log-keys = yes\n", "1us")
        client.get(b"the-key")
        until(lambda: [entry for entry in slow(client)[1] if entry.get("key") == "the-key"], "the key")
        until(lambda: "slow: get, not_found, of the key with hash" in log.read_text(), "a line in the log")
        reload("slow-log-threshold = 0\n", "0")
        others, entries = slow(client)
        assert others["threshold_us"] == "0" and entries and all("key" not in entry for entry in entries)
        client.get(b"after")
        assert slow(client)[1] == entries
    assert "the-key" not in log.read_text()
    in_time(log.read_text().count("slow: ") <= 5, "so many lines a second")


def test_the_metric(start):
    port = free_port()
    with start(f"--metrics-listen=127.0.0.1:{port}", *ALL).client() as client:
        client.all(b"get a\r\n" * 100)
        until(lambda: scrape(port)["flashield_slow_requests_total"][()] >= 100, "the requests in /metrics")


@pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not built: a sanitizer's variant?")
@pytest.mark.clock
def test_a_slow_drive(start, open_folder):
    """A read that takes 100 ms is in flash, and what waits behind it is in its queue."""
    path, delay_us = open_folder / "flashield.conf", 100000
    path.write_text("slow-log-threshold = 0\n")
    path.chmod(0o644)
    daemon, drive = on_the_drive(lambda *options, **more: start("--config", str(path), *options, **more), open_folder, 1)
    keys = keys_on_flash(daemon, drive, 2000)
    path.write_text("slow-log-threshold = 50ms\n")
    daemon.process.send_signal(signal.SIGHUP)
    with daemon.client() as client:
        until(lambda: client.stats(b"settings")["slow_log_threshold"] == "50ms", "the threshold")
        drive.reads.latency_us = delay_us
        for key in keys[:10]:
            client.get(key)
        read = until(lambda: [entry for entry in slow(client)[1] if entry["from"] == "flash" and int(entry["reads"]) > 0], "slow reads")
        drive.reads.latency_us = 0
        for entry in read:
            assert int(entry["flash_us"]) >= delay_us and int(entry["total_us"]) >= int(entry["flash_us"])
            assert entry["cmd"] == "get" and entry["together"] == "1" and entry["peer"].startswith("127.0.0.1:")
