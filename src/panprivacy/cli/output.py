"""How answers are printed: text for people, JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from panprivacy.cli.demonstration import Demonstration
from panprivacy.guarantee import Guarantee, Ledger
from panprivacy.statistics import Release


@dataclass(frozen=True)
class Answers:
    """What one moment of publication gives.

    Args:
        releases: the answer of each statistic.
        ledger: the budget they share.
        state_bytes: size of all states, which no stream changes.
    """

    releases: dict[str, Release]
    ledger: Ledger
    state_bytes: int


def print_json(answers: Answers, demonstration: Demonstration | None) -> None:
    """Print one JSON object on one line, in a demonstration with the truth and the rate."""
    facts = demonstration.facts() if demonstration else None
    statistics = {
        name: {
            "value": release.value,
            "low": release.low,
            "high": release.high if math.isfinite(release.high) else "inf",
            "confidence": release.confidence,
            "epsilon": release.epsilon,
        }
        for name, release in answers.releases.items()
    }
    document: dict[str, object] = {
        "statistics": statistics,
        "epsilon": float(answers.ledger.total),
        "state_bytes": answers.state_bytes,
    }
    if facts:
        document["demonstration"] = dataclasses.asdict(facts)
    print(json.dumps(document), flush=True)


def print_text(answers: Answers, demonstration: Demonstration | None) -> None:
    """Print a table, the guarantee, and in a demonstration the truth."""
    facts = demonstration.facts() if demonstration else None
    truths = facts.truth if facts else {}
    table = Table(box=None, pad_edge=False)
    table.add_column("statistic")
    confidence = next(iter(answers.releases.values())).confidence
    headings = ["answer", f"{100 * confidence:g} % interval", *(["truth"] if truths else [])]
    for heading in headings:
        table.add_column(heading, justify="right")
    for name, release in answers.releases.items():
        ends = f"{_number(name, release.low)} to {_number(name, release.high)}"
        truth = [_number(name, truths[name])] if truths else []
        table.add_row(name, _number(name, release.value), ends, *truth)
    console = Console(width=100, highlight=False, markup=False)
    console.print(table)
    console.print(f"Guarantee: {Guarantee(answers.ledger.total)}.", soft_wrap=True)
    console.print(f"State: {answers.state_bytes:,} bytes, whatever the stream.", soft_wrap=True)
    if facts:
        console.print(f"Demonstration: {facts}; for the truth it kept raw ids.", soft_wrap=True)


def _number(name: str, value: float) -> str:
    return f"{value:.4f}" if name == "density" else f"{value:,.0f}"
