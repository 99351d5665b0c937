# SPDX-License-Identifier: BSD-3-Clause
"""The report of "flashield-sim paper": its tables, and figures 4 and 8 as plots, on one HTML page that needs nothing else."""
import page
import paper
import plots

FILL_ACROSS, FILL_UP = "bytes of objects over the segment's", "fill of the segment, %"
OFTEN_UP = "of the objects, %"


def table_of(one):
    """Two columns for each of the table's, the paper's figure and ours; one where the paper has none."""
    columns = [(column, side) for column in one.columns for side in (0, 1)
               if side or any(cells[column][0] is not None for cells in one.rows.values() if column in cells)]
    heads = [""] + [f"{column}, {('paper', 'ours')[side]}" for column, side in columns]
    rows = [[row] + [paper.cell_text(cells[column][side]) if column in cells else "" for column, side in columns]
            for row, cells in one.rows.items()]
    return page.grid(heads, rows) if rows else ""


def plots_of(matplotlib, one):
    """The figure's curves: a plot for each panel, all with the same lines."""
    if not one.curves:
        return []
    names = list(dict.fromkeys(name for lines in one.curves.values() for name in lines))
    is_fill = one.name == "Figure 8"
    figures = []
    for number, (panel, lines) in enumerate(one.curves.items()):
        plot = plots.curves(matplotlib, f"{one.name.replace(' ', '').lower()}-{number}", list(lines.values()),
                            FILL_ACROSS if is_fill else panel.partition(") ")[2], FILL_UP if is_fill else OFTEN_UP,
                            logarithmic=not is_fill)
        figures.append(page.figure(panel, f"{one.name}, {panel}", plot))
    return [page.legend((page.swatch(number, shape="o"), name) for number, name in enumerate(names)), '<div class="plots">',
            *figures, "</div>"]


def of_tables(matplotlib, tables, arguments, version):
    """The page's text. arguments: the command line without the program; version: its line."""
    parts = []
    for one in tables:
        parts.append(f"<h2>{page.escape(f'{one.name}: {one.title}' if one.title else one.name)}</h2>")
        parts += plots_of(matplotlib, one)
        parts.append(table_of(one))
        parts += [f"<p>{page.escape(note)}</p>" for note in one.notes]
    return page.whole("flashield-sim paper", "The Flashield paper's tables and figures, and ours", parts, arguments,
                      [("version", version)])
