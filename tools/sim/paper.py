# SPDX-License-Identifier: BSD-3-Clause
"""flashield-sim paper: the tables and figures of the Flashield paper with ours beside them (paper_figures.py has the paper's).

Each application is played alone, as in the paper, with the memory that Memcachier gave it, scaled as its trace is. What is
too small for the engine at the scale, or is not produced at all, is said and has no figure.
"""
import json
import math
import os
import statistics
import subprocess
import tempfile

import paper_figures as published
import paper_trace
import worker

QUICK = 4  # a quarter of the scale
WHOLE = 10  # tables over all applications are made at a tenth of the scale
SEGMENT_BYTES = 8 << 20  # of tables 3, 4, 6, 7: the least with which the paper saw no write amplification of the drive
SEGMENT_LEAST = 64 << 10  # of the engine
SEGMENTS_LEAST = 8  # that DRAM must hold, or a figure would say more of the segments than of the policy
OBJECTS_LEAST = 8  # of mean size, in a segment or block: larger ones never fit, as objects do not scale
RIPQ_BLOCKS = 32  # on flash, at the least: four for each section
PAPER_MODE = "label-mode=paper,flash-write-ratio=0"
KINDS = {"flashield": "Flashield", "ripq": "RIPQ", "victim": "victim"}


def cell_text(value):
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1000 else f"{value:.1f}"


class Table:
    """Rows of cells; a cell is the paper's figure and ours, None where there is none. curves: of a figure, for a plot: lists of
    points by panel and line."""

    def __init__(self, name, title, columns):
        self.name, self.title, self.columns = name, title, columns
        self.rows, self.notes, self.curves = {}, [], {}

    def put(self, row, column, paper, ours):
        self.rows.setdefault(row, {})[column] = (paper, ours)

    def as_json(self):
        rows = [{"row": row, "cells": {column: {"paper": paper, "ours": ours} for column, (paper, ours) in cells.items()}}
                for row, cells in self.rows.items()]
        curves = {"curves": self.curves} if self.curves else {}
        return {"name": self.name, "title": self.title, "rows": rows, "notes": self.notes, **curves}

    def lines(self):
        shown = [["", *self.columns]]
        for row, cells in self.rows.items():
            shown.append([row, *(" | ".join(map(cell_text, cells[column])) if column in cells else "" for column in self.columns)])
        widths = [max(len(row[i]) for row in shown) for i in range(len(shown[0]))]
        yield f"{self.name}: {self.title}  (paper | ours)" if self.rows else self.name
        if self.rows:
            for row in shown:
                yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield from (f"  {note}" for note in self.notes)
        yield ""


class Bench:
    """Plays runs and remembers their results by name. play(spec, bar) returns answers, and whether all were played."""

    def __init__(self, chosen, play):
        self.chosen, self.play = chosen, play
        self.results, self.small, self.complete = {}, {}, True
        self.scale = chosen.scale * (QUICK if chosen.quick else 1)

    def run(self, trace, runs):
        """runs: (name, fields of the spec). Under a name there is a result afterwards, unless the run failed."""
        rules = {"accounting": "full", "changed_is_update": True}
        spec = {"trace": {"path": trace, "format": self.chosen.format if self.chosen.trace else "flashield", "copies": 1},
                "jobs": self.chosen.jobs, "seed": self.chosen.seed, "runs": [{**rules, **fields} for _, fields in runs]}
        if not runs:
            return
        answers, complete = self.play(spec, worker.Bar(self.chosen.quiet))
        self.complete &= complete
        for number, result in answers.results.items():
            self.results[runs[number][0]] = result

    def hit(self, name):
        found = self.results.get(name)
        return 100 * found["hit_ratio"] if found and found["hit_ratio"] is not None else None

    def clwa(self, name):
        found = self.results.get(name)
        return found["clwa"] if found else None

    def put_pair(self, table, row, kind, paper, name):
        table.put(row, f"{kind} hit %", paper and paper[0], self.hit(name))
        table.put(row, f"{kind} CLWA", paper and paper[1], self.clwa(name))


