"""Printing of answers: text for people, JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from panprivacy.cli.demonstration import Facts
from panprivacy.privacy.guarantee import Guarantee, PrivacyLoss
from panprivacy.statistics.catalogue import kinds
from panprivacy.statistics.composites.windows import Window
from panprivacy.statistics.grid import time_zone
from panprivacy.statistics.notes import format_number, names_by_note, some_of
from panprivacy.statistics.release import Answers, Name, Release

_MOST_ROWS = 21
_LOST = "too many users share a counter; plan for more with expected=, next time"


@dataclass(frozen=True)
class LossOverWindows:
    """The loss of a user who is in each of several windows, of which one is seen if it may be."""

    windows: int
    loss: PrivacyLoss


@dataclass(frozen=True)
class WrittenSketch:
    """A published table that was written to a file.

    Args:
        path: of the file.
        reason: why it could not be written, if it could not.
        encoded: the table in base64 then.
    """

    path: Path
    reason: str | None = None
    encoded: str | None = None

    def document(self) -> dict[str, object]:
        """Return the file, or what could not be written, as values of JSON."""
        lost = {} if self.reason is None else {"reason": self.reason, "base64": self.encoded}
        return {"file": str(self.path), **lost}


@dataclass(frozen=True)
class Printed:
    """Output at one moment of publication.

    Args:
        answers: the answers, by name.
        guarantee: the guarantee of all of them together.
        state_bytes: size of all states, which is the same for every stream.
        learns: whether the next window's size follows from the answers of this one.
        confidence: confidence level of all intervals.
        window: the clock window of the answers.
        zone: name of the time zone in which its times are printed.
        loss: loss of a user of several windows.
        facts: the truth and the rate, in a demonstration.
        interrupted: whether a signal or an unreadable row ended the count early.
        sketches: the tables that were published with the answers.
    """

    answers: Answers
    guarantee: Guarantee
    state_bytes: int
    confidence: float
    learns: bool = False
    window: Window | None = None
    zone: str = "UTC"
    loss: LossOverWindows | None = None
    facts: Facts | None = None
    interrupted: bool = False
    sketches: tuple[WrittenSketch, ...] = ()


def print_json(printed: Printed) -> None:
    """Print one JSON object on one line."""
    print(json_line(printed), flush=True)


def json_line(printed: Printed) -> str:
    """Return one JSON object on one line, in a demonstration with the truth and the rate."""
    document: dict[str, object] = {
        "answers": json_rows(printed.answers, printed.facts.truth if printed.facts else None),
        **printed.guarantee.document(),
        "state_bytes": printed.state_bytes,
    }
    if printed.guarantee.groups:
        document["per_user"] = printed.guarantee.groups
    if printed.window and printed.loss:
        document["window"] = {
            "start": printed.window.start.isoformat(timespec="milliseconds"),
            "end": printed.window.end.isoformat(timespec="milliseconds"),
            "complete": printed.window.complete,
        }
        several = printed.loss
        seen = int(printed.guarantee.looks)
        loss = {"windows": several.windows, "seen": seen, **several.loss.document()}
        document["loss"] = loss
    if printed.interrupted:
        document["interrupted"] = True
    if printed.sketches:
        document["sketches"] = [one.document() for one in printed.sketches]
    if printed.facts:
        facts = printed.facts
        document["demonstration"] = {
            "rows": facts.rows,
            "seconds": facts.seconds,
            "beyond": facts.beyond,
            "besides": list(facts.besides),
        }
    return json.dumps(document)


def json_rows(
    answers: Answers, truth: Mapping[Name, float] | None = None
) -> list[dict[str, object]]:
    """Return answers as values of JSON; in a demonstration with their true numbers."""
    found = []
    for name, row in zip(answers, answers.rows(), strict=True):
        known = {} if truth is None else {"truth": truth.get(name)}
        found.append(
            {
                key: "inf" if isinstance(value, float) and math.isinf(value) else value
                for key, value in {**row, **known}.items()
            }
        )
    return found


def print_text(printed: Printed) -> None:
    """Print a table, the guarantee, and in a demonstration the truth."""
    truths = printed.facts.truth if printed.facts else {}
    listed = printed.answers.answers(_MOST_ROWS)
    table = answer_table(
        listed, printed.confidence, truths, grouped=printed.guarantee.groups is not None
    )
    console = Console(width=100, highlight=False, markup=False, emoji=False)
    if printed.window:
        partial = "" if printed.window.complete else " (partial)"
        span = printed.window.start, printed.window.end
        start, end = (_local(moment, printed.zone) for moment in span)
        console.print(f"{start} to {end} {printed.zone}{partial}")
    if printed.interrupted:
        console.print("Incomplete: the count ended before its input did.")
    console.print(table)
    hidden = len(printed.answers) - len(listed)
    if hidden > 0:
        console.print(f"{hidden:,} more states: --json shows them.", soft_wrap=True)
    for line in remarks_on(listed):
        console.print(line, soft_wrap=True)
    if printed.answers.lost:
        console.print(f"Lost: {_LOST}.", soft_wrap=True)
    console.print(f"Guarantee: {_promise(printed)}.", soft_wrap=True)
    follows = "as earlier answers have it" if printed.learns else "whatever the stream"
    console.print(f"State: {printed.state_bytes:,} bytes, {follows}.", soft_wrap=True)
    for one in printed.sketches:
        console.print(_says_of_sketch(one), soft_wrap=True)
    if printed.facts:
        fact = f"Demonstration: {printed.facts}; for the truth it kept raw ids."
        console.print(fact, soft_wrap=True)


def _says_of_sketch(one: WrittenSketch) -> str:
    """Return the line about a published table; all of it, if there is no file of it."""
    if one.reason is None:
        return f"Sketch: {one.path}, which is public; panprivacy overlap compares it with others."
    return f"Sketch for {one.path}, in base64: {one.encoded}"


def answer_table(
    listed: Mapping[Name, Release | None],
    confidence: float,
    truths: Mapping[Name, float] | None = None,
    *,
    grouped: bool = False,
) -> Table:
    """Return a table of answers for people.

    Args:
        listed: the answers, by name; None for one that is lost.
        confidence: confidence level of their intervals.
        truths: the true numbers, in a demonstration.
        grouped: whether a column has the group of each.
    """
    table = Table(box=None, pad_edge=False)
    for heading in ["statistic", *(["group"] if grouped else [])]:
        table.add_column(heading)
    interval = f"{100 * confidence:g} % interval"
    for heading in ["answer", interval, *(["truth"] if truths else [])]:
        table.add_column(heading, justify="right")
    for name, one in listed.items():
        group = [str(name.group)] if grouped else []
        value, low, high = one.formatted() if one else ("lost", "", "")
        truth = [format_number(truths[name], one.unit)] if one and truths and name in truths else []
        table.add_row(_title(name), *group, value, f"{low} to {high}" if one else "", *truth)
    return table


def remarks_on(listed: Mapping[Name, Release | None]) -> Iterator[str]:
    """Yield the notes on answers, and the estimates of those that were clamped."""
    yield from _notes(listed)
    yield from _uncut(listed)


def _local(moment: datetime, zone: str) -> str:
    """Return the local time; with its offset, if the zone has several."""
    local = moment.astimezone(time_zone(zone)).isoformat(sep=" ", timespec="seconds")
    return local.removesuffix("+00:00") if zone == "UTC" else local


def _title(name: Name) -> str:
    """Return the printed name of an answer; it begins with its own name if it was given one."""
    return str(name) if name.statistic in kinds() else f"{name.statistic}: {name}"


def _notes(listed: Mapping[Name, Release | None]) -> Iterator[str]:
    """Yield a line for each note, with the answers that it is about."""
    for note, noted in names_by_note(listed).items():
        groups = ("" if name.group is None else f" of {name.group}" for name in noted)
        names = [f"{_title(name)}{group}" for name, group in zip(noted, groups, strict=True)]
        yield f"Note on {some_of(names)}: {note}."


def _uncut(listed: Mapping[Name, Release | None]) -> Iterator[str]:
    """Yield a line with the estimates of the answers that were clamped to their possible range."""
    cut = []
    for name, one in listed.items():
        if one is None or not math.isfinite(one.estimate):
            continue
        number, error = format_number(one.estimate, one.unit), _error(one)
        if number != one.formatted()[0]:
            group = "" if name.group is None else f" of {name.group}"
            cut.append(f"{_title(name)}{group} {number} (standard error {error})")
    if cut:
        yield f"Uncut, for sums and averages: {some_of(cut)}."


def _error(one: Release) -> str:
    """Return the standard error of an answer; one below 1 is not rounded to 0."""
    rounded = format_number(one.standard_error, one.unit)
    return rounded if rounded.strip("0.,") else f"{one.standard_error:.2g}"


def _promise(printed: Printed) -> str:
    """Return the guarantee, and the loss over windows."""
    promise = str(printed.guarantee)
    if printed.loss:
        promise = f"in this window {promise}; over {printed.loss.windows:,} windows, "
        promise += f"{printed.guarantee.says_of_look}, {printed.loss.loss}"
    return promise
