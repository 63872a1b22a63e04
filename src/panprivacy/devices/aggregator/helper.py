"""The helper: it verifies reports with the leader, and gives its share of the batch once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from hashlib import sha256

from panprivacy.devices.aggregator.batch import BatchBucket, share_bytes
from panprivacy.devices.aggregator.helper_store import HelperStore, Verdict
from panprivacy.devices.aggregator.messages import (
    AGGREGATE_SHARE_REQ,
    CIPHERTEXT,
    FINISH,
    INITIALIZE,
    JOB,
    RESPONSES,
    SHARES,
    BatchSelector,
    Party,
    ReportError,
    ReportShare,
    VerifyInit,
    VerifyResp,
)
from panprivacy.devices.aggregator.presentation import decoded
from panprivacy.devices.aggregator.problems import AbortError, Reason
from panprivacy.devices.aggregator.reports import (
    MOST_REPORTS,
    batch_of,
    check_public,
    row_of,
    seal_bytes,
    servers_of,
    share_of,
)
from panprivacy.devices.aggregator.verifying import OpenedRows
from panprivacy.devices.federated.elgamal import DecryptionKey, EncryptionKey
from panprivacy.devices.federated.joint import own_key
from panprivacy.devices.federated.shares import open_helper
from panprivacy.devices.federated.task import Task
from panprivacy.devices.vdaf import Prio3Count
from panprivacy.errors import InputError
from panprivacy.privacy.coins import SystemCoins

_FINISHED = FINISH.write(b"")


class Helper:
    """A helper that answers the leader; a repeated request gets the same answer.

    Guarantee: it opens its own rows alone, judges each report once, and gives a share of sums once,
    of as many reports as the task says or more. [docs/guarantees/two-servers.md]

    Args:
        task: for two servers.
        key: the helper's secret key.
        verify_key: key that both servers have, and no device.
        store: its store.

    Raises:
        PlanError: the key is not that of the helper.
    """

    def __init__(
        self,
        task: Task,
        key: DecryptionKey,
        verify_key: bytes,
        store: HelperStore,
    ) -> None:
        self._task, self._store = task, store
        self._servers = servers_of(task)
        self._key = own_key(self._servers, key)
        self._leader = EncryptionKey(bytes.fromhex(self._servers.leader))
        self._prio, self._verify_key = Prio3Count(task.context), verify_key

    def strip(self, job: bytes, body: bytes) -> bytes:  # noqa: ARG002 - each row stands for itself
        """Take the helper's layer off the leader's rows, one row for each report.

        Raises:
            AbortError: the request is none, or nothing is to be stripped in this task.
        """
        if not self._servers.joint:
            message = "the leader opens its rows of this task by itself"
            raise AbortError(Reason.INVALID_MESSAGE, message)
        try:
            asked = decoded(SHARES, body)
            rows = {
                one.metadata.report_id: row_of(one.encrypted_input_share, Party.LEADER)
                for one in asked
            }
            off = {name: self._key.strip(row) for name, row in rows.items()}
        except InputError as error:
            raise AbortError(Reason.INVALID_MESSAGE, str(error)) from None
        if len(rows) > MOST_REPORTS:
            message = f"rows of {MOST_REPORTS} reports at most are stripped at once"
            raise AbortError(Reason.INVALID_MESSAGE, message)
        allowed = self._store.strips(rows)
        return SHARES.write(
            tuple(share_of(name, row, Party.LEADER) for name, row in off.items() if name in allowed)
        )

    def verify(self, job: bytes, body: bytes) -> bytes:
        """Judge the reports of a job.

        Raises:
            AbortError: the request is none, or the job had other reports.
        """
        asked = sha256(body).digest()
        known = self._store.response(job, asked)
        if known is not None:
            return known
        inits = self._inits(body)
        found = {name: _row(one.report_share) for name, one in inits.items()}
        malformed = {name: row for name, row in found.items() if isinstance(row, ReportError)}
        given = [b"" if isinstance(row, ReportError) else row for row in found.values()]
        rows = OpenedRows(self._task, list(found), given, open_helper, self._key)
        theirs = b"".join(self._verifiers(one.payload) for one in inits.values())

        def verdict(wrong: Mapping[bytes, ReportError]) -> Verdict:
            verify = partial(self._prio.verify_helper, self._verify_key)
            usable = set(rows.names) - set(wrong)
            mine = rows.verified(verify, usable)
            accepted = self._prio.decide(theirs, b"".join(mine.verifiers))
            whole = accepted.reshape(-1, self._task.kind.answers).all(axis=1) & mine.valid
            errors = {**wrong, **{name: malformed[name] for name in malformed if name in wrong}}
            responses = tuple(
                VerifyResp(
                    name,
                    _FINISHED if valid else errors.get(name, ReportError.VDAF_VERIFY_ERROR),
                )
                for name, valid in zip(rows.names, whole, strict=True)
            )
            return Verdict(
                RESPONSES.write(responses), BatchBucket.of(rows.names, mine.outputs, whole)
            )

        return self._store.judge(job, asked, rows.opened, verdict)

    def _inits(self, body: bytes) -> dict[bytes, VerifyInit]:
        """Return the initial message of each report of a job, by its id.

        Raises:
            AbortError: the body is no job of the task.
        """
        try:
            request = decoded(JOB, body)
        except InputError as error:
            raise AbortError(Reason.INVALID_MESSAGE, str(error)) from None
        self._check(request.part_batch_selector, request.agg_param, Reason.INVALID_MESSAGE)
        inits = {one.report_share.metadata.report_id: one for one in request.verify_inits}
        if len(inits) < len(request.verify_inits) or len(inits) > MOST_REPORTS:
            message = f"a job has {MOST_REPORTS} reports at most, and none more than once"
            raise AbortError(Reason.INVALID_MESSAGE, message)
        return inits

    def _verifiers(self, payload: bytes) -> bytes:
        """Return the leader's verifier shares of a report; if invalid, shares that are refused."""
        size = self._task.kind.answers * Prio3Count.VERIFIER_BYTES
        try:
            found = decoded(INITIALIZE, payload)
        except InputError:
            found = b""
        return found if len(found) == size else b"\xff" * size

    def _check(self, batch: BatchSelector, parameter: bytes, reason: Reason) -> None:
        """Raise `AbortError` unless the one batch of the task is meant."""
        if batch != batch_of(self._task):
            message = "a task has one batch, which the leader selects and the task names"
            raise AbortError(reason, message)
        if parameter:
            message = "Prio3 has no aggregation parameter"
            raise AbortError(Reason.INVALID_AGGREGATION_PARAMETER, message)

    def share(self, name: bytes, body: bytes) -> bytes:
        """Return the helper's share of the sums, encrypted to the leader; the batch is closed then.

        Raises:
            AbortError: the request is none, too few reports came, the servers do not agree on which
                are valid, or the share was given to another request.
        """
        try:
            request = decoded(AGGREGATE_SHARE_REQ, body)
        except InputError as error:
            raise AbortError(Reason.INVALID_MESSAGE, str(error)) from None
        self._check(request.batch_selector, request.agg_param, Reason.BATCH_INVALID)

        def made(batch: BatchBucket, came: int) -> bytes:
            if came < self._servers.batch:
                message = f"{came:,} reports have come, and a release takes "
                message += f"{self._servers.batch:,} or more: wait for more"
                raise AbortError(Reason.INVALID_BATCH_SIZE, message)
            if batch[:2] != (request.report_count, request.checksum):
                message = "the servers do not agree on which reports are valid: one has another "
                message += "store than it had"
                raise AbortError(Reason.BATCH_MISMATCH, message)
            data = share_bytes(batch.shares)
            return CIPHERTEXT.write(seal_bytes(data, self._leader, Party.LEADER, SystemCoins()))

        return self._store.share(sha256(name + body).digest(), made)


def _row(share: ReportShare) -> bytes | ReportError:
    """Return the helper's row of a report, or what is wrong with it."""
    try:
        check_public(share.metadata, share.public_share)
    except InputError:
        return ReportError.INVALID_MESSAGE
    try:
        return row_of(share.encrypted_input_share, Party.HELPER)
    except InputError:
        return ReportError.HPKE_UNKNOWN_CONFIG_ID
