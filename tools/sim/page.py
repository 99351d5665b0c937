# SPDX-License-Identifier: BSD-3-Clause
"""The report of "flashield-sim run": one HTML page that needs nothing else."""
import html
import shlex

import plots
import series
import table

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #22262c; --faint: #5d6571; --grid: #d5d9df; --shade: #eef0f3;
  --c0: #1f6fb4; --c1: #cf5f00; --c2: #23853a; --c3: #c22f3b; --c4: #7a54b8; --c5: #86583f; --c6: #c0429a; --c7: #0f8b99;
  --c8: #858000; --c9: #2b3fae; --c10: #a3761f; --c11: #5f6670; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181c; --ink: #e4e7eb; --faint: #a2a9b3; --grid: #3a4048;
  --shade: #22272d; --c0: #62b0f2; --c1: #ff9a4a; --c2: #5fc777; --c3: #ff7078; --c4: #b494f0; --c5: #c99677; --c6: #f285cf;
  --c7: #4fcfdd; --c8: #cfca3f; --c9: #8b9cff; --c10: #e0b45c; --c11: #aab2bd; } }
body { background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 1.5rem;
  max-width: 76rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1rem; margin: .4rem 0 0; font-weight: 600; } p { margin: .5rem 0; max-width: 50rem; }