# ---- runs of one application -----------------------------------------------------------------------


def fields_of(policy, app, scale, ratio, segment, options=None):
    """None: DRAM holds too few segments for the engine, or segments too few objects."""
    memory = published.ALLOCATIONS[app] / scale
    dram, flash = memory / (1 + ratio), memory * ratio / (1 + ratio)
    fields = {"policy": policy, "dram_bytes": int(dram), "flash_bytes": int(flash), "options": options}
    if policy == "flashield":
        wanted = min(segment / scale, dram / SEGMENTS_LEAST)
        if dram / SEGMENTS_LEAST < SEGMENT_LEAST:
            return None
        fields["segment_bytes"] = max(int(wanted), SEGMENT_LEAST) // 4096 * 4096
    elif policy == "ripq":
        fields["segment_bytes"] = max(int(min(segment / scale, flash / RIPQ_BLOCKS)), 1)
    has_room = fields.get("segment_bytes", math.inf) >= OBJECTS_LEAST * published.MEAN_VALUES[app]
    return fields if has_room else None


def flashield_fields(app, scale, ratio, segment, threshold=1):
    return fields_of("flashield", app, scale, ratio, segment, f"{PAPER_MODE},flashiness-threshold={threshold}")


def keep(runs, bench, name, fields):
    if fields:
        runs.append((name, fields))
    else:
        bench.small[name] = True


def end_to_end_runs(bench, app):
    """Tables 6, 7 and 8."""
    runs, scale = [], bench.scale
    for threshold in published.TABLE_7_THRESHOLDS:
        keep(runs, bench, ("flashield", app, threshold), flashield_fields(app, scale, 7, SEGMENT_BYTES, threshold))
    for policy in ("ripq", "victim"):
        keep(runs, bench, (policy, app), fields_of(policy, app, scale, 7, SEGMENT_BYTES))
    for ratio in published.TABLE_8_RATIOS:
        keep(runs, bench, ("ratio", app, ratio), flashield_fields(app, scale, ratio, published.TABLE_8_SEGMENT_BYTES))
    return runs


def whole_runs(bench, app):
    """Tables 3, 4 and 5."""
    runs, scale = [], bench.scale * WHOLE
    for policy in ("victim", "ripq"):
        keep(runs, bench, ("whole", policy, app), fields_of(policy, app, scale, 7, SEGMENT_BYTES))
    if app in published.TABLE_4:
        keep(runs, bench, ("svm", app), flashield_fields(app, scale, 7, SEGMENT_BYTES))
    if app in published.TABLE_5:
        runs += [(("one tier", policy, app), fields_of(policy, app, scale, 7, 0)) for policy in published.TABLE_5_POLICIES]
    return runs


# ---- tables ----------------------------------------------------------------------------------------


def small_note(bench, table, kind):
    apps = sorted({name[1] for name in bench.small if name[0] == kind})
    if apps:
        table.notes.append(f"Without figures of ours, or without some: applications {', '.join(map(str, apps))}. At this scale their DRAM holds fewer than "
                           f"{SEGMENTS_LEAST} segments of {SEGMENT_LEAST >> 10} KiB, the engine's smallest, or a segment fewer than {OBJECTS_LEAST} objects.")


def model_note(bench, table, names):
    """The rule decides by what was read where there is no model, which makes other figures than the paper's."""
    apps = sorted({name[1] for name in names if name in bench.results and bench.results[name]["precision"] is None})
    if apps:
        table.notes.append(f"No model in use at the end, so that Flashield took what was read in DRAM, in a run at least: applications "
                           f"{', '.join(map(str, apps))}.")


