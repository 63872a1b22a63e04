"""`panprivacy plan`: the error to expect, before anyone has collected anything."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Annotated

import typer
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from panprivacy.cli.people import errors_by_people
from panprivacy.cli.stats import completed
from panprivacy.errors import PlanError
from panprivacy.ground.parsing import parse_integer
from panprivacy.ground.validation import MOST_BYTES, positive_fraction, positive_integer, proportion
from panprivacy.intake.programs.counting import make_moving
from panprivacy.privacy.guarantee import (
    DAY_SECONDS,
    Guarantee,
    PrivacyLoss,
    format_rounded_up,
    warn_if_weak,
)
from panprivacy.statistics.abilities import caution
from panprivacy.statistics.aggregation import Form
from panprivacy.statistics.alternatives import Alternatives, Target
from panprivacy.statistics.composites.moving import ChangeTriggered
from panprivacy.statistics.notes import USELESS, format_number, percent
from panprivacy.statistics.plan import Plan, margins
from panprivacy.statistics.plan_search import plan_for
from panprivacy.statistics.specification import Specification

_FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
_OF_USE = 0.5
"""Error for which advice is given, as a share."""
_MOST_DOUBLED = 24
_MOST_SHARDS = 10_000


def plan(
    epsilon: Annotated[str, typer.Option(help="Total privacy loss; the table shows others too.")],
    stat: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME,SIZE=N",
            autocompletion=completed,
            help="The statistic, such as distinct,expected=3000; panprivacy stats lists all.",
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(parser=parse_integer, metavar="BYTES", help="Show this memory alone."),
    ] = None,
    error: Annotated[
        str | None, typer.Option(help="Show the smallest plan that errs no more: 2% or 0.02.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="How often the error is kept.")] = 0.95,
    releases: Annotated[int, typer.Option(help="How many answers epsilon covers.")] = 1,
    intrusions: Annotated[
        int, typer.Option(help="How many announced intrusions epsilon covers.")
    ] = 0,
    moves: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="Compare with answers that are made where the number has moved by N."
        ),
    ] = None,
    shards: Annotated[
        int, typer.Option(metavar="S", help="Say what it costs to merge so many shards.")
    ] = 1,
) -> None:
    """Show the error to expect by epsilon and memory, or the plan that reaches an error.

    Over a range of expected users it is that of the plan of least regret, which is nowhere in the
    range far from the best one, at the low, middle and high end.
    """
    if stat is None:
        message = (
            "say what to plan, such as: "
            f"panprivacy plan distinct,expected=3000 --epsilon {shlex.quote(epsilon)}"
        )
        raise PlanError(message)
    asked = Specification.from_text(stat)
    search = Alternatives(asked.sizes, releases, intrusions)
    level, loss = proportion(confidence=confidence), positive_fraction(epsilon=epsilon)
    tables = positive_integer(_MOST_SHARDS, shards=shards)
    warn_if_weak(loss)
    size = None if memory is None else positive_integer(MOST_BYTES, memory=memory)
    if error is not None:
        target = _share(error)
        reached = plan_for(search, loss, target, size, level)
        _print_reached(reached, level)
        _print_year(reached.guarantee)
        return
    best = search.plan(loss, size)
    moving = _moving(asked, moves, loss, releases, intrusions)  # before anything is printed
    typer.echo(f"{asked.label}: {best.question}")
    _print_conditions(best)
    typer.echo(f"{100 * level:g} % of answers lie within this share of {best.measure}{_at(best)}")
    _print_assumed(asked, stat)
    nbytes = best.table.nbytes
    memories = [size or nbytes]
    if asked.sizes.takes_memory() and size is None:  # less and more than the plan takes by default
        memories = sorted({max(nbytes // 16, 1), max(nbytes // 4, 1), nbytes, 4 * nbytes})
    _print_table(search, loss, memories, level)
    _print_year(best.guarantee if moving is None else moving.guarantee)
    _print_advice(search, best, level)
    if asked.kind.entry.name == "distinct":
        _print_people(search, loss, level)
    _print_moves(moving, best, level)
    _print_shards(best, tables, level)
    if intrusions:
        covered = [Alternatives(asked.sizes, releases, covers) for covers in range(intrusions + 1)]
        _print_intrusions([_cell(one, loss, size, level) for one in covered], loss)
        if (said := caution(best)) is not None:
            typer.echo(f"note: {said}")


def _share(text: str) -> float:
    """Return an error as a share."""
    number, sign, _ = text.replace(" ", "").partition("%")
    try:
        return float(positive_fraction(error=number) / (100 if sign else 1))
    except PlanError:
        message = "--error must be a share of the number, such as 2% or 0.02"
        raise PlanError(message) from None


def _print_reached(reached: Plan, confidence: float) -> None:
    """Print the plan that reaches an error, in one sentence."""
    typer.echo(
        f"{reached.table.nbytes:,} bytes of table reach an error of "
        f"±{reached.relative_margin(confidence):.3g} of {reached.measure} with confidence "
        f"{confidence:g} at epsilon {format_rounded_up(reached.request.epsilon)}"
    )


def _print_year(promise: Guarantee) -> None:
    """Print the loss of daily windows in a year."""
    typer.echo(f"with daily windows {promise.says_of_year(DAY_SECONDS)}")


def _print_conditions(best: Plan) -> None:
    """Print which users are counted correctly, and the conditions of the guarantee."""
    if best.range_of_states is not None:
        low, high = best.range_of_states
        typer.echo(f"sums of a user's deltas count right from {low:,} to {high:,}")
    for condition in best.conditions:
        typer.echo(f"the guarantee: {condition}")
    for remark in best.remarks:
        typer.echo(remark)


_FORMS: Sequence[tuple[Form, str]] = (
    ("sums", "users of one shard each"),
    ("cells", "users of any shards (--key)"),
)


def _print_shards(best: Plan, shards: int, confidence: float) -> None:
    """Print the costs of shards beside one machine, for both forms; nothing for one shard."""
    if shards == 1:
        return
    promise = PrivacyLoss(best.request.epsilon)
    typer.echo(f"one machine: {promise}{_strays(best, confidence, 1)}")
    for form, how in _FORMS:
        try:
            times = best.aggregation.error(form, 0, shards)
        except PlanError as reason:
            typer.echo(f"{shards} shards, {how}: {reason}")
            continue
        cost = str(promise)
        if form == "cells":
            further = PrivacyLoss(best.aggregation.additional_loss(form))
            more = format_rounded_up(further.epsilon)
            cost += f", and {more} more for each further shard of a user: "
            cost += (
                f"{format_rounded_up((promise + further.times(shards - 1)).epsilon)} in all of them"
            )
        errs = f"errs {times:.2g} times as much{_strays(best, confidence, times)}"
        typer.echo(f"{shards} shards, {how}: {cost}; {errs}")
    typer.echo("who opens a contribution has seen the memory of its shard: that is the look")


def _strays(planned: Plan, confidence: float, times: float) -> str:
    """Return the margin of answers with this multiple of the error; empty if the table shows it."""
    if planned.error_points:
        return ""
    return f", {percent(times * planned.relative_margin(confidence))}"


def _print_assumed(asked: Specification, stat: str) -> None:
    """Print the defaults that were planned for; memory is in the table."""
    given = {part.partition("=")[0].strip() for part in stat.split(",")}
    assumed = [
        f"{one.name}={':'.join(map(str, one.default))}"
        for one in asked.sizes.fields().values()
        if isinstance(one.default, tuple) and one.name not in given
    ]
    if assumed:
        typer.echo(f"planned for {', '.join(assumed)}, as nothing else was said")


def _moving(
    asked: Specification, moves: str | None, loss: Fraction, releases: int, intrusions: int
) -> ChangeTriggered | None:
    """Return the statistic whose answer stands until it has moved, if requested."""
    if moves is None:
        return None
    threshold = positive_fraction(moves=moves)
    return make_moving([asked], threshold, epsilon=loss, releases=releases, intrusions=intrusions)


def _print_moves(counting: ChangeTriggered | None, clock: Plan, confidence: float) -> None:
    """Print the error of an answer that stands until it has moved, beside as many on a clock."""
    if counting is None:
        return
    places = clock.error_points or (None,)
    updates, unit = counting.left, clock.unit
    threshold = float(counting.threshold)
    typer.echo(
        f"with --moves {threshold:,g}: {updates:,} answers where it has moved by so much, which "
        f"reach {_format_numbers([updates * threshold], unit)} {unit}, and one at the end"
    )
    delta = format_rounded_up(counting.guarantee.delta, 3)
    stands = _format_numbers(
        [counting.absolute_margin(confidence, truth) for truth in places], unit
    )
    typer.echo(f"what stands is within {stands} {unit} of the truth at any time; delta {delta}")
    each = _format_numbers([clock.absolute_margin(confidence, truth) for truth in places], unit)
    typer.echo(
        f"on a clock each of {updates + 1:,} answers is within {each} {unit} of the truth when it "
        "is made, and stands whatever comes until the next"
    )


def _format_numbers(numbers: Sequence[float], unit: str) -> str:
    return " / ".join(format_number(number, unit) for number in numbers)


def _print_table(
    search: Alternatives, loss: Fraction, memories: list[int], confidence: float
) -> None:
    """Print a table of errors by epsilon and memory."""
    table = Table(box=None, pad_edge=False)
    for name in ("epsilon", *(f"{nbytes:,} bytes" for nbytes in memories)):
        table.add_column(name, justify="right")
    for row in (loss * factor for factor in _FACTORS):
        cells = (_cell(search, row, nbytes, confidence) for nbytes in memories)
        table.add_row(format_rounded_up(row), *cells)
    Console(width=120, highlight=False).print(table)


def _print_advice(search: Alternatives, best: Plan, confidence: float) -> None:
    """Print what would help, if all answers are useless."""
    if min(margins(best, confidence)) <= USELESS:
        return
    name = f"least margin {confidence}"
    target = Target(lambda candidate: min(margins(candidate, confidence)), _OF_USE, name)
    loss = best.request.epsilon
    ways = []
    looser = search.smallest_epsilon(None, target)
    if looser is not None:
        ways.append(f"--epsilon {format_rounded_up(looser.request.epsilon)}")
    people = _people(search, loss, target)
    if people is not None:
        ways.append(f"a window long enough for {people}")
    advice = " or ".join(ways) or "only a larger problem"
    typer.echo(
        f"at epsilon {format_rounded_up(loss)} answers are noise: {advice} would do, "
        f"for {percent(_OF_USE)}"
    )


def _print_people(search: Alternatives, loss: Fraction, confidence: float) -> None:
    """Print the error by the number of people who come in a window, each planned for alone."""
    try:
        rows = errors_by_people(search, loss, confidence)
    except PlanError:  # of the memory or the epsilon, which the table above shows
        return
    typer.echo(
        f"at epsilon {format_rounded_up(loss)}, for a plan of exactly so many people in a window:"
    )
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right")
    table.add_column(justify="right")
    for people, margin in rows:
        table.add_row(f"{people:,}", percent(margin))
    Console(width=120, highlight=False).print(table)
    typer.echo("for few people: panprivacy advise")


def _people(search: Alternatives, loss: Fraction, target: Target) -> str | None:
    """Return the expected number of users for which an epsilon suffices; None if there is none."""
    expected = getattr(search.sizes, "expected", None)
    if not isinstance(expected, tuple):
        return None
    for power in range(1, _MOST_DOUBLED):
        low, high = (int(end) << power for end in expected)
        larger = Alternatives(
            replace(search.sizes, expected=(low, high)), search.releases, search.intrusions
        )
        with suppress(PlanError):
            if target(larger.plan(loss, None)):
                return f"expected={low}" if low == high else f"expected={low}:{high}"
    return None


def _print_intrusions(errors: list[str], loss: Fraction) -> None:
    """Print errors by the number of announced intrusions that epsilon covers, all of them made."""
    typer.echo(f"at epsilon {format_rounded_up(loss)}, by how many announced intrusions it covers:")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right")
    for covered, error in enumerate(errors):
        table.add_row(f"{covered}", error)
    Console(width=120, highlight=False).print(table)


def _cell(search: Alternatives, loss: Fraction, memory: int | None, confidence: float) -> str:
    try:
        planned = search.plan(loss, memory)
    except PlanError:  # the fewest counters do not fit, or the epsilon is too small for a signal
        return "none"
    return " / ".join(percent(margin) for margin in margins(planned, confidence))


def _at(planned: Plan) -> str:
    """Return where in its range a plan's errors are shown."""
    shown = [format_number(truth, planned.unit) for truth in planned.error_points]
    if len(shown) < 2:
        return ""
    return f", at the low, middle and high end of its range:\n{' / '.join(shown)}"
