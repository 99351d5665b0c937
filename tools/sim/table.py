# SPDX-License-Identifier: BSD-3-Clause
"""Results as a table for people."""

COLUMNS = ["policy", "DRAM", "flash", "budget", "hit %", "byte hit %", "CLWA", "to flash", "reads/hit", "fixed", "requests/s"]
LEFT = 1  # columns whose text stands left


def size(value):
    if value is None:
        return "-"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def count(value):
    for unit in ("", " k", " M"):
        if value < 1000:
            return f"{value:.3g}{unit}"
        value /= 1000
    return f"{value:.3g} G"


def percent(value):
    return "-" if value is None else f"{100 * value:.2f}"


def decimal(value, digits=3):
    return "-" if value is None else f"{value:.{digits}f}"


def row_of(result):
    amount = (lambda value: f"{value:.0f}") if result["objects_only"] else size
    return [result["policy"], f"-m {size(result['memory_bytes'])}" if result["memory_bytes"] else amount(result["dram_bytes"]),
            amount(result["flash_bytes"]), decimal(result["clwa_budget"]) if result["clwa_budget"] else "-",
            percent(result["hit_ratio"]), percent(result["byte_hit_ratio"]), decimal(result["clwa"]),
            amount(result["flash_bytes_written"]), decimal(result["reads_per_flash_hit"]),
            size(result["fixed_bytes"]) if result["fixed_bytes"] else "-", count(result["requests_per_second"])]


def app_row(app):
    return [f"  {app['app']}", "", "", "", percent(app["hit_ratio"]), percent(app["byte_hit_ratio"]), "", "", "", "",
            f"({count(app['gets'])} gets)"]


def aligned(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    for row in rows:
        yield "  ".join(text.ljust(width) if i < LEFT else text.rjust(width)
                        for i, (text, width) in enumerate(zip(row, widths, strict=True))).rstrip()


def notes_of(trace, results):
    if trace["broken_rows"]:
        yield f"{trace['broken_rows']} broken rows of the trace were left out."
    if trace["timeless"]:
        yield "The trace has no times: its requests are spread evenly over a week."
    for result in results:
        if result["segment_bytes"] and result["policy"].startswith("flashield") and \
                8 * result["segment_bytes"] > (result["memory_bytes"] or result["dram_bytes"]):
            yield f"{result['policy']}: DRAM holds fewer than eight segments; use more copies, or smaller segments."


def lines_of(trace, results, apps):
    first = results[0]
    yield (f"{count(trace['requests'])} requests of {count(trace['keys'])} keys over {trace['span_s'] / 3600:.4g} h; working set "
           f"{size(trace['working_set_bytes'])} of values; copies {first['copies']}; warm-up {first['warmup_s'] / 3600:.4g} h")
    yield ""
    rows = [COLUMNS]
    for result in results:
        rows.append(row_of(result))
        if apps:
            rows.extend(app_row(app) for app in result["apps"])
    yield from aligned(rows)
    notes = list(notes_of(trace, results))
    if notes:
        yield ""
        yield from notes
