# SPDX-License-Identifier: GPL-2.0-only
"""Tables of what benches have found, as the documentation has them."""

import statistics


def table(title, corner, columns, lines):
    """Prints a table: of each line its name and its cells."""
    print(f"\n{title}\n\n| {corner} | " + " | ".join(map(str, columns)) + " |\n|---|" + "---|" * len(columns))
    for name, cells in lines:
        print(f"| {name} | " + " | ".join(cells) + " |")


def spread(values, form="{:.2f}"):
    """The median of some values, and the least and the greatest if they differ from each other."""
    values = sorted(values)
    ends = [form.format(value) for value in (values[0], values[-1])]
    return form.format(statistics.median(values)) + (f" ({ends[0]}-{ends[1]})" if ends[0] != ends[1] else "")
