"""The results as one SVG: a panel a job and table, a bar a contender, rows a second; floors hollow, openetl dark."""

from xml.sax.saxutils import escape

WIDTH, LABEL, BAR, GAP = 940, 190, 15, 5
PANEL_HEAD, COLUMNS, MARGIN = 34, 2, 16
STYLE = """
  text { font: 11px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 12px }
  .openetl { fill: #0b5394 } .other { fill: #9aa5b1 } .floor { fill: none; stroke: #57606a; stroke-dasharray: 3 2 } .wrong { fill: #cf222e }
  .background { fill: #ffffff }
  @media (prefers-color-scheme: dark) { text { fill: #d0d7de } .background { fill: #0d1117 } .openetl { fill: #58a6ff } .other { fill: #57606a } .floor { stroke: #8b949e } }
"""


def kind(cell):
    if cell["status"] == "wrong":
        return "wrong"
    return "floor" if cell["floor"] else "openetl" if cell["contender"].startswith("openetl") else "other"


def short(number):
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f}"


def panel(x, y, width, title, cells):
    """One job and table; returns its elements and its height."""
    out = [f'<text class="title" x="{x}" y="{y + 14}">{escape(title)}</text>']
    shown = sorted(cells, key=lambda c: -c["median"]["rows_per_s"])
    top = max(c["median"]["rows_per_s"] for c in shown)
    room = width - LABEL - 80
    at = y + PANEL_HEAD - 8
    for c in shown:
        value = c["median"]["rows_per_s"]
        length = max(1, room * value / top)
        name = c["contender"] + (" (wrong result)" if c["status"] == "wrong" else "")
        out.append(f'<text x="{x + LABEL - 6}" y="{at + 11}" text-anchor="end">{escape(name)}</text>')
        out.append(f'<rect class="{kind(c)}" x="{x + LABEL}" y="{at}" width="{length:.1f}" height="{BAR}"/>')
        out.append(f'<text x="{x + LABEL + length + 5:.1f}" y="{at + 11}">{short(value)}</text>')
        at += BAR + GAP
    return out, at - y + 10


def svg(results):
    out, heights = [], [MARGIN + 24] * COLUMNS
    width = (WIDTH - MARGIN * (COLUMNS + 1)) / COLUMNS
    for job, table, cells in results.groups():
        cells = [c for c in cells if "median" in c]
        if not cells:
            continue
        column = heights.index(min(heights))
        made, height = panel(MARGIN + column * (width + MARGIN), heights[column], width, f"{job}, {table}: rows/s", cells)
        out += made
        heights[column] += height
    total = max(heights) + MARGIN
    note = f"scale {results.all['scale']:g}, median of {results.all['rounds']}; longer is faster; dashed: the floors and hand-written SQL"
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total:.0f}" width="{WIDTH}" height="{total:.0f}" role="img">',
        f"<title>Rows a second of openetl, the floors and other tools</title><style>{STYLE}</style>",
        f'<rect class="background" width="{WIDTH}" height="{total:.0f}"/><text x="{MARGIN}" y="{MARGIN + 10}">{escape(note)}</text>',
    ]
    return "\n".join([*head, *out, "</svg>"]) + "\n"
