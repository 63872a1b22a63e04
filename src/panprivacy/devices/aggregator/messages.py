"""The messages of the Distributed Aggregation Protocol that two servers and their devices send.

They are those of draft-ietf-ppm-dap-17, the draft of DAP that is built on version 18 of VDAF, byte
for byte. What we put where the draft has HPKE is in `panprivacy.devices.aggregator.reports`.
Sections are those of the draft.

Reference: T. Geoghegan, C. Patton, B. Pitman, E. Rescorla, C. A. Wood, "Distributed Aggregation
Protocol for Privacy Preserving Measurement", draft-ietf-ppm-dap-17; R. L. Barnes et al.,
"Verifiable Distributed Aggregation Functions", draft-irtf-cfrg-vdaf-18, section 5.7.1.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from enum import IntEnum
from typing import Final, NamedTuple

from panprivacy.devices.aggregator.presentation import (
    UINT8,
    UINT16,
    UINT64,
    ByteReader,
    Codec,
    Fixed,
    Opaque,
    Rest,
    Struct,
    Within,
)
from panprivacy.errors import InputError

VERSION: Final = "dap-17"

REPORT_ID: Final = Fixed(16)
JOB_ID_BYTES: Final = 16
CHECKSUM_BYTES: Final = 32


class Media(NamedTuple):
    """The media type of a body, as its Content-Type; the version is optional.

    Args:
        message: its kind.
    """

    message: str

    def __str__(self) -> str:
        return f"application/ppm-dap;message={self.message}"


UPLOAD_REQ: Final = Media("upload-req")
UPLOAD_ERRORS: Final = Media("upload-errors")
JOB_INIT_REQ: Final = Media("aggregation-job-init-req")
JOB_RESP: Final = Media("aggregation-job-resp")
SHARE_REQ: Final = Media("aggregate-share-req")
SHARE: Final = Media("aggregate-share")


class Party(IntEnum):
    """`Role` of section 4.1: the addressee."""

    COLLECTOR = 0
    CLIENT = 1
    LEADER = 2
    HELPER = 3


class ReportError(IntEnum):
    """The error of one report (section 4.1)."""

    BATCH_COLLECTED = 1
    REPORT_REPLAYED = 2
    REPORT_DROPPED = 3
    HPKE_UNKNOWN_CONFIG_ID = 4
    HPKE_DECRYPT_ERROR = 5
    VDAF_VERIFY_ERROR = 6
    TASK_EXPIRED = 7
    INVALID_MESSAGE = 8
    REPORT_TOO_EARLY = 9
    TASK_NOT_STARTED = 10
    OUTDATED_CONFIG = 11


class BatchMode(IntEnum):
    """The mode by which reports are grouped into batches (section 5)."""

    TIME_INTERVAL = 1
    LEADER_SELECTED = 2


class _Enum(NamedTuple):
    """A number of one byte that must be one of an enumeration."""

    kind: type[IntEnum]

    def write(self, value: IntEnum) -> bytes:
        """Return the byte."""
        return UINT8.write(value)

    def read(self, source: ByteReader) -> IntEnum:
        """Return the member that comes next."""
        number = UINT8.read(source)
        if number not in self.kind._value2member_map_:
            message = "the message has a number that means nothing"
            raise InputError(message)
        return self.kind(number)


_SHORT: Final = Opaque(2)
_LONG: Final = Opaque(4)


class HpkeCiphertext(NamedTuple):
    """A ciphertext for one server."""

    config_id: int
    enc: bytes
    payload: bytes


CIPHERTEXT: Final = Struct(HpkeCiphertext, UINT8, Opaque(2, 1), Opaque(4, 1))


class Extension(NamedTuple):
    """An extension of a report, which the draft does not define."""

    extension_type: int
    extension_data: bytes


class ReportMetadata(NamedTuple):
    """The public part of a report."""

    report_id: bytes
    time: int
    public_extensions: tuple[Extension, ...]


METADATA: Final = Struct(
    ReportMetadata,
    REPORT_ID,
    UINT64,
    Within(_SHORT, Rest(Struct(Extension, UINT16, _SHORT))),
)


class UploadedReport(NamedTuple):
    """The report of a device."""

    metadata: ReportMetadata
    public_share: bytes
    leader: HpkeCiphertext
    helper: HpkeCiphertext


REPORT: Final = Struct(UploadedReport, METADATA, _LONG, CIPHERTEXT, CIPHERTEXT)
UPLOAD: Final = Rest(REPORT)


class UploadStatus(NamedTuple):
    """A report that is not taken, and why."""

    report_id: bytes
    error: ReportError


ERRORS: Final[Codec[tuple[UploadStatus, ...]]] = Rest(
    Struct(UploadStatus, REPORT_ID, _Enum(ReportError))
)


class ReportShare(NamedTuple):
    """The part of a report that one server receives."""

    metadata: ReportMetadata
    public_share: bytes
    encrypted_input_share: HpkeCiphertext


SHARES: Final = Rest(Struct(ReportShare, METADATA, _LONG, CIPHERTEXT))


class VerifyInit(NamedTuple):
    """A report share, and the first message about it."""

    report_share: ReportShare
    payload: bytes


class BatchSelector(NamedTuple):
    """The selector of a batch; `PartialBatchSelector` has the same form."""

    batch_mode: BatchMode
    config: bytes


_SELECTOR: Final[Codec[BatchSelector]] = Struct(BatchSelector, _Enum(BatchMode), _SHORT)


class AggregationJobInitReq(NamedTuple):
    """The reports of a job, as the leader sends them to the helper."""

    agg_param: bytes
    part_batch_selector: BatchSelector
    verify_inits: tuple[VerifyInit, ...]


JOB: Final = Struct(
    AggregationJobInitReq,
    _LONG,
    _SELECTOR,
    Rest(Struct(VerifyInit, Struct(ReportShare, METADATA, _LONG, CIPHERTEXT), Opaque(4, 1))),
)


class VerifyResp(NamedTuple):
    """The result of one report of a job: the helper's next message, an error, or only the end."""

    report_id: bytes
    outcome: bytes | ReportError | None


