# SPDX-License-Identifier: BSD-3-Clause
"""The paper's table 9 beside what the studies ops and flash have measured in this run."""
import math

from figures import ratio

STUDY = "table9"

# The paper's operations per second and microseconds, and the rows that they are compared with: the rate with 50
# connections, the latency with one.
LINES = {
    "flashield, SSD hits": (150264, 106, "flash", "257 B c{} flashield"),
    "flashield, DRAM hits": (270437, 13.5, "ops", "get 257 B c{} flashield"),
    "flashield, misses": (239191, 19, "ops", "miss 257 B c{} flashield"),
    "memcached, hits": (275379, 13, "ops", "get 257 B c{} memcached"),
    "memcached, misses": (286718, 12, "ops", "miss 257 B c{} memcached"),
}
RATIOS = {
    "SSD hits / DRAM hits": ("flashield, SSD hits", "flashield, DRAM hits"),
    "flashield / memcached, hits": ("flashield, DRAM hits", "memcached, hits"),
    "flashield / memcached, misses": ("flashield, misses", "memcached, misses"),
}
HEADS = {"paper_ops_s": "paper ops/s", "here_ops_s": "here ops/s", "paper_us": "paper us", "here_us": "here us"}


def table9(figures):
    """Adds the table as a study; does nothing when neither of the two has run."""
    cells = {}
    for line, (ops_s, latency_us, study, row) in LINES.items():
        cells[line] = (ops_s, figures.median(study, row.format(50), "ops_s"), latency_us,
                       figures.median(study, row.format(1), "p50_us"))
    if all(math.isnan(here_ops_s) for _, here_ops_s, _, _ in cells.values()):
        return
    for line, (of, to) in RATIOS.items():
        cells[line] = tuple(map(ratio, cells[of], cells[to]))
    figures.study(STUDY).update(
        title="the paper's table 9 beside this run",
        explanation="Here: 257 B values, -t 1; the rate with 50 connections, the p50 with one. The paper: memcached "
                    "1.4.15, four cores at 3.4 GHz, an Intel 535 drive; mean latency. Rate times latency gives 3.6 "
                    "requests under way for its hits and 16 for its SSD hits.")
    for column, head in HEADS.items():
        figures.column(column, head)
    for line, values in cells.items():
        for column, value in zip(HEADS, values, strict=True):
            figures.add(STUDY, line, column, value)
