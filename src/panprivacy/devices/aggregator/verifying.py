"""Work of both servers on the rows of some reports: open them, and verify the new ones."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from itertools import compress
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from panprivacy.devices.aggregator.shares_store import OpenedRow
from panprivacy.devices.federated import shares
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.rows import entries
from panprivacy.devices.federated.task import Task
from panprivacy.devices.vdaf import Prio3Count, Verification

_REFUSED: Final = b"\xff" * Prio3Count.VERIFIER_BYTES
"""An invalid verifier share, so that the other server refuses as well."""


class Verified(NamedTuple):
    """One server's half of the verification of reports.

    Args:
        outputs: its shares, of shape (reports, answers).
        verifiers: what the other server needs of each report, `VERIFIER_BYTES` for each answer.
        valid: mask of the acceptable reports.
    """

    outputs: NDArray[np.uint64]
    verifiers: tuple[bytes, ...]
    valid: NDArray[np.bool_]


class OpenedRows:
    """One server's rows of some reports, opened.

    Args:
        task: task of the reports.
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
        open_row: Callable[[bytes, DecryptionKey], shares.OpenedShare],
        key: DecryptionKey,
    ) -> None:
        self._answers, self.names = task.kind.answers, tuple(names)
        size = self._answers * shares.SERVER_BYTES
        whole = [row if len(row) == size else bytes(size) for row in rows]
        payloads, readable = open_row(b"".join(whole), key)
        self._payloads = entries(payloads, len(payloads) // len(rows)) if rows else []
        self._readable = readable.reshape(-1, self._answers)

    @property
    def opened(self) -> dict[bytes, OpenedRow]:
        """The content of each report, by its id."""
        found = {}
        each = zip(self.names, self._payloads, self._readable, strict=True)
        for name, payload, readable in each:
            parts = entries(payload, len(payload) // self._answers)
            found[name] = OpenedRow(tuple(compress(parts, readable)), bool(readable.all()))
        return found

    def verified(
        self, verify: Callable[[bytes, bytes], Verification], usable: Container[bytes]
    ) -> Verified:
        """Return this server's half of the verification of reports, without others' shares.

        Args:
            verify: takes nonces and payloads.
            usable: the ids of those that may be verified.
        """
        chosen = np.array([name in usable for name in self.names], bool)
        nonces = b"".join(name * self._answers for name in self.names)
        kept = b"".join(
            payload if one else bytes(len(payload))
            for payload, one in zip(self._payloads, chosen, strict=True)
        )
        found = verify(nonces, kept)
        valid = found.valid.reshape(-1, self._answers).all(axis=1) & chosen
        verifiers = entries(found.verifiers, self._answers * Prio3Count.VERIFIER_BYTES)
        return Verified(
            found.outputs.reshape(-1, self._answers),
            tuple(
                verifier if one else _REFUSED * self._answers
                for verifier, one in zip(verifiers, valid, strict=True)
            ),
            valid,
        )
