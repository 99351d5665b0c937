# SPDX-License-Identifier: BSD-3-Clause
"""SIGHUP: options, users and certificates are read again while the daemon serves."""
import itertools
import os
import pathlib
import re
import signal
import sys
import threading

import pytest

from helpers import ROOT, until

sys.path.insert(0, os.path.join(ROOT, "tools", "sim"))
import endurance  # noqa: E402

DEFAULTS = {"admission": "all", "flash-write-limit": "0", "flash-write-ratio": "0.2", "hot-fraction": "0.7", "flash-read-timeout": "1s", "promote-miss-cost": "50",
            "verbose": "0", "hotkeys": "keys", "slow-log-threshold": "0", "slow-log-keys": "no"}


def without_time(line):
    return re.sub(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ", "", line)


class Reloaded:
    """A daemon with a file of options, and its log."""

    def __init__(self, start, folder, *options):
        self.path = folder / "flashield.conf"
        self.log_path = folder / "log"
        self.write()
        self.daemon = start("--config", str(self.path), "-t", "2", "--metrics-listen", "off", *options,
                            stderr=self.log_path.open("w"))

    def write(self, more="", **changes):
        values = DEFAULTS | {name.replace("_", "-"): value for name, value in changes.items()}
        self.path.write_text("".join(f"{name} = {value}\n" for name, value in values.items()) + more)
        self.path.chmod(0o644)

    def log(self):
        return [without_time(line) for line in self.log_path.read_text().splitlines()]

    def reload(self, last):
        """The lines that a reading has added, of which one contains `last`."""
        before = len(self.log())
        self.daemon.process.send_signal(signal.SIGHUP)
        until(lambda: any(last in line for line in self.log()[before:]), f"{last!r} in the log")
        return self.log()[before:]

    def settings(self):
        return self.daemon.stats(b"settings")


@pytest.fixture
def reloaded(start, open_folder, flash_options):
    in_file = ("--admission", "all", "--flash-read-timeout", "2m")  # an option of the command line would stay
    made = Reloaded(start, open_folder, *[word for word in flash_options if word not in in_file])
    until(lambda: any("of the file are made" in line for line in made.log()), "the flash file")
    return made


def test_a_broken_file_changes_nothing(reloaded):
    """One warning with place, option and reason; what stood before the mistake isn't taken either."""
    before = reloaded.settings()
    reloaded.write("admission = svm\n", hot_fraction="0.1")
    lines = reloaded.reload("options stay as they were")
    assert lines == [f"warning: options stay as they were: {reloaded.path}:{len(DEFAULTS) + 1}: admission is given a second time"]
    reloaded.write(verbose="1", hot_fraction="1.5")
    assert "hot-fraction: \"1.5\" is not a number from 0 to 1" in reloaded.reload("stay as they were")[0]
    assert reloaded.settings() == before


def test_a_file_that_is_gone_changes_nothing(reloaded):
    """It says which and why; the next one is taken."""
    reloaded.path.unlink()
    assert "No such file or directory" in reloaded.reload(f"{reloaded.path}\" can't be read")[0]
    reloaded.write(hot_fraction="0.25")
    assert reloaded.reload("hot-fraction") == ["notice: hot-fraction: 0.7 -> 0.25"]


def test_a_pipe_is_read_once(start, open_folder):
    """Its lines count from the first; a reload neither waits for a writer nor takes an empty pipe for defaults."""
    pipe = open_folder / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o644)
    writer = threading.Thread(target=pipe.write_text, args=("hot-fraction = 0.4\nverbose = 1\n",))
    writer.start()
    log = open_folder / "log"
    daemon = start("--config", str(pipe), "--metrics-listen", "off", stderr=log.open("w"))
    writer.join()
    assert daemon.stats(b"settings")["hot_fraction"] == "0.4"
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: "can't be read again" in log.read_text(), "the warning")
    assert daemon.stats(b"settings")["hot_fraction"] == "0.4"