def sizes_tables(tally):
    ours = tally.figures() if tally else {}
    general = Table("Table 2", "statistics of the twenty applications", ["figure"])
    for name, paper in published.TABLE_2.items():
        general.put(name, "figure", paper, ours.get(name))
    sizes = Table("Figure 2", "objects written that are smaller, in percent", ["share"])
    for point in paper_trace.POINTS:
        sizes.put(f"{point} B", "share", published.FIGURE_2_BELOW_1KB if point == 1024 else None,
                  tally.share_below(point) if tally else None)
    sizes.notes.append("The paper's text gives one point of the curve. The generator keeps table 2 and each application's mean value instead.")
    return [general, sizes]


def table_3(bench):
    table = Table("Table 3", "the whole trace, DRAM to flash 1:7", ["hit %", "CLWA"])
    apps = [app for app in published.ALLOCATIONS if ("whole", "ripq", app) in bench.results]
    for policy, (hit, clwa) in published.TABLE_3.items():
        found = [bench.results.get(("whole", policy, app)) for app in apps]
        found = [result for result in found if result]
        gets, written = (sum(result[name] for result in found) for name in ("gets", "app_bytes_written"))
        table.put(KINDS[policy], "hit %", hit, 100 * sum(result["get_hits"] for result in found) / gets if gets else None)
        table.put(KINDS[policy], "CLWA", clwa, sum(result["flash_bytes_written"] for result in found) / written if written else None)
    table.notes.append(f"Ours: sums over {len(apps)} of the twenty applications, each alone with its scaled allocation: those for which a block of RIPQ "
                       f"at this scale, at most a {RIPQ_BLOCKS}nd of the flash, holds {OBJECTS_LEAST} objects.")
    return table


def table_4(bench):
    table = Table("Table 4", "the model at a threshold of one read", ["precision %", "recall %"])
    for app, paper in published.TABLE_4.items():
        found = bench.results.get(("svm", app)) or bench.results.get(("flashield", app, 1)) or {}
        for name, figure in zip(("precision", "recall"), paper, strict=True):
            ours = found.get(name)
            table.put(f"app {app}", f"{name} %", figure, None if ours is None else 100 * ours)
    table.notes.append("Ours: the engine's last model, on the samples it held out. No figure: no model was in use, or DRAM is too small at this "
                       "scale. Both are 0 where the model admits nothing. The paper calls precision accuracy.")
    return table


def table_5(bench):
    table = Table("Table 5", "hit % of one tier with all of the memory", list(published.TABLE_5_POLICIES))
    for app, hits in published.TABLE_5.items():
        for policy, hit in zip(published.TABLE_5_POLICIES, hits, strict=True):
            table.put(f"app {app}", policy, hit, bench.hit(("one tier", policy, app)))
    table.notes.append("The generator is fitted to the column lru at these allocations, where they are large enough.")
    return table


def pair_columns(kinds):
    return [f"{kind} {what}" for kind in kinds for what in ("hit %", "CLWA")]


def middle(function, values):
    known = [value for value in values if value is not None]
    return function(known) if known else None


def table_6(bench):
    table = Table("Table 6", "Flashield in mode paper, RIPQ and victim cache, 1:7", pair_columns(KINDS.values()))
    names = {"flashield": lambda app: ("flashield", app, 1), "ripq": lambda app: ("ripq", app), "victim": lambda app: ("victim", app)}
    for app, figures in published.TABLE_6.items():
        for (policy, kind), paper in zip(KINDS.items(), figures, strict=True):
            bench.put_pair(table, f"app {app}", kind, paper, names[policy](app))
    for policy, kind in KINDS.items():
        table.put("median", f"{kind} CLWA", published.TABLE_6_MEDIAN_CLWA[policy],
                  middle(statistics.median, [bench.clwa(names[policy](app)) for app in published.TABLE_6]))
    factors = Table("RIPQ's CLWA over Flashield's", "of the applications of table 6", ["factor"])
    pairs = [(bench.clwa(names["ripq"](app)), bench.clwa(names["flashield"](app))) for app in published.TABLE_6]
    ours = [ripq / flashield for ripq, flashield in pairs if ripq is not None and flashield]
    for name, function in (("mean", statistics.mean), ("median", statistics.median)):
        factors.put(name, "factor", published.CLWA_FACTORS[name], middle(function, ours))
    factors.notes.append(f"Ours: {len(ours)} of {len(pairs)} applications, those that Flashield wrote "
                         "to flash for.")
    small_note(bench, table, "flashield")
    model_note(bench, table, [names["flashield"](app) for app in published.TABLE_6])
    return [table, factors]


