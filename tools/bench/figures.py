# SPDX-License-Identifier: BSD-3-Clause
"""Figures that studies measured: samples under (study, row, column).

    study "ops"          columns:  cpu_us    ops_s    p50_us ...
      row "get 257 B flashield"      1.93     201k      44       <- median of the samples added

The same three names added again are a further sample (another round). NaN means "not measured here": "-" in a table,
null in JSON, never 0. The file of a run is kept so that a later run is compared with it:

    {"format": "flashield-bench 1",
     "about": {name: text},
     "columns": {name: {"head": text, "decimals": digits}},       decimals -1: three significant digits
     "studies": {name: {"title": text, "explanation": text, "notes": [text],
                        "rows": {row: {column: [sample of each round]}}}},
     "targets": [{"measure": text, "value": v, "unit": text, "at_most" or "at_least": limit}]}

Everything is in the order of the first addition.
"""
import json
import math
import statistics
import sys
import textwrap

FORMAT = "flashield-bench 1"
WIDTH = 110  # of a table
GAP = "  "  # between columns
NAN = math.nan


def median(samples):
    numbers = [sample for sample in samples if not math.isnan(sample)]
    return statistics.median(numbers) if numbers else NAN


def spread(samples):
    """Returns the largest less the smallest sample; NaN, for unknown, when fewer than two are numbers."""
    numbers = [sample for sample in samples if not math.isnan(sample)]
    return max(numbers) - min(numbers) if len(numbers) > 1 else NAN


def ratio(part, whole):
    return part / whole if whole else NAN


def number_text(value, decimals=-1):
    """Writes a number with so many decimals; with -1 it has three significant digits, and from ten thousand on k, M or
    G."""
    if math.isnan(value):
        return "-"
    if decimals >= 0:
        return f"{value:.{decimals}f}"
    units = ["", "k", "M", "G", "T"]
    while abs(value) >= (9999.5 if len(units) == 5 else 999.5) and len(units) > 1:
        value /= 1000
        units.pop(0)
    decimals = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    edge = 0.9995
    while 2 <= decimals < 6 and abs(value) < edge:
        decimals += 1
        edge /= 10
    if value == math.floor(value) and units[0] == "":
        decimals = 0
    return f"{value:.{decimals}f}{units[0]}"


def wrapped(text, indent=""):
    """Returns lines of at most WIDTH characters; newlines stay."""
    return [line for part in text.split("\n")
            for line in textwrap.wrap(part, WIDTH, initial_indent=indent, subsequent_indent=indent,
                                      break_long_words=False, break_on_hyphens=False) or [""]]


def break_head(head):
    """Returns a head in two lines, broken at the blank that makes it narrowest."""
    broken = [("", head)] + [(head[:i], head[i + 1:]) for i in range(1, len(head) - 1) if head[i] == " "]
    return min(broken, key=lambda lines: max(map(len, lines)))