class _VerifyResp:
    """`VerifyResp` of section 4.6.2.2."""

    _CONTINUE, _FINISH, _REJECT = range(3)
    _PAYLOAD = Opaque(4, 1)
    _ERROR = _Enum(ReportError)

    def write(self, value: VerifyResp) -> bytes:
        """Return the id, what came of it, and what belongs to that."""
        match value.outcome:
            case None:
                tail = UINT8.write(self._FINISH)
            case bytes(payload):
                tail = UINT8.write(self._CONTINUE) + self._PAYLOAD.write(payload)
            case error:
                tail = UINT8.write(self._REJECT) + self._ERROR.write(error)
        return value.report_id + tail

    def read(self, source: ByteReader) -> VerifyResp:
        """Return the response that comes next."""
        report_id = REPORT_ID.read(source)
        match UINT8.read(source):
            case self._CONTINUE:
                return VerifyResp(report_id, self._PAYLOAD.read(source))
            case self._FINISH:
                return VerifyResp(report_id, None)
            case self._REJECT:
                return VerifyResp(report_id, ReportError(self._ERROR.read(source)))
        message = "the message has a number that means nothing"
        raise InputError(message)


RESPONSES: Final = Rest(_VerifyResp())


class AggregateShareReq(NamedTuple):
    """Asks the helper for its share of a batch."""

    batch_selector: BatchSelector
    agg_param: bytes
    report_count: int
    checksum: bytes


AGGREGATE_SHARE_REQ: Final = Struct(
    AggregateShareReq, _SELECTOR, _LONG, UINT64, Fixed(CHECKSUM_BYTES)
)


# The ping-pong messages of VDAF, which stand in a `payload`

_INITIALIZE, _FINISH = 0, 2


class _Framed(NamedTuple):
    """One string behind a number that states its type."""

    kind: int

    def write(self, value: bytes) -> bytes:
        """Return the number and the string."""
        return UINT8.write(self.kind) + _LONG.write(value)

    def read(self, source: ByteReader) -> bytes:
        """Return the string that comes next."""
        if UINT8.read(source) != self.kind:
            message = "this is another message than the one that comes next"
            raise InputError(message)
        return _LONG.read(source)


INITIALIZE: Final = _Framed(_INITIALIZE)
"""The leader's verifier share of a report."""
FINISH: Final = _Framed(_FINISH)
"""The helper's verifier message, if the report is valid."""


def base64(name: bytes) -> str:
    """Return an id as it is written in a path, and in a problem."""
    return urlsafe_b64encode(name).rstrip(b"=").decode()


def reports_path(task: bytes) -> str:
    """Return the path to which the reports of a task are sent."""
    return f"/tasks/{base64(task)}/reports"
