"""The leader: it takes reports, has the helper verify them with it, and answers once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from panprivacy.devices.aggregator.batch import BatchBucket, read_shares
from panprivacy.devices.aggregator.leader_store import Job, LeaderStore
from panprivacy.devices.aggregator.messages import (
    AGGREGATE_SHARE_REQ,
    CIPHERTEXT,
    FINISH,
    INITIALIZE,
    JOB,
    JOB_ID_BYTES,
    RESPONSES,
    SHARES,
    AggregateShareReq,
    AggregationJobInitReq,
    Party,
    ReportError,
    UploadedReport,
    VerifyInit,
)
from panprivacy.devices.aggregator.peer import NO_ANSWER, Helping
from panprivacy.devices.aggregator.presentation import decoded
from panprivacy.devices.aggregator.problems import PeerError
from panprivacy.devices.aggregator.reports import (
    MOST_REPORTS,
    batch_of,
    check_public,
    open_bytes,
    row_of,
    servers_of,
    share_of,
)
from panprivacy.devices.aggregator.verifying import OpenedRows
from panprivacy.devices.federated.collector import no_less
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.joint import own_key
from panprivacy.devices.federated.shares import SERVER_BYTES, open_leader
from panprivacy.devices.federated.task import Task
from panprivacy.devices.vdaf import Prio3Count, unshard
from panprivacy.errors import InputError
from panprivacy.privacy.guarantee import float_above
from panprivacy.service.outgoing.records import StoreError

_FINISHED: Final = FINISH.write(b"")
_MOST_ENTRIES: Final = 10_000
"""Maximum number of entries of one job: they take a few seconds to open."""
_CONFIDENCE: Final = 0.95


class Leader:
    """Takes reports, adds them up with the helper, and answers once.

    Guarantee: it opens its own rows alone, and each report once. Whoever sends a report is told
    nothing that depends on what is encrypted in it, and neither does the answer tell how
    many were invalid: those count as reports of zeros. The answer is of all reports that came,
    as many as the task says or more. [docs/guarantees/two-servers.md]

    Args:
        task: for two servers.
        key: the leader's secret key.
        verify_key: key that both servers have, and no device.
        store: its store.
        helper: the other server.

    Raises:
        PlanError: the key is not that of the leader.
    """

    def __init__(
        self,
        task: Task,
        key: DecryptionKey,
        verify_key: bytes,
        store: LeaderStore,
        helper: Helping,
    ) -> None:
        self._task, self._key, self._store, self._helper = task, key, store, helper
        servers = servers_of(task)
        self._joint, self._own = servers.joint, own_key(servers, key)
        self._prio, self._verify_key = Prio3Count(task.context), verify_key
        self._most = max(1, min(MOST_REPORTS, _MOST_ENTRIES // task.kind.answers))

    def take(self, reports: Sequence[UploadedReport]) -> list[ReportError | None]:
        """Keep reports; they are on the disk when this returns.

        Returns:
            Why each is not taken; None for one that is there now, or was there already.
        """
        wrong = [self._wrong(report) for report in reports]
        sound = [one for one, error in zip(reports, wrong, strict=True) if error is None]
        kept = iter(self._store.add(sound))
        return [next(kept) if error is None else error for error in wrong]

    def _wrong(self, report: UploadedReport) -> ReportError | None:
        """Return the publicly visible error of a report, or None."""
        try:
            check_public(report.metadata, report.public_share)
        except InputError:
            return ReportError.INVALID_MESSAGE
        try:
            rows = row_of(report.leader, Party.LEADER), row_of(report.helper, Party.HELPER)
        except InputError:
            return ReportError.OUTDATED_CONFIG
        try:
            for row in rows:
                self._key.public.check(row)
        except InputError:
            return ReportError.INVALID_MESSAGE
        size = self._task.kind.answers * SERVER_BYTES
        return None if {len(row) for row in rows} == {size} else ReportError.INVALID_MESSAGE

    def advance(self) -> bool:
        """Verify some reports, and add them up.

        Returns:
            True if there were any.

        Raises:
            PeerError: the helper does not answer as it should. The job goes on when this is called
                again, also by another process.
            StoreError: the store does not work; likewise.
        """
        job = self._store.job(self._most)
        if job is None:
            return False
        names = [one.metadata.report_id for one in job.reports]
        rows = OpenedRows(self._task, names, self._rows(job), open_leader, self._own)
        usable = self._store.judge(job.name, rows.opened)
        mine = rows.verified(partial(self._prio.verify_leader, self._verify_key), usable)
        inits = tuple(
            VerifyInit(
                share_of(one.metadata.report_id, self._helpers_row(one), Party.HELPER),
                INITIALIZE.write(verifier),
            )
            for one, verifier in zip(job.reports, mine.verifiers, strict=True)
        )
        request = AggregationJobInitReq(b"", batch_of(self._task), inits)
        answer = self._helper.verify(job.name, JOB.write(request))
        accepted = _accepted(answer, names, mine.valid)
        self._store.finish(job.name, BatchBucket.of(names, mine.outputs, accepted))
        return True

    def _rows(self, job: Job) -> list[bytes]:
        """Return the leader's row of each report, without the helper's layer if there is one."""
        rows = {one.metadata.report_id: row_of(one.leader, Party.LEADER) for one in job.reports}
        if not self._joint:
            return list(rows.values())
        asked = tuple(share_of(name, row, Party.LEADER) for name, row in rows.items())
        answer = self._helper.strip(job.name, SHARES.write(asked))
        try:
            off = {
                one.metadata.report_id: row_of(one.encrypted_input_share, Party.LEADER)
                for one in decoded(SHARES, answer)
            }
        except InputError as error:
            raise PeerError(NO_ANSWER) from error
        return [off.get(name, b"") for name in rows]

    def _helpers_row(self, report: UploadedReport) -> bytes:
        """Return the helper's row of a report, without the leader's layer if there is one."""
        row = row_of(report.helper, Party.HELPER)
        return self._own.strip(row) if self._joint else row

    def release(self) -> bytes:
        """Return the answer, in JSON; the batch is closed then, and it stays the same.

        Raises:
            PanPrivacyError: fewer reports came than a release needs; nothing was changed.
            PeerError: the helper does not answer as it should; ask again.
            StoreError: the store does not work.
        """
        given = self._store.stored_answer()
        if given is not None:
            return given
        while not self._store.close():
            self.advance()
        batch, came = self._store.batch()
        request = AggregateShareReq(batch_of(self._task), b"", batch.reports, batch.checksum)
        name = self._task.digest[:JOB_ID_BYTES]  # there is one batch
        answer = self._helper.share(name, AGGREGATE_SHARE_REQ.write(request))
        try:
            theirs = read_shares(open_bytes(decoded(CIPHERTEXT, answer), self._key, Party.LEADER))
            sums = [unshard(*pair) for pair in zip(batch.shares, theirs, strict=True)]
        except ValueError as error:  # of which InputError is one
            raise PeerError(NO_ANSWER) from error
        if not all(0 <= one <= batch.reports for one in sums):
            message = "the shares of both servers do not fit together: a store was changed"
            raise StoreError(message)
        return self._store.answer(self._answer(sums, came))

    def _answer(self, sums: Sequence[int], came: int) -> bytes:
        """Return the answer for some sums."""
        task = self._task
        epsilon = no_less(float_above(task.promise.epsilon), task)
        answers = task.kind.release(sums, came, _CONFIDENCE, epsilon).rows()
        promise = {"guarantee": str(task.promise), **task.promise.guarantee.document()}
        told = {"reports": came, **promise, "answers": answers}
        return msgspec.json.encode(told)


def _accepted(answer: bytes, names: Sequence[bytes], sent: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which reports of a job the helper accepts.

    Raises:
        PeerError: the helper answers for other reports, or accepts one that it cannot accept.
    """
    try:
        found = decoded(RESPONSES, answer)
    except InputError as error:
        raise PeerError(NO_ANSWER) from error
    known = all(one.outcome == _FINISHED or isinstance(one.outcome, ReportError) for one in found)
    accepted = np.array([one.outcome == _FINISHED for one in found], bool)
    if not known or [one.report_id for one in found] != list(names) or (accepted & ~sent).any():
        raise PeerError(NO_ANSWER)
    return accepted
