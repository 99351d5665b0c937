# SPDX-License-Identifier: BSD-3-Clause
"""flashield-sim paper: the paper's figures with ours beside, what can't be produced, and a given trace; all of it tiny."""
import importlib.util
import json
import os
import subprocess
import sys

import pytest

from helpers import ROOT
from test_sim_report import Page

sys.path.insert(0, os.path.join(ROOT, "tools", "sim"))
import paper as paper_tables  # noqa: E402
import paper_page  # noqa: E402
import plots  # noqa: E402

BUILD = os.environ.get("FLASHIELD_BUILD", os.path.join(ROOT, "build"))
SIM = os.path.join(BUILD, "flashield-sim")
PATIENCE = 300

needs_matplotlib = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="python3-matplotlib is not there")
pytestmark = pytest.mark.skipif(not os.path.exists(SIM), reason=f"{SIM} is not built")


def paper(*options):
    done = subprocess.run([SIM, "paper", *map(str, options)], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stderr == ""
    return done.stdout


def tables(text):
    """By name: rows of cells, and notes."""
    found = {}
    for line in text.splitlines():
        table = json.loads(line)
        found[table["name"]] = {row["row"]: row["cells"] for row in table["rows"]}, " ".join(table["notes"])
    return found


@pytest.fixture(scope="module")
def tiny():
    return tables(paper("--scale", "1/512", "--json", "-"))


# The paper's tables: how many rows and columns each has, and how many of the paper's figures.
SHAPES = {"Table 2": (5, 1, 5), "Table 3": (2, 2, 4), "Table 4": (5, 2, 10), "Table 5": (5, 4, 20), "Table 6": (8, 6, 45),
          "Table 7": (7, 6, 42), "Table 8": (7, 6, 42), "Figure 8": (2, 2, 4)}


def test_every_table_is_whole_and_ours_are_near_where_the_trace_is_made_from_the_papers(tiny):
    for name, shape in SHAPES.items():
        cells = [list(row.values()) for row in tiny[name][0].values()]
        published = [cell["paper"] for row in cells for cell in row if cell["paper"] is not None]
        assert (len(cells), len(cells[0]), len(published)) == shape, name
    assert {"Figure 2", "Figure 4", "Not produced", "Input", "RIPQ's CLWA over Flashield's"} <= tiny.keys()
    for row in tiny["Table 2"][0].values():
        assert row["figure"]["ours"] == pytest.approx(row["figure"]["paper"], rel=0.15)
    for kind in tiny["Figure 8"][0]["fill % at twice the bytes"].values():
        assert kind["ours"] == pytest.approx(kind["paper"], abs=1)
    assert tiny["Table 3"][0]["RIPQ"]["CLWA"]["ours"] < tiny["Table 3"][0]["victim"]["CLWA"]["ours"]
    assert tiny["Table 5"][0]["app 3"]["lru"]["ours"] > tiny["Table 5"][0]["app 1"]["lru"]["ours"] + 10


def test_ours_stand_beside_them(tiny):
    rows = tiny["Table 2"][0]
    assert rows["reads %"]["figure"]["ours"] + rows["writes %"]["figure"]["ours"] + rows["updates %"]["figure"]["ours"] == pytest.approx(100)
    shares = [row["share"]["ours"] for row in tiny["Figure 2"][0].values()]
    assert shares == sorted(shares) and shares[-1] == 100
    assert all(0 < cell["ours"] <= 100 for row in tiny["Table 5"][0].values() for cell in row.values())
    assert all(cells["victim hit %"]["ours"] > 0 for row, cells in tiny["Table 6"][0].items() if row != "median")


def test_what_is_too_small_has_no_figure_and_is_named(tiny):
    rows, notes = tiny["Table 6"]
    assert rows["app 20"]["Flashield hit %"]["ours"] is None
    assert "applications 2, 7, 10, 20" in notes
    assert rows["app 2"]["RIPQ hit %"]["ours"] is None and rows["app 2"]["victim hit %"]["ours"] > 0
    assert len(tiny["Figure 4"][0]) == 5 and tiny["Figure 4"][1].startswith("Ours: application ")
    assert "1/512" in tiny["Input"][1] and "seed 1" in tiny["Input"][1]


def test_a_given_trace_has_ours_alone(tmp_path):
    path = tmp_path / "trace.csv"
    rows = [f"{second * 1000},0,get,{second * second % 997},10,1000,0" for second in range(4000)]
    path.write_text("\n".join(["time_ms,app,op,key,key_size,value_size,ttl_s", *rows]) + "\n")
    found = tables(paper("--trace", path, "--capacity", "50%", "--json", "-"))
    assert all(cell["paper"] is None for table, _ in found.values() for row in table.values() for cell in row.values())
    assert found["Table 6"][0]["trace"]["RIPQ hit %"]["ours"] > 0
    assert "fewer than 8 segments" in found["Table 8"][1] and found["Table 8"][0]["trace"]["1:15 hit %"]["ours"] is None
    lines = paper("--trace", path, "--capacity", "50%").splitlines()
    assert any(line.startswith("Table 6") for line in lines)


@needs_matplotlib
def test_figure_4_is_plotted_from_the_engines_samples(tmp_path):
    """Keys below 3000 are read many times; the others twice."""
    path, page = tmp_path / "trace.csv", tmp_path / "paper.html"
    rows = [f"{number * 1000},0,get,{number * 7919 % 3000 if number % 2 else 3000 + number // 4},10,1000,0" for number in range(80000)]
    path.write_text("\n".join(["time_ms,app,op,key,key_size,value_size,ttl_s", *rows]) + "\n")
    text = paper("--trace", path, "--capacity", "40%", "--json", "-", "--report", page)
    [figure] = [json.loads(line) for line in text.splitlines() if '"Figure 4"' in line]
    assert [row["row"][:3] for row in figure["rows"]] == ["(a)", "(b)", "(c)", "(d)", "(e)"]
    for lines in figure["curves"].values():
        values = [value for value, _ in lines["read"]]
        assert values == sorted(values)
        assert all(0 <= often <= read <= 100 for (_, read), (_, often) in zip(lines["read"], lines["read more than 10 times"], strict=True))
    shown = Page(page.read_text(encoding="utf-8"))
    assert shown.plots() == 5
    assert any("Table 6" in word for word in shown.words) and any(str(path) in word for word in shown.words)
    assert not {"script", "link", "img", "iframe", "object", "image", "base"} & set(shown.tags)
    assert len(set(shown.ids)) == len(shown.ids)


@needs_matplotlib
def test_figure_8_is_plotted_by_the_number_of_functions():
    rows = {f"paper mix, {functions}": {"fill_1x_pct": [50 + functions], "fill_2x_pct": [60 + functions], "hashes_2x": [1]}
            for functions in (1, 16)}
    table = paper_tables.Table("Figure 8", "<fill>", ["x"])
    table.put("fill", "x", 99, None)
    table.curves = {kind: paper_tables.fill_curves(rows, kind) for kind in ("paper mix", "sweep mix")}
    assert table.curves == {"paper mix": {"1 function": [(1, 51), (2, 61)], "16 functions": [(1, 66), (2, 76)]}, "sweep mix": {}}
    shown = Page(paper_page.of_tables(plots.load(), [table], ["paper"], "version"))
    assert shown.plots() == 2 and shown.tables[0][1] == ["fill", "99", "-"]
    assert {"1 function", "16 functions"} <= set(shown.words)


@needs_matplotlib
def test_a_report_that_can_not_be_written_is_refused_before_the_runs():
    for path in ("-", "/nowhere/paper.html"):
        done = subprocess.run([SIM, "paper", "--report", path], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and "--report" in done.stderr and len(done.stderr.splitlines()) == 1
