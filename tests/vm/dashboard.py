#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Draws the panels of a dashboard as SVG: each in its place, in its unit, with its legend.

    dashboard.py DASHBOARD ANSWERS >PICTURE

ANSWERS is what picture-dashboard leaves: the series of each panel, their step, and when the policy changed.
"""

import html
import json
import math
import sys

# In pixels: the picture, a row of the dashboard's grid, the title above them, a line of a legend, a letter.
WIDTH, ROW, HEAD, LINE, LETTER = 1080, 25, 34, 16, 6.9
# Eight colours that the colour-blind can tell apart (Okabe and Ito 2008).
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#96963c"]
# Grafana's units, each with its scales: from which value on, what is shown as 1, and its name.
UNITS = {
    "percentunit": [(0, 0.01, "%")],
    "s": [(1, 1, " s"), (1e-3, 1e-3, " ms"), (0, 1e-6, " µs")],
    "ops": [(1e3, 1e3, "K ops/s"), (0, 1, " ops/s")],
    "bytes": [(2**20, 2**20, " MiB"), (0, 2**10, " KiB")],
    "none": [(0, 1, "")],
}


def number(value, unit):
    scale, name = next((scale, name) for least, scale, name in UNITS[unit] if value >= least)
    return f"{value / scale:.4g}{name}" if value else "0"


def between_marks(most, unit):
    """Of an axis: 1, 2 or 5 times a power of ten, or for bytes a power of two."""
    if unit == "bytes":
        return 2 ** math.ceil(math.log2(most / 4))
    power = 10 ** math.floor(math.log10(most / 4))
    return next(n * power for n in (1, 2, 5, 10) if n * power >= most / 4)


def text(x, y, said, anchor="start", more=""):
    print(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{html.escape(said)}</text>')


def line(points, colour, more="", gap=math.inf):
    """Through points of (time, x, y), but not from one to another after a gap. A point alone is a dot."""
    drawn, last = "", None
    for time, x, y in points:
        drawn += f"L{x:.1f} {y:.1f}" if drawn and time - last <= gap else f"M{x:.1f} {y:.1f}h0"
        last = time
    print(f'<path d="{drawn}" fill="none" stroke="{colour}" {more}/>')


def draw_legend(names, left, right, bottom):
    """Its last line is at `bottom`. Returns its height."""
    rows, x = [[]], left
    for name, colour in zip(names, COLOURS * len(names)):
        width = 26 + LETTER * len(name)
        if rows[-1] and x + width > right + 10:
            rows.append([])
            x = left
        rows[-1].append((x, name, colour))
        x += width
    for up, row in enumerate(reversed(rows)):
        y = bottom - LINE * up
        for x, name, colour in row:
            line([(0, x, y - 4), (0, x + 14, y - 4)], colour, 'stroke-width="3"')
            text(x + 18, y, name)
    return LINE * len(rows)


def draw_panel(panel, series, times, changed, gap):
    place, defaults = panel["gridPos"], panel["fieldConfig"]["defaults"]
    unit, column = defaults["unit"], WIDTH / 24
    x, y = place["x"] * column + 4, HEAD + place["y"] * ROW + 4
    right, bottom = x + place["w"] * column - 8, y + place["h"] * ROW - 8
    print(f'<rect x="{x:g}" y="{y:g}" width="{right - x:g}" height="{bottom - y:g}" fill="#fff" stroke="#ccc"/>')
    text(x + 10, y + 18, panel["title"], more=' font-weight="bold"')
    if not series:
        return text((x + right) / 2, (y + bottom) / 2, "No data", "middle", ' fill="#888"')
    floor = bottom - 28 - draw_legend([one["legend"] for one in series], x + 10, right, bottom - 8)
    left, right, top = x + 76, right - 20, y + 34
    most = defaults.get("max") or max(value for one in series for _, value in one["points"]) or 1
    mark = between_marks(most, unit)
    marks = math.ceil(most / mark - 1e-9)

    def at(time, value):
        across, up = (time - times[0]) / (times[1] - times[0]), value / (mark * marks)
        return time, left + (right - left) * across, floor - (floor - top) * up

    for n in range(marks + 1):
        line([at(time, n * mark) for time in times], "#e4e4e4")
        text(left - 6, at(0, n * mark)[2] + 4, number(n * mark, unit), "end")
    for minute in range(int(times[1] - times[0]) // 60 + 1):
        text(at(times[0] + 60 * minute, 0)[1], floor + 17, f"{minute} min", "middle")
    line([at(changed, 0), at(changed, mark * marks)], "#888", 'stroke-dasharray="4 3"')
    for one, colour in zip(series, COLOURS * len(series)):
        line([at(*point) for point in one["points"]], colour, 'stroke-width="1.6" stroke-linecap="round"', gap)


def main():
    dashboard, answers = (json.load(open(path)) for path in sys.argv[1:])
    panels, of = dashboard["panels"], {}
    for one in answers["series"]:
        points = [(time, float(value)) for time, value in one["points"] if value != "NaN"]
        if points:
            of.setdefault(one["panel"], []).append({"legend": one["legend"], "points": points})
    seen = [time for series in of.values() for one in series for time, _ in one["points"]]
    height = HEAD + ROW * max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
          f'font-size="12" fill="#222">\n<rect width="{WIDTH}" height="{height}" fill="#f4f5f5"/>')
    text(8, 22, dashboard["title"], more=' font-size="16" font-weight="bold"')
    text(WIDTH - 10, 22, "dashed: the policy changes", "end")
    for panel in panels:
        if panel["type"] == "row":
            text(8, HEAD + panel["gridPos"]["y"] * ROW + 18, "▾ " + panel["title"], more=' font-size="14"')
        else:
            draw_panel(panel, of.get(panel["title"], []), (min(seen), max(seen)), answers["changed"],
                       1.5 * answers["step"])
    print("</svg>")


main()
