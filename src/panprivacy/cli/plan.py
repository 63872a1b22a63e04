"""`panprivacy plan`: the error to expect, before anyone has collected anything."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from panprivacy._parse import Expected, parse_expected
from panprivacy._validate import positive_fraction, positive_integer
from panprivacy.errors import PlanError
from panprivacy.options import Statistics
from panprivacy.planning import plan as make_plan
from panprivacy.planning.search import Searched

_FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
_USELESS_PERCENT = 1_000
_MEMORIES = (64, 256, 1_024, 4_096, 16_384, 65_536)


def plan(
    stat: Annotated[Statistics, typer.Argument(metavar="distinct|density")],
    epsilon: Annotated[str, typer.Option(help="Total privacy loss; the table shows others too.")],
    expected: Annotated[
        str | None, typer.Option(metavar="LO:HI", help="Number of users, or a range.")
    ] = None,
    universe: Annotated[int | None, typer.Option(help="Number of possible users.")] = None,
    memory: Annotated[
        int | None, typer.Option(metavar="BYTES", help="Show this memory alone.")
    ] = None,
    error: Annotated[
        str | None, typer.Option(help="Show the smallest plan that errs no more (0.02 is 2 %).")
    ] = None,
    confidence: Annotated[float, typer.Option(help="How often the error is kept.")] = 0.95,
    releases: Annotated[int, typer.Option(help="How many answers epsilon covers.")] = 1,
) -> None:
    """Show the error to expect by epsilon and memory, or the plan that reaches an error."""
    sizes = _sizes(stat, expected, universe)

    def planned(total: Fraction, nbytes: int | None, target: str | None = None) -> Searched:
        return make_plan(
            stat.value, epsilon=total, memory=nbytes, error=target,
            confidence=confidence, releases=releases, **sizes,
        )  # type: ignore[call-overload]  # fmt: skip

    total = positive_fraction(epsilon=epsilon)
    if error is not None:
        reached = planned(total, memory, error)
        typer.echo(
            f"{reached.table.nbytes:,} bytes of table reach an error of "
            f"±{reached.margin(confidence):.3g} with confidence {confidence:g} at epsilon "
            f"{float(total):g}"
        )
        return
    memories = _MEMORIES if memory is None else (positive_integer(memory=memory),)
    typer.echo(_title(stat, confidence))
    table = Table(box=None, pad_edge=False)
    for name in ("epsilon", *(f"{nbytes:,} bytes" for nbytes in memories)):
        table.add_column(name, justify="right")
    for row in (total * factor for factor in _FACTORS):
        margins = [planned(row, nbytes).margin(confidence) for nbytes in memories]
        table.add_row(f"{float(row):g}", *(_percent(margin) for margin in margins))
    Console(width=120, highlight=False).print(table)


def _sizes(stat: Statistics, expected: str | None, universe: int | None) -> dict[str, Expected]:
    """The size that the statistic's plan is for."""
    if stat is Statistics.incidence:
        message = "there is a table for distinct and density; for incidence, run prints intervals"
        raise PlanError(message)
    if stat is Statistics.density:
        if expected is not None:
            message = "density has no --expected: its size is --universe"
            raise PlanError(message)
        if universe is None:
            message = "density needs --universe: how many users there could be"
            raise PlanError(message)
        return {"universe": universe}
    if universe is not None:
        message = "distinct has no --universe: its size is --expected"
        raise PlanError(message)
    if expected is None:
        message = "distinct needs --expected: about how many users, as N or LOW:HIGH"
        raise PlanError(message)
    return {"expected": parse_expected(expected)}


def _title(stat: Statistics, confidence: float) -> str:
    unit = "of the number of users" if stat is Statistics.distinct else "of the universe"
    return f"{stat.value}: {100 * confidence:g} % of answers lie within this share {unit}"


def _percent(margin: float) -> str:
    percent = 100 * margin
    if percent > _USELESS_PERCENT:
        return "no use"
    return f"±{percent:.0f} %" if percent >= 10 else f"±{percent:.2g} %"
