# SPDX-License-Identifier: BSD-3-Clause
"""The page of flashield-sim run --report: it parses, shows the figures of the JSON, needs nothing else, and escapes names."""
import html.parser
import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest

from helpers import ROOT
from test_sim import SIM, sim, trace_file

sys.path.insert(0, os.path.join(ROOT, "tools", "sim"))
import page  # noqa: E402
import series  # noqa: E402

VOID = {"meta", "br", "link", "img", "input", "hr"}
needs_matplotlib = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="python3-matplotlib is not there")
needs_sim = pytest.mark.skipif(not os.path.exists(SIM), reason=f"{SIM} is not built")


class Page(html.parser.HTMLParser):
    """What a page has; every element must be closed where it belongs."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.links, self.ids, self.tables, self.words = [], [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        given = dict(attributes)
        self.links += [given[name] for name in ("src", "href", "xlink:href", "action", "data") if name in given]
        self.ids += [given["id"]] if "id" in given else []
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            if self.open[-1] in ("td", "th"):
                self.tables[-1][-1][-1] += data
            self.words.append(data)

    def plots(self):
        return self.tags.count("figure")


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Two applications, in a file whose name is markup and an order to plots."""
    rows = [f"{second * 1000},{second % 2},get,{second * second % 17},10,{100 + second % 7},0" for second in range(400)]
    return trace_file(tmp_path_factory.mktemp("report") / "<b>&\"'$x^2$.csv", rows)


def report(tmp_path, *options):
    path, kept = tmp_path / "report.html", tmp_path / "runs.json"
    done = sim("run", "--report", path, "--json", kept, *options)
    assert done.stderr == ""
    text = path.read_text(encoding="utf-8")
    return text, Page(text), [json.loads(line) for line in kept.read_text().splitlines()]


@needs_sim
@needs_matplotlib
def test_it_has_the_plots_and_the_figures(trace, tmp_path):
    text, shown, runs = report(tmp_path, "--trace", trace, "--policy", "lru,freq,random-p:0.5", "--dram", "500,800", "--flash", "1k",
                               "--clwa", "0.1,0.5")
    assert shown.plots() == 2 + 1 + 2 * 2  # CLWA by size, all sizes, and two over time by size
    table_of_runs = next(rows for rows in shown.tables if rows[0][0] == "policy" and "CLWA" in rows[0])
    assert len(table_of_runs) == 1 + len(runs) == 13
    at = table_of_runs[0].index
    for row, run in zip(table_of_runs[1:], runs, strict=True):
        assert row[0] == run["policy"]
        assert row[at("hit %")] == f"{100 * run['hit_ratio']:.2f}"
        assert row[at("CLWA")] == f"{run['clwa']:.3f}"
    table_of_apps = next(rows for rows in shown.tables if rows[0][:2] == ["policy", "size"] and "0" in rows[0])
    assert table_of_apps[0][2:] == ["0", "1"]
    assert table_of_apps[2][2:] == [f"{100 * app['hit_ratio']:.2f}" for app in runs[0]["apps"]]
    words = " ".join(shown.words)
    for said in ("warm-up", "Fixed costs", "How bytes are counted", "36 B in DRAM", "--clwa 0.1,0.5", "flashield-sim (Flashield) "):
        assert said in words, said
    assert "lru" in words and text.count("<svg ") > shown.plots()  # swatches of the legends


@needs_sim
@needs_matplotlib
def test_it_names_nothing_outside_and_no_id_twice(trace, tmp_path):
    text, shown, _ = report(tmp_path, "--trace", trace, "--policy", "lru,fifo", "--dram", "500")
    assert not {"script", "link", "img", "iframe", "object", "image", "base"} & set(shown.tags)
    assert all(link.startswith("#") and link[1:] in shown.ids for link in shown.links)
    assert len(set(shown.ids)) == len(shown.ids)
    assert "@import" not in text and all(place.startswith("#") for place in re.findall(r"url\(['\"]?([^)]*)", text))
    namespaces = set(re.findall(r"""https?://[^\s"'<>]*""", text))
    assert namespaces <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "#0101" not in text  # every colour is the page's