def table_7(bench):
    kinds = [f"n = {threshold}" for threshold in published.TABLE_7_THRESHOLDS]
    table = Table("Table 7", "Flashield in mode paper, by flashiness threshold n", pair_columns(kinds))
    for app, figures in published.TABLE_7.items():
        for threshold, kind, paper in zip(published.TABLE_7_THRESHOLDS, kinds, figures, strict=True):
            bench.put_pair(table, f"app {app}", kind, paper, ("flashield", app, threshold))
    small_note(bench, table, "flashield")
    model_note(bench, table, [("flashield", app, threshold) for app in published.TABLE_7 for threshold in published.TABLE_7_THRESHOLDS])
    return table


def table_8(bench):
    kinds = [f"1:{ratio}" for ratio in published.TABLE_8_RATIOS]
    table = Table("Table 8", "Flashield in mode paper, by DRAM to flash, segments of 2 MB", pair_columns(kinds))
    for app, figures in published.TABLE_8.items():
        for ratio, kind, paper in zip(published.TABLE_8_RATIOS, kinds, figures, strict=True):
            bench.put_pair(table, f"app {app}", kind, paper, ("ratio", app, ratio))
    small_note(bench, table, "ratio")
    model_note(bench, table, [("ratio", app, ratio) for app in published.TABLE_8 for ratio in published.TABLE_8_RATIOS])
    return table


def features_of(bench):
    """The samples by feature of the application of figure 4 where the engine could play it, else of the one with the most;
    None and None without any."""
    def samples(run):
        return sum(row["samples"] for row in run["features"][0]["rows"])

    found = {name: run for name, run in bench.results.items() if name[0] in ("flashield", "svm") and run["features"]}
    apps = [name for name in found if name[1:2] == (published.FIGURE_4_APP,)]
    name = max(apps or found, key=lambda one: samples(found[one]), default=None)
    return name, found[name]["features"] if name else None


def figure_4(bench):
    table = Table("Figure 4", f"objects read more than {published.FIGURE_4_READS} times within the horizon, in %, by each feature",
                  ["lowest values", "highest values"])
    name, features = features_of(bench)
    for feature in (features or [])[:len(published.FIGURE_4)]:
        rows, letter = feature["rows"], published.FIGURE_4[feature["feature"]]
        if not rows:
            continue
        for column, row in zip(table.columns, (rows[0], rows[-1]), strict=True):
            table.put(letter, column, None, 100 * row["read_often"])
        table.curves[letter] = {"read": [(row["value"], 100 * row["read"]) for row in rows],
                                f"read more than {published.FIGURE_4_READS} times": [(row["value"], 100 * row["read_often"]) for row in rows]}
    what = "the trace" if bench.chosen.trace else f"application {name[1]}" if name else ""
    table.notes.append(f"Ours: {what}, the engine's samples in mode paper, in groups of about equally many by the value of each feature. The "
                       f"paper plots application {published.FIGURE_4_APP} with an hour as horizon, and gives no numbers." if features else
                       "Not produced: no DRAM is large enough for the engine at this scale.")
    return table


