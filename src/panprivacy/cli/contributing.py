"""Sealed contribution of `run --contribute`, in place of an answer, for `merge`."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from panprivacy.cli.options import read_key
from panprivacy.cli.output import Printed
from panprivacy.cli.publishing import Schedule
from panprivacy.errors import PlanError
from panprivacy.ground.files import replace_file, unfinished
from panprivacy.ground.sealing import FRONT_BYTES, check_recipient, is_sealed, seal
from panprivacy.intake.programs.counting import Counting
from panprivacy.statistics.aggregation import Form
from panprivacy.statistics.release import Answers


@dataclass(frozen=True)
class ContributionFile:
    """File and form of a contribution.

    Args:
        path: path of the file.
        recipient: a public key of age.
        key: key that shards share, if their cells are to be summed.
    """

    path: Path
    recipient: str
    key: bytes | None

    @classmethod
    def read(
        cls, path: Path | None, recipient: str | None, key: Path | None
    ) -> ContributionFile | None:
        """Check the options of a command and return the contribution; None without a path.

        Raises:
            PlanError: they are inconsistent, or the file exists or cannot be written.
            InputError: the key cannot be read.
        """
        if path is None:
            if recipient is not None or key is not None:
                message = "--recipient and --key are for --contribute FILE; --key also for --sketch"
                raise PlanError(message)
            return None
        if recipient is None:
            message = "--contribute needs --recipient age1...: who holds its identity can merge"
            raise PlanError(message)
        check_recipient(recipient)
        _check_free(path)
        return cls(path, recipient, None if key is None else read_key(key))

    @property
    def form(self) -> Form:
        """Form of the contribution."""
        return "sums" if self.key is None else "cells"

    @staticmethod
    def check(schedule: Schedule, *, shows_answers: bool) -> None:
        """Check that a command has no answers besides the contribution.

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
        """Write the contribution to the disk before this returns, and end the counting.

        Args:
            counting: the statistics.
            complete: whether they have counted everything; stored for `merge`.

        Raises:
            PlanError: the file exists now, for example that of another shard. Nothing was written.
        """
        _check_absent(self.path)
        parts = counting.internals.contributions.parts(self.form)
        packed = b"".join(part.under(complete=complete).packed() for part in parts)
        replace_file(self.path, seal(packed, self.recipient))


class Contributing:
    """One count of everything, which is contributed at its end.

    Args:
        counting: the statistics.
        contribution: file and form of the contribution.
        confidence: confidence level of the intervals that others will print.

    Raises:
        PlanError: the statistics cannot be merged.
    """

    def __init__(
        self, counting: Counting, contribution: ContributionFile, confidence: float
    ) -> None:
        self._counting, self._contribution = counting, contribution
        self._confidence = confidence
        counting.internals.contributions.check_parts(contribution.form)

    def counting(self) -> Counting:
        """Return the statistics."""
        return self._counting

    def deadline(self) -> None:
        """Return None: nothing is due before the end."""
        return

    def due(self) -> Iterable[Printed]:
        """Return nothing."""
        return []

    def last(self, *, complete: bool = True) -> Iterable[Printed]:
        """Write the contribution, and return the message about it."""
        counting = self._counting
        guarantee = counting.guarantee.contributed("who opens the contribution has had that look")
        said = Printed(
            Answers([]), guarantee, counting.internals.memory.state_bytes, self._confidence
        )
        self._contribution.write(counting, complete=complete)
        return [said]

    def shows(self, *, as_json: bool) -> Callable[[Printed], None]:
        """Return the function that prints the message."""
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
    """Check, before anything is counted, that the file can be written and does not exist."""
    _check_absent(path)
    fresh = unfinished(path)
    try:
        if _was_left(fresh):
            fresh.unlink()
        os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        fresh.unlink()
    except FileExistsError:  # of another program
        _check_absent(fresh)
        raise
    except OSError as error:
        message = f"--contribute cannot write {path}: {error.strerror}"
        raise PlanError(message) from None


def _was_left(fresh: Path) -> bool:
    """Return whether a shard that was killed while writing has left this: sealed, or empty."""
    if not os.path.lexists(fresh) or not stat.S_ISREG(fresh.lstat().st_mode):
        return False
    with fresh.open("rb") as file:
        front = file.read(FRONT_BYTES)
    return not front or is_sealed(front)


def _check_absent(path: Path) -> None:
    """Check that no file would be overwritten."""
    if os.path.lexists(path):
        message = f"--contribute: there is a file {path} already: name another, or remove it"
        raise PlanError(message)
