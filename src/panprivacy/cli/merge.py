"""`panprivacy merge`: the sealed contributions of several machines in, one private answer out."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from panprivacy.cli.options import check_output, check_picture
from panprivacy.cli.output import Printed, json_line, print_json, print_text
from panprivacy.errors import InputError, PlanError
from panprivacy.ground.files import read_rest, replace_files, sync_names
from panprivacy.ground.kernels import compile_kernels
from panprivacy.ground.sealing import FRONT_BYTES, MOST_SEALED, is_sealed, unseal
from panprivacy.ground.validation import proportion
from panprivacy.privacy.coins import SystemCoins
from panprivacy.statistics.merging import Merger
from panprivacy.statistics.release import Answers

_SPENT = b"panprivacy has merged this contribution"
_WAS_MERGED = "was merged already: once more would be another release of its users"
_NONE = "is no sealed contribution, as run --contribute writes it"


def merge(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="What run --contribute has written.")
    ],
    identity: Annotated[
        Path, typer.Option(metavar="FILE", help="The age identity that opens them.")
    ],
    confidence: Annotated[float, typer.Option(help="How often the interval is right.")] = 0.95,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say the price and the guarantee; release nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the answers and a seized state.")
    ] = None,
) -> None:
    """Join what several shards contributed, and answer once; the contributions are spent."""
    check_output()
    level = proportion(confidence=confidence)
    _check_once(files)
    check_picture(plot)
    with ExitStack() as held:  # no other program merges them until there is an answer
        merger = Merger([held.enter_context(_opened(file, identity)) for file in files])
        for remark in merger.remarks:
            sys.stderr.write(f"panprivacy: {remark}\n")
        if explain:
            typer.echo(f"Guarantee: {merger.guarantee}.")
            return
        if plot is not None and merger.guarantee.groups is not None:
            message = "--plot is for one count of everything, and these are counted by group"
            raise PlanError(message)
        compile_kernels()
        merged = held.enter_context(_merged_with(identity))
        _check_new(files, merger, merged, identity)
        printed = _answered(merger, level)
        # before any output: after a crash the answer is in what this writes
        _spend(files, merger, merged, json_line(printed))
    (print_json if json else print_text)(printed)
    if plot is not None:
        _draw(plot, merger, printed.answers)
    raise typer.Exit(int(printed.answers.lost))


def _answered(merger: Merger, confidence: float) -> Printed:
    """Make the one release of the contributions; nothing is printed."""
    answers = merger.answers(confidence, SystemCoins())
    return Printed(
        answers, merger.guarantee, merger.state_bytes, confidence, interrupted=not merger.complete
    )


def _check_once(files: Sequence[Path]) -> None:
    """Check that no file is named twice."""
    found = [file.resolve() for file in files]
    for place, file in enumerate(found):
        if file in found[:place]:
            message = f"{files[place]} is named twice: its users would count twice"
            raise PlanError(message)


@contextmanager
def _opened(file: Path, identity: Path) -> Iterator[bytes]:
    """Open a contribution and yield its content; until the end no other merge opens it."""
    # for writing, as some network file systems require that for locks; do not wait for a pipe
    mode = os.O_RDWR if os.access(file, os.W_OK) else os.O_RDONLY
    with os.fdopen(os.open(file, mode | os.O_NONBLOCK), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            message = f"{file} {_NONE}"
            raise InputError(message)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"{file} is open in another merge: wait until that has ended"
            raise InputError(message) from None
        if not os.path.samestat(os.fstat(opened.fileno()), file.stat()):
            message = f"{file} was replaced while it was opened, as another merge does: try again"
            raise InputError(message)
        yield _unsealed(file, _read(file, opened), identity)


def _read(file: Path, opened: BinaryIO) -> bytes:
    """Read a contribution."""
    try:
        return read_rest(opened, MOST_SEALED)
    except InputError as error:
        message = f"{file}: {error.reason}"
        raise InputError(message) from None


def _unsealed(file: Path, data: bytes, identity: Path) -> bytes:
    """Return the unsealed content."""
    if data.startswith(_SPENT):
        message = f"{file} {_WAS_MERGED}; the answer is in that file"
        raise InputError(message)
    if not is_sealed(data[:FRONT_BYTES]):
        message = f"{file} {_NONE}"
        raise InputError(message)
    try:
        return unseal(data, identity)
    except InputError as error:
        message = f"{file}: {error.reason}"
        raise InputError(message) from None


@contextmanager
def _merged_with(identity: Path) -> Iterator[int | None]:
    """Open the list of contributions merged with an identity, beside it; yield None if impossible.

    Each line has the random numbers of contributions, by which copies of merged ones are
    recognised, and their answer as JSON.
    """
    beside = _beside(identity)
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        listed = os.open(beside, flags, 0o600)
        # or a power cut loses a new list, but not the spent contributions
        sync_names(beside.parent)
    except OSError as error:
        if os.path.lexists(beside):  # it may list these files, and would be ignored
            message = f"{beside}, the list of what was merged, cannot be written: {error.strerror}"
            message += "; mend that, and merge again: nothing is spent"
            raise InputError(message) from None
        # for example if the identity comes through a pipe
        sys.stderr.write(
            f"panprivacy: cannot keep {beside}, the list of what was merged: {error.strerror}; "
            "remove copies of these files, as they could be merged once more\n"
        )
        yield None
        return
    try:
        fcntl.flock(listed, fcntl.LOCK_EX)
        yield listed
    finally:
        os.close(listed)


def _beside(identity: Path) -> Path:
    """Return the path of the list of contributions merged with an identity."""
    file = identity.resolve()
    return file.with_name(f"{file.name}.merged")


def _check_new(files: Sequence[Path], merger: Merger, merged: int | None, identity: Path) -> None:
    """Check that no contribution is a copy of one that was merged before."""
    if merged is None:
        return
    known = set(_complete_lines(merged).split())
    for file, ids in zip(files, merger.ids, strict=True):
        if any(one.encode() in known for one in ids):
            message = f"{file} is a copy of a contribution that {_WAS_MERGED}; its answer is in "
            message += _beside(identity).name
            raise InputError(message)


def _complete_lines(merged: int) -> bytes:
    """Return the list, without a last line that a crash has cut: it spent nothing."""
    data = os.pread(merged, os.fstat(merged).st_size, 0)
    return data[: data.rfind(b"\n") + 1]


def _spend(files: Sequence[Path], merger: Merger, merged: int | None, answer: str) -> None:
    """Replace each contribution by a note with the answer, and list it; spend none if that fails.

    Args:
        files: paths of the contributions.
        merger: the contributions.
        merged: the open list; None if there is none.
        answer: the answer as JSON; it is public once this returns.
    """
    before = 0 if merged is None else len(_complete_lines(merged))
    try:
        if merged is not None:
            os.ftruncate(merged, before)
            line = f"{' '.join(one for ids in merger.ids for one in ids)} {answer}\n".encode()
            if os.write(merged, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # noqa: TRY301
            os.fsync(merged)
        # the target of a link: replacing the link alone would leave the contribution there
        note = _SPENT + b": its release is spent. The answer:\n" + answer.encode() + b"\n"
        replace_files([file.resolve() for file in files], note)
    except BaseException:
        if merged is not None:
            os.ftruncate(merged, before)
        raise


def _draw(plot: Path, merger: Merger, answers: Answers) -> None:
    """Draw the answers that are not lost."""
    from panprivacy.intake.programs.pictures import plot_answers  # noqa: PLC0415 - slow

    found = {name.statistic for name, one in answers.items() if one is not None}
    statistics = {label: one for label, one in merger.statistics.items() if label in found}
    if statistics:
        plot_answers(plot, statistics, answers)
