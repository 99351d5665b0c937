#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws a Grafana dashboard from what a Prometheus has, as one picture. Needs python3-matplotlib.

draw-dashboard.py --prometheus http://127.0.0.1:9090 --dashboard packaging/samples/grafana/flashield.json --output flashield.png --minutes 60
"""
import argparse
import datetime
import math
import os
import sys
import textwrap
import time

import matplotlib

matplotlib.use("Agg")
from matplotlib import dates, figure, ticker  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "dashboard"))
import board  # noqa: E402

POINTS = 240  # of each line
UNIT_INCHES = (0.72, 0.36)  # a step of the dashboard's grid, across and down
MARGIN = 0.12  # inches around a panel
LINE = 0.155  # inches of a line of legend
TEXT, FAINT, PAPER, PANEL = "#2b2f36", "#8a919c", "#eef0f3", "#ffffff"
PALETTE = ["#5794f2", "#73bf69", "#ff9830", "#b877d9", "#f2495c", "#37872d", "#fade2a", "#8ab8ff", "#c4162a", "#806eb7", "#447ebc"]
COLORS = {"blue": "#3274d9", "orange": "#ff780a", "red": "#e02f44", "dark-red": "#a01027", "gray": "#9fa7b3",
          "green": "#37a35b", "yellow": "#e5b700", "purple": "#a352cc"}

# Steps of a unit, ascending: (size, suffix, digits of what is below it).
STEPS = {
    "bytes": [(1, "B"), (2**10, "KiB"), (2**20, "MiB"), (2**30, "GiB"), (2**40, "TiB")],
    "Bps": [(1, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s")],
    "s": [(1e-6, "µs"), (1e-3, "ms"), (1, "s"), (60, "min"), (3600, "h"), (86400, "d"), (86400 * 365, "years")],
    "ops": [(1, "/s"), (1e3, "k/s"), (1e6, "M/s")],
    "short": [(1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")],
    "percentunit": [(0.01, "%")],
    "none": [(1, "")],
}


def scale(value, unit):
    """The step of the unit that a value of this size is told in."""
    steps = STEPS.get(unit, STEPS["none"])
    return max((step for step in steps if step[0] <= abs(value)), default=steps[0])


def tell(value, unit):
    if not math.isfinite(value):
        return "-"
    size, suffix = scale(value, unit) if value else STEPS.get(unit, STEPS["none"])[0]
    if value == 0 and unit == "s":
        suffix = "s"
    number = f"{value / size:.3g}" if abs(value / size) < 1000 else f"{value / size:.0f}"
    return f"{number} {suffix}".rstrip().replace(" %", "%")


class RoundNumbers(ticker.Locator):
    """Ticks at round numbers of the unit that the axis is told in: 512 KiB rather than 500 kB."""

    def __init__(self, unit):
        self.unit = unit
        self.plain = ticker.MaxNLocator(4, steps=[1, 2, 2.5, 5, 10])

    def __call__(self):
        low, high = self.axis.get_view_interval()
        size = scale(high, self.unit)[0]
        return [tick * size for tick in self.plain.tick_values(low / size, high / size)]


def legend_of(labels, form):
    if form in ("", "__auto"):
        return ", ".join(f"{name}={value}" for name, value in labels.items())
    for name, value in labels.items():
        form = form.replace("{{" + name + "}}", value)
    return form


def color_of(panel, legend, number):
    for override in panel["fieldConfig"]["overrides"]:
        if override["matcher"]["options"] == legend:
            name = override["properties"][0]["value"]["fixedColor"]
            return COLORS.get(name, name)
    return PALETTE[number % len(PALETTE)]


class Drawing:
    def __init__(self, dashboard, prometheus, minutes, interval):
        self.prometheus = prometheus
        self.step = max(1, round(60 * minutes / POINTS))
        self.end = time.time()
        self.start = self.end - self.step * round(60 * minutes / self.step)
        self.times = [self.start + self.step * n for n in range(round(60 * minutes / self.step) + 1)]
        self.dates = [datetime.datetime.fromtimestamp(at) for at in self.times]
        # As Grafana reckons it: never shorter than four scrapes, so that a missed one leaves no gap.
        self.values = board.everything(max(self.step + interval, 4 * interval), round(60 * minutes))
        self.bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in dashboard["panels"])
        self.width, self.height = 24 * UNIT_INCHES[0], self.bottom * UNIT_INCHES[1] + 0.6
        self.figure = figure.Figure(figsize=(self.width, self.height), facecolor=PAPER)
        self.head(dashboard)
        for panel in dashboard["panels"]:
            {"row": self.row, "stat": self.stat, "timeseries": self.timeseries}[panel["type"]](panel)

    # ---- places, in inches from the upper left --------------------------------------------------

    def rectangle(self, left, top, width, height):
        return (left / self.width, 1 - (top + height) / self.height, width / self.width, height / self.height)

    def box(self, panel):
        at = panel["gridPos"]
        return (at["x"] * UNIT_INCHES[0], at["y"] * UNIT_INCHES[1] + 0.6, at["w"] * UNIT_INCHES[0], at["h"] * UNIT_INCHES[1])

    def text(self, left, top, words, **looks):
        self.figure.text(left / self.width, 1 - top / self.height, words, va="top", color=looks.pop("color", TEXT), **looks)

    def head(self, dashboard):
        span = " to ".join(time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at)) for at in (self.start, self.end))
        self.text(MARGIN, 0.16, dashboard["title"], size=16, weight="bold")
        self.text(self.width - MARGIN, 0.22, span, size=9, color=FAINT, ha="right")

    def row(self, panel):
        left, top, width, height = self.box(panel)
        self.text(left + MARGIN, top + height / 4, panel["title"], size=12, weight="bold")

    def paper(self, panel):
        """The panel's sheet with its title; returns where it is."""
        left, top, width, height = self.box(panel)
        gap = MARGIN / 3
        axes = self.figure.add_axes(self.rectangle(left + gap, top + gap, width - 2 * gap, height - 2 * gap), facecolor=PANEL)
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set_edgecolor("#d9dce1")
        self.text(left + MARGIN, top + 0.12, panel["title"], size=8.5, weight="bold")
        return left, top, width, height

    # ---- panels ---------------------------------------------------------------------------------

    def lines(self, panel):
        """[(legend, values)] of a panel's queries, a value for each of self.times; NaN where there was none."""
        found = []
        for target in panel["targets"]:
            expression = board.substitute(target["expr"], self.values)
            for labels, points in self.prometheus.query_range(expression, self.start, self.end, self.step):
                values = self.on_grid(points)
                if any(math.isfinite(value) for value in values):
                    found.append((legend_of(labels, target["legendFormat"]), values))
        return found

    def on_grid(self, points):
        values = [math.nan] * len(self.times)
        for at, value in points:
            values[round((at - self.start) / self.step)] = value
        return values

    def stat(self, panel):
        left, top, width, height = self.paper(panel)
        lines = self.lines(panel)
        value = next((v for v in reversed(lines[0][1]) if math.isfinite(v)), math.nan) if lines else math.nan
        defaults = panel["fieldConfig"]["defaults"]
        color = "gray"
        for step in defaults["thresholds"]["steps"]:
            if step["value"] is None or value >= step["value"]:
                color = step["color"]
        color = COLORS.get(color, color)
        self.text(left + width / 2, top + height * 0.34, tell(value, defaults["unit"]), size=19, weight="bold", ha="center", color=color)
        if lines:
            axes = self.figure.add_axes(self.rectangle(left + MARGIN, top + height * 0.7, width - 2 * MARGIN, height * 0.24), facecolor="none")
            axes.fill_between(self.times, lines[0][1], color=color, alpha=0.25, linewidth=0)
            axes.set_xlim(self.start, self.end)
            axes.set_ylim(bottom=0)
            axes.axis("off")

    def timeseries(self, panel):
        left, top, width, height = self.paper(panel)
        lines = self.lines(panel)
        columns = 2 if any(len(legend) > 16 for legend, _ in lines) else 4
        legend_rows = math.ceil(len(lines) / columns)
        below = 0.3 + LINE * legend_rows
        axes = self.figure.add_axes(self.rectangle(left + 0.66, top + 0.42, width - 0.66 - MARGIN * 1.5, height - 0.42 - below),
                                    facecolor="none")
        self.plot(axes, panel, lines)
        self.dress(axes, panel, lines)
        if lines:
            handles, labels = axes.get_legend_handles_labels()
            axes.legend(handles, [textwrap.shorten(label, 44) for label in labels], loc="upper left",
                        bbox_to_anchor=(-0.42 / (width - 0.84), -0.2 / (height - 0.42 - below)), ncols=columns, frameon=False,
                        fontsize=6.5, labelcolor=TEXT, handlelength=1.1, columnspacing=1.2, labelspacing=0.2, borderaxespad=0)
        else:
            axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center", va="center", color=FAINT, size=9)

    def plot(self, axes, panel, lines):
        stacked = panel["fieldConfig"]["defaults"]["custom"]["stacking"]["mode"] == "normal"
        floor = [0] * len(self.times)
        for number, (legend, values) in enumerate(lines):
            color = color_of(panel, legend, number)
            if stacked:
                ceiling = [base + (value if math.isfinite(value) else 0) for base, value in zip(floor, values)]
                axes.fill_between(self.dates, floor, ceiling, color=color, alpha=0.6, linewidth=0, label=legend)
                floor = ceiling
            else:
                axes.plot(self.dates, values, color=color, linewidth=1, label=legend)

    def dress(self, axes, panel, lines):
        defaults = panel["fieldConfig"]["defaults"]
        unit = defaults["unit"]
        if "scaleDistribution" in defaults["custom"] and lines:
            axes.set_yscale("log")
            axes.yaxis.set_minor_formatter(ticker.NullFormatter())
        else:
            if "min" in defaults:
                axes.set_ylim(bottom=defaults["min"])
            if "max" in defaults:
                axes.set_ylim(top=defaults["max"])
            elif all(value == 0 for _, values in lines for value in values if math.isfinite(value)):
                axes.set_ylim(top=1)
            axes.yaxis.set_major_locator(RoundNumbers(unit))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: tell(value, unit)))
        axes.set_xlim(self.dates[0], self.dates[-1])
        axes.xaxis.set_major_locator(dates.AutoDateLocator(minticks=3, maxticks=6))
        axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M:%S" if self.end - self.start < 600 else "%H:%M"))
        axes.tick_params(which="both", labelsize=6.5, colors=FAINT, length=0)
        axes.grid(color="#e4e7eb", linewidth=0.6)
        axes.set_axisbelow(True)
        for spine in axes.spines.values():
            spine.set_visible(False)


def main():
    parser = argparse.ArgumentParser(description="Draws a Grafana dashboard from what a Prometheus has, as one PNG.")
    parser.add_argument("--prometheus", metavar="URL", default="http://127.0.0.1:9090", help="(%(default)s)")
    parser.add_argument("--dashboard", metavar="FILE", default="packaging/samples/grafana/flashield.json", help="(%(default)s)")
    parser.add_argument("--output", metavar="PNG", required=True)
    parser.add_argument("--minutes", metavar="N", type=float, default=60, help="up to now (%(default)s)")
    parser.add_argument("--scrape-interval", metavar="SECONDS", type=int, default=15, help="as in prometheus.yml (%(default)s)")
    parser.add_argument("--dpi", type=int, default=90, help="(%(default)s)")
    words = parser.parse_args()
    try:
        drawing = Drawing(board.load(words.dashboard), board.Prometheus(words.prometheus), words.minutes, words.scrape_interval)
    except (OSError, board.Refused) as error:
        sys.exit(f"draw-dashboard: {error}")
    drawing.figure.savefig(words.output, dpi=words.dpi)


if __name__ == "__main__":
    main()
