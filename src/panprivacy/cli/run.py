"""`panprivacy run`: a stream in, private numbers out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from panprivacy._validate import positive_fraction, positive_integer, proportion
from panprivacy.cli.demonstration import Demonstration
from panprivacy.cli.options import Expected, Statistics, parse_expected
from panprivacy.cli.output import Answers, print_json, print_text
from panprivacy.errors import InputError, PlanError
from panprivacy.guarantee import Ledger
from panprivacy.planning import DensityPlan, DistinctPlan, check_useful
from panprivacy.sources import FORMATS, Column, Source, open_source
from panprivacy.statistics import Density, DistinctCount

Statistic = Density | DistinctCount
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
        int | None, typer.Option(help="density: the ids are 0 to UNIVERSE-1.")
    ] = None,
    memory: Annotated[int, typer.Option(metavar="BYTES", help="Table of each statistic.")] = 65_536,
    expected: Annotated[
        str, typer.Option(metavar="LO:HI", help="distinct: how many users to plan for.")
    ] = "1000:1000000000",
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
    level = proportion(confidence=confidence)
    schedule = Schedule(positive_integer(releases=releases), every)
    ledger = Ledger(positive_fraction(epsilon=epsilon))
    sizes = Sizes(universe, positive_integer(memory=memory), parse_expected(expected))
    statistics = _make(stat or [], sizes, schedule.releases, ledger)
    _check_plot(plot)
    column = Column(user, integers=Statistics.density in statistics)
    demonstration = Demonstration(universe) if demo else None
    show = print_json if json else print_text
    answers = None
    with open_source(file, columns=[column], format=format and str(format)) as source:
        if every is not None and source.size is not None:
            message = "--every is for a pipe: a file is there at once, and has one answer"
            raise PlanError(message)
        for _ in _moments(source, statistics, schedule, nulls, demonstration):
            answers = Answers(
                {str(name): one.release(confidence=level) for name, one in statistics.items()},
                ledger,
                sum(one.state_bytes for one in statistics.values()),
            )
            show(answers, demonstration)
    if plot is not None and answers is not None:
        plans = {
            str(name): one.plan
            for name, one in statistics.items()
            if isinstance(one.plan, DensityPlan | DistinctPlan)
        }
        truths = demonstration.facts().truth if demonstration else None
        from panprivacy.report import plot_answers  # noqa: PLC0415 - Matplotlib is slow to import

        plot_answers(plot, plans, answers.releases, truths)


@dataclass(frozen=True)
class Sizes:
    """What the user said of the size of the problem."""

    universe: int | None
    memory: int
    expected: Expected


def _make(
    names: list[Statistics], sizes: Sizes, releases: int, ledger: Ledger
) -> dict[Statistics, Statistic]:
    """The statistics, sharing epsilon equally."""
    if not names:
        message = "say what to count: --stat distinct, --stat density, or both"
        raise PlanError(message)
    if len(set(names)) < len(names):
        message = "each --stat may be named once"
        raise PlanError(message)
    share = ledger.total / len(names)
    statistics = {name: _make_one(name, share, sizes, releases, ledger) for name in names}
    for statistic in statistics.values():
        check_useful(statistic.plan)
    return statistics


def _make_one(
    name: Statistics, epsilon: Fraction, sizes: Sizes, releases: int, ledger: Ledger
) -> Statistic:
    if name is Statistics.distinct:
        return DistinctCount(
            epsilon=epsilon,
            expected=sizes.expected,
            memory=sizes.memory,
            releases=releases,
            ledger=ledger,
        )
    if sizes.universe is None:
        message = "--stat density needs --universe: how many users there could be"
        raise PlanError(message)
    universe = positive_integer(universe=sizes.universe)
    cells = min(universe, 8 * sizes.memory)
    return Density(
        universe=universe, epsilon=epsilon, cells=cells, releases=releases, ledger=ledger
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


def _moments(
    source: Source,
    statistics: dict[Statistics, Statistic],
    schedule: Schedule,
    nulls: Nulls,
    demonstration: Demonstration | None,
) -> Iterator[None]:
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
            _count(batch, statistics, nulls, demonstration, rows)
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


def _count(
    batch: pa.RecordBatch,
    statistics: dict[Statistics, Statistic],
    nulls: Nulls,
    demonstration: Demonstration | None,
    rows_before: int,
) -> None:
    users = batch.column(0)
    if nulls is Nulls.skip and users.null_count:
        users = users.drop_null()
    elif users.null_count:
        message = "the user id is null; use --nulls skip to leave such rows out"
        row = users.is_null().index(True).as_py() + 1
        raise InputError(message, row=rows_before + row)
    try:
        for statistic in statistics.values():
            statistic.update(users)
    except InputError as error:
        raise error.after(rows_before) from None
    if demonstration is not None:
        demonstration.observe(users, batch.num_rows)


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
