"""`panprivacy plan`: the error to expect, before anyone has collected anything."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from panprivacy._parse import parse_expected, parse_whole
from panprivacy._validate import positive_fraction
from panprivacy.errors import PlanError
from panprivacy.options import Statistics
from panprivacy.planning import Searched, share_of_margin
from panprivacy.planning import plan as make_plan

_FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
_USELESS_PERCENT = 1_000
_MEMORIES = (64, 256, 1_024, 4_096, 16_384, 65_536)

_NEEDS = {
    Statistics.distinct: {"expected": "about how many users, as N or LOW:HIGH"},
    Statistics.density: {"universe": "how many users there could be"},
    Statistics.cropped_sum: {"tau": "the most that a user counts for"},
    Statistics.threshold: {
        "least": "the state from which on a user counts in full",
        "universe": "how many users there could be",
    },
    Statistics.heavy_hitters: {
        "k": "who holds 1/k of the total counts",
        "total": "what all deltas add up to",
    },
}
_UNITS = {
    Statistics.distinct: "of the number of users",
    Statistics.density: "of the universe",
    Statistics.cropped_sum: "of the largest sum, tau times all users",
    Statistics.threshold: "of the universe",
    Statistics.heavy_hitters: "of k",
}


def plan(
    stat: Annotated[
        Statistics,
        typer.Argument(metavar="distinct|density|cropped-sum|threshold|heavy-hitters"),
    ],
    epsilon: Annotated[str, typer.Option(help="Total privacy loss; the table shows others too.")],
    expected: Annotated[
        str | None,
        typer.Option(metavar="LO:HI", help="distinct, cropped-sum: number of users, or a range."),
    ] = None,
    universe: Annotated[
        int | None,
        typer.Option(
            parser=parse_whole, help="density, cropped-sum, threshold: number of possible users."
        ),
    ] = None,
    tau: Annotated[
        int | None,
        typer.Option(parser=parse_whole, help="cropped-sum: the most that a user counts for."),
    ] = None,
    bound: Annotated[
        int | None,
        typer.Option(
            parser=parse_whole,
            help="cropped-sum, threshold: the largest sum of a user's deltas; or 64 times tau or "
            "least.",
        ),
    ] = None,
    least: Annotated[
        int | None,
        typer.Option(
            parser=parse_whole,
            metavar="N",
            help="threshold: the state from which on a user counts in full; from half of it on in "
            "part.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(parser=parse_whole, help="heavy-hitters: who holds 1/k of the total counts."),
    ] = None,
    total: Annotated[
        int | None,
        typer.Option(parser=parse_whole, help="heavy-hitters: what all deltas add up to."),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(parser=parse_whole, metavar="BYTES", help="Show this memory alone."),
    ] = None,
    error: Annotated[
        str | None, typer.Option(help="Show the smallest plan that errs no more (0.02 is 2 %).")
    ] = None,
    confidence: Annotated[float, typer.Option(help="How often the error is kept.")] = 0.95,
    releases: Annotated[int, typer.Option(help="How many answers epsilon covers.")] = 1,
) -> None:
    """Show the error to expect by epsilon and memory, or the plan that reaches an error."""
    given = {
        "expected": None if expected is None else parse_expected(expected), "universe": universe,
        "tau": tau, "bound": bound, "least": least, "k": k, "total": total,
    }  # fmt: skip
    sizes = _sizes(stat, {name: size for name, size in given.items() if size is not None})
    planned = partial(make_plan, stat.value, confidence=confidence, releases=releases, **sizes)
    loss = positive_fraction(epsilon=epsilon)
    if error is not None:
        reached = planned(epsilon=loss, memory=memory, error=error)
        typer.echo(
            f"{reached.table.nbytes:,} bytes of table reach an error of "
            f"±{share_of_margin(reached, confidence):.3g} {_UNITS[stat]} with confidence "
            f"{confidence:g} at epsilon {float(loss):g}"
        )
        return
    best = planned(epsilon=loss, memory=memory)
    memories = _memories(stat, best) if memory is None else [memory]
    typer.echo(f"{stat}: {100 * confidence:g} % of answers lie within this share {_UNITS[stat]}")
    _print_table(planned, loss, memories, confidence)


def _sizes(stat: Statistics, given: dict[str, Any]) -> dict[str, Any]:
    """The sizes that the statistic's plan is for; those it does not have are refused there."""
    if stat is Statistics.incidence:
        message = "there is no table for incidence: run prints intervals"
        raise PlanError(message)
    for name, says in _NEEDS[stat].items():
        if name not in given:
            message = f"{stat} needs {name}=: {says}"
            raise PlanError(message)
    return given


def _memories(stat: Statistics, best: Searched) -> list[int]:
    """The columns of the table: round numbers, or for counters less and more than is best."""
    if stat in {Statistics.distinct, Statistics.density}:
        return list(_MEMORIES)
    nbytes = best.table.nbytes
    return [max(nbytes // 4, 1), max(nbytes // 2, 1), nbytes, 4 * nbytes]


def _print_table(
    planned: Callable[..., Searched], loss: Fraction, memories: list[int], confidence: float
) -> None:
    """Errors by epsilon and memory."""
    table = Table(box=None, pad_edge=False)
    for name in ("epsilon", *(f"{nbytes:,} bytes" for nbytes in memories)):
        table.add_column(name, justify="right")
    for row in (loss * factor for factor in _FACTORS):
        cells = (_cell(planned, row, nbytes, confidence) for nbytes in memories)
        table.add_row(f"{float(row):g}", *cells)
    Console(width=120, highlight=False).print(table)


def _cell(planned: Callable[..., Searched], loss: Fraction, memory: int, confidence: float) -> str:
    try:
        return _percent(share_of_margin(planned(epsilon=loss, memory=memory), confidence))
    except PlanError:  # the fewest counters do not fit, or so small an epsilon leaves no signal
        return "none"


def _percent(margin: float) -> str:
    percent = 100 * margin
    if percent > _USELESS_PERCENT:
        return "no use"
    return f"±{percent:.0f} %" if percent >= 10 else f"±{percent:.2g} %"
