# SPDX-License-Identifier: BSD-3-Clause
"""Debian's Prometheus scrapes a daemon with flash under load; its query API then returns what stats says."""
import json
import math
import shutil
import subprocess
import threading
import urllib.parse
import urllib.request

import pytest

from conftest import FLASH
from helpers import PATIENCE, breathe, fill, free_port, until
from metrics import Measured, counters

CONFIG = """
global:
  scrape_interval: 1s
  scrape_timeout: 1s
scrape_configs:
  - job_name: flashield
    static_configs:
      - targets: ["127.0.0.1:{port}"]
"""
# What stats counts of those who ask for it, or what goes on by itself.
MOVING = {"bytes_read", "bytes_written", "total_connections", "lru_crawler_starts", "crawler_items_checked", "samples_taken",
          "samples_dropped", "crawler_reclaimed"}


class Prometheus:
    """On a port of its own, with its data in a folder that goes with the test."""

    def __init__(self, folder, target, config=CONFIG):
        self.port = free_port()
        self.log = open(folder / "prometheus.log", "wb")
        (folder / "prometheus.yml").write_text(config.format(port=target), encoding="utf-8")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, cwd=folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def ask(self, path, **words):
        """The answer's data; None while there is none."""
        assert self.process.poll() is None, open(self.log.name, encoding="utf-8").read()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(words)}",
                                        timeout=PATIENCE) as answer:
                return json.load(answer)["data"]
        except OSError:
            return None

    def query(self, expression):
        """{labels as a sorted tuple of pairs: value}, of an instant query"""
        data = self.ask("query", query=expression)
        return {tuple(sorted(row["metric"].items())): float(row["value"][1]) for row in data["result"]} if data else {}

    def one(self, expression):
        """The value of an expression that has one series; None while it has none."""
        values = list(self.query(expression).values())
        assert len(values) <= 1, values
        return values[0] if values else None


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Measured(["--flash-path", str(tmp_path_factory.mktemp("flash") / "flash"), *FLASH]) as started:
        yield started


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory, daemon):
    """After it has scraped the daemon while two clients wrote and read, until it has seen both tiers at work."""
    if not shutil.which("prometheus"):
        pytest.skip("prometheus is not installed")
    over = threading.Event()
    with Prometheus(tmp_path_factory.mktemp("prometheus"), daemon.metrics_port) as started:
        clients = [threading.Thread(target=load, args=(daemon, number, over)) for number in range(2)]
        for client in clients:
            client.start()
        try:
            for histogram, kinds in (("request", 4), ("flash_io", 2)):
                rates = f"count(rate(flashield_{histogram}_duration_seconds_count[1m]) > 0)"
                until(lambda: started.one(rates) == kinds, f"rates of {kinds} kinds of {histogram}", 4 * PATIENCE)
        finally:
            over.set()
            for client in clients:
                client.join()
        yield started


def load(daemon, number, over):
    """Objects that are read again, among others that push them out of DRAM."""
    keys = [b"load%d:%d" % (number, i) for i in range(200)]
    with daemon.client() as client:
        while not over.is_set():
            client.all(b"".join(b"set %s 0 0 5 noreply\r\nvalue\r\n" % key for key in keys))
            for _ in range(20):
                fill(client, 64 << 10)
                breathe()
            client.get(*keys, b"absent")


def test_target_is_up(prometheus):
    """Scraped without an error."""
    def is_up():
        targets = prometheus.ask("targets")["activeTargets"]
        return [(target["health"], target["lastError"]) for target in targets] == [("up", "")]
    until(is_up, "a scrape without an error")
    until(lambda: set(prometheus.query("up").values()) == {1}, "it to be stored")


def test_counters_are_those_of_stats(prometheus, daemon):
    """Every counter of the table, when the load has ended and Prometheus has scraped once more."""
    def agree():
        with daemon.client() as client:
            reports = {report: client.stats(report) for report in (b"", b"flash", b"classifier")}
        stored = {dict(labels)["__name__"]: number
                  for labels, number in prometheus.query('{__name__=~"flashield_.*_total",application="",mode=""}').items()}
        known = [(name, int(reports[report][name]), stored.get(f"flashield_{series}"))
                 for name, (report, series) in counters().items() if name in reports[report] and name not in MOVING]
        different = [row for row in known if row[1] != row[2]]
        return len(known) > 60 and not different
    until(agree, "the same counters in stats and in Prometheus")
    assert prometheus.one("flashield_flash_hits_total") > 0


def test_tiers(prometheus, daemon):
    """Items by their labels; the numbers are stats'."""
    def agree():
        flash = daemon.stats(b"flash")
        items = {dict(labels)["tier"]: number for labels, number in prometheus.query("flashield_items").items()}
        return items == {"dram": int(flash["dram_items"]), "flash": int(flash["flash_items"])}
    until(agree, "the same items by tier")
    assert prometheus.one("sum(flashield_segments)") == int(daemon.stats(b"flash")["segments_total"])


def test_quantiles(prometheus):
    """Of each kind of request, from the histograms' buckets."""
    quantiles = prometheus.query(
        "histogram_quantile(0.99, sum by (kind, le) (rate(flashield_request_duration_seconds_bucket[5m])))")
    found = {dict(labels)["kind"]: number for labels, number in quantiles.items()}
    assert set(found) == {"dram_hit", "flash_hit", "miss", "set"}
    assert all(number > 0 and math.isfinite(number) for number in found.values()), found
    device = prometheus.query(
        "histogram_quantile(0.5, sum by (operation, le) (rate(flashield_flash_io_duration_seconds_bucket[5m])))")
    assert {dict(labels)["operation"] for labels, number in device.items() if number > 0} == {"read", "write"}


def test_help_and_types(prometheus):
    """They come with the figures, so that the query editor shows them."""
    known = prometheus.ask("metadata")
    assert known["flashield_get_hits_total"] == [{"type": "counter", "help": "keys found", "unit": ""}]
    assert known["flashield_items"][0]["type"] == "gauge"
    assert known["flashield_request_duration_seconds"][0]["type"] == "histogram"


def test_no_model_has_no_figures(prometheus):
    """A ratio of nothing is left out."""
    assert prometheus.one("flashield_model_precision_ratio") is None
    assert prometheus.one("flashield_model_in_use") == 0


def test_a_dead_daemon_is_seen(prometheus, daemon):
    """Last: without the daemon the target is down."""
    assert daemon.stop() == 0
    until(lambda: set(prometheus.query("up").values()) == {0}, "the target to be down")