def test_what_needs_a_restart_is_named(reloaded):
    """Each such option at each reading, until the file says again what is in force; the others are taken."""
    for _ in range(2):
        reloaded.write("conn-limit = 77\nextended = idle_timeout=9\n", admission="read-once")
        lines = reloaded.reload("idle_timeout")
        assert [line for line in lines if line.startswith("warning: ")] == [
            "warning: conn-limit: 1024 -> 77 needs a restart", "warning: idle_timeout: 0 -> 9 needs a restart"]
    assert reloaded.settings()["maxconns"] == "1024"
    assert reloaded.settings()["admission"] == "read-once"
    reloaded.write(admission="read-once")
    assert reloaded.reload("none has changed") == ["notice: options were read again: none has changed"]


@pytest.mark.skipif("--flash-read-timeout" in os.environ.get("FLASHIELD_FLAGS", ""),
                    reason="an option of the command line stays, and FLASHIELD_FLAGS has one that is tried")
def test_what_changes_is_told_and_shown(reloaded):
    """Every reloadable option: a line each, and "stats settings" shows the new value."""
    reloaded.write("memory-limit = 8m\n", admission="second-hit", flash_write_limit="5m", flash_write_ratio="1.5", hot_fraction="0.5",
                   flash_read_timeout="250ms", promote_miss_cost="7.5", verbose="2", hotkeys="hashes",
                   slow_log_threshold="1500us", slow_log_keys="yes")
    # On the command line -m is 4: that stays.
    lines = reloaded.reload("slow-log-keys")  # the last of them
    assert sorted(line for line in lines if "->" in line) == sorted([
        "notice: verbose: 0 -> 2", "notice: flash-write-limit: 0 -> 5m/s", "notice: flash-write-ratio: 0.2 -> 1.5",
        "notice: flash-read-timeout: 1s -> 250ms", "notice: promote-miss-cost: 50 -> 7.5",
        "notice: hot-fraction: 0.7 -> 0.5", "notice: admission: all -> second-hit", "notice: hotkeys: keys -> hashes",
        "notice: slow-log-threshold: 0 -> 1500us", "notice: slow-log-keys: no -> yes"])
    shown = reloaded.settings()
    assert [shown[name] for name in ("admission", "flash_write_limit", "flash_write_ratio", "hot_fraction", "flash_read_timeout",
                                     "promote_miss_cost", "verbosity", "hotkeys", "slow_log_threshold", "slow_log_keys", "maxbytes")] == [
        "second-hit", "5m/s", "1.5", "0.5", "250ms", "7.5", "2", "hashes", "1500us", "yes", str(4 << 20)]


def test_a_drive_s_endurance_is_a_limit(reloaded):
    """The forms of --flash-write-limit are read as flashield-sim reads them; only a share of the flash is shown as given."""
    shown = "0"
    for text, setting in (("1200TBW/5y", "7610350/s"), ("0.5dwpd", "0.5DWPD"), ("1DWPD/1920g", "22222222/s"), ("1000DWPD", "1000DWPD"),
                          ("1.5m/s", "1536k/s")):
        reloaded.write(flash_write_limit=text)
        assert reloaded.reload("flash-write-limit") == [f"notice: flash-write-limit: {shown} -> {setting}"]
        shown = setting
        assert reloaded.settings()["flash_write_limit"] == setting
        flash = reloaded.daemon.stats(b"flash") | reloaded.daemon.stats(b"segments")
        rate = endurance.budget(text).most_per_s(int(flash["segments_total"]) * int(flash["segment_bytes"]))
        assert int(flash["flash_write_limit"]) == pytest.approx(rate, abs=1)
    before = reloaded.settings()
    for text in ("1DWPD/5y", "1200TBW", "0TBW/5y", "1001DWPD"):
        reloaded.write(flash_write_limit=text)
        assert f'flash-write-limit: "{text}" is not a rate from 0 to 1p/s' in reloaded.reload("stay as they were")[0]
    assert reloaded.settings() == before


