# SPDX-License-Identifier: BSD-3-Clause
"""packaging/doc/counters.md has each row of our reports in its order, and none that no report has. (The page is made of tables:
this compares these with what the daemon gives.)"""
import pathlib
import re

import pytest

from helpers import fill_turn, until

PAGE = pathlib.Path(__file__).parents[2] / "packaging" / "doc" / "counters.md"


def page_rows(part):
    """The names in the first column of a generated table."""
    text = re.search(rf"<!-- begin generated: {part} -->(.*?)<!-- end generated -->", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    return re.findall(r"(?m)^\| `([^`]+)`", text)


def rows_of(daemon, report):
    with daemon.client() as client:
        client.set(b"shop:1", b"value")
        return client.stats(report.encode())


@pytest.mark.parametrize("report, parts", [("flash", ["rows-flash", "counters-flash"]),
                                           ("classifier", ["rows-classifier", "counters-classifier"]),
                                           ("memory", ["rows-memory"])])
def test_every_row_of_a_report_is_on_the_page(flash_daemon, report, parts):
    """Neither has a row that the other lacks, and the page has none twice."""
    named = [name for part in parts for name in page_rows(part)]
    assert named == list(rows_of(flash_daemon, report))


def test_segments(flash_daemon):
    """Some rows of "stats flash", and its own."""
    flash = page_rows("rows-flash")
    first, last = flash.index("segments_total"), flash.index("flash_file_away_reason")
    assert flash[first:last + 1] + page_rows("rows-segments") == list(rows_of(flash_daemon, "segments"))


def test_latency(flash_daemon):
    """Each kind has each row."""
    rows = [name.removeprefix("KIND_") for name in page_rows("rows-latency")]
    assert [f"{kind}_{row}" for kind in page_rows("latencies") for row in rows] == list(rows_of(flash_daemon, "latency"))


def test_apps(flash_daemon):
    """The number, and the rows of each application."""
    alone, *rows = page_rows("rows-apps")
    given = list(rows_of(flash_daemon, "apps"))
    assert given[0] == alone and len(given) > len(rows)
    assert [name.partition(":")[2] for name in given[1:len(rows) + 1]] == [name.removeprefix("APPLICATION:") for name in rows]


def test_what_is_of_nothing(start):
    """A daemon that has done nothing: no ratio, mean or quantile is a number."""
    daemon = start()
    flash, classifier, latency = (daemon.stats(report) for report in (b"flash", b"classifier", b"latency"))
    for name in "clwa", "clwa_5m", "clwa_1h", "clwa_1d", "index_load", "segment_fill", "dram_bytes_per_flash_item", \
            "flash_write_budget_used":
        assert flash[name] == "nan", name
    for name in "precision", "recall", "positive_share", "admitted_share", "read_once_share", "model_hits":
        assert classifier[name] == "nan", name
    assert {value for name, value in latency.items() if not name.endswith("_count")} == {"nan"}


def general(name):
    """The name by which the page stands for rows of one kind."""
    name = re.sub(r"^(requests|bytes|reads):(1m|10m):", "MEASURE:WINDOW:", name)
    name = re.sub(r"^[^:]+:(dram|flash):", "APPLICATION:TIER:", name)
    return re.sub(r"^\d+$", "NUMBER", re.sub(r"(?<=WINDOW:)\d+$", "RANK", name))


@pytest.mark.parametrize("report", ["hotkeys", "slow", "contents"])
def test_reports_with_rows_of_a_kind(start, flash_options, report):
    """Their tables aren't generated: neither has a row that the other lacks, and the page has none twice."""
    with start(*flash_options, "--slow-log-threshold", "1us").client() as client:
        client.all(b"get a-key\r\n" * 1000)
        until(lambda: client.count("slow_requests"), "a slow request")
        if report == "contents":
            fill_turn(client)
            until(lambda: "(all):flash:samples" in client.stats(b"contents"), "a sample of flash")
        rows = {general(name) for name in client.stats(report.encode())}
    section = re.search(rf"(?ms)^## stats {report}\n(.*?)(?=^## )", PAGE.read_text(encoding="utf-8"))[1]
    named = [name for line in section.splitlines() if line.startswith("| `") for name in re.findall(r"`([^`]+)`", line.split("|")[1])]
    assert sorted(named) == sorted(set(named))
    assert set(named) == rows
