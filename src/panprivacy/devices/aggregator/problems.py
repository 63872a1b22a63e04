"""Errors between two servers and devices, by their names in DAP."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from panprivacy.devices.aggregator.messages import base64
from panprivacy.errors import PanPrivacyError
from panprivacy.service.incoming.problems import Problem

_URN: Final = "urn:ietf:params:ppm:dap:error:"


class Reason(StrEnum):
    """The reason for which a request is refused as a whole (draft-ietf-ppm-dap-17, "Errors")."""

    INVALID_MESSAGE = "invalidMessage"
    UNRECOGNIZED_TASK = "unrecognizedTask"
    BATCH_INVALID = "batchInvalid"
    INVALID_BATCH_SIZE = "invalidBatchSize"
    INVALID_AGGREGATION_PARAMETER = "invalidAggregationParameter"
    BATCH_MISMATCH = "batchMismatch"
    BATCH_OVERLAP = "batchOverlap"


class AbortError(PanPrivacyError):
    """A request that is refused; nothing was changed.

    Args:
        reason: which of DAP's.
        detail: what is wrong, in a sentence.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason

    def problem(self, task: bytes) -> Problem:
        """Return the answer to the request, which names the task."""
        members = {"type": _URN + self.reason, "taskid": base64(task)}
        status = 404 if self.reason is Reason.UNRECOGNIZED_TASK else 400
        return Problem(status, str(self), members=members)


class PeerError(PanPrivacyError):
    """The other server does not answer, refuses, or answers what it must not; nothing is lost."""
