"""How answers are printed: text for people, JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from rich.console import Console
from rich.table import Table

from panprivacy.cli.demonstration import Facts
from panprivacy.counting import Answer, Single
from panprivacy.explain import float_above
from panprivacy.guarantee import Guarantee, shown
from panprivacy.statistics import IncidenceRelease, Label, Release, Window

_MOST_ROWS = 21
_LOST = "too many users share a counter; plan for more with --expected, next time"
_MOMENT = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True)
class Loss:
    """What a user loses who is in each of so many windows, of which one is seen."""

    windows: int
    epsilon: Fraction


@dataclass(frozen=True)
class Answers:
    """What one moment of publication gives.

    Args:
        releases: the answer of each statistic, or its answers by group.
        guarantee: of all of them together.
        state_bytes: size of all states, which no stream changes.
        confidence: of all intervals.
        window: the clock window they are about.
        loss: of a user of several windows.
        facts: the truth and the rate, in a demonstration.
    """

    releases: Mapping[str, Answer]
    guarantee: Guarantee
    state_bytes: int
    confidence: float
    window: Window | None = None
    loss: Loss | None = None
    facts: Facts | None = None

    def each(self) -> Iterator[tuple[str, Label | None, Single]]:
        """Name, group and answer."""
        for name, answer in self.releases.items():
            if isinstance(answer, Mapping):
                yield from ((name, label, one) for label, one in answer.items())
            else:
                yield name, None, answer

    @property
    def lost(self) -> bool:
        """Whether an answer is missing."""
        return any(answer is None for _, _, answer in self.each())


def print_json(answers: Answers) -> None:
    """Print one JSON object on one line, in a demonstration with the truth and the rate."""
    document: dict[str, object] = {
        "statistics": {name: _document(answer) for name, answer in answers.releases.items()},
        "epsilon": float(answers.guarantee.epsilon),
        "state_bytes": answers.state_bytes,
    }
    if answers.guarantee.groups:
        document["per_user"] = answers.guarantee.groups
    if answers.window and answers.loss:
        start, end = (
            moment.isoformat(timespec="milliseconds")
            for moment in (answers.window.start, answers.window.end)
        )
        document["window"] = {"start": start, "end": end, "complete": answers.window.complete}
        document["loss"] = {
            "windows": answers.loss.windows,
            "seen": 1,
            "epsilon": float_above(answers.loss.epsilon),
        }
    if answers.facts:
        facts = dataclasses.asdict(answers.facts).items()
        document["demonstration"] = {name: fact for name, fact in facts if fact is not None}
    print(json.dumps(document), flush=True)


def _document(answer: Answer) -> dict[str, object] | None:
    """An answer with its interval; those of an incidence count by kind and state."""
    if answer is None:
        return None
    if isinstance(answer, Mapping):
        return {"groups": {str(label): _document(one) for label, one in answer.items()}}
    cost: dict[str, object] = {"confidence": answer.confidence, "epsilon": answer.epsilon}
    if isinstance(answer, Release):
        return {**_interval(answer), **cost}
    kinds: dict[str, dict[str, object]] = {}
    for (kind, state, power), one in answer.answers().items():
        asked = str(state) if power == 1 else f"{state}**{power}"
        kinds.setdefault(kind, {})[asked] = _interval(one)
    return {**kinds, **cost}


def _interval(release: Release) -> dict[str, object]:
    high = release.high if math.isfinite(release.high) else "inf"
    return {"value": release.value, "low": release.low, "high": high}


def print_text(answers: Answers) -> None:
    """Print a table, the guarantee, and in a demonstration the truth."""
    truths = answers.facts.truth if answers.facts else {}
    grouped = answers.guarantee.groups is not None
    table = Table(box=None, pad_edge=False)
    for heading in ["statistic", *(["group"] if grouped else [])]:
        table.add_column(heading)
    interval = f"{100 * answers.confidence:g} % interval"
    for heading in ["answer", interval, *(["truth"] if truths else [])]:
        table.add_column(heading, justify="right")
    rows = [(*row, label) for name, label, answer in answers.each() for row in _rows(name, answer)]
    for name, release, label in rows:
        group = [str(label)] if grouped else []
        truth = [_number(name, truths[name])] if truths and release else []
        table.add_row(name, *group, *_cells(name, release), *truth)
    console = Console(width=100, highlight=False, markup=False, emoji=False)
    if answers.window:
        partial = "" if answers.window.complete else " (partial)"
        span = f"{answers.window.start:{_MOMENT}} to {answers.window.end:{_MOMENT}} UTC{partial}"
        console.print(span)
    console.print(table)
    for _, _, answer in answers.each():
        hidden = 0 if not isinstance(answer, IncidenceRelease) else answer.answered - _MOST_ROWS
        if hidden > 0:
            console.print(f"{hidden:,} more states: --json shows them.", soft_wrap=True)
    if answers.lost:
        console.print(f"Lost: {_LOST}.", soft_wrap=True)
    console.print(f"Guarantee: {_promise(answers)}.", soft_wrap=True)
    console.print(f"State: {answers.state_bytes:,} bytes, whatever the stream.", soft_wrap=True)
    if answers.facts:
        fact = f"Demonstration: {answers.facts}; for the truth it kept raw ids."
        console.print(fact, soft_wrap=True)


def _promise(answers: Answers) -> str:
    """The guarantee, and what it is limited to."""
    promise = str(answers.guarantee)
    if answers.loss:
        promise = f"in this window {promise}; over {answers.loss.windows:,} windows, one of them "
        promise += f"seen, epsilon {shown(answers.loss.epsilon)}"
    return promise


def _rows(name: str, answer: Single) -> list[tuple[str, Release | None]]:
    """The lines of one answer."""
    if answer is None:
        return [(name, None)]
    if isinstance(answer, Release):
        return [(name, answer)]
    shown = list(answer.answers(_MOST_ROWS).items())[:_MOST_ROWS]
    return [(str(one), release) for one, release in shown]


def _cells(name: str, release: Release | None) -> tuple[str, str]:
    if release is None:
        return "lost", ""
    ends = f"{_number(name, release.low)} to {_number(name, release.high)}"
    return _number(name, release.value), ends


def _number(name: str, value: float) -> str:
    return f"{value:.4f}" if name == "density" else f"{value:,.0f}"
