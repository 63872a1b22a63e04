"""Pictures: the answers with their intervals, and what an intruder finds.

A picture of the state would be an intrusion. So the state that is drawn is a second, throw-away
one: the same plan, fed with made-up ids, as many as the released answer says. Its law is that of
a function of the release, so drawing it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from panprivacy.coins import SystemCoins
from panprivacy.decoders import Name
from panprivacy.ids import read_ids
from panprivacy.planning import (
    AnyPlan,
    CroppedPlan,
    DensityPlan,
    DistinctPlan,
    HeavyPlan,
    IncidencePlan,
    NetDistinctPlan,
    ThresholdPlan,
)
from panprivacy.statistics import IncidenceRelease, Release

_SIDE = 64
_MOST_MADE_UP = 10_000_000
_MOST_BARS = 21
_SUMS = "cropped_sum", "cropped_moment"
_INK = "#1b3a57"
_TRUTH = "#c8553d"
_ORDINARY = "an ordinary program, seized:\na cell is a count"

BitsPlan = DensityPlan | DistinctPlan | NetDistinctPlan
BlockPlan = CroppedPlan | ThresholdPlan | HeavyPlan


def plot_answers(
    path: Path,
    plans: Mapping[str, AnyPlan],
    releases: Mapping[str, Release | IncidenceRelease],
    truths: Mapping[str, float] | None,
    *,
    deletions: bool = False,
) -> None:
    """Draw each statistic: its answer, an ordinary sketch, and a state such as the one kept.

    Args:
        path: PNG file to write.
        plans: of each statistic, by name.
        releases: the answer of each.
        truths: the exact answers by name, where they are public.
        deletions: whether users leave, which changes the words.
    """
    figure = Figure(figsize=(11, 3.9 * len(plans)), layout="constrained", dpi=120)
    axes = figure.subplots(len(plans), 3, squeeze=False)
    for row, (name, plan) in zip(axes, plans.items(), strict=True):
        release, truth = releases[name], (truths or {}).get(name)
        odds = math.exp(min(float(plan.split.budget.state), 99))
        seized = f"this program, seized:\na cell changes odds {odds:.2g} times at most"
        if isinstance(release, IncidenceRelease) and isinstance(plan, IncidencePlan):
            _draw_counts(row[0], release, truths or {}, deletions=deletions)
            counters = throw_away_counters(plan, release)
            ends = min(int(np.min(counters)), 0), max(int(np.max(counters)), 1)
            _draw_counters(row[1], counters[0], _ORDINARY, ends)
            _draw_counters(row[2], counters[1], seized, ends)
        elif isinstance(release, Release) and isinstance(plan, BlockPlan):
            _draw_answer(row[0], plan, release, truth)
            exact, noisy = throw_away_blocks(plan, release.value)
            _draw_counters(row[1], exact, _ORDINARY, (0, max(int(exact.max()), 1)))
            _draw_counters(row[2], noisy, seized, (0, int(noisy.max())))
        elif isinstance(release, Release) and isinstance(plan, BitsPlan):
            _draw_answer(row[0], plan, release, truth)
            ordinary, private = throw_away_cells(plan, release.value)
            words = ("is there", "is not there") if deletions else ("came", "did not come")
            title = f"an ordinary program, seized:\na cell tells who {words[0]}"
            _draw_cells(row[1], ordinary, title, words)
            _draw_cells(row[2], private, seized, words)
    figure.supxlabel(
        "Both states are throw-away ones, filled with made-up users, as many as the answer says.",
        fontsize=9,
    )
    figure.savefig(path)


def throw_away_cells(plan: BitsPlan, value: float) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Cells of an ordinary bitmap and of a fresh state, both fed with the same made-up ids.

    Args:
        plan: of the statistic; its own state is not read.
        value: the released answer, which says how many ids to make up.

    Returns:
        The same cells of both, 0 or 1, as squares: on the left cells of users that came, on the
        right cells of nobody that came, from the level that is nearest to half full.
    """
    coins = SystemCoins()
    slots = list(plan.address(coins.key(plan.key_bytes)).slots(read_ids(_made_up(plan, value))))
    private = plan.table.born(coins)
    plan.table.update(private, slots, None, 0, coins)
    ordinary = np.zeros(plan.cells, np.uint8)
    factors = plan.chosen.modulus - 1 if isinstance(plan, NetDistinctPlan) else 1
    for piece in slots:
        ordinary[piece[piece >= 0] // factors] = 1
    bits = plan.table.ones(private)
    levels = ordinary.reshape(plan.groups, -1)
    level = int(np.argmin(np.abs(levels.mean(axis=1) - 0.5)))
    order = _came_and_not(levels[level])
    return levels[level][order], bits.reshape(plan.groups, -1)[level][order]


def throw_away_counters(
    plan: IncidencePlan, release: IncidenceRelease
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counters without noise and those of a fresh state, fed with the same made-up users.

    Args:
        plan: of the statistic; its own state is not read.
        release: the released answers, which say how many users to make up in each state.

    Returns:
        The same cells of both, as squares; with signed states a value above half of the modulus
        is one below 0.
    """
    ordinary, private = _filled(plan, plan.universe, _made_up_states(plan, release))
    values = plan.states.values()
    return values[ordinary], values[private]


def throw_away_blocks(plan: BlockPlan, value: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same for a statistic on blocks: made-up users that count in full, and no others.

    Args:
        plan: of the statistic; its own state is not read.
        value: the released answer.
    """
    if isinstance(plan, HeavyPlan):
        return _filled(plan, None, np.full(round(value), plan.high))
    each, state = (plan.tau, plan.tau) if isinstance(plan, CroppedPlan) else (1, plan.high)
    users = min(round(value / each), plan.universe or _MOST_MADE_UP, _MOST_MADE_UP)
    return _filled(plan, plan.universe, np.full(users, state))


def _filled(
    plan: IncidencePlan | BlockPlan, universe: int | None, deltas: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Some counters without noise and the same with it, both fed with the same made-up users."""
    coins = SystemCoins()
    users = _made_up_users(universe, len(deltas), coins)
    slots = list(plan.address(coins.key(plan.key_bytes)).slots(read_ids(users)))
    private = plan.table.born(coins)
    plan.table.update(private, slots, deltas, 0, coins)
    ordinary = np.zeros(plan.cells, private.dtype)
    plan.table.update(ordinary, slots, deltas, 0, coins)
    side = min(_SIDE, math.isqrt(plan.cells))
    shown = np.linspace(0, plan.cells - 1, side * side).astype(np.int64).reshape(side, side)
    return ordinary[shown].astype(np.int64), private[shown].astype(np.int64)


def _made_up_states(plan: IncidencePlan, release: IncidenceRelease) -> NDArray[np.int64]:
    """States of made-up users, as many of each as the answer says."""
    users = _users_by_state(plan, release)
    counts = np.array(list(users.values()))
    most = min(plan.universe or _MOST_MADE_UP, _MOST_MADE_UP)
    if counts.sum() > most:
        counts *= most / counts.sum()
    return np.repeat(np.array(list(users), np.int64), counts.astype(np.int64))


def _users_by_state(plan: IncidencePlan, release: IncidenceRelease) -> dict[int, float]:
    """How many users to make up in each state other than 0: where the answer is clearly not 0."""
    asked: dict[str, dict[int, Release]] = {
        "exactly": {}, "at_least": {}, "cropped_sum": {}, "distinct": {}
    }  # fmt: skip
    for name, answer in release.answers().items():
        if name.kind != "cropped_moment":  # tells little of how many users there are
            asked[name.kind][name.argument] = answer
    users = {state: one.value for state, one in asked["exactly"].items() if state and _clear(one)}
    for least, answer in sorted(asked["at_least"].items(), reverse=True):
        more = answer.value - sum(count for state, count in users.items() if state >= least)
        free = (state for state in range(least, plan.bound + 1) if state not in users)
        if answer.low > 0 and more > 0:
            place = next(free, least)
            users[place] = users.get(place, 0.0) + more
    if not users and (asked["distinct"] or asked["cropped_sum"]):
        users[1] = min((asked["distinct"] or asked["cropped_sum"]).items())[1].value
    if not users and plan.universe is not None and 0 in asked["exactly"]:
        users[1] = plan.universe - asked["exactly"][0].value
    return users


def _clear(answer: Release) -> bool:
    """Whether an answer is above 0 by so much that hardly one of many states is so by chance."""
    return answer.value > 2 * (answer.value - answer.low)


def _made_up_users(universe: int | None, users: int, coins: SystemCoins) -> NDArray[np.int64]:
    """Different ids; those of a universe are drawn, because its cells are drawn in their order."""
    if universe is None:
        return np.arange(users)
    possible = min(universe, _MOST_MADE_UP)
    grid = np.linspace(0, universe - 1, possible).astype(np.int64)
    drawn = np.argsort(np.frombuffer(coins.key(8 * possible), np.uint64))
    return grid[drawn[:users]]


def _came_and_not(cells: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Positions of as many full as empty cells, side by side."""
    full, empty = np.flatnonzero(cells), np.flatnonzero(cells == 0)
    half = min(len(full), len(empty), _SIDE * _SIDE // 2)
    width = max(math.isqrt(half // 2), 1)
    shown = half // width * width
    return np.hstack([full[:shown].reshape(-1, width), empty[:shown].reshape(-1, width)])


def _made_up(plan: BitsPlan, value: float) -> NDArray[np.int64]:
    """As many different ids as the answer says, spread over the universe if there is one."""
    if not isinstance(plan, DensityPlan):
        return np.arange(min(round(value), _MOST_MADE_UP))
    users = min(round(value * plan.universe), _MOST_MADE_UP)
    return np.linspace(0, plan.universe - 1, users).astype(np.int64)


def _draw_answer(axis: Axes, plan: AnyPlan, release: Release, truth: float | None) -> None:
    below, above = release.value - release.low, release.high - release.value
    reach = [[below], [above if math.isfinite(above) else below]]
    label = f"answer, {100 * release.confidence:g} % interval"
    axis.errorbar([release.value], [0], xerr=reach, fmt="o", color=_INK, capsize=5, label=label)
    if truth is not None:
        axis.axvline(truth, color=_TRUTH, linestyle="--", label="truth")
    axis.set_title(_asked(plan))
    axis.set(yticks=[], ylim=(-1, 1))
    axis.xaxis.set_major_locator(MaxNLocator(4))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}"))
    axis.margins(x=0.35)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2, frameon=False)
    axis.spines[["left", "right", "top"]].set_visible(False)


def _asked(plan: AnyPlan) -> str:
    """What a single answer is, in the words of a newcomer."""
    if isinstance(plan, CroppedPlan):
        return f"sum, at most {plan.tau:,} of each user"
    if isinstance(plan, ThresholdPlan):
        return f"users with {plan.least:,} or more\n(above {plan.low:,} in part)"
    if isinstance(plan, HeavyPlan):
        return f"users with 1/{plan.k:,}\nof the total or more"
    return "share of the universe" if isinstance(plan, DensityPlan) else "users"


def _draw_counts(
    axis: Axes, release: IncidenceRelease, truths: Mapping[str, float], *, deletions: bool
) -> None:
    """How many users are in each state, with intervals."""
    answers = _shown(release)
    places = np.arange(len(answers))
    values = np.array([one.value for one in answers.values()])
    low = values - [one.low for one in answers.values()]
    ends = np.array([one.high for one in answers.values()])
    high = np.where(np.isfinite(ends), ends - values, low)
    label = f"answer, {100 * release.confidence:g} % interval"
    axis.bar(places, values, color=_INK, alpha=0.25)
    axis.errorbar(places, values, yerr=[low, high], fmt=".", color=_INK, capsize=3, label=label)
    known = [place for place, name in zip(places, answers, strict=True) if str(name) in truths]
    if known:
        exact = [truths[str(name)] for name in answers if str(name) in truths]
        size = 16 if len(places) < _MOST_BARS // 2 else 8
        axis.plot(
            known, exact, "_", color=_TRUTH, ms=size, mew=2, label="truth", clip_on=False, zorder=5
        )
    step = max(len(places) // 10, 1)
    axis.set_xticks(places[::step], [_short(name) for name in answers][::step])
    axis.set(title=_heading(release, answers, deletions=deletions), ylim=(0, None))
    axis.set_ylabel("visits" if next(iter(answers)).kind in _SUMS else "users")
    axis.margins(x=0.5 / len(places))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.10g}"))
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2, frameon=False)
    axis.spines[["right", "top"]].set_visible(False)


def _shown(release: IncidenceRelease) -> dict[Name, Release]:
    """The answers of a picture; sums, which are of another size, if there is nothing else."""
    answers = release.answers(_MOST_BARS)
    users = {name: one for name, one in answers.items() if name.kind not in _SUMS}
    return dict(list((users or answers).items())[:_MOST_BARS])


def _heading(release: IncidenceRelease, shown: Mapping[Name, Release], *, deletions: bool) -> str:
    """What the bars count, in the words of a newcomer."""
    sums = next(iter(shown)).kind in _SUMS
    words = "how often users came in all" if sums else "users by how often they came"
    if deletions:
        words += ",\nless how often they left"
    if release.whole is not None and release.answered > len(shown):
        words += f"\n(the {len(shown)} nearest to 0 of {release.answered:,})"
    return words


def _short(name: Name) -> str:
    """An answer's name below its bar."""
    short = {"exactly": "", "at_least": "≥ ", "cropped_sum": "up to ", "distinct": "any"}
    if name.kind == "cropped_moment":
        return f"up to {name.argument}**{name.power}"
    return short[name.kind] + ("" if name.kind == "distinct" else str(name.argument))


def _draw_counters(axis: Axes, cells: NDArray[np.int64], title: str, ends: tuple[int, int]) -> None:
    """Cells in the shades of one scale; where there are values below 0, with white at 0."""
    low, colors = (-max(map(abs, ends)), "RdBu") if ends[0] < 0 else (0, "Blues")
    image = axis.imshow(
        cells, cmap=colors, vmin=low, vmax=max(map(abs, ends)), interpolation="nearest",
        aspect="auto",
    )  # fmt: skip
    bar = axis.figure.colorbar(image, ax=axis, shrink=0.8)
    bar.ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axis.set(title=title, xticks=[], yticks=[])


def _draw_cells(axis: Axes, cells: NDArray[np.uint8], title: str, words: tuple[str, str]) -> None:
    if cells.size:
        axis.imshow(cells, cmap="Greys", vmin=0, vmax=1.15, interpolation="nearest", aspect="auto")
        axis.axvline(cells.shape[1] / 2 - 0.5, color=_TRUTH)
        axis.set_xticks([cells.shape[1] / 4, cells.shape[1] * 3 / 4], words)
    else:
        axis.text(0.5, 0.5, "no users to draw", ha="center", va="center")
        axis.set_xticks([])
    axis.set(title=title, yticks=[])
    axis.tick_params(length=0)