.faint { color: var(--faint); }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 32rem), 1fr)); gap: 1rem 1.5rem; }
.plots figure { margin: 0; } .plots svg { width: 100%; height: auto; display: block; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; list-style: none; padding: 0; margin: .3rem 0 .6rem; }
.legend svg { width: 34px; height: 12px; vertical-align: -1px; margin-right: .35rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--grid); }
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 8rem; overflow-wrap: anywhere; } thead th { vertical-align: bottom; }
pre { background: var(--shade); padding: .7rem; white-space: pre-wrap; overflow-wrap: anywhere; border-radius: 4px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; } dd { margin: 0; overflow-wrap: anywhere; }
"""
SHAPES = {"o": '<circle cx="17" cy="6" r="3.6"/>', "s": '<rect x="13.5" y="2.5" width="7" height="7"/>',
          "^": '<path d="M17 2L21 9.5H13Z"/>', "D": '<path d="M17 1.5L21.5 6L17 10.5L12.5 6Z"/>'}


def escape(text):
    return html.escape(str(text))


def swatch(number, dash=None, shape=None):
    """How a line looks, for a legend: with its marker, or with its dashes; or a marker alone."""
    variable = f"var(--c{number % plots.COLOURS})"
    pattern = f' stroke-dasharray="{plots.SVG_DASHES[dash % len(plots.SVG_DASHES)]}"' if dash else ""
    mark = f'<g fill="{variable}">{SHAPES[shape or plots.marker(number)]}</g>' if dash is None else ""
    line = "" if shape else f'<path d="M1 6H33" stroke="{variable}" stroke-width="2" fill="none"{pattern}/>'
    return f'<svg viewBox="0 0 34 12" aria-hidden="true">{line}{mark}</svg>'


def legend(rows):
    """rows: (swatch, name)."""
    return '<ul class="legend">' + "".join(f"<li>{mark}{escape(name)}</li>" for mark, name in rows) + "</ul>"


def figure(heading, label, svg):
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
    return f"<figure><h3>{escape(heading)}</h3>{svg}</figure>"


def grid(head, rows):
    """A table; the first column is its names."""
    cells = lambda row: "".join(f"<td>{escape(cell)}</td>" for cell in row)
    return ('<div class="wide"><table><thead><tr>' + "".join(f"<th>{escape(cell)}</th>" for cell in head) +
            "</tr></thead><tbody>" + "".join(f"<tr>{cells(row)}</tr>" for row in rows) + "</tbody></table></div>")


def definitions(rows):
    return "<dl>" + "".join(f"<dt class='faint'>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows) + "</dl>"


# ---- sections --------------------------------------------------------------------------------


def head_of(trace, results):
    first = results[0]
    rows = [("trace", first["trace"]["path"]), ("requests", f"{trace['requests']:,}"), ("keys", f"{trace['keys']:,}"),
            ("time", f"{trace['span_s'] / 3600:.4g} hours"), ("working set", f"{table.size(trace['working_set_bytes'])} of values"),
            ("copies", first["copies"]), ("sample", "all objects" if first["sample"] <= 1 else f"one object of {first['sample']}, "
                                          "with all sizes below divided by it"),
            ("warm-up", f"{first['warmup_s'] / 3600:.4g} hours of the trace, in no figure of the tables")]
    return definitions(rows)


def clwa_section(matplotlib, results):
    panels = series.panels_of(results)
    parts = ["<h2>Hit ratio against bytes written</h2>",
             "<p>Each point is a run, after warm-up. The points of a policy are joined in the order of their bytes. "
             "Left and up is better.</p>",
             legend((swatch(number), policy) for number, policy in enumerate(series.policies_of(results))), '<div class="plots">']
    parts += [figure(heading, f"Hit ratio against CLWA with {heading}", plots.against_clwa(matplotlib, f"clwa{number}", lines))
              for number, (heading, lines) in enumerate(panels)]
    if len(panels) > 1:
        parts.append(figure("All sizes: a line for each policy and budget", "Hit ratio against size", plots.against_size(matplotlib, "sizes", results)))
    unwritten = sum(result["clwa"] is None for result in results)
    parts.append("</div>")
    if unwritten:
        parts.append(f"<p>{unwritten} of the runs had no writes of applications after warm-up: they have no CLWA, and no point here.</p>")
    return "\n".join(parts)


def time_section(matplotlib, results):
    parts = ["<h2>Over the trace's time</h2>",
             "<p>Each value is that of a window of time, not a sum from the start. Warm-up is shaded; its values, and "
             "single windows with far more writes than the others, may lie outside of the plot.</p>"]
    for number, (heading, lines) in enumerate(series.panels_of(results)):
        rows = [(swatch(line.number, dash), name) for line in lines for dash, (name, _) in enumerate(series.distinct(line))]
        parts += [f"<h3>{escape(heading)}</h3>", legend(rows), '<div class="plots">',
                  figure("Hit ratio", f"Hit ratio over time with {heading}",
                         plots.over_time(matplotlib, f"hits{number}", lines, 1, "hit ratio, %")),
                  figure("CLWA", f"CLWA over time with {heading}", plots.over_time(matplotlib, f"writes{number}", lines, 2, "CLWA")),
                  "</div>"]
    return "\n".join(parts)


EXPECTED_BY = {"model": "By the model in use", "count": "By the count of accesses"}


def calibration_section(matplotlib, results):
    """Nothing, where no policy took samples."""
    parts, rows = [], []
    for number, (heading, lines) in enumerate(series.panels_of(results)):
        marks, figures = {}, []
        for by, title in EXPECTED_BY.items():
            found = [(line.number, *one) for line in lines for one in series.calibrations(line, by)]
            if not found:
                continue
            points = [(line, plots.MARKERS[place % len(plots.MARKERS)], tenths) for line, _, place, tenths in found]
            figures.append(figure(title, f"Expected and observed accesses, {title.lower()}, with {heading}",
                                  plots.expectations(matplotlib, f"{by}{number}", points)))
            marks.update({name: swatch(line, shape=shape) for (_, name, _, _), (line, shape, _) in zip(found, points, strict=True)})
            rows += [[name, heading, by, sum(row["samples"] for row in tenths), what] + [f"{row[what]:.3g}" for row in tenths]
                     for _, name, _, tenths in found for what in ("expected", "observed")]
        if figures:
            parts += [f"<h3>{escape(heading)}</h3>", legend((mark, name) for name, mark in marks.items()),
                      '<div class="plots">', *figures, "</div>"]
    if not parts:
        return ""
    heads = ["policy", "size", "by", "samples", "accesses", "least worth", *map(str, range(2, 10)), "most"]
    return "\n".join([
        "<h2>Expected and observed accesses</h2>",
        "<p>The samples of a run whose keys no model was trained with, by tenths of their worth; a point is a tenth. An access counts "
        "within its sample's horizon, and 64 of them at the most. On the grey line as many came as were expected. Objects are ranked "
        "by these expectations for each byte, so that one that is wrong by the same factor everywhere does no harm.</p>",
        *parts, grid(heads, rows)])


def runs_section(results):
    return "<h2>Runs</h2>" + grid(table.COLUMNS, [table.row_of(result) for result in results])


def apps_section(results):
    """A row for each run. Runs that differ by a budget which their policy doesn't have share one."""
    names = [app["app"] for app in results[0]["apps"]]
    gets = [f"{app['gets']:,} gets" for app in results[0]["apps"]]
    rows = [["", ""] + gets]
    for heading, lines in series.panels_of(results):
        for line in lines:
            for name, run in series.distinct(line):
                hits = {app["app"]: app["hit_ratio"] for app in run["apps"]}
                rows.append([name, heading] + [table.percent(hits[app]) for app in names])
    return ("<h2>Hit ratio by application, %</h2><p>Applications share DRAM and flash, and a policy doesn't tell whose bytes it "
            "writes to flash.</p>" + grid(["policy", "size", *names], rows))


