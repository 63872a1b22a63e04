"""Pictures: answers with their intervals, and the view of an intruder.

A picture of the state would be an intrusion. So the picture shows a second, temporary state: of the
same plan, with a synthetic population of the size of the released answer. Its distribution is a
function of the release, so drawing it has no privacy loss.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from panprivacy.intake.programs.values_picture import draw_values
from panprivacy.privacy.coins import SystemCoins
from panprivacy.privacy.guarantee import PrivacyLoss, format_rounded_up
from panprivacy.statistics.abilities import Drawable, unit_of_answers
from panprivacy.statistics.drawing import Drawing, most_made_up
from panprivacy.statistics.histogram.plan import HistogramPlan
from panprivacy.statistics.notes import format_number
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.plots import nearest
from panprivacy.statistics.release import Answers, Name, Release
from panprivacy.statistics.statistic import Statistic
from panprivacy.tables.cells.additive import AdditiveCells, PairedCells
from panprivacy.tables.ids import read_ids

_SIDE = 64
_MOST_BARS = 21
_MOST_LEVEL = 7
"""Maximum number of bars with horizontal numbers; those of more are turned, to avoid overlap."""
_INK = "#1b3a57"
_TRUTH = "#c8553d"
_dates: Any = ConciseDateFormatter
_ORDINARY = "an ordinary program, seized:\na cell tells what a user did"
_SUMS = "an ordinary sketch, seized:\na cell adds up many users"
_WIDTH = 96
"""Characters in a line of a heading."""


class Planned(Protocol):
    """Statistic for a picture, which depends only on its plan and on answers."""

    @property
    def plan(self) -> Any:
        """The plan of a statistic."""


def plot_answers(
    path: Path,
    statistics: Mapping[str, Planned],
    answers: Answers,
    truths: Mapping[Name, float] | None = None,
) -> None:
    """Draw each statistic: its answer, an ordinary sketch, and a state similar to the real one.

    Args:
        path: PNG file to write.
        statistics: the statistics, by label.
        answers: the released answers.
        truths: the exact answers, if they are public.
    """
    figure = Figure(figsize=(11, 4.2 * len(statistics)), layout="constrained", dpi=120)
    rows = figure.subfigures(len(statistics), 1, squeeze=False)[:, 0]
    for part, (label, statistic) in zip(rows, statistics.items(), strict=True):
        plan, row = statistic.plan, part.subplots(1, 3)
        asked = f"{label}: {plan.question} (epsilon {format_rounded_up(plan.request.epsilon)})"
        part.suptitle(textwrap.fill(asked, _WIDTH), x=0.01, ha="left", fontweight="bold")
        own = answers.where(statistic=label)
        _draw_answers(row[0], plan, own, truths or {})
        draw_states(row[1], row[2], plan, own)
    figure.supxlabel(
        "Both states are throw-away ones, filled with made-up users, as many as the answer says.",
        fontsize=9,
    )
    figure.savefig(path)


def plot_steps(
    path: Path,
    statistics: Mapping[str, Statistic[Any, Any]],
    steps: Sequence[tuple[datetime, Answers, Mapping[Name, float]]],
) -> None:
    """Draw each statistic over time, with its interval; a histogram as it is at the end.

    Args:
        path: PNG file to write.
        statistics: by label; their states are not read.
        steps: for each, its end, the released answers, and the exact answers if they are public.
    """
    figure = Figure(figsize=(11, 4.2 * len(statistics)), layout="constrained", dpi=120)
    of_values = [isinstance(one.plan, HistogramPlan) for one in statistics.values()]
    parts = figure.subplots(len(statistics), 1, squeeze=False, sharex=not any(of_values))[:, 0]
    for axis, (label, statistic) in zip(parts, statistics.items(), strict=True):
        plan = statistic.plan
        if isinstance(plan, HistogramPlan):
            released = dict(steps[-1][1].where(statistic=label).items())
            draw_values(axis, released, is_log=plan.edges.is_log)
        else:
            _draw_steps(axis, label, plan, steps)
        asked = f"{label}: {plan.question} (epsilon {format_rounded_up(plan.request.epsilon)})"
        axis.set_title(textwrap.fill(asked, _WIDTH), loc="left", fontweight="bold")
    if not of_values[-1]:
        parts[-1].set_xlabel("end of the step, UTC", loc="left")
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    path.write_bytes(drawn.getvalue())  # at once: the file may be in use


def _draw_steps(
    axis: Axes,
    label: str,
    plan: Plan,
    steps: Sequence[tuple[datetime, Answers, Mapping[Name, float]]],
) -> None:
    """Draw the answer of each step over time."""
    told = [
        (moment, one, truths.get(name))
        for moment, answers, truths in steps
        for name, one in answers.where(statistic=label).items()
        if one is not None
    ]
    if len(told) == 1:  # a line of one point is an empty box
        ((moment, one, truth),) = told
        _draw_release(axis, one, truth)
        axis.set_xticks([0], [f"{moment:%Y-%m-%d %H:%M:%S}"])
        axis.set(xlim=(-2, 2))
    else:
        _draw_line(axis, told)
    ends = [end for _, one, _ in told for end in (one.low, one.value, one.high)]
    ends = [0, *filter(math.isfinite, ends)]
    axis.set(ylabel=plan.unit, ylim=(min(ends), max(ends) * 1.08 or None))
    last = told[-1][1].value
    axis.annotate(
        format_number(last, plan.unit), (told[-1][0] if len(told) > 1 else 0, last), (8, 8),
        textcoords="offset points", fontsize=12, color=_INK,
    )  # fmt: skip
    _finish(axis, 0.08)


def _draw_line(axis: Axes, told: Sequence[tuple[datetime, Release, float | None]]) -> None:
    """Draw answers over time, with their intervals, and the truth if it is public."""
    moments, releases, truths = zip(*told, strict=True)
    most = max(filter(math.isfinite, (end for one in releases for end in (one.value, one.high))))
    low = [one.low for one in releases]
    high = [one.high if math.isfinite(one.high) else 2 * most + 1 for one in releases]
    marker = "o" if len(told) < _MOST_BARS else None
    axis.fill_between(moments, low, high, color=_INK, alpha=0.25, linewidth=0)
    axis.vlines(moments[-1], low[-1], high[-1], color=_INK)  # an estimate may be below it
    values = [one.value for one in releases]
    axis.plot(moments, values, color=_INK, marker=marker, label=_interval(releases[-1]))
    if None not in truths:
        axis.plot(moments, truths, color=_TRUTH, linestyle="--", label="truth")
    axis.xaxis.set_major_formatter(_dates(axis.xaxis.get_major_locator()))


def draw_states(ordinary: Axes, private: Axes, plan: Plan, answers: Answers) -> None:
    """Draw a temporary state of a plan beside the table of an ordinary program.

    Args:
        ordinary: axes of the exact table.
        private: axes of the state.
        plan: plan of the statistic; no state of it is read.
        answers: the released answers, which determine the synthetic population.
    """
    odds = PrivacyLoss(min(plan.split.budget.state, Fraction(99))).odds or Fraction(0)
    seized = (
        f"this program, seized:\na cell changes odds {format_rounded_up(odds, 3)} times at most"
    )
    words = ("is there", "is not") if plan.needs_deltas else ("came", "did not come")
    if plan.table.is_presence:
        exact, noisy = throw_away_cells(plan, answers)
        title = f"an ordinary program, seized:\na cell tells who {words[0]}"
        draw_presence(ordinary, exact, title, words)
        draw_presence(private, noisy, seized, words)
        return
    halves, cells = _counters(plan, answers)
    title = _SUMS if isinstance(plan.table, AdditiveCells) else _ORDINARY
    _draw_counters(ordinary, cells[0], title, words if halves else None)
    _draw_counters(private, cells[1], seized, words if halves else None)


def _counters(plan: Plan, answers: Answers) -> tuple[bool, tuple[NDArray[np.int64], ...]]:
    """Return counters of both tables, and whether those of users that came are on the left.

    They are in no order where a cell adds up many users, or no users are made up.
    """
    ordinary, private = _throw_away(plan, answers)
    came = np.flatnonzero(ordinary)
    order = side_by_side(came, np.flatnonzero(ordinary == 0))
    if order.size and not isinstance(plan.table, AdditiveCells):
        return True, (ordinary[order], private[order])
    return False, (_spread(ordinary), _spread(private))


def throw_away_cells(plan: Plan, answers: Answers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return cells of an ordinary table and of a fresh state, both with one synthetic population.

    Args:
        plan: plan of the statistic; no state of it is read.
        answers: the released answers, which determine the synthetic population.

    Returns:
        The same cells of both, as squares. If cells only show presence, cells of users that came
        are on the left, and the same number of other cells on the right, from the level that is
        nearest to half full.
    """
    ordinary, private = _throw_away(plan, answers)
    if plan.table.is_presence:
        runs = ordinary.reshape(_drawing(plan).groups, -1)
        run = int(np.argmin(np.abs(runs.mean(axis=1) - 0.5)))
        order = side_by_side(np.flatnonzero(runs[run]), np.flatnonzero(runs[run] == 0))
        return runs[run][order], private.reshape(runs.shape)[run][order]
    return _spread(ordinary), _spread(private)


