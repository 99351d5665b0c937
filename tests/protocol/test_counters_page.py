# SPDX-License-Identifier: BSD-3-Clause
"""packaging/doc/counters.md has each row of our reports, and none that no report has."""
import pathlib
import re

import pytest

from helpers import fill_turn, until

PAGE = pathlib.Path(__file__).parents[2] / "packaging" / "doc" / "counters.md"
REPORTS = ["flash", "classifier", "memory", "hotkeys", "slow", "contents"]


def page_rows(*headings):
    """The names in the first column of the tables under these headings."""
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
    cells = [line.split("|")[1] for heading in headings for line in sections[heading].splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def general(name):
    """The name by which the page stands for rows of one kind."""
    name = re.sub(r"^(requests|bytes|reads):(1m|10m):", "MEASURE:WINDOW:", name)
    name = re.sub(r"^[^:]+:(dram|flash):", "APPLICATION:TIER:", name)
    return re.sub(r"^\d+$", "NUMBER", re.sub(r"(?<=WINDOW:)\d+$", "RANK", name))


@pytest.mark.parametrize("report", REPORTS)
def test_every_row_of_a_report_is_on_the_page(start, flash_options, report):
    """Neither has a row that the other lacks, and the page has none twice."""
    headings = {"flash": ["stats flash", "States in stats flash"],
                "classifier": ["stats classifier", "States in stats classifier"],
                "memory": ["stats memory"], "hotkeys": ["stats hotkeys"], "slow": ["stats slow"],
                "contents": ["stats contents"]}[report]
    with start(*flash_options, "--slow-log-threshold", "1us").client() as client:
        client.all(b"get a-key\r\n" * 1000)
        until(lambda: client.count("slow_requests"), "a slow request")
        if report == "contents":
            fill_turn(client)
            until(lambda: "(all):flash:samples" in client.stats(b"contents"), "a sample of flash")
        rows = {general(name) for name in client.stats(report.encode())}
    named = page_rows(*headings)
    assert sorted(named) == sorted(set(named))
    assert set(named) == set(rows)
