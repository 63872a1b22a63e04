"""`panprivacy advise`: what to count, for a number of people."""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Annotated, Any, Final

import typer

from panprivacy.errors import InputError, NoiseError, PlanError
from panprivacy.ground.parsing import format_duration, parse_duration, parse_integer
from panprivacy.ground.validation import positive_fraction, positive_integer
from panprivacy.privacy.guarantee import Guarantee, format_rounded_up
from panprivacy.statistics.arguments import request
from panprivacy.statistics.composites.windowed import LONGEST
from panprivacy.statistics.notes import format_number, percent
from panprivacy.statistics.plan import Plan, margins
from panprivacy.statistics.specification import Specification
from panprivacy.statistics.useful import check_useful

_CONFIDENCE: Final = 0.95
_WIDTH: Final = 80
_SHOWN: Final = 3
_MOST_PEOPLE: Final = 1_000_000_000
_LONGER: Final = (3_600, 86_400, 604_800, 30 * 86_400)
"""Windows in which people may be counted in place of shorter ones: the next two are tried."""
_TRIED: Final = 2
_OF_PEOPLE: Final = (Fraction(1, 2), Fraction(1), Fraction(2))
_OF_EVENTS: Final = (Fraction(1, 4), Fraction(1, 2), Fraction(1))
"""Losses that are tried, the smallest first."""