def _drawing(plan: Plan) -> Drawing:
    """Return the picture of a plan; nobody is in that of a plan that tells of no user."""
    return plan.drawing if isinstance(plan, Drawable) else Drawing()


def _throw_away(plan: Plan, answers: Answers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all cells of both; of two tables in one, those of the first, which has users."""
    coins, drawing = SystemCoins(), _drawing(plan)
    states = drawing.made_up(answers.answers())
    users = _made_up_users(plan.numbered, len(states), coins)
    slots = list(plan.address(coins.key(plan.key_bytes)).slots(read_ids(users)))
    table = plan.table.initial(coins)
    plan.table.update(table, slots, None if plan.table.is_presence else states, 0, coins)
    private = drawing.values(plan.table.picture_values(table))
    ordinary = drawing.values(plan.table.without_noise(slots, states, coins))
    if isinstance(plan.table, PairedCells):
        return plan.table.half(ordinary, 0), plan.table.half(private, 0)
    return ordinary, private


def _spread(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return cells from all over a table, as a square."""
    side = min(_SIDE, math.isqrt(len(cells)))
    places = np.linspace(0, len(cells) - 1, side * side).astype(np.int64)
    return cells[places].reshape(side, side)


def _made_up_users(universe: int | None, users: int, coins: SystemCoins) -> NDArray[np.int64]:
    """Return distinct ids; those of a universe are drawn, as its cells are drawn in their order."""
    if universe is None:
        return np.arange(users)
    possible = most_made_up(universe)
    grid = np.linspace(0, universe - 1, possible).astype(np.int64)
    drawn = np.argsort(np.frombuffer(coins.key(8 * possible), np.uint64))
    return grid[drawn[:users]]


def side_by_side(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return equal numbers of both kinds, as a square: all cells of the smaller kind, or a part."""
    half = min(len(left), len(right), _SIDE * _SIDE // 2)
    width = max(math.isqrt(half // 2), 1)
    shown = half // width * width
    return np.hstack([side[:shown].reshape(-1, width) for side in (left, right)])


def _draw_answers(axis: Axes, plan: Plan, answers: Answers, truths: Mapping[Name, float]) -> None:
    """Draw one answer on a line, or several as bars."""
    shown = _drawable(answers)
    if len(answers) == 1:
        ((name, one),) = shown.items()
        _draw_answer(axis, plan, one, truths.get(name))
    elif shown:
        _draw_bars(axis, plan, shown, truths, len(answers))


def _draw_release(axis: Axes, release: Release, truth: float | None) -> None:
    """Draw a bar with its interval."""
    axis.bar([0], [release.value], width=0.5, color=_INK, alpha=0.25)
    _draw_interval(axis, 0, release, 8, _interval(release))
    if truth is not None:
        axis.hlines(truth, -0.45, 0.45, color=_TRUTH, linestyle="--", label="truth")


def _draw_interval(
    axis: Axes, place: float, release: Release, cap: float, label: str | None = None
) -> float:
    """Draw an interval, with an arrow where it has no end; return where its line ends."""
    below = release.value - release.low
    endless = math.isinf(release.high)
    above = max(below, release.value / 5, 1) if endless else release.high - release.value
    end = release.value + above
    size = 6 if cap > 4 else 4
    if endless:
        axis.vlines(place, release.low, end, color=_INK)
        axis.plot(place, release.low, "_", ms=2 * cap, color=_INK)
        axis.plot(place, end, "^", ms=8, color=_INK)
        axis.plot(place, release.value, "o", ms=size, color=_INK, label=label)
    else:
        axis.errorbar(
            place, release.value, yerr=[[below], [above]], fmt="o", ms=size, color=_INK,
            capsize=cap, label=label,
        )  # fmt: skip
    return end


def _draw_answer(axis: Axes, plan: Plan, release: Release, truth: float | None) -> None:
    _draw_release(axis, release, truth)
    if release.note is not None:
        axis.text(
            0.5, 0.03, textwrap.fill(release.note, 48), transform=axis.transAxes, ha="center",
            fontsize=8, bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85},
        )  # fmt: skip
    heading, low, _ = release.formatted()
    if math.isinf(release.high):
        heading += f" ({low} or more)"
    axis.set_title(heading, fontsize=16, color=_INK)
    axis.set(xticks=[], xlim=(-0.7, 0.7), ylim=(0, None))
    axis.set_ylabel(textwrap.fill(unit_of_answers(plan, release.name.question), 40))
    _finish(axis, 0.03)


def _draw_bars(
    axis: Axes,
    plan: Plan,
    shown: Mapping[Name, Release],
    truths: Mapping[Name, float],
    answered: int,
) -> None:
    """Draw a bar for each answer, with its interval."""
    places = range(len(shown))
    first = next(iter(shown.values()))
    axis.bar(places, [one.value for one in shown.values()], color=_INK, alpha=0.25)
    ends = [
        _draw_interval(axis, place, one, 3, None if place else _interval(first))
        for place, one in zip(places, shown.values(), strict=True)
    ]
    known = [place for place, name in zip(places, shown, strict=True) if name in truths]
    if known:
        exact = [truths[name] for name in shown if name in truths]
        size = 16 if len(places) < _MOST_BARS // 2 else 8
        axis.plot(
            known, exact, "_", color=_TRUTH, ms=size, mew=2, label="truth", clip_on=False, zorder=5
        )
    step = max(len(places) // 10, 1)
    axis.set_xticks(places[::step], [_short(name) for name in shown][::step])
    heading = plan.unit if first.unit == "users" else "how often users came in all"
    if {name.question for name in shown} <= {"quantile", "mean"}:
        heading = "shares of the users that came, at most, and their mean"
    if answered > len(shown):
        several = all(name.question == "exactly" for name in list(shown)[:2])
        drawn = f"{len(shown):,} of {answered:,} answers: those in users"
        heading += f"\n({nearest(list(shown), answered) if several else drawn})"
    turned = 90 if len(places) > _MOST_LEVEL else 0
    for place, one, end in zip(places, shown.values(), ends, strict=True):
        more = " or more" if math.isinf(one.high) else ""
        axis.annotate(
            format_number(one.value, one.unit) + more, (place, end), (0, 3),
            textcoords="offset points", ha="center", fontsize=7, rotation=turned,
        )  # fmt: skip
    axis.set(xlabel=heading, ylabel=first.unit, ylim=(0, None))
    axis.margins(x=0.5 / len(places), y=0.15)
    _finish(axis, 0.18 + 0.06 * heading.count("\n"))


def _interval(release: Release) -> str:
    return f"answer, {100 * release.confidence:g} % interval"


def _finish(axis: Axes, below: float) -> None:
    """Format numbers with commas, and put the legend this far below."""
    axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.10g}"))
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -below), ncols=2, frameon=False)
    axis.spines[["right", "top"]].set_visible(False)


def _drawable(answers: Answers) -> dict[Name, Release]:
    """Return the answers to draw that are not lost; those in users, if there are any."""
    found = {name: one for name, one in answers.answers(_MOST_BARS).items() if one is not None}
    users = {name: one for name, one in found.items() if one.unit == "users"}
    return dict(list((users or found).items())[:_MOST_BARS])


def _short(name: Name) -> str:
    """Return the label of an answer below its bar."""
    given = [number for _, number in name.arguments]
    if name.question == "between":
        return str(given[0]) if given[0] == given[1] else f"{given[0]} to {given[1]}"
    if name.question == "quantile":
        return f"{100 * given[0]:.4g} %"
    signs = {"exactly": "", "at_least": "≥ ", "distinct": "any", "mean": "mean"}
    sign = signs.get(name.question, "up to " if given else name.question)
    return sign + "**".join(map(str, given))


def _draw_counters(
    axis: Axes, cells: NDArray[np.int64], title: str, words: tuple[str, str] | None
) -> None:
    """Draw cells in shades; if there are negative values, with white at 0.

    Args:
        axis: the axes.
        cells: a table of cells.
        title: what they are.
        words: a word below each half; None if there are no halves.
    """
    most = max(int(np.abs(cells).max()), 1)
    low, colors = (-most, "RdBu") if cells.min() < 0 else (0, "Blues")
    image = axis.imshow(
        cells, cmap=colors, vmin=low, vmax=most, interpolation="nearest", aspect="auto"
    )
    bar = axis.figure.colorbar(image, ax=axis, shrink=0.8)
    bar.ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axis.set(title=title, xticks=[], yticks=[])
    if words is not None:
        _name_halves(axis, cells.shape[1], words)
    elif not cells.any():
        axis.text(0.5, 0.5, "no users to draw", ha="center", va="center", transform=axis.transAxes)


def _name_halves(axis: Axes, width: int, words: tuple[str, str]) -> None:
    """Draw a line between the halves, and write a word below each."""
    axis.axvline(width / 2 - 0.5, color=_TRUTH)
    axis.set_xticks([width / 4 - 0.5, width * 3 / 4 - 0.5], words)
    axis.tick_params(length=0)


def draw_presence(axis: Axes, cells: NDArray[Any], title: str, words: tuple[str, str]) -> None:
    """Draw cells of two kinds from `side_by_side`, with a word below each."""
    if cells.size:
        axis.imshow(cells, cmap="Greys", vmin=0, vmax=1.15, interpolation="nearest", aspect="auto")
        _name_halves(axis, cells.shape[1], words)
    else:
        axis.text(0.5, 0.5, "no users to draw", ha="center", va="center")
        axis.set_xticks([])
    axis.set(title=title, yticks=[])
    axis.tick_params(length=0)
