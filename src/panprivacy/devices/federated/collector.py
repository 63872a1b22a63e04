"""Gathers reports, and makes a release of all of them."""

from __future__ import annotations

import math
from collections.abc import Container
from hashlib import sha256
from typing import Final

from panprivacy.devices.federated.kind import Decryption
from panprivacy.devices.federated.messages import Report
from panprivacy.devices.federated.task import Task
from panprivacy.devices.federated.two_servers import TwoServers
from panprivacy.errors import InputError, PanPrivacyError, PlanError
from panprivacy.ground.validation import proportion
from panprivacy.privacy.guarantee import float_above
from panprivacy.statistics.release import Answers

_DIGEST_BYTES: Final = 16


class ReplayError(InputError):
    """The very report has come before; it counts once."""


def check_new(held: bytes | None, digest: bytes, seen: Container[bytes], *, closed: bool) -> None:
    """Raise unless a report is acceptable: it is new, and there is no answer yet.

    Args:
        held: the digest of the ciphertexts that came with the id of this report, if some did.
        digest: its own digest.
        seen: digests of all ciphertexts received so far.
        closed: whether the answer was given.

    Raises:
        ReplayError: the very report has come.
        PanPrivacyError: the answer was given.
        InputError: another report has come with its id or its ciphertexts.
    """
    if held == digest:
        message = "this report has come already: it counts once"
        raise ReplayError(message)
    if closed:
        message = "the answer was given: a report that comes later would stand out from it"
        raise PanPrivacyError(message)
    if held is not None or digest in seen:
        message = "the report has the id or the ciphertexts of another one"
        raise InputError(message)


class Collector:
    """Takes the reports of devices, and answers once.

    Guarantee: `task.promise`, for each device that followed the protocol. Where it speaks of a sum
    over some devices, the answer waits for as many reports. Nothing that comes out depends on
    whether a single report can be decrypted. [docs/guarantees/devices.md]

    Accuracy: that of the task's kind, over the devices that reported. One that did not is missing
    from the estimate; one that reports something else than its noisy row moves a count by one
    reported bit at most.

    Args:
        task: the task of the devices.
        key: the secret key, `elgamal.DecryptionKey`.
        processes: number of processes that decrypt.

    Raises:
        PlanError: the key is another one than the task's, or the task is for two servers.
    """

    def __init__(self, task: Task, key: Decryption, *, processes: int = 1) -> None:
        if isinstance(task.key, TwoServers):
            message = "the task is for two servers, which answer together: ask them"
            raise PlanError(message)
        if bytes(key.public).hex() != task.key:
            message = "the secret key is not that of the task"
            raise PlanError(message)
        self._task, self._key, self._processes = task, key, processes
        self._names: dict[bytes, bytes] = {}
        self._rows: dict[bytes, bytes] = {}
        self._closed = False
        self._sums: tuple[int, ...] | None = None

    @property
    def task(self) -> Task:
        """The task of the devices."""
        return self._task

    @property
    def guarantee(self) -> str:
        """Guarantee of one device, in words."""
        return str(self._task.promise)

    def __len__(self) -> int:
        """Return the number of reports."""
        return len(self._rows)

    def add(self, report: bytes) -> None:
        """Take a report; what is refused changes nothing.

        Raises:
            ReplayError: the very report is there already.
            InputError: it is malformed, too long or short, of another task or version, has points
                that are none, or is another one with the id or the ciphertexts of one that is
                there. The message shows nothing of it.
            PanPrivacyError: the answer was given.
        """
        found = Report.read(report, self._task)
        digest = _digest(found.row)
        check_new(self._names.get(found.name), digest, self._rows, closed=self._closed)
        self._key.public.check(found.row)
        self._names[found.name] = digest
        self._rows[digest] = found.row

    def release(self, *, confidence: float = 0.95) -> Answers:
        """Return the answer, from all reports; from then on no report is taken.

        Asked again it is the same, with intervals of another confidence if that is wanted.

        Args:
            confidence: probability that each interval holds the truth about the devices that
                reported; between 0 and 1.

        Raises:
            PanPrivacyError: fewer reports came than the promise needs.
            PlanError: the confidence is no such number.
        """
        wanted = proportion(confidence=confidence)
        reports, needed = len(self._rows), self._task.promise.devices
        if reports < needed:
            message = f"{reports:,} reports have come, and the promise to devices holds from "
            message += f"{needed:,} on: wait for more"
            raise PanPrivacyError(message)
        self._closed = True
        if self._sums is None:
            row = b"".join(self._rows.values())
            sums = self._task.kind.read(row, self._key, self._processes).sum(axis=0)
            self._sums = tuple(map(int, sums))
        epsilon = no_less(float_above(self._task.promise.epsilon), self._task)
        return self._task.kind.release(self._sums, reports, wanted, epsilon)


def _digest(row: bytes) -> bytes:
    return sha256(row).digest()[:_DIGEST_BYTES]


def no_less(epsilon: float, task: Task) -> float:
    """Return a float that is not below the promise."""
    return epsilon if epsilon >= task.promise.epsilon else math.nextafter(epsilon, math.inf)
