"""`panprivacy run`: a stream in, private numbers out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from panprivacy._kernels import compile_kernels
from panprivacy._parse import (
    parse_duration,
    parse_expected,
    parse_prefixes,
    parse_states,
    parse_whole,
)
from panprivacy._validate import positive_fraction, positive_integer, proportion
from panprivacy.cli.demonstration import Demonstration
from panprivacy.cli.options import check_png
from panprivacy.cli.output import Answers, print_json, print_text
from panprivacy.cli.publishing import InWindows, Schedule, Timed, publish
from panprivacy.counting import Counting, make_counting
from panprivacy.errors import PlanError
from panprivacy.intake import Columns, Intake, Nulls
from panprivacy.options import Asked, Grouping, Sizes, Statistics, check_options
from panprivacy.sources import FORMATS, Column, Prefixes, Source, open_source

Format = StrEnum("Format", {name: name for name in FORMATS})  # type: ignore[misc]


_ADDRESS_FIELD = "remote_addr"
"""What the combined log format says first: the address of the client."""


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
            parser=parse_whole,
            metavar="N",
            help="density, incidence, cropped-sum, threshold: the ids are 0 to N-1.",
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            parser=parse_whole,
            metavar="BYTES",
            help="Most of each table: 65536; for counters as many as needed.",
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
            help="incidence, cropped-sum, threshold, deletions: the largest sum of a user's "
            "deltas; others spoil answers. Unless told 64 times tau or least.",
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
    tau: Annotated[
        int | None,
        typer.Option(parser=parse_whole, help="cropped-sum: the most that a user counts for."),
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
        typer.Option(
            parser=parse_whole,
            metavar="N",
            help="heavy-hitters: what all deltas add up to, which is public.",
        ),
    ] = None,
    releases: Annotated[
        int, typer.Option(help="How many answers epsilon covers; without --every one is made.")
    ] = 1,
    every: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Publish an answer so often.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="How often the interval is right.")] = 0.95,
    window: Annotated[
        float | None,
        typer.Option(
            parser=parse_duration,
            metavar="1d",
            help="A fresh count for each clock window (UTC); its answer at its end.",
        ),
    ] = None,
    windows: Annotated[
        int | None,
        typer.Option(help="Say what a user of so many windows loses, one of them seen: 365."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="COL", help="A column of groups, counted apart.")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(metavar="a,b,c", help="All groups there are.")
    ] = None,
    per_user: Annotated[
        int, typer.Option(metavar="G", help="In how many groups one user may appear.")
    ] = 1,
    ignore_others: Annotated[
        bool, typer.Option("--ignore-others", help="Leave out rows of other groups.")
    ] = False,
    nulls: Annotated[Nulls, typer.Option(help="A row without a user id.")] = Nulls.error,
    format: Annotated[Format | None, typer.Option(help="Instead of the file's extension.")] = None,  # noqa: A002
    pattern: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="--format lines: its named groups are the columns."),
    ] = None,
    ip: Annotated[
        bool | None,
        typer.Option("--ip/--no-ip", help="Ids are IP addresses, however they are written."),
    ] = None,
    prefix: Annotated[
        Prefixes | None,
        typer.Option(
            parser=parse_prefixes,
            metavar="24:56",
            help="Count prefixes of so many bits of IPv4:IPv6 addresses.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a release.")] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the answers and a seized state.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Public data only: show the truth and the rate too.")
    ] = False,
) -> None:
    """Count the users of a file, or of standard input as it arrives."""
    _check_output()
    names, asked = stat or [], _asked(exactly, at_least, cropped_sum)
    sizes = Sizes(
        universe=universe,
        memory=None if memory is None else positive_integer(memory=memory),
        expected=None if expected is None else parse_expected(expected),
        bound=bound,
        signed=signed,
        deletions=deletions,
        tau=tau,
        least=least,
        k=k,
        total=total,
    )
    check_options(names, sizes, asked, delta)
    schedule = Schedule(positive_integer(releases=releases), every, window, windows)
    grouping = _grouping(by, groups, per_user, ignore_others=ignore_others)
    if demo or plot:
        _check_single(schedule, grouping)
    make = partial(
        make_counting, names, sizes, asked, grouping, schedule.releases,
        epsilon=positive_fraction(epsilon=epsilon), confidence=proportion(confidence=confidence),
    )  # fmt: skip
    demonstration = Demonstration(deletions=deletions) if demo else None
    publisher = (
        Timed(make(), schedule, demonstration) if window is None else InWindows(make, schedule)
    )
    publisher.counting().check_release()
    _check_plot(plot)
    address = _prefixes(prefix, ip=_are_addresses(user, format) if ip is None else ip)
    users = Column(user, integers=_are_numbers(names, sizes), address=address)
    columns = _columns(users, delta, by)
    kind = format and str(format)
    compile_kernels()
    with open_source(file, columns=columns.wanted(), format=kind, pattern=pattern) as source:
        _check_clock(source, schedule)
        intake = Intake(columns, nulls, deletions, demonstration)
        printed = _printed(publish(source, intake, publisher), print_json if json else print_text)
    if plot is not None:
        _draw(plot, publisher.counting(), printed[-1], deletions=deletions)
    if any(answers.lost for answers in printed):
        raise typer.Exit(1)


def _asked(exactly: str | None, at_least: str | None, cropped_sum: str | None) -> Asked:
    """What an incidence count is to release."""
    return Asked(
        parse_states("exactly", exactly),
        parse_states("at_least", at_least),
        parse_states("cropped_sum", cropped_sum),
    )


def _columns(users: Column, delta: str | None, by: str | None) -> Columns:
    """What is read of each row."""
    return Columns(
        users,
        None if delta is None else Column(delta, integers=True),
        None if by is None else Column(by),
    )


def _printed(published: Iterable[Answers], show: Callable[[Answers], None]) -> list[Answers]:
    """Print answers as they come, and keep the last one, and one that is lost."""
    kept: list[Answers] = []
    for answers in published:
        show(answers)
        kept = [*[one for one in kept if one.lost][:1], answers]
    return kept


def _are_addresses(user: str, form: Format | None) -> bool | None:
    """Whether the ids are known to be IP addresses; None if nobody knows."""
    return True if form == "combined" and user == _ADDRESS_FIELD else None


def _are_numbers(names: list[Statistics], sizes: Sizes) -> bool:
    """Whether the ids number the users of a universe."""
    return Statistics.density in names or sizes.universe is not None


def _grouping(
    by: str | None, groups: str | None, per_user: int, *, ignore_others: bool
) -> Grouping | None:
    """The groups that are counted apart, if any."""
    if (by is None) != (groups is None):
        message = "--by COL and --groups a,b,c go together: which column, and which groups it has"
        raise PlanError(message)
    if groups is None:
        if per_user != 1 or ignore_others:
            message = "--per-user and --ignore-others are for --by and --groups"
            raise PlanError(message)
        return None
    labels = [label.strip() for label in groups.split(",")]
    if not all(labels):
        message = "--groups has an empty name between its commas"
        raise PlanError(message)
    return Grouping(labels, per_user, ignore_others)


def _prefixes(prefix: Prefixes | None, *, ip: bool | None) -> Prefixes | None:
    """How much of the addresses counts; None if ids are no addresses."""
    if prefix is not None and ip is False:
        message = "--prefix is for IP addresses: leave out --no-ip"
        raise PlanError(message)
    return prefix or (Prefixes() if ip else None)


def _check_single(schedule: Schedule, grouping: Grouping | None) -> None:
    if schedule.window is not None or grouping is not None:
        message = "--demo and --plot are for one count of everything: leave out --window and --by"
        raise PlanError(message)


def _check_clock(source: Source, schedule: Schedule) -> None:
    if source.size is None:
        return
    if schedule.every is not None:
        message = "--every is for a pipe: a file is there at once, and has one answer"
        raise PlanError(message)
    if schedule.window is not None:
        message = "--window is for a pipe: a file is there at once, whenever its events were"
        raise PlanError(message)


def _draw(plot: Path, counting: Counting, answers: Answers, *, deletions: bool) -> None:
    from panprivacy.report import plot_answers  # noqa: PLC0415 - Matplotlib is slow to import

    releases = {name: answer for name, _, answer in answers.each() if answer is not None}
    plans = {name: one.plan for name, one in counting.statistics.items() if name in releases}
    truths = answers.facts.truth if answers.facts else None
    plot_answers(plot, plans, releases, truths, deletions=deletions)


def _check_output() -> None:
    """Refuse to count for nobody."""
    if sys.stdout is None:
        message = "standard output is closed: the answers would be lost"
        raise PlanError(message)


def _check_plot(plot: Path | None) -> None:
    """Refuse a picture that could not be written, before anything is counted."""
    if plot is None:
        return
    check_png(plot)
    try:
        plot.parent.mkdir(parents=True, exist_ok=True)
        plot.open("ab").close()
    except OSError as error:
        message = f"--plot cannot write {plot}: {error.strerror}"
        raise PlanError(message) from None
