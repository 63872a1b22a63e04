"""Plots of answers, for notebooks; Matplotlib is the extra `plot`."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

from panprivacy.errors import PlanError, install
from panprivacy.privacy.guarantee import format_rounded_up
from panprivacy.statistics.notes import names_by_note, some_of

_INK = "#1b3a57"
_BAR = 0.4
"""Height of a bar in inches."""
_WIDTH = 7.0
_SMALL = 8
"""Size of the text below the plot, in points."""
_LINE = 1.25 * _SMALL
"""Height of a line of it."""
_NARROWEST = 24
"""Characters in a line of it at least."""
_BEYOND = 0.12
"""How far the arrow of an interval without an end goes beyond all ends, of the whole width."""


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
    _caption(axes[-1], found, names, promise, new=ax is None)
    return axes if len(units) > 1 else axes[0]


def check_matplotlib(caller: str) -> None:
    """Check that Matplotlib is there, without importing it, which is slow.

    Args:
        caller: what draws, for the error message.

    Raises:
        PlanError: it is not there.
    """
    if find_spec("matplotlib") is None:
        message = f"{caller} needs Matplotlib: {install('plot')}"
        raise PlanError(message)


def _new_axes(bars: Sequence[int]) -> Any:
    """Return axes below each other, of a figure that is high enough for so many bars on each."""
    from matplotlib import pyplot as plt  # noqa: PLC0415 - an extra, and slow to import

    height = _BAR * (sum(bars) + 3) + 0.5 * len(bars)
    _, axes = plt.subplots(
        len(bars), 1, squeeze=False, figsize=(_WIDTH, height), layout="constrained",
        height_ratios=[count + 1 for count in bars],
    )  # fmt: skip
    return axes[:, 0]


def _draw(axis: Any, labels: Sequence[str], answers: Sequence[Any]) -> None:
    """Draw a bar for each answer of one unit, the first one at the top."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - an extra, and slow to import

    places, values = range(len(answers)), [one.value for one in answers]
    axis.barh(places, values, height=0.6, color=_INK, alpha=0.25)
    least, most, highs = _draw_intervals(axis, answers)
    axis.plot(values, places, "o", ms=4, color=_INK)
    for place, one, high in zip(places, answers, highs, strict=True):
        axis.annotate(
            _numbers(one), (max(high, 0), place), (8, 0), textcoords="offset points", va="center",
            fontsize=8, annotation_clip=False,
        )  # fmt: skip
    axis.set_xlim(least, most + 0.45 * (most - least))
    axis.set_yticks(places, labels)
    axis.set_ylim(len(answers) - 0.4, -0.6)
    axis.set_xlabel(answers[0].unit)
    axis.xaxis.set_major_formatter(lambda x, _: f"{x:,.10g}")
    axis.xaxis.set_major_locator(MaxNLocator(6))
    axis.spines[["right", "top"]].set_visible(False)


def _draw_intervals(axis: Any, answers: Sequence[Any]) -> tuple[float, float, list[float]]:
    """Draw a line for each interval: with a cap at an end, and an arrow where it has no end.

    Returns:
        The ends of the axis, and the upper end of each line.
    """
    ends = [end for one in answers for end in (one.low, one.value, one.high)]
    finite = [0.0, *filter(math.isfinite, ends)]
    least, most = min(finite), max(finite)
    beyond = _BEYOND * (most - least) or 1.0
    endless = [not math.isfinite(end) for end in ends]
    left = least - beyond * any(endless[0::3])
    right = most + beyond * any(endless[2::3])
    lows = [one.low if math.isfinite(one.low) else left for one in answers]
    highs = [one.high if math.isfinite(one.high) else right for one in answers]
    places = range(len(answers))
    axis.hlines(places, lows, highs, color=_INK, linewidth=1.5)
    for line, no_end, arrow in ((lows, endless[0::3], "<"), (highs, endless[2::3], ">")):
        for place, end, is_open in zip(places, line, no_end, strict=True):
            mark = arrow if is_open else "|"
            axis.plot(end, place, mark, ms=7, mew=0 if is_open else 1.5, color=_INK, clip_on=False)
    return left, right if right > left else left + 1.0, highs


def _numbers(one: Any) -> str:
    value, low, high = one.formatted()
    if math.isfinite(one.high):
        return (
            f"{value}  ({low} to {high})"
            if math.isfinite(one.low)
            else f"{value}  ({high} or less)"
        )
    return (
        f"{value}  ({low} or more)"
        if math.isfinite(one.low)
        else f"{value}  (it may be any number)"
    )


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
        title += f"\n({nearest(names, of)})"
    if lost:
        title += f"\n({lost:,} lost)"
    axis.set_title(title, loc="left", fontweight="bold", fontsize=11)


def nearest(names: Sequence[Any], of: int) -> str:
    """Return which answers of a histogram are drawn, where there are more.

    Args:
        names: the names of those that are drawn.
        of: how many there are.
    """
    others = [str(one) for one in names if one.question != "exactly"]
    if len(others) == len(names):
        return f"the first {len(names):,} of {of:,} answers"
    states = f"the {len(names) - len(others)} states nearest to 0"
    return f"{' and '.join([states, *others])}, of {of:,} answers"


def _caption(
    axis: Any, found: Mapping[Any, Any], names: Mapping[Any, str], promise: str | None, *, new: bool
) -> None:
    """Write below the axes what the answers cost, and what to beware of; as wide as they are."""
    if promise is None:
        most = format_rounded_up(Fraction(max(one.epsilon for one in found.values())), 3)
        promise = f"Privacy loss of the release: epsilon {most} at most, on top of the state's"
    lines = [f"{promise}."]
    for note, noted in names_by_note(found).items():
        labels = some_of([names[name].replace("\n", " ") for name in noted])
        lines.append(f"Note on {labels}: {note}.")
    axis.set_xlabel(f"{axis.get_xlabel()}\n\n")
    figure = axis.figure.canvas.figure
    figure.draw_without_rendering()  # lays out, so that the width of the axes is known
    width = _characters(axis.get_window_extent().width * 72 / figure.dpi, max(lines, key=len))
    text = "\n".join(textwrap.fill(line, width) for line in lines)
    if new:
        figure.set_figheight(figure.get_figheight() + (text.count("\n") + 1) * _LINE / 72)
    axis.annotate(
        text, (0, 0), (0, -42), xycoords="axes fraction", textcoords="offset points", va="top",
        fontsize=_SMALL,
    )  # fmt: skip


def _characters(points: float, line: str) -> int:
    """Return how many characters of such a line fit into a width."""
    from matplotlib.textpath import TextPath  # noqa: PLC0415 - an extra, and slow to import

    each = TextPath((0, 0), line, size=_SMALL).get_extents().width / len(line)
    return max(int(0.95 * points / each), _NARROWEST)
