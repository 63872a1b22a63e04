"""How answers are printed: text for people, JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from panprivacy.cli.demonstration import Facts
from panprivacy.guarantee import Guarantee, Ledger
from panprivacy.statistics import IncidenceRelease, Release

_MOST_ROWS = 21


@dataclass(frozen=True)
class Answers:
    """What one moment of publication gives.

    Args:
        releases: the answer of each statistic.
        ledger: the budget they share.
        state_bytes: size of all states, which no stream changes.
        facts: the truth and the rate, in a demonstration.
    """

    releases: Mapping[str, Release | IncidenceRelease]
    ledger: Ledger
    state_bytes: int
    facts: Facts | None = None

    @property
    def confidence(self) -> float:
        """Of all intervals."""
        return next(iter(self.releases.values())).confidence


def print_json(answers: Answers) -> None:
    """Print one JSON object on one line, in a demonstration with the truth and the rate."""
    document: dict[str, object] = {
        "statistics": {name: _document(answer) for name, answer in answers.releases.items()},
        "epsilon": float(answers.ledger.total),
        "state_bytes": answers.state_bytes,
    }
    if answers.facts:
        document["demonstration"] = dataclasses.asdict(answers.facts)
    print(json.dumps(document), flush=True)


def _document(answer: Release | IncidenceRelease) -> dict[str, object]:
    """An answer with its interval; those of an incidence count by kind and state."""
    cost: dict[str, object] = {"confidence": answer.confidence, "epsilon": answer.epsilon}
    if isinstance(answer, Release):
        return {**_interval(answer), **cost}
    kinds: dict[str, dict[str, object]] = {}
    for (kind, state), one in answer.answers().items():
        kinds.setdefault(kind, {})[str(state)] = _interval(one)
    return {**kinds, **cost}


def _interval(release: Release) -> dict[str, object]:
    high = release.high if math.isfinite(release.high) else "inf"
    return {"value": release.value, "low": release.low, "high": high}


def print_text(answers: Answers) -> None:
    """Print a table, the guarantee, and in a demonstration the truth."""
    truths = answers.facts.truth if answers.facts else {}
    table = Table(box=None, pad_edge=False)
    table.add_column("statistic")
    interval = f"{100 * answers.confidence:g} % interval"
    for heading in ["answer", interval, *(["truth"] if truths else [])]:
        table.add_column(heading, justify="right")
    rows = [row for name, answer in answers.releases.items() for row in _rows(name, answer)]
    for name, release in rows:
        ends = f"{_number(name, release.low)} to {_number(name, release.high)}"
        truth = [_number(name, truths[name])] if truths else []
        table.add_row(name, _number(name, release.value), ends, *truth)
    console = Console(width=100, highlight=False, markup=False)
    console.print(table)
    for answer in answers.releases.values():
        hidden = 0 if isinstance(answer, Release) else answer.answered - _MOST_ROWS
        if hidden > 0:
            console.print(f"{hidden:,} more states: --json shows them.", soft_wrap=True)
    console.print(f"Guarantee: {Guarantee(answers.ledger.total)}.", soft_wrap=True)
    console.print(f"State: {answers.state_bytes:,} bytes, whatever the stream.", soft_wrap=True)
    if answers.facts:
        fact = f"Demonstration: {answers.facts}; for the truth it kept raw ids."
        console.print(fact, soft_wrap=True)


def _rows(name: str, answer: Release | IncidenceRelease) -> list[tuple[str, Release]]:
    """The lines of one answer."""
    if isinstance(answer, Release):
        return [(name, answer)]
    shown = list(answer.answers(_MOST_ROWS).items())[:_MOST_ROWS]
    return [(str(one), release) for one, release in shown]


def _number(name: str, value: float) -> str:
    return f"{value:.4f}" if name == "density" else f"{value:,.0f}"
