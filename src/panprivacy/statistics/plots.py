"""Plots of answers, for notebooks; Matplotlib is the extra `plot`."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import shown
from panprivacy.statistics.notes import names_by_note

_INK = "#1b3a57"
_BAR = 0.4
"""Height of a bar in inches."""
_WIDTH = 7.0
_LINE = 68
"""Characters in a line below the plot."""


def plot(named: Mapping[Any, Any], of: int, promise: str | None, ax: Any) -> Any:
    """Draw answers as bars with their intervals.

    Args:
        named: answers by name; None for one that is lost.
        of: the number of answers that there are; some may be left out.
        promise: the guarantee in words; None for the loss of the release alone.
        ax: Matplotlib axes to draw on; None for a new figure.

    Returns:
        The axes; an array of them if the answers have several units.

    Raises:
        PlanError: Matplotlib is missing, no answer can be drawn, or `ax` is for one unit only.
    """
    check_matplotlib("plot")
    found = {name: one for name, one in named.items() if one is not None}
    units = list(dict.fromkeys(one.unit for one in found.values()))
    if not units:
        message = "all answers are lost: there is nothing to plot"
        raise PlanError(message)
    if ax is not None and len(units) > 1:
        message = f"ax= is for answers of one unit, and these have {' and '.join(units)}: choose "
        message += "some, such as answers.where(statistic=...)"
        raise PlanError(message)
    parts = [[(n, one) for n, one in found.items() if one.unit == unit] for unit in units]
    axes = _new_axes([len(part) for part in parts]) if ax is None else [ax]
    names = _labels(list(found))
    for axis, part in zip(axes, parts, strict=True):
        _draw(axis, [names[name] for name, _ in part], [one for _, one in part])
    lost = len(named) - len(found)
    _title(axes[0], list(found.values()), list(found), of, lost)
    _caption(axes[-1], found, names, promise)
    return axes if len(units) > 1 else axes[0]


def check_matplotlib(caller: str) -> None:
    """Check that Matplotlib is there, without importing it, which is slow.

    Args:
        caller: what draws, for the error message.

    Raises:
        PlanError: it is not there.
    """
    if find_spec("matplotlib") is None:
        message = f"{caller} needs Matplotlib: pip install 'panprivacy[plot]'"
        raise PlanError(message)


def _new_axes(bars: Sequence[int]) -> Any:
    """Return axes below each other, of a figure that is high enough for so many bars on each."""
    from matplotlib import pyplot as plt  # noqa: PLC0415 - an extra, and slow to import

    height = _BAR * (sum(bars) + 4) + 0.5 * len(bars)
    _, axes = plt.subplots(
        len(bars), 1, squeeze=False, figsize=(_WIDTH, height), layout="constrained",
        height_ratios=[count + 1 for count in bars],
    )  # fmt: skip
    return axes[:, 0]


def _draw(axis: Any, labels: Sequence[str], answers: Sequence[Any]) -> None:
    """Draw a bar for each answer of one unit, the first one at the top."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - an extra, and slow to import

    places = range(len(answers))
    values = [one.value for one in answers]
    ends = [one.high if math.isfinite(one.high) else one.value for one in answers]
    reach = [
        [one.value - one.low for one in answers],
        [end - value for end, value in zip(ends, values, strict=True)],
    ]
    axis.barh(places, values, height=0.6, color=_INK, alpha=0.25)
    axis.errorbar(values, places, xerr=reach, fmt="o", ms=4, color=_INK, capsize=4)
    for place, one, end in zip(places, answers, ends, strict=True):
        axis.annotate(
            _numbers(one), (max(end, 0), place), (8, 0), textcoords="offset points", va="center",
            fontsize=8, annotation_clip=False,
        )  # fmt: skip
    least, most = min(0, *(one.low for one in answers)), max(0, *ends)
    axis.set_xlim(least, most + 0.45 * (most - least) or 1)
    axis.set_yticks(places, labels)
    axis.set_ylim(len(answers) - 0.4, -0.6)
    axis.set_xlabel(answers[0].unit)
    axis.xaxis.set_major_formatter(lambda x, _: f"{x:,.10g}")
    axis.xaxis.set_major_locator(MaxNLocator(6))
    axis.spines[["right", "top"]].set_visible(False)


def _numbers(one: Any) -> str:
    value, low, high = one.shown()
    return f"{value}  ({low} to {high})" if math.isfinite(one.high) else f"{value}  ({low} or more)"


def _labels(names: Sequence[Any]) -> dict[Any, str]:
    """Return the shortest label of each name that tells it from the others."""
    statistics, questions = {one.statistic for one in names}, {str(one) for one in names}
    found = {}
    for one in names:
        asked = str(one) if one.group is None or len(questions) > 1 else ""
        of = one.statistic if len(statistics) > 1 and one.statistic != asked else ""
        group = "" if one.group is None else str(one.group)
        found[one] = textwrap.fill(
            ", ".join(filter(None, (of, asked, group))) or "answer", 28, break_on_hyphens=False
        )
    return found


def _title(axis: Any, answers: Sequence[Any], names: Sequence[Any], of: int, lost: int) -> None:
    statistics = ", ".join(dict.fromkeys(str(one.statistic or "answer") for one in names))
    levels = sorted({one.confidence for one in answers})
    title = f"{statistics}, with {' and '.join(f'{100 * one:g}' for one in levels)} % intervals"
    if of > len(answers) + lost:
        title += f"\n(the {len(answers)} nearest to 0 of {of:,})"
    if lost:
        title += f"\n({lost:,} lost)"
    axis.set_title(title, loc="left", fontweight="bold", fontsize=11)


def _caption(
    axis: Any, found: Mapping[Any, Any], names: Mapping[Any, str], promise: str | None
) -> None:
    """Write below the axes what the answers cost, and what to beware of."""
    if promise is None:
        most = shown(Fraction(max(one.epsilon for one in found.values())), 3)
        promise = f"Privacy loss of the release: epsilon {most} at most, on top of the state's"
    lines = [f"{promise}."]
    for note, noted in names_by_note(found).items():
        labels = ", ".join(names[name].replace("\n", " ") for name in noted)
        lines.append(f"Note on {labels}: {note}.")
    text = "\n".join(textwrap.fill(line, _LINE) for line in lines)
    axis.set_xlabel(f"{axis.get_xlabel()}\n\n")
    axis.annotate(
        text, (0, 0), (0, -42), xycoords="axes fraction", textcoords="offset points", va="top",
        fontsize=8,
    )  # fmt: skip
