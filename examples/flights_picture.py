"""Draw the twelve answers of `make run` in one picture: with their intervals, and the truth.

    python examples/flights_picture.py PICTURE.png FLIGHTS.txt LEGS.txt LATE.txt FLIGHTS_LATE.txt

The four texts are what the commands of `make run` print.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from matplotlib.figure import Figure

ROW = re.compile(r"^(distinct|exactly \d+) +(\S+) +(\S+) to (\S+) +(\S+)$", re.MULTILINE)
PANELS = (
    ("How many aircraft-days?", "", "aircraft-days"),
    ("How many aircraft-days have this many flights?", "flights on that day", "aircraft-days"),
    ("How many aircraft-days have this many late flights?", "late or cancelled flights on that day", "aircraft-days"),
    ("How many flights are late or cancelled?", "", "flights"),
)  # fmt: skip
INK, TRUTH = "#1b3a57", "#c8553d"

picture, *texts = map(Path, sys.argv[1:])
figure = Figure(figsize=(11, 7.5), layout="constrained", dpi=120)
missed = answered = 0
for axis, text, (title, below, unit) in zip(figure.subplots(2, 2).flat, texts, PANELS, strict=True):
    rows = ROW.findall(text.read_text())
    names = [row[0].removeprefix("exactly ") if below else "2013" for row in rows]
    value, low, high, truth = zip(*([int(n.replace(",", "")) for n in row[1:]] for row in rows), strict=True)  # fmt: skip
    reach = [[v - a for v, a in zip(value, low, strict=True)], [b - v for v, b in zip(value, high, strict=True)]]  # fmt: skip
    axis.bar(names, value, width=0.6, color=INK, alpha=0.25)
    axis.errorbar(names, value, yerr=reach, fmt="o", ms=4, color=INK, capsize=6, label="answer, with its 95 % interval")  # fmt: skip
    axis.plot(names, truth, "_", ms=28, mew=2, color=TRUTH, label="truth")
    for name, number, end in zip(names, value, high, strict=True):
        axis.annotate(f"{number:,}", (name, end), (0, 5), textcoords="offset points", ha="center", fontsize=9)  # fmt: skip
    axis.set(xlabel=below, ylabel=unit, ylim=(0, 1.12 * max(high)), xlim=(-1, len(names)))
    axis.set_title(title, loc="left", fontweight="bold", fontsize=11)
    axis.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
    axis.spines[["right", "top"]].set_visible(False)
    missed += sum(not a <= t <= b for a, t, b in zip(low, truth, high, strict=True))
    answered += len(rows)
figure.suptitle("Flights from New York in 2013. An aircraft-day is one aircraft on one day. Each of the four counts costs epsilon 1.")  # fmt: skip
figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
figure.savefig(picture)
print(
    f"{answered} intervals of 95 %: in about every second run one of them misses the truth. "
    f"In this run {missed} of {answered} do."
)
print(f"See all answers in {picture}.")
