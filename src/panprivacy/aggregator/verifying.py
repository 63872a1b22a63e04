"""What both servers do with the rows of some reports: open them, and verify those that are new."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from panprivacy.aggregator.store import Opened
from panprivacy.federated import shares
from panprivacy.federated.elgamal import DecryptionKey
from panprivacy.federated.task import Task
from panprivacy.vdaf import Prio3Count, Verification

_REFUSED: Final = b"\xff" * Prio3Count.VERIFIER_BYTES
"""No verifier share of anything, so that the other server refuses as well."""


class Verified(NamedTuple):
    """One server's half of the verification of reports.

    Args:
        outputs: its shares, of shape (reports, answers).
        verifiers: what the other server needs of each report, `VERIFIER_BYTES` for each answer.
        valid: which may be accepted.
    """

    outputs: NDArray[np.uint64]
    verifiers: tuple[bytes, ...]
    valid: NDArray[np.bool_]


class Rows:
    """One server's rows of some reports, opened.

    Args:
        task: of the reports.
        names: their ids.
        rows: one for each; what has not the length of the task's rows is unreadable.
        open_row: `shares.open_leader` or `shares.open_helper`.
        key: with which it opens.
    """

    def __init__(
        self,
        task: Task,
        names: Sequence[bytes],
        rows: Sequence[bytes],
        open_row: Callable[[bytes, DecryptionKey], shares.Opened],
        key: DecryptionKey,
    ) -> None:
        self._task, self.names = task, tuple(names)
        size = task.kind.answers * shares.SERVER_BYTES
        whole = [row if len(row) == size else bytes(size) for row in rows]
        payloads, readable = open_row(b"".join(whole), key)
        self._payloads = payloads
        self._readable = readable.reshape(-1, task.kind.answers)

    @property
    def opened(self) -> dict[bytes, Opened]:
        """What is in each report, by its id."""
        entries = self._readable.size
        size = len(self._payloads) // entries if entries else 0
        found = {}
        for place, (name, readable) in enumerate(zip(self.names, self._readable, strict=True)):
            first = place * len(readable)
            payloads = tuple(
                self._payloads[at * size : (at + 1) * size]
                for at in range(first, first + len(readable))
                if readable[at - first]
            )
            found[name] = Opened(payloads, bool(readable.all()))
        return found

    def verified(
        self, verify: Callable[[bytes, bytes], Verification], usable: Container[bytes]
    ) -> Verified:
        """This server's half of the verification of reports; shares of others stay out of it.

        Args:
            verify: takes nonces and payloads.
            usable: the ids of those that may be verified.
        """
        answers = self._task.kind.answers
        chosen = np.array([name in usable for name in self.names], bool)
        each = len(self._payloads) // max(1, len(self.names))
        kept = b"".join(
            self._payloads[at * each : (at + 1) * each] if one else bytes(each)
            for at, one in enumerate(chosen)
        )
        nonces = b"".join(name * answers for name in self.names)
        found = verify(nonces, kept)
        valid = found.valid.reshape(-1, answers).all(axis=1) & chosen
        size = answers * Prio3Count.VERIFIER_BYTES
        verifiers = tuple(
            found.verifiers[at * size : (at + 1) * size] if one else _REFUSED * answers
            for at, one in enumerate(valid)
        )
        return Verified(found.outputs.reshape(-1, answers), verifiers, valid)
