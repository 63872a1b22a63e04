"""`panprivacy run`: a stream in, private numbers out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from panprivacy.cli.announcements import SignalledAnnouncements
from panprivacy.cli.contributing import Contributing, ContributionFile
from panprivacy.cli.demonstration import Demonstration
from panprivacy.cli.interruption import Interruption
from panprivacy.cli.options import check_output, check_picture, zones_like
from panprivacy.cli.output import Printed, print_json, print_text
from panprivacy.cli.picture import Picture
from panprivacy.cli.publishing import AnswerPublisher, InWindows, Schedule, Timed, publish
from panprivacy.cli.sketching import SketchFiles
from panprivacy.cli.stats import completed
from panprivacy.errors import PlanError
from panprivacy.ground.kernels import compile_kernels
from panprivacy.ground.parsing import parse_duration
from panprivacy.ground.validation import positive_fraction, positive_integer, proportion
from panprivacy.intake.programs.counting import (
    Counting,
    Grouping,
    check_needed,
    make_counting,
    numbered,
    steps_of,
)
from panprivacy.intake.programs.intake import Columns, Intake, Nulls
from panprivacy.intake.sources import FORMATS, Prefixes, Skips, Source, open_source
from panprivacy.intake.sources.columns import parse_prefixes
from panprivacy.statistics.abilities import caution
from panprivacy.statistics.specification import Specification, SpecificationError

Format = StrEnum("Format", {name: name for name in FORMATS})  # type: ignore[misc]

_ADDRESS_FIELD = "remote_addr"
"""First field of the combined log format: the address of the client."""

_counted = partial(typer.Option, rich_help_panel="What is counted")
_read = partial(typer.Option, rich_help_panel="What is read")
_when = partial(typer.Option, rich_help_panel="When answers leave")
_grouped = partial(typer.Option, rich_help_panel="Groups")
_shown = partial(typer.Option, rich_help_panel="How answers are shown")
_shared = partial(typer.Option, rich_help_panel="Shards, of which each counts a part")


def run(
    file: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Files, globs or a directory of Parquet, which are read in order; - is standard "
            "input.",
        ),
    ],
    epsilon: Annotated[str, _counted(help="Total privacy loss of everything kept and shown.")],
    user: Annotated[
        str | None,
        _read(metavar="COL", help="The column of user ids; not needed where events are counted."),
    ] = None,
    value: Annotated[
        str | None,
        _read(
            metavar="COL",
            help="The column of numbers: values of events, or amounts that users add, with unit=.",
        ),
    ] = None,
    stat: Annotated[
        list[str] | None,
        _counted(
            metavar="NAME,SIZE=N",
            autocompletion=completed,
            help="What to count, such as cropped-sum,tau=10,universe=50_000; may be repeated. "
            "panprivacy stats lists all.",
        ),
    ] = None,
    delta: Annotated[
        str | None, _read(metavar="COL", help="The column of whole-number deltas; 1 each.")
    ] = None,
    side: Annotated[
        str | None,
        _read(metavar="COL", help="The column that says which of two streams an event is of."),
    ] = None,
    releases: Annotated[
        int | None,
        _when(
            help="How many answers epsilon covers, 1 unless a horizon says it; without --every one "
            "is made."
        ),
    ] = None,
    intrusions: Annotated[
        int,
        _counted(
            metavar="K",
            help="How many announced intrusions epsilon covers; SIGUSR1 announces one.",
        ),
    ] = 0,
    every: Annotated[
        float | None, _when(metavar="SECONDS", help="Publish an answer so often.")
    ] = None,
    moves: Annotated[
        str | None,
        _when(
            metavar="N",
            help="--every: look so often, and publish only where the number has moved by so much.",
        ),
    ] = None,
    confidence: Annotated[float, _shown(help="How often the interval is right.")] = 0.95,
    window: Annotated[
        float | None,
        _when(
            parser=parse_duration,
            metavar="1d",
            help="A fresh count for each clock window; its answer at its end.",
        ),
    ] = None,
    zone: Annotated[
        str | None,
        _when(
            metavar="Europe/Paris",
            autocompletion=zones_like,
            help="--window: the time zone whose clock cuts windows, days of 23 and 25 hours "
            "included; UTC.",
        ),
    ] = None,
    windows: Annotated[
        int | None,
        _when(help="Say what a user of so many windows loses, one of them seen: a year."),
    ] = None,
    by: Annotated[
        str | None, _grouped(metavar="COL", help="A column of groups, counted apart.")
    ] = None,
    groups: Annotated[str | None, _grouped(metavar="a,b,c", help="All groups there are.")] = None,
    per_user: Annotated[
        int, _grouped(metavar="G", help="In how many groups one user may appear.")
    ] = 1,
    ignore_others: Annotated[
        bool, _grouped("--ignore-others", help="Leave out rows of other groups.")
    ] = False,
    nulls: Annotated[Nulls, _read(help="A row without a user id.")] = Nulls.error,
    skip_unreadable: Annotated[
        bool,
        _read(
            "--skip-unreadable",
            help="Leave out rows that cannot be read or counted, and say at the end how many.",
        ),
    ] = False,
    format: Annotated[  # noqa: A002
        Format | None, _read(help="Instead of the file's extension.")
    ] = None,
    pattern: Annotated[
        str | None,
        _read(metavar="REGEX", help="--format lines: its named groups are the columns."),
    ] = None,
    delimiter: Annotated[
        str | None,
        _read(metavar="CHAR", help="--format csv: between fields; else the header line tells."),
    ] = None,
    comment: Annotated[
        str | None,
        _read(metavar="CHAR", help="--format csv: lines that begin so are left out, such as #."),
    ] = None,
    ip: Annotated[
        bool | None,
        _read("--ip/--no-ip", help="Ids are IP addresses, however they are written."),
    ] = None,
    prefix: Annotated[
        Prefixes | None,
        _read(
            parser=parse_prefixes,
            metavar="24:56",
            help="Count prefixes of so many bits of IPv4:IPv6 addresses.",
        ),
    ] = None,
    json: Annotated[bool, _shown("--json", help="One JSON object a release.")] = False,
    plot: Annotated[
        Path | None,
        _shown(
            metavar="FILE.png",
            help="Draw the answers and a seized state; running counts as they run.",
        ),
    ] = None,
    demo: Annotated[
        bool, _shown("--demo", help="Public data only: show the truth and the rate too.")
    ] = False,
    contribute: Annotated[
        Path | None,
        _shared(metavar="FILE", help="Answer nothing: seal what is counted, for panprivacy merge."),
    ] = None,
    recipient: Annotated[
        str | None,
        _shared(metavar="age1...", help="The public key to which the contribution is sealed."),
    ] = None,
    key: Annotated[
        Path | None,
        _shared(
            metavar="FILE",
            help="A file of 16 or more random bytes. --contribute: cells, not sums, as users may "
            "be in several shards, which all have this file. --sketch: the public key of all "
            "windows, which is made if it is not there.",
        ),
    ] = None,
    sketch: Annotated[
        Path | None,
        _when(
            metavar="FILE",
            help="--stat overlap: the new file of its published table, for panprivacy overlap; "
            "with --window or --by a folder.",
        ),
    ] = None,
) -> None:
    """Count the users of files, or of standard input as it arrives."""
    check_output()
    contribution = ContributionFile.read(contribute, recipient, None if sketch else key)
    words = _words(file, user, value, epsilon)
    specifications = _specified(stat or [], words, deltas=delta is not None)
    covered = _covered(specifications, releases, every, window)
    schedule = Schedule(covered, every, window, windows, zone, _threshold(moves))
    grouping = _grouping(by, groups, per_user, ignore_others=ignore_others)
    _check_shows(contribution, schedule, grouping, demo=demo, plot=plot)
    sketches = _sketches(contribution, sketch, key, schedule, grouping, specifications)
    level = proportion(confidence=confidence)
    make = partial(
        make_counting,
        specifications,
        epsilon=positive_fraction(epsilon=epsilon),
        releases=schedule.releases,
        intrusions=intrusions,
        grouping=grouping,
        moves=schedule.moves,
        key=contribution.key if contribution else sketches.key,
    )
    _check_learns_nothing(specifications, window)
    compile_kernels()
    demonstration = Demonstration() if demo else None
    with _naming(specifications):
        publisher = _publisher(make, contribution, schedule, level, demonstration)
    named = {"user": user, "value": value, "delta": delta, "side": side}
    _check_counting(counting := publisher.counting(), level, **named)
    address = _prefixes(prefix, ip, known=format == "combined" and user == _ADDRESS_FIELD)
    columns = Columns.of(counting, **named, group=by, integers=numbered(counting), address=address)
    show = _shows(publisher, sketches, as_json=json)
    picture = None if plot is None else Picture(plot, publisher.counting, specifications)
    skips = Skips() if skip_unreadable else None
    form = {"format": format, "pattern": pattern, "delimiter": delimiter, "comment": comment}
    with open_source(*file, columns=columns.wanted(), skips=skips, **form) as source:
        _begin(source, schedule, sketches)
        intake = Intake(columns, nulls, demonstration)
        with Interruption(source) as interruption:
            lost = _show_all(source, intake, publisher, intrusions, show, picture)
    _end(skips, picture, interruption, sketches)
    raise typer.Exit(int(lost))


def _words(file: Sequence[str], user: str | None, value: str | None, epsilon: str) -> list[str]:
    """Return the words that an example command repeats."""
    given = {"--user": user, "--value": value, "--epsilon": epsilon}
    options = [part for option, word in given.items() if word for part in (option, word)]
    return [*file, *options]


def _check_counting(counting: Counting, confidence: float, **columns: str | None) -> None:
    """Check that answers can be released, and that the columns that they need are read.

    Args:
        counting: the statistics.
        confidence: of the intervals.
        columns: the names that `check_needed` takes.
    """
    counting.internals.releasing.check_release(confidence=confidence)
    check_needed(counting, **columns)
    _caution(counting)


def _end(
    skips: Skips | None,
    picture: Picture | None,
    interruption: Interruption,
    sketches: SketchFiles,
) -> None:
    """Say what was left out, draw the picture, and end as an interruption asks for."""
    if skips is not None:
        sys.stderr.write(f"panprivacy: {skips}\n")
    if picture is not None:
        picture.draw()
    interruption.end()
    sketches.end()


def _check_shows(
    contribution: ContributionFile | None,
    schedule: Schedule,
    grouping: Grouping | None,
    *,
    demo: bool,
    plot: Path | None,
) -> None:
    """Check that a contribution, a demonstration and a picture go with the rest."""
    if contribution is not None:
        contribution.check(schedule, shows_answers=demo or plot is not None)
    if (demo or plot) and not (schedule.window is None and grouping is None):
        message = "--demo and --plot are for one count of everything: leave out --window and --by"
        raise PlanError(message)
    check_picture(plot)


def _sketches(
    contribution: ContributionFile | None,
    path: Path | None,
    key: Path | None,
    schedule: Schedule,
    grouping: Grouping | None,
    specifications: Sequence[Specification],
) -> SketchFiles:
    """Return the files of published tables; a contribution publishes none."""
    if contribution is None:
        return SketchFiles.read(path, key, schedule, grouping, specifications)
    if path is not None:
        message = "--sketch publishes tables, and --contribute publishes nothing: leave one out"
        raise PlanError(message)
    return SketchFiles()


def _show_all(
    source: Source,
    intake: Intake,
    publisher: AnswerPublisher,
    intrusions: int,
    show: Callable[[Printed], None],
    picture: Picture | None,
) -> bool:
    """Count a source and show its answers as they come; return whether one of them is lost."""
    lost = False
    with SignalledAnnouncements(source, publisher.counting, intrusions) as looks:
        for printed in publish(source, intake, publisher, looks.take):
            show(printed)
            if picture is not None:
                picture.add(printed)
            lost = lost or bool(printed.answers.lost)
    return lost


def _publisher(
    make: Callable[..., Counting],
    contribution: ContributionFile | None,
    schedule: Schedule,
    confidence: float,
    demonstration: Demonstration | None,
) -> AnswerPublisher:
    """Return the publisher of answers, or of a contribution in their place."""
    if contribution is not None:
        return Contributing(make(), contribution, confidence)
    if schedule.window is None:
        return Timed(make(), schedule, confidence, demonstration)
    return InWindows(make, schedule, confidence)


def _shows(
    publisher: AnswerPublisher, sketches: SketchFiles, *, as_json: bool
) -> Callable[[Printed], None]:
    """Return the function that prints answers, or the message in their place."""
    if isinstance(publisher, Contributing):
        return publisher.shows(as_json=as_json)
    show = print_json if as_json else print_text
    return lambda printed: show(sketches.write(printed))


def _check_learns_nothing(specifications: Sequence[Specification], window: float | None) -> None:
    """Check that no size is learned if there is only one count."""
    for one in specifications if window is None else ():
        for name in one.sizes.learned:
            message = f"{name}=learn is for --window: one count has nothing to learn from; say it, "
            message += f"such as {name}={one.sizes.fields()[name].example}"
            raise PlanError(message)


def _caution(counting: Counting) -> None:
    """Warn about the effect of announced intrusions on counters, if any are planned."""
    for label, one in counting.statistics.items():
        if counting.guarantee.intrusions and (said := caution(one.plan)) is not None:
            sys.stderr.write(f"panprivacy: {label}: {said}\n")


def _specified(stat: Sequence[str], words: Sequence[str], *, deltas: bool) -> list[Specification]:
    """Return the specifications; without any, raise an error with a complete example command."""
    if not stat:
        command = shlex.join(["panprivacy", "run", *words])
        message = f"say what to count, such as: {command} --stat distinct,expected=1000:1e6"
        raise PlanError(message)
    found = [Specification.from_text(text) for text in stat]
    return found if deltas else [one.without_deltas() for one in found]


@contextmanager
def _naming(specifications: Sequence[Specification]) -> Iterator[None]:
    """Add the statistic to an error, if there are several."""
    try:
        yield
    except SpecificationError as error:
        if len(specifications) == 1:
            raise
        message = f"{specifications[error.position].label}: {error.reason}"
        raise PlanError(message) from None


def _prefixes(prefix: Prefixes | None, ip: bool | None, *, known: bool) -> Prefixes | None:
    """Return the prefix lengths of addresses; None if ids are no addresses, as far as is known."""
    if prefix is not None and ip is False:
        message = "--prefix is for IP addresses: leave out --no-ip"
        raise PlanError(message)
    return prefix or (Prefixes() if ip or (ip is None and known) else None)


def _grouping(
    by: str | None, groups: str | None, per_user: int, *, ignore_others: bool
) -> Grouping | None:
    """Return the groups that are counted separately, if any."""
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


def _begin(source: Source, schedule: Schedule, sketches: SketchFiles) -> None:
    """Check that a source goes with a clock, and write the key of published tables."""
    _check_clock(source, schedule)
    sketches.begin()


def _check_clock(source: Source, schedule: Schedule) -> None:
    if source.size is None:
        return
    if schedule.every is not None:
        message = "--every is for a pipe: a file is there at once, and has one answer"
        raise PlanError(message)
    if schedule.window is not None:
        message = "--window is for a pipe: a file is there at once, whenever its events were"
        raise PlanError(message)


def _threshold(moves: str | None) -> Fraction | None:
    """Return the threshold of a change that is published; None if every answer is."""
    return None if moves is None else positive_fraction(moves=moves)


def _covered(
    specifications: Sequence[Specification],
    releases: int | None,
    every: float | None,
    window: float | None,
) -> int:
    """Return the number of answers: the requested one, or that of the sizes."""
    steps = steps_of(specifications)
    if steps is None:
        return positive_integer(releases=1 if releases is None else releases)
    message = ""
    if releases is not None:
        message = "horizon= says how many answers there are: leave out --releases"
    elif len({one.sizes.steps for one in specifications} - {None}) > 1:
        message = "running counts that answer together need the same horizon="
    elif every is not None and steps < 2:
        message = "--every needs a horizon= of at least 2: the last answer comes at the end"
    elif window is not None and steps > 1:
        message = "a running count goes on where a window begins anew: say --every for --window, "
        message += "or horizon=1 for a count of each window"
    if message:
        raise PlanError(message)
    return steps