@dataclass(frozen=True)
class Recommendation:
    """A statistic with its settings.

    Args:
        title: what it counts.
        stat: the statistic, as `--stat` takes it.
        reads: options that name the columns.
        epsilon: total privacy loss of a window.
        window: seconds of a window.
        truths: answers at which its error is shown.
    """

    title: str
    stat: str
    reads: str
    epsilon: Fraction
    window: int
    truths: tuple[float, ...]

    @cached_property
    def plan(self) -> Plan:
        """The plan; it is public, and nothing is counted.

        Raises:
            NoiseError: its answers would be noise.
        """
        sizes = Specification.from_text(self.stat).sizes
        asked = request(self.epsilon, 1, 0)
        check_useful(sizes, asked)
        return sizes.planned(asked)

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee of a window."""
        return self.plan.guarantee

    @cached_property
    def errors(self) -> tuple[float, ...]:
        """The margins at `truths`, as shares of them."""
        if self.plan.error_points:
            return tuple(margins(self.plan, _CONFIDENCE))
        return tuple(self.plan.absolute_margin(_CONFIDENCE) / truth for truth in self.truths)

    @property
    def error(self) -> float:
        """The margin in the middle."""
        return self.errors[len(self.errors) // 2]

    @property
    def command(self) -> str:
        """The command that counts it, for a log of nginx or Apache on standard input."""
        return (
            f"panprivacy run - --format combined {self.reads}\\\n"
            f"    --stat {self.stat} --epsilon {format_rounded_up(self.epsilon)} "
            f"--window {format_duration(self.window)}"
        )

    def lines(self, wanted: float) -> Iterator[str]:
        """Yield the lines that describe it."""
        errors = " / ".join(percent(error) for error in self.errors)
        where = " / ".join(format_number(truth, self.plan.unit) for truth in self.truths)
        misses = ""
        if self.error > wanted:
            misses = f"; misses {100 * wanted:.2g} %"
        elif self.errors[0] > wanted:
            misses = f"; misses {100 * wanted:.2g} % if the same people come in all of it"
        one = "one person, with all they do in a window"
        if self.guarantee.adjacency == "event":
            one = "one event, not all events of a person"
        yield f"error: {errors} of {where} (95 % of answers){misses}"
        yield f"hides: {one}, at {self.guarantee.loss}"
        yield f"a year: {self.guarantee.says_of_year(self.window)}"
        yield f"memory: {self.plan.table.nbytes:,} bytes of table"


def advise(
    people: Annotated[
        int | None,
        typer.Option(
            parser=parse_integer, metavar="N", help="How many people come between two answers."
        ),
    ] = None,
    every: Annotated[
        str | None, typer.Option(metavar="1d", help="How often you want an answer.")
    ] = None,
    error: Annotated[
        str | None,
        typer.Option(metavar="10%", help="How exact it should be: 10% or 0.1 of the number."),
    ] = None,
) -> None:
    """Recommend what to count, from how many people come, how often and how exact.

    It asks for what is missing, if it runs on a terminal.
    """
    number = _requested(people, "--people", "How many people come between two answers", "300")
    length = _requested(every, "--every", "How often do you want an answer (1h, 1d, 1w)", "1d")
    share = _requested(error, "--error", "How far may an answer be off", "10%")
    comes = positive_integer(_MOST_PEOPLE, people=_integer(number))
    window, wanted = _window(str(length)), _share(str(share))
    found = ranked(designs(comes, window, wanted), wanted)[:_SHOWN]
    for position, design in enumerate(found):
        typer.echo(f"{position + 1}. {design.title}\n")
        typer.echo(textwrap.indent(f"{design.command}\n", " " * 3))
        for line in design.lines(wanted):
            label, _, rest = line.partition(": ")
            wrapped = textwrap.fill(
                rest, _WIDTH, initial_indent=f"   {label + ':':<8} ", subsequent_indent=" " * 12
            )
            typer.echo(wrapped)
        typer.echo("")
    if not found:
        typer.echo("no design is useful for so few people: take a longer --every")
    if not any(one.error <= wanted for one in found):
        typer.echo("Small pages can be read together as one group, and so can several sites.")


def designs(people: int, window: int, wanted: float) -> list[Recommendation]:
    """Return one design of each kind: people, people of longer windows, and events.

    Of each kind it is the one with the smallest epsilon that reaches the error, or else the one
    with the largest epsilon. Designs whose answers would be noise are left out.

    Args:
        people: number of people in a window.
        window: seconds of a window.
        wanted: relative error to reach.
    """
    each = format_duration(window)
    people_of = partial(_kind, reads="--user remote_addr ", losses=_OF_PEOPLE)
    kinds = [
        people_of(f"People in each window of {each}", f"distinct,expected={people}", window, people)
    ]
    for length in [one for one in _LONGER if one > window][:_TRIED]:
        most = min(people * length // window, _MOST_PEOPLE)
        title = f"People in each window of {format_duration(length)}, in place of {each}"
        stat = f"distinct,expected={people}:{most}"
        kinds.append(people_of(title, stat, length, people, math.sqrt(people * most), most))
    title = f"Events in each window of {each}, such as visits or calls"
    stat = "running-count,horizon=1"
    kinds.append(_kind(title, stat, window, people, reads="", losses=_OF_EVENTS))
    return [one for kind in kinds if (one := _best(kind, wanted)) is not None]


def _kind(
    title: str, stat: str, window: int, *truths: float, reads: str, losses: Sequence[Fraction]
) -> list[Recommendation]:
    """Return a design for each of some losses, the smallest first."""
    return [Recommendation(title, stat, reads, loss, window, truths) for loss in losses]


def ranked(found: Iterable[Recommendation], wanted: float) -> list[Recommendation]:
    """Return designs that reach the error, those that hide people first; then the others.

    Shorter windows come before longer ones; designs that miss are sorted by their error.
    """

    def order(design: Recommendation) -> tuple[bool, float, int]:
        if design.error > wanted:
            return True, design.error, design.window
        return False, design.guarantee.adjacency == "event", design.window

    return sorted(found, key=order)


def _best(kind: Sequence[Recommendation], wanted: float) -> Recommendation | None:
    """Return the first design that reaches an error, else the last that is of use, if any is."""
    useful = None
    for design in kind:
        with suppress(NoiseError):
            if design.error <= wanted:
                return design
            useful = design
    return useful


def _requested(given: Any, option: str, question: str, example: str) -> Any:
    """Return the value of an option, or ask for it on a terminal."""
    if given is not None:
        return given
    if not sys.stdin.isatty():
        message = f"say {option}, such as: panprivacy advise --people 300 --every 1d --error 10%"
        raise PlanError(message)
    return typer.prompt(question, default=example)


def _integer(number: int | str) -> int:
    """Return the number of people."""
    try:
        return number if isinstance(number, int) else parse_integer(number)
    except ValueError as error:
        message = f"--people: {error}"
        raise PlanError(message) from None


def _window(text: str) -> int:
    """Return the seconds of a window."""
    try:
        seconds = int(parse_duration(text))
    except ValueError as error:
        message = f"--every: {error}"
        raise PlanError(message) from None
    if seconds > LONGEST:
        message = f"--every must be at most {LONGEST // 86_400:,} days"
        raise PlanError(message)
    return seconds


def _share(text: str) -> float:
    """Return the error as a share."""
    number, sign, _ = text.replace(" ", "").partition("%")
    try:
        share = positive_fraction(error=number) / (100 if sign else 1)
    except (PlanError, InputError):
        message = f"--error must be a share of the number, such as 10% or 0.1, not {text!r}"
        raise PlanError(message) from None
    if share >= 1:
        message = "--error must be less than 100 % of the number: write 10% or 0.1 for 10 %"
        raise PlanError(message)
    return float(share)