def test_each_reloadable_option_is_tried():
    """Options with CONF_RELOAD are those of these tests: the daemon names a value that it doesn't take, and goes on."""
    rows = (pathlib.Path(ROOT) / "conf" / "options.def").read_text(encoding="utf-8").split("\nOPTION(")[1:]
    assert {re.match(r'"([^"]+)"', row)[1] for row in rows if "CONF_RELOAD" in row.split("\n\n")[0]} == {
        *DEFAULTS, "memory-limit", "app-limit"}  # the last one in test_app_limits.py


def test_memory_limit(start, open_folder):
    """A new -m is taken like cache_memlimit's; what a client has set stays while the file says the same."""
    reloaded = Reloaded(start, open_folder)
    reloaded.write("memory-limit = 96m\n")
    assert reloaded.reload("memory-limit") == ["notice: memory-limit: 64m -> 96m"]
    assert reloaded.settings()["maxbytes"] == str(96 << 20)
    with reloaded.daemon.client() as client:
        assert client.ask(b"cache_memlimit 32\r\n") == b"OK\r\n"
    assert reloaded.reload("none has changed")
    assert reloaded.settings()["maxbytes"] == str(32 << 20)


def test_a_client_s_verbosity_stays(reloaded):
    """As long as the file says the same."""
    with reloaded.daemon.client() as client:
        assert client.ask(b"verbosity 1\r\n") == b"OK\r\n"
    reloaded.reload("none has changed")
    assert reloaded.settings()["verbosity"] == "1"


def test_without_a_file(start, open_folder):
    """The command line alone says the same as before."""
    log = open_folder / "log"
    daemon = start("--metrics-listen", "off", stderr=log.open("w"))
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: "none has changed" in log.read_text(), "the reading")


def test_under_load(reloaded):
    """Values change while objects are set, read and moved to flash. A get may miss; else it has what was set last."""
    stop, wrong, hits = threading.Event(), [], {b"a": 0, b"b": 0}

    def work(name):
        latest = {}
        with reloaded.daemon.client() as client:
            for number in itertools.count():
                key, other = b"%s-%d" % (name, number % 5000), b"%s-%d" % (name, number * 7 % 5000)
                latest[key] = b"%d " % number + name * 300
                if client.set(key, latest[key]) != b"STORED\r\n":
                    wrong.append(("set", key))
                found = client.get(other)
                if found and found[0][2] != latest.get(other):
                    wrong.append((other, found[0][2][:20], latest.get(other, b"")[:20]))
                hits[name] += len(found)
                if number % 7 == 0:  # what lay on flash must not come back
                    client.ask(b"delete %s\r\n" % other)
                    if client.get(other):
                        wrong.append(("deleted", other))
                    latest.pop(other, None)
                if stop.is_set():
                    return

    threads = [threading.Thread(target=work, args=(name,)) for name in hits]
    for thread in threads:
        thread.start()
    try:
        for turn in range(12):
            reloaded.write(admission=("all", "svm", "read-once", "second-hit")[turn % 4],
                           hot_fraction=str(turn / 12), flash_write_limit=("0", "100m")[turn % 2],
                           flash_read_timeout=f"{500 + turn}ms")
            reloaded.reload("hot-fraction")
            assert float(reloaded.settings()["hot_fraction"]) == pytest.approx(turn / 12, abs=0.001)
            assert threads[0].is_alive() and threads[1].is_alive()
        with reloaded.daemon.client() as client:
            until(lambda: all(hits.values()) and client.count("flash_hits"), "hits in memory and on flash")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert reloaded.settings()["admission"] == "second-hit"
    assert not any(" -> " in line for line in reloaded.reload("none has changed"))
    assert sum("none has changed" in line for line in reloaded.log()) == 1
