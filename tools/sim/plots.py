# SPDX-License-Identifier: BSD-3-Clause
"""Plots of the report, as SVG that a page can hold: no text of the user's, no reference to anything outside, and colours that
the page's style sheet decides."""
import io
import logging
import re

import series

TIME_UNITS = ((3 * 86400, 86400, "days"), (3 * 3600, 3600, "hours"), (180, 60, "minutes"), (0, 1, "seconds"))
COLOURS = 12
DASHES = ["solid", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2))]
SVG_DASHES = ["", "5 2", "1.5 1.5", "6 2 1.5 2"]
MARKERS = ["o", "s", "^", "D"]
# Colours of the drawing stand for variables of the page, which knows whether it is light or dark.
INK, FAINT, SHADE = "#010101", "#010102", "#010103"
VARIABLES = {INK: "var(--ink)", FAINT: "var(--grid)", SHADE: "var(--shade)",
             **{f"#0101{0x10 + number:02x}": f"var(--c{number})" for number in range(COLOURS)}}
INCHES = (5.6, 3.3)


class Missing(Exception):
    """matplotlib is not installed."""


def colour(number):
    return f"#0101{0x10 + number % COLOURS:02x}"


def marker(number):
    return MARKERS[number // COLOURS % len(MARKERS)]


def load():
    """matplotlib, which only a report needs."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # its cache of fonts is no business of the user's
    try:
        import matplotlib
    except ImportError as error:
        raise Missing("matplotlib is not there; install the package python3-matplotlib") from error
    matplotlib.use("svg")
    return matplotlib


def inline(text, name):
    """The SVG element alone, with ids of its own, colours as variables, and a size that follows the page."""
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'(\sid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r'(<svg [^>]*?)\swidth="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg [^>]*?)\sheight="[^"]*"', r"\1", text, count=1)
    text = re.sub("|".join(VARIABLES), lambda match: VARIABLES[match.group(0)], text)
    return text.strip()


class Plot:
    """One pair of axes. matplotlib's own settings are as it was delivered, whatever the user's are."""

    def __init__(self, matplotlib, name):
        from matplotlib import figure
        self.name, self.matplotlib = name, matplotlib
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({
            "svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9, "text.color": INK, "axes.labelcolor": INK,
            "axes.edgecolor": FAINT, "xtick.color": INK, "ytick.color": INK, "grid.color": FAINT, "axes.grid": True,
            "axes.axisbelow": True, "grid.linewidth": 0.6, "axes.spines.top": False, "axes.spines.right": False,
            "axes.xmargin": 0.04, "axes.ymargin": 0.08})
        self.figure = figure.Figure(figsize=INCHES, layout="constrained")
        self.axes = self.figure.add_subplot()
        self.axes.locator_params(axis="x", nbins=7)
        self.axes.locator_params(axis="y", nbins=6)

    def label(self, across, up):
        self.axes.set_xlabel(across)
        self.axes.set_ylabel(up)

    def svg(self):
        out = io.StringIO()
        self.figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        return inline(out.getvalue(), self.name)


def against_clwa(matplotlib, name, lines):
    """Hit ratio against CLWA, a line for each policy."""
    plot = Plot(matplotlib, name)
    for line in lines:
        points = line.points
        plot.axes.plot([x for x, _ in points], [100 * y for _, y in points], color=colour(line.number),
                       marker=marker(line.number), markersize=5, linewidth=1.5, clip_on=False, zorder=3)
    most = max((x for line in lines for x, _ in line.points), default=0)
    plot.axes.set_xlim(0, 1.05 * most or 1)
    plot.label("CLWA: bytes to flash for each byte that applications write", "hit ratio, %")
    return plot.svg()


def against_size(matplotlib, name, results):
    """Hit ratio against DRAM and flash together, a line for each policy and budget."""
    plot = Plot(matplotlib, name)
    numbers = {policy: number for number, policy in enumerate(series.policies_of(results))}
    lines = {}
    for result in results:
        size = (result["memory_bytes"] or result["dram_bytes"]) + result["flash_bytes"]
        if result["hit_ratio"] is not None:
            lines.setdefault((result["policy"], result["clwa_budget"]), []).append((size, result["hit_ratio"]))
    for (policy, _), points in lines.items():
        number = numbers[policy]
        points.sort()
        plot.axes.plot([x / 2**20 for x, _ in points], [100 * y for _, y in points], color=colour(number),
                       marker=marker(number), markersize=5, linewidth=1.2, zorder=3)
    plot.label("objects in DRAM and on flash" if results[0]["objects_only"] else "DRAM and flash together, MiB", "hit ratio, %")
    return plot.svg()


def limits(values, which):
    """The least and the most to be shown: of bytes written, no single burst that would squeeze everything else."""
    values = sorted(values) or [0, 1]
    high = values[-1] if which == 1 else min(values[-1], 3 * values[int(0.95 * (len(values) - 1))] or values[-1])
    return values[0], high


def over_time(matplotlib, name, lines, which, up):
    """One figure of the windows (1 hit ratio, 2 CLWA) over the trace's time; warm-up is shaded, and no value of it
    decides what is shown."""
    plot = Plot(matplotlib, name)
    runs = [(line.number, dash, run) for line in lines for dash, (_, run) in enumerate(series.distinct(line))]
    span = max((run["series"][-1]["time_s"] for _, _, run in runs if run["series"]), default=0)
    _, unit, unit_name = next(row for row in TIME_UNITS if span >= row[0])
    warmup = max(run["warmup_s"] for _, _, run in runs)
    scale = 100 if which == 1 else 1
    counted = []
    for number, dash, run in runs:
        rows = series.windows(run)
        values = [float("nan") if row[which] is None else scale * row[which] for row in rows]
        counted += [value for row, value in zip(rows, values, strict=True) if row[0] >= warmup and value == value]
        plot.axes.plot([row[0] / unit for row in rows], values, color=colour(number), linewidth=1.3,
                       linestyle=DASHES[dash % len(DASHES)], zorder=3)
    if warmup:
        plot.axes.axvspan(0, warmup / unit, color=SHADE, linewidth=0, zorder=0)
    low, high = limits(counted, which)
    room = 0.08 * (high - low) or 0.05 * scale
    plot.axes.set_ylim(low - room if which == 1 else 0, high + room)
    plot.axes.set_xlim(0, span / unit or 1)
    plot.label(f"time of the trace, {unit_name}", up)
    return plot.svg()


def expectations(matplotlib, name, points):
    """Accesses that came against those that were expected. points: (number, marker, rows of a calibration); on the grey line the
    two are equal. The scales are logarithmic, and linear up to a tenth."""
    plot = Plot(matplotlib, name)
    most = max((value for _, _, rows in points for row in rows for value in (row["expected"], row["observed"])), default=1)
    ends = [0, 1.3 * max(most, 0.1)]
    plot.axes.plot(ends, ends, color=FAINT, linewidth=1.2, zorder=1)
    for number, shape, rows in points:
        plot.axes.plot([row["expected"] for row in rows], [row["observed"] for row in rows], color=colour(number),
                       marker=shape, markersize=5, linestyle="none", clip_on=False, zorder=3)
    for set_scale, set_limits in ((plot.axes.set_xscale, plot.axes.set_xlim), (plot.axes.set_yscale, plot.axes.set_ylim)):
        set_scale("symlog", linthresh=0.1)
        set_limits(*ends)
    plot.axes.xaxis.set_major_formatter("{x:g}")
    plot.axes.yaxis.set_major_formatter("{x:g}")
    plot.label("accesses expected of a sample", "accesses that came")
    return plot.svg()


def curves(matplotlib, name, lines, across, up, logarithmic=False):
    """Lists of points as lines with markers, each in the next colour."""
    plot = Plot(matplotlib, name)
    for number, points in enumerate(lines):
        plot.axes.plot([x for x, _ in points], [y for _, y in points], color=colour(number), marker="o", markersize=4,
                       linewidth=1.4, clip_on=False, zorder=3)
    if logarithmic:
        plot.axes.set_xscale("symlog", linthresh=1)
        plot.axes.set_xlim(0)
        plot.axes.xaxis.set_major_formatter("{x:g}")
    low, high = plot.axes.get_ylim()
    plot.axes.set_ylim(max(low, 0), min(high, 100))
    plot.label(across, up)
    return plot.svg()
