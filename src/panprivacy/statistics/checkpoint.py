"""Sealed checkpoints: the only way for a state to outlive its process.

A plain copy of a state is a second look: the bits in which it differs from the live one were
redrawn in between. So states are written encrypted, to a recipient whose private key is elsewhere.
Whoever has both the key and the file has one more look: remove old files, and keep the key away.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from panprivacy.errors import InputError, PlanError
from panprivacy.ground.files import read_at_most, replace_file
from panprivacy.ground.sealing import (
    FRONT_BYTES,
    MOST_SEALED,
    check_recipient,
    is_sealed,
    seal,
    unseal,
)
from panprivacy.statistics.aggregation import Form
from panprivacy.statistics.containers import parted, resume_all
from panprivacy.statistics.private import Private, Stateful, memory_of

_CONTRIBUTED = b"panprivacy has contributed what was here\n"
_NOTHING = "a checkpoint is of one or more statistics"


class Checkpoint:
    """One sealed file with the latest states of some statistics, groups or windows, as a whole.

    >>> import panprivacy as pp
    >>> visitors = pp.DistinctCount(epsilon=1.0, expected=(1_000, 1_000_000))
    >>> checkpoint = pp.Checkpoint(
    ...     "visitors.sealed",
    ...     recipient="age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p",
    ... )
    >>> checkpoint.write([visitors])  # doctest: +SKIP

    When `write` returns, the new states are on the disk; until then the old ones are, whatever
    happens. The file holds the states one after another, each with its public front
    (`panprivacy explain --identity`), and its size tells nothing: states have fixed sizes.

    Guarantee: who does not have the identity learns nothing from the file, and not from any number
    of its versions. Who has it has seen the states in it: that is a look. While it is sealed a
    state is in memory as plain bytes; start the program as the launcher does, so that freed memory
    is overwritten. [tests/unit/test_checkpoint.py]

    Write on a clock: how often the file changes is public.

    Args:
        path: of the file. Its folder must be on one file system with it, and may be written to.
        recipient: a public key of age, `age1...`, whose private key is not on this machine.

    Raises:
        PlanError: the recipient is no such key.
    """

    __slots__ = ("_path", "_recipient")

    def __init__(self, path: Path | str, *, recipient: str) -> None:
        check_recipient(recipient)
        self._path, self._recipient = Path(path), recipient

    def write(self, statistics: Sequence[Stateful]) -> None:
        """Seal the states, and put them in place of those in the file.

        Raises:
            OSError: they cannot be written, as when the disk is full. The file is as it was.
        """
        if not statistics:
            raise PlanError(_NOTHING)
        states = b"".join(one.state() for one in statistics)
        replace_file(self._path, seal(states, self._recipient))

    def contribute(self, statistic: Private, form: Form = "sums", **asked: Any) -> bytes:
        """Hand out a contribution, recorded in the file before its release; see `merge`.

        Nobody has to tell a statistic that goes on from the file that it has contributed: the file
        has the state of after that, or a note in its place where no announced intrusion is left.

        Args:
            statistic: all that the file is of; put several `Together`.
            form: "sums", as `contribute` has them, or "cells", as `contribute_cells`.
            asked: the options of the release, except the confidence.

        Raises:
            PlanError: it cannot be merged. Nothing was changed.
            BudgetError: all planned releases have been made. Nothing was changed.
            OSError: the file cannot be written. It is as it was, nothing has left, and another
                statistic can go on from it.
        """
        internals = statistic.internals
        goes_on = internals.memory.announced < statistic.guarantee.intrusions
        packed = b"".join(part.packed() for part in internals.contributions.parts(form, **asked))
        after = seal(statistic.state(), self._recipient) if goes_on else _CONTRIBUTED
        replace_file(self._path, after)
        return packed

    def unsealed(self, identity: Path | str) -> bytes:
        """Return the states as plain bytes: access to them is an intrusion.

        Another process may resume them.

        Args:
            identity: a file with the private key, as age-keygen writes it.

        Raises:
            InputError: the file is damaged, sealed to another key, or plain, or what it held was
                contributed.
            OSError: a file cannot be read.
        """
        sealed = read_at_most(self._path, MOST_SEALED)
        if sealed == _CONTRIBUTED:
            message = "what this checkpoint held was contributed, and nothing is left: count anew"
            raise InputError(message)
        if not is_sealed(sealed[:FRONT_BYTES]):
            message = "the checkpoint is not sealed: whoever could read it may have; begin anew"
            raise InputError(message)
        return unseal(sealed, Path(identity))

    def resume(
        self,
        statistics: Sequence[Stateful],
        *,
        identity: Path | str,
        released: Sequence[int] | None = None,
        announced: Sequence[int] | None = None,
    ) -> None:
        """Let new statistics of the same plans go on from the file.

        The identity belongs on another machine; bring it for this call, and take it away again.

        Args:
            statistics: in the order in which they were written.
            identity: a file with the private key, as age-keygen writes it.
            released: the total number of releases of each, if some came after the file was written.
            announced: how many intrusions have been announced to each in all, if some were since.

        Raises:
            InputError: the file is damaged, sealed to another key, plain, or holds other
                statistics. Nothing was changed.
            OSError: a file cannot be read.
        """
        if not statistics:
            raise PlanError(_NOTHING)
        since = {"released": released, "announced": announced}
        counts = {name: made for name, made in since.items() if made is not None}
        wrong = [name for name, made in counts.items() if len(made) != len(statistics)]
        if wrong:
            message = f"{wrong[0]} needs one number for each of {len(statistics)} statistics"
            raise PlanError(message)
        memories = [memory_of(one) for one in statistics]
        resume_all(memories, parted(self.unsealed(identity), memories), **counts)
