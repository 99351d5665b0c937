# SPDX-License-Identifier: BSD-3-Clause
"""Every query of the dashboard and every recorded series has an answer, from a real Prometheus that scrapes a daemon under load."""
import itertools
import math
import subprocess
import sys
import threading

import pytest

from boards import Prometheus, board, recorded, rules, unknown
from helpers import ROOT, breathe, fill, is_frugal, until
from metrics import Measured

DASHBOARD = ROOT / "packaging" / "samples" / "grafana" / "flashield.json"
GENERATOR = ROOT / "tools" / "dashboard" / "generate.py"
PANELS = list(board.panels(board.load(DASHBOARD)))
VALUES = board.everything(rate_seconds=10, shown_seconds=60)
ANNOTATIONS = board.load(DASHBOARD)["annotations"]["list"]  # restarts, of which there is none here: their answer may be empty


def queries(panel):
    return [board.substitute(target["expr"], VALUES) for target in panel["targets"]]


MEMORY = 4 << 20
LIMITS = [] if is_frugal() else ["--app-limit", "shop:dram=64k-2m,flash=64k-16m,write=100m"]
TURNS_KEPT = 20


class Load:
    """A thread that sets, finds in DRAM and on flash, misses, deletes, and updates what is on flash, until it is ended."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.over = threading.Event()
        self.failure = None
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        if self.failure:
            raise self.failure

    def run(self):
        try:
            with self.daemon.client() as client:
                for turn in itertools.count():
                    if self.over.is_set():
                        return
                    self.turn(client, turn)
        except (OSError, AssertionError) as failure:
            self.failure = failure

    def turn(self, client, turn):
        """A tenth of the memory; what was set in the last turns lies in DRAM, or on flash, or is gone."""
        kept = [b"shop:%d-%d" % (turn % TURNS_KEPT, n) for n in range(20)]
        for n in range(TURNS_KEPT):
            client.get(*(key.replace(b":%d-" % (turn % TURNS_KEPT), b":%d-" % n) for key in kept), b"shop:nobody-%d" % turn)
        for key in kept:
            client.set(key, b"v" * 600)
        fill(client, MEMORY // 10)
        client.ask(b"touch %s 0\r\n" % kept[0])
        client.ask(b"delete %s\r\n" % kept[1])
        breathe()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """One that has scraped and reckoned a while."""
    options = ["--flash-path", str(tmp_path_factory.mktemp("flash") / "flash"), "--flash-size", "8m", "--segment-size", "65536",
               "--admission", "all", "--flash-write-limit", "64m", "-m", str(MEMORY >> 20), "-t", "2", *LIMITS]
    with Measured(options) as daemon, Load(daemon), \
            Prometheus(tmp_path_factory.mktemp("prometheus"), f"127.0.0.1:{daemon.metrics_port}") as started:
        until(lambda: daemon.stats(b"flash")["segments_reclaimed"] != "0", "a flash that was filled once")
        until(lambda: started.query("rate(flashield_flash_hits_total[10s]) > 0"), "hits from flash, scraped more than once")
        yield started


def test_every_panel_says_what_it_shows():
    for panel in PANELS:
        assert panel["title"] and panel["targets"], panel["id"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert len(panel["description"].split()) > 5, panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])


def test_panels_have_ids_and_places_of_their_own():
    everything = board.load(DASHBOARD)["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    taken = {}
    for panel in everything:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        for cell in itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])):
            assert cell not in taken, f"{panel['title']} lies over {taken[cell]}"
            taken[cell] = panel["title"]


def test_queries_name_nothing_that_is_not_there():
    for panel in PANELS:
        for query in queries(panel):
            assert not unknown(query), panel["title"]


def test_the_file_is_what_its_table_says():
    made = subprocess.run([sys.executable, str(GENERATOR)], capture_output=True, text=True, check=True).stdout
    assert made == DASHBOARD.read_text(), f"run {GENERATOR.relative_to(ROOT)} > {DASHBOARD.relative_to(ROOT)}"


def test_a_query_that_is_wrong_is_refused(prometheus):
    with pytest.raises(board.Refused):
        prometheus.query("sum(rate(flashield_get_hits_total))")
    assert prometheus.query("flashield_nothing_total") == []


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"].replace(" ", "-"))
def test_every_query_has_an_answer(prometheus, panel):
    for query in queries(panel):
        # Nothing was trained, or there are no limits: what has no value has no sample, but the query is understood.
        if "flashield_model_" in query or ("flashield_application_" in query and not LIMITS):
            prometheus.query(query)
            continue
        until(lambda query=query: any(not math.isnan(value) for _, value in prometheus.query(query)), f"an answer to {query}")


def test_annotations_are_understood(prometheus):
    for annotation in ANNOTATIONS:
        prometheus.query(board.substitute(annotation["expr"], VALUES))


def test_variables_have_values(prometheus):
    variables = {one["name"]: one for one in board.load(DASHBOARD)["templating"]["list"]}
    assert variables["datasource"]["query"] == "prometheus"
    assert prometheus.label_values(variables["job"]["definition"]) == ["flashield"]
    found = prometheus.label_values(board.substitute(variables["instance"]["definition"], VALUES))
    assert len(found) == 1 and found[0].startswith("127.0.0.1:")


def test_every_series_is_recorded(prometheus):
    for name in recorded():
        until(lambda name=name: prometheus.query(name), name)


def test_no_rule_fails(prometheus):
    groups = prometheus.ask("rules")["groups"]
    assert sum(len(group["rules"]) for group in groups) == len(rules("expr"))
    for rule in (rule for group in groups for rule in group["rules"]):
        assert rule["health"] == "ok" and not rule.get("lastError"), rule


@pytest.mark.parametrize("query", [
    "instance:flashield_hit_ratio:rate5m",
    'instance_tier:flashield_hit_ratio:rate5m{tier="flash"}',
    "instance:flashield_flash_written_bytes:rate5m",
    "instance:flashield_clwa:rate1h",
    "instance:flashield_reads_per_flash_hit:rate5m",
    'instance_kind:flashield_request_duration_seconds:p99_5m{kind="flash_hit"}',
    'instance_operation:flashield_flash_io_duration_seconds:p99_5m{operation="read"}',
    'job_application:flashield_hit_ratio:rate5m{application="shop"}',
])
def test_under_load_figures_are_more_than_zero(prometheus, query):
    def value():
        found = prometheus.query(query)
        return found and math.isfinite(found[0][1]) and found[0][1] > 0
    until(value, query)