def fixed_section(results):
    fixed = list(dict.fromkeys((result["policy"], series.size_text(result), result["fixed_bytes"]) for result in results
                               if result["fixed_bytes"]))
    if not fixed:
        return "<h2>Fixed costs</h2><p>None of these policies counts any: what they keep beside objects is not counted.</p>"
    return ("<h2>Fixed costs</h2><p>Bytes of memory that objects can't have: the index, the classifier and buffers. With "
            "<code>--memory</code> they are a part of the size, with <code>--dram</code> they come on top of it. "
            "What other policies keep beside objects is not counted.</p>" + grid(["policy", "size", "fixed"],
            [[policy, size, table.size(bytes_)] for policy, size, bytes_ in fixed]))


def counting(result):
    """Sentences on how bytes are counted, by the run's options."""
    if result["objects_only"]:
        yield "Every object counts 1, and sizes are numbers of objects."
    elif result["value_bytes_only"]:
        yield "An object counts the bytes of its value, at least 1. Keys, headers and other costs are left out."
    else:
        yield ("An object counts its key and value; beside them 36 B in DRAM and a record header of 32 B on flash. The policy "
               "flashield counts what it uses instead.")
    yield "Policies with one tier (lru, fifo, clock) have DRAM and flash together as DRAM."
    yield ("CLWA is bytes written to flash over the bytes of applications' sets, those after a missed get included. Replay is "
           "look-aside: a get that misses is followed by a set of the same object.")
    if result["referee"] != "none":
        yield f"The referee's rules ({result['referee']}) hold: a set is an access, and a size is kept or renewed at each access."
    if result["changed_is_update"]:
        yield "A get with another size than the object's is a miss and a set."


def settings_of(result):
    """Options that may differ from their defaults."""
    yield "segment", table.size(result["segment_bytes"]) if result["segment_bytes"] else "each policy's own"
    yield "training", f"{result['train_s'] / 3600:.4g} hours"
    yield "horizon", f"{result['horizon_s'] / 3600:.4g} hours" if result["horizon_s"] else "as the engine measures"
    yield "options of the engine", result["options"] or "none"


def whole(title, heading, parts, arguments, settings):
    """A page's text around its parts. arguments: the command line without the program; settings: names and values below it."""
    return "\n".join([
        '<!DOCTYPE html>', '<html lang="en">', "<head>", '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'">',
        f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", "</head>", "<body>", f"<h1>{escape(heading)}</h1>", *parts,
        "<h2>How this page was made</h2>", f"<pre>{escape(shlex.join(['flashield-sim', *arguments]))}</pre>",
        definitions(settings), "</body>", "</html>"]) + "\n"


def page(matplotlib, trace, results, arguments, version):
    """The page's text. arguments: the command line without the program; version: its line."""
    path = results[0]["trace"]["path"]
    parts = [head_of(trace, results), *(f"<p>{escape(note)}</p>" for note in table.notes_of(trace, results)),
             clwa_section(matplotlib, results), runs_section(results), time_section(matplotlib, results),
             calibration_section(matplotlib, results), apps_section(results), fixed_section(results),
             "<h2>How bytes are counted</h2>", "<p>" + " ".join(escape(sentence) for sentence in counting(results[0])) + "</p>"]
    return whole(f"flashield-sim: {path}", f"Cache policies on {path.rsplit('/', 1)[-1]}", parts, arguments,
                 [("version", version), *settings_of(results[0])])