class Figures:
    def __init__(self):
        self.about = {}
        self.columns = {}
        self.studies = {}
        self.targets = []

    # ---- adding ----

    def study(self, name):
        return self.studies.setdefault(name, {"title": "", "explanation": "", "notes": [], "rows": {}})

    def column(self, name, head=None, decimals=-1):
        """Sets a column's printed head; without one it is headed by its name."""
        if head is not None or name not in self.columns:
            self.columns[name] = {"head": name if head is None else head, "decimals": decimals}

    def add(self, study, row, column, value):
        self.column(column)
        self.study(study)["rows"].setdefault(row, {}).setdefault(column, []).append(float(value))

    def note(self, study, text):
        """Adds a line under the study's table. The same text is kept once."""
        notes = self.study(study)["notes"]
        if text not in notes:
            notes.append(text)

    def target(self, measure, value, unit="", at_most=None, at_least=None):
        """Adds a limit with the measured value; without a limit, a value to be seen beside one."""
        target = {"measure": measure, "value": value, "unit": unit}
        if at_most is not None:
            target["at_most"] = at_most
        if at_least is not None:
            target["at_least"] = at_least
        self.targets.append(target)

    # ---- asking ----

    def samples(self, study, row, column):
        return self.studies.get(study, {}).get("rows", {}).get(row, {}).get(column, [])

    def median(self, study, row, column):
        return median(self.samples(study, row, column))

    def ratio(self, study, row, other, column):
        """Returns the median of ratios round by round; NaN without any."""
        pairs = zip(self.samples(study, row, column), self.samples(study, other, column))
        return median([ratio(of, to) for of, to in pairs])

    # ---- tables ----

    def blocks(self, study):
        """Rows with a column in common stand in one block: [([row, ...], [column, ...]), ...]."""
        blocks = []
        for row, cells in self.studies[study]["rows"].items():
            block = next((block for block in blocks if any(column in block[1] for column in cells)), None)
            if block is None:
                block = ([], [])
                blocks.append(block)
            block[0].append(row)
            block[1].extend(column for column in cells if column not in block[1])
        return blocks

    def block_text(self, rows, columns, lines, write):
        """A table, in slices of its columns where it is too wide. Each row has `lines`, of which the first bears its
        name; write(row, column, line) returns the text of a cell, "" for an empty one."""
        out = []
        heads = {column: break_head(self.columns[column]["head"]) for column in columns}
        widths = {column: max([*map(len, heads[column]), *(len(write(row, column, line)) for row in rows
                                                          for line in lines)]) for column in columns}
        label = max(map(len, rows))
        left = label + (len(GAP) + max(map(len, lines)) if any(lines) else 0)
        columns = list(columns)
        while columns:
            taken, width = [], left
            while columns and (not taken or width + len(GAP) + widths[columns[0]] <= WIDTH):
                width += len(GAP) + widths[columns[0]]
                taken.append(columns.pop(0))
            out.append("")
            for level in range(2):
                head = " " * left + "".join(GAP + heads[column][level].rjust(widths[column]) for column in taken)
                if head.strip():
                    out.append(head.rstrip())
            for row in rows:
                if not any(write(row, column, line) for column in taken for line in lines):
                    continue
                for line in lines:
                    text = (row if line == lines[0] else "").ljust(label)
                    text = (text + GAP + line).ljust(left) if any(lines) else text
                    cells = "".join(GAP + write(row, column, line).rjust(widths[column]) for column in taken)
                    out.append((text + cells).rstrip())
        return out

    def cell_text(self, column, samples):
        return number_text(median(samples), self.columns[column]["decimals"]) if samples else ""

    def about_text(self):
        width = max(map(len, self.about), default=0)
        return [f"{name:{width}}  {text}" for name, text in self.about.items()]

    def study_text(self, name):
        study = self.studies.get(name)
        if not study:
            return []
        out = ["", f"== {name}{': ' if study['title'] else ''}{study['title']} =="]
        for rows, columns in self.blocks(name):
            out += self.block_text(rows, columns, [""], lambda row, column, line:
                                   self.cell_text(column, self.samples(name, row, column)))
        if study["explanation"] or study["notes"]:
            out.append("")
        if study["explanation"]:
            out += wrapped(study["explanation"])
        for note in study["notes"]:
            out += wrapped(note)
        return out

    def targets_text(self):
        if not self.targets:
            return []
        width = max(len("measure"), *(len(target["measure"]) for target in self.targets))
        out = ["", "== targets ==", "", f"{'measure':{width}}  {'measured':>14}  {'target':>16}"]
        for target in self.targets:
            unit = f" {target['unit']}" if target["unit"] else ""
            line = f"{target['measure']:{width}}  {number_text(target['value']) + unit:>14}"
            limit = target.get("at_most", target.get("at_least"))
            if limit is not None:
                sign = "<=" if "at_most" in target else ">="
                line += f"  {f'{sign} {number_text(limit)}{unit}':>16}  {verdict(target, limit)}"
            out.append(line)
        return out

    # ---- comparison ----

    def comparison_text(self, base):
        """Compares with an earlier run the rows and columns that both have."""
        out = ["", "== compared with an earlier run ==", ""]
        for name, text in self.about.items():
            if base.about.get(name, text) != text:
                out += [f"{name}: {text}", f"  before: {base.about[name]}"]
        out += ["", "Medians; * marks changes larger than the spread (largest less smallest sample) of both runs;",
                "where a run has one sample its spread isn't known, and nothing is marked."]
        for name in self.studies:
            out += self.compared_study(base, name)
        return out

    def compared_study(self, base, name):
        def both(row, column):
            now, before = self.samples(name, row, column), base.samples(name, row, column)
            return (now, before) if now and before else None

        def write(row, column, line):
            if not (samples := both(row, column)):
                return ""
            return change_text(*samples) if line == "change" else self.cell_text(column, samples[line == "before"])

        pairs = [pair for rows, columns in self.blocks(name) for row in rows for column in columns
                 if (pair := both(row, column))]
        if not pairs:
            return []
        marked = sum(beyond_spread(*pair) for pair in pairs)
        out = ["", f"== {name}: {marked} of {len(pairs)} figures changed by more than the samples differ =="]
        for rows, columns in self.blocks(name):
            rows = [row for row in rows if any(both(row, column) for column in columns)]
            columns = [column for column in columns if any(both(row, column) for row in rows)]
            if rows:
                out += self.block_text(rows, columns, ["before", "now", "change"], write)
        return out

    # ---- the file ----

    def write_json(self, path):
        run = {"format": FORMAT, "about": self.about, "columns": self.columns, "studies": self.studies,
               "targets": self.targets}
        text = json.dumps(without_nan(run), indent=1)
        if path == "-":
            print(text, flush=True)
            return
        with open(path, "w", encoding="utf-8", errors="replace") as out:
            out.write(text + "\n")

    @classmethod
    def read_json(cls, path):
        """Raises ValueError, with a message for the user, if the file is none of ours, and OSError if it can't be
        read."""
        with open(path, encoding="utf-8", errors="replace") as opened:
            try:
                run = json.load(opened)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}:{error.lineno}: {error.msg}") from error
        if not isinstance(run, dict) or run.get("format") != FORMAT:
            raise ValueError(f'{path}: not the figures of a flashield-bench run ("format": "{FORMAT}")')
        figures = cls()
        try:
            figures.about = dict(run["about"])
            for name, column in run["columns"].items():
                figures.column(name, column["head"], column["decimals"])
            for name, study in run["studies"].items():
                figures.study(name).update(title=study["title"], explanation=study["explanation"], notes=study["notes"])
                for row, cells in study["rows"].items():
                    for column, samples in cells.items():
                        for sample in samples:
                            figures.add(name, row, column, NAN if sample is None else sample)
            figures.targets = [target | {"value": NAN if target["value"] is None else target["value"]}
                               for target in run["targets"]]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"{path}: its figures can't be read: {error!r}") from error
        return figures


def without_nan(value):
    if isinstance(value, dict):
        return {name: without_nan(part) for name, part in value.items()}
    if isinstance(value, list):
        return [without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def verdict(target, limit):
    value = target["value"]
    if math.isnan(value):
        return "not measured"
    if value <= limit if "at_most" in target else value >= limit:
        return "reached"
    if limit == 0:
        return "missed"
    beyond = abs(value / limit - 1)
    return f"missed by {100 * beyond:.{1 if beyond < 0.0995 else 0}f} %"


def beyond_spread(now, before):
    """Is the change more than either run's samples differ among themselves? A run with one sample can't tell, which
    counts as no."""
    change = abs(median(now) - median(before))
    return change > spread(now) and change > spread(before)


def change_text(now, before):
    base = median(before)
    change = 100 * ratio(median(now) - base, abs(base))
    if not math.isfinite(change):
        return "-"
    if abs(change) < 0.05:
        return "0.0%"
    mark = "*" if beyond_spread(now, before) else ""
    return f"{mark}{change:+.{1 if abs(change) < 99.95 else 0}f}%"


def show(lines, out=None):
    """Prints lines, if there are any."""
    if lines:
        print("\n".join(lines), file=out or sys.stdout, flush=True)
