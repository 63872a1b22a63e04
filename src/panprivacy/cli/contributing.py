"""What `run --contribute` leaves in place of an answer: a sealed contribution, for `merge`."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from panprivacy.cli.output import Printed
from panprivacy.cli.publishing import Schedule
from panprivacy.errors import InputError, PlanError
from panprivacy.files import read_at_most, replace_file, unfinished
from panprivacy.programs.counting import Counting
from panprivacy.sealing import FRONT_BYTES, check_recipient, is_sealed, seal
from panprivacy.statistics.contribution import Form
from panprivacy.statistics.release import Answers

_MOST_KEY = 1 << 12


@dataclass(frozen=True)
class Contribution:
    """Where a contribution goes, and which form it has.

    Args:
        path: of the file.
        recipient: a public key of age.
        key: that shards share, if their cells are to be added up.
    """

    path: Path
    recipient: str
    key: bytes | None

    @classmethod
    def read(
        cls, path: Path | None, recipient: str | None, key: Path | None
    ) -> Contribution | None:
        """The options of a command; None without a path.

        Raises:
            PlanError: they do not go together, or the file is there or cannot be written.
            InputError: the key cannot be read.
        """
        if path is None:
            if recipient is not None or key is not None:
                message = "--recipient and --key are for --contribute FILE"
                raise PlanError(message)
            return None
        if recipient is None:
            message = "--contribute needs --recipient age1...: who holds its identity can merge"
            raise PlanError(message)
        check_recipient(recipient)
        _check_free(path)
        return cls(path, recipient, None if key is None else _read_key(key))

    @property
    def form(self) -> Form:
        """What is contributed."""
        return "sums" if self.key is None else "cells"

    @staticmethod
    def check(schedule: Schedule, *, shows_answers: bool) -> None:
        """Refuse what has answers of its own.

        Raises:
            PlanError: it has.
        """
        message = ""
        if schedule.releases > 1 or schedule.window is not None:
            message = "--contribute hands out one count: leave out --releases, --every and --window"
        elif shows_answers:
            message = "--demo and --plot show answers: leave them out with --contribute"
        if message:
            raise PlanError(message)

    def write(self, counting: Counting, *, complete: bool) -> None:
        """Hand out what was counted: on the disk when this returns, and counted no more.

        Args:
            counting: the statistics.
            complete: whether they have counted all; who merges is told.

        Raises:
            PlanError: there is a file now, such as that of another shard. Nothing was handed out.
        """
        _check_absent(self.path)
        parts = counting.parts(self.form)
        packed = b"".join(part.under(complete=complete).packed() for part in parts)
        replace_file(self.path, seal(packed, self.recipient))


class Contributing:
    """One count of everything, which is contributed at its end.

    Args:
        counting: the statistics.
        contribution: where it goes.
        confidence: of intervals that others will print.

    Raises:
        PlanError: what is counted cannot be merged.
    """

    def __init__(self, counting: Counting, contribution: Contribution, confidence: float) -> None:
        self._counting, self._contribution = counting, contribution
        self._confidence = confidence
        counting.check_parts(contribution.form)

    def counting(self) -> Counting:
        """The statistics."""
        return self._counting

    def deadline(self) -> None:
        """Nothing is due before the end."""
        return

    def due(self) -> Iterable[Printed]:
        """Nothing."""
        return []

    def last(self, *, complete: bool = True) -> Iterable[Printed]:
        """What is said of the contribution once it is written."""
        counting = self._counting
        guarantee = counting.guarantee.contributed("who opens the contribution has had that look")
        said = Printed(Answers([]), guarantee, counting.state_bytes, self._confidence)
        self._contribution.write(counting, complete=complete)
        return [said]

    def shows(self, *, as_json: bool) -> Callable[[Printed], None]:
        """How that is said."""
        path = self._contribution.path
        if as_json:
            return lambda said: print(
                json.dumps(
                    {
                        "contributed": str(path),
                        **said.guarantee.document(),
                        **({"interrupted": True} if said.interrupted else {}),
                    }
                )
            )
        return lambda said: print(
            f"Contributed to {path}: panprivacy merge reads it beside those of other shards.\n"
            f"Guarantee: {said.guarantee}."
        )


def _check_free(path: Path) -> None:
    """Refuse a file that could not be written, or is there, before anything is counted."""
    _check_absent(path)
    fresh = unfinished(path)
    try:
        if _was_left(fresh):
            fresh.unlink()
        os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        fresh.unlink()
    except FileExistsError:  # somebody's
        _check_absent(fresh)
        raise
    except OSError as error:
        message = f"--contribute cannot write {path}: {error.strerror}"
        raise PlanError(message) from None


def _was_left(fresh: Path) -> bool:
    """Whether a shard that was killed while it wrote has left this: sealed, or empty."""
    if not os.path.lexists(fresh) or not stat.S_ISREG(fresh.lstat().st_mode):
        return False
    with fresh.open("rb") as file:
        front = file.read(FRONT_BYTES)
    return not front or is_sealed(front)


def _check_absent(path: Path) -> None:
    """Refuse to write over a file."""
    if os.path.lexists(path):
        message = f"--contribute: there is a file {path} already: name another, or remove it"
        raise PlanError(message)


def _read_key(path: Path) -> bytes:
    try:
        return read_at_most(path, _MOST_KEY)
    except OSError as error:
        message = f"--key: {path}: {error.strerror}"
        raise InputError(message) from None