def fill_curves(rows, kind):
    """{functions: [(bytes of objects over the segment's, fill in percent)]} of flashield-bench's rows of a kind."""
    found = {}
    for row, cells in rows.items():
        placement, comma, functions = row.rpartition(", ")
        if placement == kind and comma:
            points = [(float(name[5:-5]), values[0]) for name, values in cells.items() if name.startswith("fill_") and name[5:-5]]
            found[f"{functions} function{'s' * (functions != '1')}"] = points
    return found


def figure_8(chosen, folder, program):
    table = Table("Figure 8", "fill of a segment, 16 hash functions, objects of twice its bytes", ["paper's placement", "sweep"])
    path = os.path.join(folder, "placement.json")
    scale = "0.02" if chosen.quick else "0.05"
    try:
        subprocess.run([program, "--scale", scale, "--rounds", "1", "--cpus", "none", "--quiet", "--json", path, "placement"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["studies"]["placement"]["rows"]
    except (OSError, subprocess.CalledProcessError, KeyError, ValueError):
        table.notes.append(f"Not produced: {program} is missing or failed.")
        return table
    names = dict(zip(("fill_2x_pct", "hashes_2x"), published.FIGURE_8, strict=True))
    for column, kind in (("paper's placement", " paper mix, 16"), ("sweep", " sweep mix, 16")):
        [(row, found)] = [(row, found) for row, found in rows.items() if row.endswith(kind)][:1]
        for name, label in names.items():
            table.put(label, column, published.FIGURE_8[label], found[name][0])
        table.curves[column] = fill_curves(rows, kind[1:].partition(",")[0])
    table.notes.append(f"By flashield-bench placement, with objects as the generator draws them and segments of {row.split(' sweep')[0]}; the paper's "
                       "have 512 MB.")
    return table


def left_out():
    table = Table("Not produced", "", [])
    table.notes += ["Table 9: it measures a server; flashield-bench does.",
                    "Figures 1, 3, 5, 6, 7 and table 1 show a drive, drawings and prices."]
    return table


# ---- the input -------------------------------------------------------------------------------------


def input_note(bench):
    table = Table("Input", "", [])
    scale, whole = bench.scale, bench.scale * WHOLE
    table.notes += [
        f"The Memcachier trace is private. Ours is made by flashield-tracegen from its published statistics, seed {bench.chosen.seed}, over seven days:",
        f"the applications of tables 6 to 8 at 1/{scale}, tables 2 to 5 and figure 2 at 1/{whole}; memory and segments are scaled alike.",
        "Popularity, sizes and lifetimes within an application are assumptions, so its CLWA need not come near the paper's.",
        "Only gets of known size are played, a changed size is a miss and a set, warm-up and training are the first day.",
        "An object has 36 B more in DRAM and 32 B more on flash; the paper counts none. The write budget is off.",
    ]
    return table


def generated(bench, bench_program):
    tally = paper_trace.Tally()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "app.csv")
        for app in published.ALLOCATIONS:
            paper_trace.make(app, bench.scale * WHOLE, bench.chosen.seed, path, tally)
            bench.run(path, whole_runs(bench, app))
        for app in published.TABLE_6:
            paper_trace.make(app, bench.scale, bench.chosen.seed, path, paper_trace.Tally())
            bench.run(path, end_to_end_runs(bench, app))
        fields = flashield_fields(published.FIGURE_4_APP, bench.scale, 7, SEGMENT_BYTES)
        if fields:
            paper_trace.make(published.FIGURE_4_APP, bench.scale, bench.chosen.seed, path, paper_trace.Tally())
            bench.run(path, [(("flashield", published.FIGURE_4_APP, 1), fields)])
        return [input_note(bench), *sizes_tables(tally), table_3(bench), table_4(bench), table_5(bench), *table_6(bench),
                table_7(bench), table_8(bench), figure_4(bench), figure_8(bench.chosen, folder, bench_program), left_out()]


def given_runs(bench, size):
    """The baselines first, as their results tell the sizes; then the engine, where DRAM holds enough segments."""
    bench.run(bench.chosen.trace, [((policy,), {"policy": policy, "ratio": 7, **size})
                                   for policy in ("ripq", "victim", *published.TABLE_5_POLICIES)])
    total = sum(bench.results[("victim",)][name] for name in ("dram_bytes", "flash_bytes")) if ("victim",) in bench.results else 0
    runs = []
    for threshold in published.TABLE_7_THRESHOLDS:
        segment = int(total / 8 / SEGMENTS_LEAST)
        fields = {"policy": "flashield", "ratio": 7, "options": f"{PAPER_MODE},flashiness-threshold={threshold}",
                  "segment_bytes": min(segment, SEGMENT_BYTES) // 4096 * 4096, **size}
        keep(runs, bench, ("flashield", threshold), fields if segment >= SEGMENT_LEAST else None)
    for ratio in published.TABLE_8_RATIOS:
        enough = total / (1 + ratio) >= SEGMENTS_LEAST * published.TABLE_8_SEGMENT_BYTES
        fields = {"policy": "flashield", "ratio": ratio, "options": f"{PAPER_MODE},flashiness-threshold=1",
                  "segment_bytes": published.TABLE_8_SEGMENT_BYTES, **size}
        keep(runs, bench, ("ratio", ratio), fields if enough else None)
    bench.run(bench.chosen.trace, runs)


def given(bench):
    """A trace of the user's own: tables 5 to 8 have one row, and nothing of the paper's to compare with."""
    chosen = bench.chosen
    given_runs(bench, {"capacity": chosen.capacity})
    note = Table("Input", "", [])
    note.notes.append(f"{chosen.trace}, one cache for all applications, {100 * chosen.capacity:.4g} % of the working set. The paper has no figures of it. "
                      "Tables 2 to 4 and figures 2 and 8 are of the Memcachier-like trace only.")
    one_tier = Table("Table 5", "hit % of one tier with all of the memory", list(published.TABLE_5_POLICIES))
    for policy in published.TABLE_5_POLICIES:
        one_tier.put("trace", policy, None, bench.hit((policy,)))
    end = Table("Table 6", "Flashield in mode paper, RIPQ and victim cache, 1:7", pair_columns(KINDS.values()))
    for policy, kind in KINDS.items():
        bench.put_pair(end, "trace", kind, None, ("flashield", 1) if policy == "flashield" else (policy,))
    kinds = {threshold: f"n = {threshold}" for threshold in published.TABLE_7_THRESHOLDS}
    thresholds = Table("Table 7", "Flashield in mode paper, by flashiness threshold n", pair_columns(kinds.values()))
    for threshold, kind in kinds.items():
        bench.put_pair(thresholds, "trace", kind, None, ("flashield", threshold))
    kinds = {ratio: f"1:{ratio}" for ratio in published.TABLE_8_RATIOS}
    ratios = Table("Table 8", "Flashield in mode paper, by DRAM to flash, segments of 2 MB", pair_columns(kinds.values()))
    for ratio, kind in kinds.items():
        bench.put_pair(ratios, "trace", kind, None, ("ratio", ratio))
        if ("ratio", ratio) in bench.small:
            ratios.notes.append(f"1:{ratio}: DRAM holds fewer than {SEGMENTS_LEAST} segments of 2 MB.")
    if ("flashield", 1) in bench.small:
        for table in (end, thresholds):
            table.notes.append(f"DRAM holds fewer than {SEGMENTS_LEAST} segments of {SEGMENT_LEAST >> 10} KiB, the engine's smallest.")
    return [note, one_tier, end, thresholds, ratios, figure_4(bench)]


def tables_of(chosen, play, bench_program):
    """All tables, and whether every run was played."""
    bench = Bench(chosen, play)
    tables = given(bench) if chosen.trace else generated(bench, bench_program)
    return tables, bench.complete
