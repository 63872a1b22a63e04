"""The picture of an attack: its numbers beside their bounds, and what the intruder says.

A square has those who came on its left and those who did not on its right; a dark cell is a person
who is named. A program that falls is dark on the left and white on the right.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from panprivacy.audit.attacks.outcome import PRODUCT, AttackResult, Finding, Panel
from panprivacy.intake.programs.pictures import draw_presence, side_by_side

_INK = "#1b3a57"
_FALLEN = "#c8553d"
_BOUND = "#222222"


def draw(outcome: AttackResult, path: Path) -> None:
    """Draw the numbers with their bounds, and what the intruder says; a PNG file."""
    widths = [1.5, *[1] * len(outcome.panels)]
    height = 2.2 + 0.42 * max(len(outcome.findings), 4)
    figure = Figure(figsize=(3.1 * sum(widths), height), layout="constrained", dpi=120)
    bars, *squares = figure.subplots(1, len(widths), width_ratios=widths)
    _draw_findings(bars, outcome.findings)
    for axis, panel in zip(squares, outcome.panels, strict=True):
        _draw_panel(axis, panel)
    figure.suptitle(f"{outcome.name}, epsilon {outcome.epsilon:g}")
    words = "A cell is a person, dark if the intruder says that this one came."
    figure.supxlabel(words, fontsize=9)
    figure.savefig(path)


def _draw_findings(axis: Axes, findings: tuple[Finding, ...]) -> None:
    """Draw a bar for each number, and a mark at its bound: the promise, and the slack."""
    places = np.arange(len(findings))
    colors = [_color(one.kind) for one in findings]
    axis.barh(places, [one.measured for one in findings], 0.6, color=colors, alpha=0.85)
    rows = [
        (row, one.bound, one.limit)
        for row, one in enumerate(findings)
        if one.bound is not None and one.limit is not None
    ]
    marks, bounds, limits = (np.array(column) for column in zip(*rows, strict=True))
    slack = np.array([np.zeros(len(rows)), limits - bounds])
    label = "the most that is promised,\nand the slack of this run"
    axis.errorbar(bounds, marks, xerr=slack, fmt="|", color=_BOUND, ms=16, capsize=3, label=label)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), frameon=False, fontsize=8)
    axis.set_yticks(places, [f"{one.target}\n{one.figure}" for one in findings], fontsize=8)
    axis.set(xlim=(0, 1.02), ylim=(len(findings) - 0.4, -0.6), title="what they get")
    axis.spines[["right", "top"]].set_visible(False)
    axis.tick_params(axis="y", length=0)


def _draw_panel(axis: Axes, panel: Panel) -> None:
    """Draw equally many who came and who did not, side by side: all guesses, or a part."""
    came, said = panel.guesses.came, panel.guesses.said
    cells = side_by_side(said[came], said[~came])
    draw_presence(axis, cells, panel.title, ("came", "did not come"))
    axis.title.set_color(_color(panel.kind))


def _color(kind: str) -> str:
    return _INK if kind == PRODUCT else _FALLEN
