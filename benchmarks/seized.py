"""Draws the picture of the README: an ordinary program that is seized, and ours.

python -m benchmarks.seized    writes docs/seized.png

Both programs count the same made-up people. Whoever seized them looks everybody up who may have
come: `panprivacy attack dictionary`.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from panprivacy.audit.attacks import ATTACKS
from panprivacy.intake.programs.pictures import draw_presence, side_by_side

PICTURE = Path(__file__).parents[1] / "docs/seized.png"
TITLES = {"salted hashes": "hashes with a daily salt", "DistinctCount": "panprivacy, epsilon 1"}


def draw(path):
    """The squares of both programs; a dark cell is a person whom the intruder names."""
    panels = {panel.title.partition(",")[0]: panel for panel in ATTACKS["dictionary"](1).panels}
    figure = Figure(figsize=(7, 3.7), layout="constrained", dpi=100)
    for axis, (name, title) in zip(figure.subplots(1, 2), TITLES.items(), strict=True):
        came, said = panels[name].guesses.came, panels[name].guesses.said
        cells = side_by_side(said[came], said[~came])
        draw_presence(axis, cells, title, ("came", "did not come"))
    figure.supxlabel(
        "A cell is a person, dark if the intruder says that this one came.", fontsize=9
    )
    figure.savefig(path)


if __name__ == "__main__":
    draw(PICTURE)
