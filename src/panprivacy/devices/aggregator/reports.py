"""Rows of ElGamal ciphertexts in DAP's messages, in the places where the draft has HPKE.

HPKE seals a share once. A device has to change its ciphertexts at every tick without opening them,
so it keeps ElGamal ciphertexts, which can be re-randomised. A row of them takes the place of an
`HpkeCiphertext`: `enc` is its first point, `payload` the rest, and `config_id` the DAP role of the
server for which it is. There is no `PlaintextInputShare` around what is encrypted: it is the input
share of Prio3, one for each answer of the task.

HPKE would bind additional data; a row that can be re-randomised cannot. The task is bound by the
context of Prio3: shares of another task do not verify. The report id is not bound: an attacker with
a row can send it under another id. So servers recognise repeated shares by their
content. The rest of the metadata is fixed: a task is one batch, which the task names, so the time
of each report is 0; there are no extensions, and Prio3Count has no public share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from panprivacy.devices.aggregator.messages import (
    REPORT,
    REPORT_ID,
    UPLOAD,
    BatchMode,
    BatchSelector,
    HpkeCiphertext,
    Party,
    ReportMetadata,
    ReportShare,
    UploadedReport,
)
from panprivacy.devices.federated import messages
from panprivacy.devices.federated.elgamal import DecryptionKey, EncryptionKey
from panprivacy.devices.federated.embedding import PAYLOAD_BYTES, embed, extract
from panprivacy.devices.federated.group import POINT_BYTES
from panprivacy.devices.federated.rows import entries
from panprivacy.devices.federated.shares import SERVER_BYTES, split
from panprivacy.devices.federated.task import Task
from panprivacy.devices.federated.two_servers import TwoServers
from panprivacy.errors import InputError, PlanError
from panprivacy.privacy.coins import SecretCoins

MOST_REPORTS: Final = 500
"""Maximum number of reports in one request from the leader to the helper."""


def upload(reports: Sequence[bytes], task: Task) -> bytes:
    """Return the body of an upload, from what `Device.report` gave.

    Raises:
        InputError: one is no report of the task.
    """
    read = [messages.Report.read(report, task) for report in reports]
    return UPLOAD.write(tuple(dap_report(one.name, *split(one.row)) for one in read))


def dap_report(name: bytes, leader_row: bytes, helper_row: bytes) -> UploadedReport:
    """Return a report with one row for each server."""
    leader, helper = sealed(leader_row, Party.LEADER), sealed(helper_row, Party.HELPER)
    return UploadedReport(metadata_of(name), b"", leader, helper)


def dap_bytes(task: Task) -> int:
    """Return the length of a report of a task in an upload, in bytes."""
    row = bytes(task.kind.answers * SERVER_BYTES)
    return len(REPORT.write(dap_report(bytes(REPORT_ID.size), row, row)))


def metadata_of(name: bytes) -> ReportMetadata:
    """Return the public part of a report: only its id."""
    return ReportMetadata(name, 0, ())


def share_of(name: bytes, row: bytes, party: Party) -> ReportShare:
    """Return the part of a report that one server receives."""
    return ReportShare(metadata_of(name), b"", sealed(row, party))


def sealed(row: bytes, party: Party) -> HpkeCiphertext:
    """Return a row of ciphertexts for one server."""
    return HpkeCiphertext(party, row[:POINT_BYTES], row[POINT_BYTES:])


def row_of(ciphertext: HpkeCiphertext, party: Party) -> bytes:
    """Return the row that is in the place of an HPKE ciphertext.

    Raises:
        InputError: it is for somebody else.
    """
    if ciphertext.config_id != party:
        message = "this share is encrypted to somebody else"
        raise InputError(message)
    return ciphertext.enc + ciphertext.payload


def seal_bytes(data: bytes, key: EncryptionKey, party: Party, coins: SecretCoins) -> HpkeCiphertext:
    """Encrypt any bytes to one server: as many ciphertexts as they take points."""
    points = b"".join(map(embed, entries(data, PAYLOAD_BYTES)))
    return sealed(key.encrypt_points(points, coins), party)


def open_bytes(ciphertext: HpkeCiphertext, key: DecryptionKey, party: Party) -> bytes:
    """Return the bytes that `seal_bytes` sealed.

    Raises:
        InputError: the ciphertext is for another party, or damaged.
    """
    return b"".join(map(extract, entries(key.points(row_of(ciphertext, party)), POINT_BYTES)))


def check_public(metadata: ReportMetadata, public_share: bytes) -> None:
    """Raise `InputError` unless what is public about a report is what it is for all."""
    if metadata != metadata_of(metadata.report_id) or public_share:
        message = "a report of this task has time 0, no extensions and no public share"
        raise InputError(message)


def servers_of(task: Task) -> TwoServers:
    """Return the two servers of a task.

    Raises:
        PlanError: it is for one server.
    """
    if isinstance(task.key, TwoServers):
        return task.key
    message = "this task is for one server: run panprivacy collector"
    raise PlanError(message)


def batch_of(task: Task) -> BatchSelector:
    """Return the one batch of a task, which has the task's name."""
    return BatchSelector(BatchMode.LEADER_SELECTED, task.digest)
