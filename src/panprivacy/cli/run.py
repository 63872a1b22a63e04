"""`panprivacy run`: a stream in, private numbers out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from panprivacy._kernels import wipe_stack
from panprivacy._validate import positive_fraction, positive_integer, proportion
from panprivacy.cli.demonstration import Demonstration
from panprivacy.cli.making import Asked, Counting, Sizes, Statistic, check_options, make_statistics
from panprivacy.cli.options import Statistics, parse_expected, parse_states, parse_whole
from panprivacy.cli.output import Answers, print_json, print_text
from panprivacy.errors import InputError, PlanError
from panprivacy.guarantee import Ledger
from panprivacy.ids import read_deltas
from panprivacy.sources import FORMATS, Column, Source, open_source
from panprivacy.sources.columns import show
from panprivacy.statistics.table import refuse_deltas

Format = StrEnum("Format", {name: name for name in FORMATS})  # type: ignore[misc]

_LONG_BYTES = 1 << 26
_MOST_SECONDS = 1_000_000_000


class Nulls(StrEnum):
    """What to do with a row that has no user id."""

    error = "error"
    skip = "skip"


@dataclass(frozen=True)
class Schedule:
    """When answers are published.

    Args:
        releases: how many the budget covers; the last one is made at the end of the input.
        every: seconds between the others; None to make the last one only.
    """

    releases: int
    every: float | None

    def __post_init__(self) -> None:
        if self.every is None:
            return
        if not 0 < self.every <= _MOST_SECONDS:
            message = f"--every must be a number of seconds, above 0 and at most {_MOST_SECONDS:,}"
            raise PlanError(message)
        if self.releases < 2:
            message = "--every needs --releases of at least 2: the last answer comes at the end"
            raise PlanError(message)


def run(
    file: Annotated[str, typer.Argument(help="A file, or - for standard input.")],
    user: Annotated[str, typer.Option(metavar="COL", help="The column of user ids.")],
    epsilon: Annotated[str, typer.Option(help="Total privacy loss of everything kept and shown.")],
    stat: Annotated[
        list[Statistics] | None, typer.Option(help="What to count; may be repeated.")
    ] = None,
    universe: Annotated[
        int | None,
        typer.Option(
            parser=parse_whole, metavar="N", help="density, incidence: the ids are 0 to N-1."
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            parser=parse_whole,
            metavar="BYTES",
            help="Most of each table: 65536, for incidence as needed.",
        ),
    ] = None,
    expected: Annotated[
        str | None,
        typer.Option(
            metavar="LO:HI", help="How many users to plan for; distinct: 1000:1e9 unless told."
        ),
    ] = None,
    delta: Annotated[
        str | None, typer.Option(metavar="COL", help="The column of whole-number deltas.")
    ] = None,
    deletions: Annotated[
        bool, typer.Option("--deletions", help="Deltas below 0 take users out.")
    ] = False,
    bound: Annotated[
        int | None,
        typer.Option(
            parser=parse_whole,
            metavar="Z",
            help="incidence, deletions: the largest sum of a user's deltas; others spoil answers.",
        ),
    ] = None,
    signed: Annotated[
        bool, typer.Option("--signed", help="Such sums may be below 0, down to -Z.")
    ] = False,
    exactly: Annotated[
        str | None,
        typer.Option(metavar="0:8", help="incidence: users that came exactly so often."),
    ] = None,
    at_least: Annotated[
        str | None, typer.Option(metavar="2,5", help="incidence: users that came so often or more.")
    ] = None,
    cropped_sum: Annotated[
        str | None, typer.Option(metavar="10", help="incidence: the sum of min(state, 10).")
    ] = None,
    releases: Annotated[
        int, typer.Option(help="How many answers epsilon covers; without --every one is made.")
    ] = 1,
    every: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Publish an answer so often.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="How often the interval is right.")] = 0.95,
    nulls: Annotated[Nulls, typer.Option(help="A row without a user id.")] = Nulls.error,
    format: Annotated[Format | None, typer.Option(help="Instead of the file's extension.")] = None,  # noqa: A002
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a release.")] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the answers and a seized state.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Public data only: show the truth and the rate too.")
    ] = False,
) -> None:
    """Count the users of a file, or of standard input as it arrives."""
    if sys.stdout is None:
        message = "standard output is closed: the answers would be lost"
        raise PlanError(message)
    names = stat or []
    sizes = Sizes(
        universe=universe,
        memory=None if memory is None else positive_integer(memory=memory),
        expected=None if expected is None else parse_expected(expected),
        bound=bound,
        signed=signed,
        deletions=deletions,
    )
    asked = Asked(
        parse_states("--exactly", exactly),
        parse_states("--at-least", at_least),
        parse_states("--cropped-sum", cropped_sum),
    )
    check_options(names, sizes, asked, delta)
    level = proportion(confidence=confidence)
    schedule = Schedule(positive_integer(releases=releases), every)
    ledger = Ledger(positive_fraction(epsilon=epsilon))
    statistics = make_statistics(names, sizes, schedule.releases, ledger)
    counting = Counting(statistics, ledger, asked, level)
    counting.check_asked()
    _check_plot(plot)
    numbered = Statistics.density in names or (Statistics.incidence in names and universe)
    columns = [Column(user, integers=bool(numbered))]
    columns += [Column(delta, integers=True)] if delta is not None else []
    intake = Intake(counting, nulls, deletions, Demonstration(sizes) if demo else None)
    answers = None
    with open_source(file, columns=columns, format=format and str(format)) as source:
        if every is not None and source.size is not None:
            message = "--every is for a pipe: a file is there at once, and has one answer"
            raise PlanError(message)
        for _ in _moments(source, intake, schedule):
            answers = intake.answers()
            (print_json if json else print_text)(answers)
    if plot is not None and answers is not None:
        _draw(plot, statistics, answers, deletions=deletions)


def _draw(
    plot: Path, statistics: dict[Statistics, Statistic], answers: Answers, *, deletions: bool
) -> None:
    from panprivacy.report import plot_answers  # noqa: PLC0415 - Matplotlib is slow to import

    plans = {str(name): one.plan for name, one in statistics.items()}
    truths = answers.facts.truth if answers.facts else None
    plot_answers(plot, plans, answers.releases, truths, deletions=deletions)


@dataclass
class Intake:
    """Takes batches in, and gives answers.

    Args:
        counting: the statistics.
        nulls: what to do with a row that has no user id.
        deletions: whether deltas may be below 0.
        demonstration: keeps the truth, for public data.
    """

    counting: Counting
    nulls: Nulls
    deletions: bool
    demonstration: Demonstration | None = None

    def take(self, batch: pa.RecordBatch, rows_before: int) -> None:
        """Count one batch; an error names the row, after so many rows before it."""
        try:
            users, deltas = self._columns(batch)
            for statistic in self.counting.statistics.values():
                statistic.update(users, deltas)
        except InputError as error:
            raise self._placed(error, batch).after(rows_before) from None
        if self.demonstration is not None:
            self.demonstration.observe(users, deltas, batch.num_rows)
        wipe_stack()

    def _columns(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array | None]:
        users = batch.column(0)
        deltas = batch.column(1) if batch.num_columns > 1 else None
        if self.nulls is Nulls.skip and users.null_count:
            known = users.is_valid()
            users = users.filter(known)
            deltas = None if deltas is None else deltas.filter(known)
        elif users.null_count:
            message = "the user id is null; use --nulls skip to leave such rows out"
            raise InputError(message, row=users.is_null().index(True).as_py() + 1)
        if deltas is not None:
            self._check_deltas(deltas, batch.schema.names[1])
        return users, deltas

    def _check_deltas(self, column: pa.Array, name: str) -> None:
        """Refuse what the statistics would refuse, in words that name the column."""
        try:
            deltas = read_deltas(column, len(column))
        except InputError as error:
            reason = f"column {show(name)}: {error.reason}"
            raise InputError(reason, row=error.row) from None
        if not self.deletions:
            wrong = "delta is below 0; say --deletions if users can leave"
            refuse_deltas(deltas < 0, wrong)

    def _placed(self, error: InputError, batch: pa.RecordBatch) -> InputError:
        """The error with its row in the batch, where skipped rows count too."""
        if error.row is None or self.nulls is not Nulls.skip:
            return error
        kept = np.flatnonzero(np.asarray(batch.column(0).is_valid()))
        return InputError(error.reason, row=int(kept[error.row - 1]) + 1)

    def answers(self) -> Answers:
        """One answer of each statistic."""
        releases = self.counting.release()
        statistics = {str(name): one for name, one in self.counting.statistics.items()}
        return Answers(
            releases,
            self.counting.ledger,
            sum(one.state_bytes for one in statistics.values()),
            self.demonstration.facts(statistics, releases) if self.demonstration else None,
        )


def _check_plot(plot: Path | None) -> None:
    """Refuse a picture that could not be written, before anything is counted."""
    if plot is None:
        return
    if plot.suffix.lower() != ".png":
        message = "--plot writes PNG: name a file that ends in .png"
        raise PlanError(message)
    try:
        plot.parent.mkdir(parents=True, exist_ok=True)
        plot.open("ab").close()
    except OSError as error:
        message = f"--plot cannot write {plot}: {error.strerror}"
        raise PlanError(message) from None


def _moments(source: Source, intake: Intake, schedule: Schedule) -> Iterator[None]:
    """Count the input, and yield whenever an answer is due; the last time at its end."""
    start, due = time.monotonic(), 1

    def deadline() -> float | None:
        if schedule.every is None or due >= schedule.releases:
            return None
        return start + due * schedule.every

    rows = 0  # of a file; a running count of a pipe's rows would be state
    with _progress(source) as advance, _rows_of(source):
        for batch in source.batches_or_ticks(deadline):
            if batch is None:
                due += 1
                yield
                continue
            intake.take(batch, rows)
            rows += batch.num_rows if source.size is not None else 0
            del batch  # ids are not held while a pipe is silent
            advance()
    yield


@contextmanager
def _rows_of(source: Source) -> Iterator[None]:
    """Say from where the row in an error is counted."""
    try:
        yield
    except InputError as error:
        if source.size is None and error.row is not None:
            reason = f"{error.reason} (the rows of a pipe are counted in each block that arrives)"
            raise InputError(reason, row=error.row) from None
        raise


@contextmanager
def _progress(source: Source) -> Iterator[Callable[[], None]]:
    """A bar in bytes, on a terminal, for input that takes a while."""
    if source.size is None or source.size < _LONG_BYTES or not sys.stderr.isatty():
        yield lambda: None
        return
    columns = BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=source.size)
        yield lambda: progress.update(task, completed=source.position)