@needs_sim
@needs_matplotlib
def test_expectations_stand_beside_what_came(tmp_path):
    """Half of the gets are for 1500 keys in turn, which DRAM can't hold; the others' keys come once."""
    rows = [f"{number * 100},{number % 2},get,{number // 2 % 1500 if number % 2 else number + 1500},10,400,0" for number in range(60000)]
    path = trace_file(tmp_path / "half.csv", rows)
    _, shown, (run, lru) = report(tmp_path, "--trace", path, "--policy", "flashield,lru", "--dram", "256k", "--flash", "1m", "--clwa", "0.2")
    assert lru["calibration"] is None and lru["features"] is None
    calibration = run["calibration"]
    assert len(calibration["count"]) == 10 and calibration["samples"] == sum(row["samples"] for row in calibration["count"])
    worths = [row["worth"] for row in calibration["count"]]
    assert worths == sorted(worths)
    assert all(row["expected"] > 0 and 0 <= row["observed"] <= 64 for row in calibration["count"])
    assert [feature["feature"] for feature in run["features"]] == ["reads", "mean_gap", "last_gap", "max_gap", "first_gap", "count",
                                                                   "idle", "size", "ttl"]
    counted = next(feature["rows"] for feature in run["features"] if feature["feature"] == "count")
    assert [row["value"] for row in counted] == sorted(row["value"] for row in counted)
    assert all(0 <= row["read_often"] <= row["read"] <= 1 for row in counted)
    table = next(rows for rows in shown.tables if rows[0][:3] == ["policy", "size", "by"])
    found = [row for row in table[1:] if row[2] == "count"]
    assert [row[4] for row in found] == ["expected", "observed"]
    assert found[1][5:] == [f"{row['observed']:.3g}" for row in calibration["count"]]
    assert shown.plots() == 3 + sum(bool(calibration[by]) for by in ("model", "count"))


@needs_sim
@needs_matplotlib
def test_names_are_escaped(trace, tmp_path):
    text, shown, _ = report(tmp_path, "--trace", trace, "--policy", "lru", "--dram", "500")
    assert "<b>" not in text and "b" not in shown.tags
    assert any(str(trace) in word for word in shown.words)
    assert "$x^2$" in text


@needs_sim
@needs_matplotlib
def test_runs_without_writes_or_gets_have_a_page_too(tmp_path):
    path = trace_file(tmp_path / "sets.csv", [f"{second * 1000},0,set,{second},10,100,0" for second in range(9)])
    _, shown, _ = report(tmp_path, "--trace", path, "--policy", "lru", "--dram", "0", "--warmup", 0)
    assert shown.plots() == 3
    path = trace_file(tmp_path / "gets.csv", [f"{second * 1000},0,get,1,10,100,0" for second in range(9)])
    _, shown, _ = report(tmp_path, "--trace", path, "--policy", "lru", "--dram", "1k", "--warmup", "2s")
    assert any("they have no CLWA" in word for word in shown.words)


@needs_sim
def test_without_matplotlib_it_says_what_is_missing_before_any_run(trace, tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('no')\n")
    done = subprocess.run([SIM, "run", "--trace", str(trace), "--policy", "lru", "--dram", "1k", "--report", str(tmp_path / "r.html")],
                          env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert "--report" in done.stderr and "python3-matplotlib" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "r.html").exists()


@needs_sim
@pytest.mark.parametrize("path", ["-", "/nowhere/r.html"])
def test_a_report_that_can_not_be_written_is_refused(trace, path):
    done = sim("run", "--trace", trace, "--policy", "lru", "--dram", "1k", "--report", path, check=False)
    assert done.returncode == 2
    assert "--report" in done.stderr and len(done.stderr.splitlines()) == 1


# ---- parts -----------------------------------------------------------------------------------


def moment(time_s, gets, hits, app, flash):
    return {"time_s": time_s, "gets": gets, "get_hits": hits, "app_bytes_written": app, "flash_bytes_written": flash}


def test_windows_are_differences_and_nothing_is_divided_by_zero():
    run = {"series": [moment(10, 10, 5, 100, 20), moment(20, 10, 5, 200, 20), moment(30, 30, 25, 200, 20)]}
    assert series.windows(run) == [(5, 0.5, 0.2), (15, None, 0), (25, 1, None)]
    assert series.windows({"series": []}) == []
    many = {"series": [moment(n, 2 * n, n, n, 0) for n in range(1, 201)]}
    assert len(series.windows(many)) == series.WINDOWS
    assert all(row[1] == 0.5 for row in series.windows(many))


def test_cells_and_legends_escape():
    assert "<i>" not in page.grid(["<i>"], [["<i>", "&"]])
    assert "<i>" not in page.legend([(page.swatch(0), "<i>")])
    assert 'aria-label="&quot;' in page.figure("x", '"', "<svg >")
