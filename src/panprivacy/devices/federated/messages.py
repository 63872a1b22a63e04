"""The state and the report of a device: a front of fixed size, and a row of ciphertexts."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple, Self

from panprivacy.devices.federated.task import DIGEST_BYTES, VERSION, Task
from panprivacy.errors import InputError

REPORT_ID_BYTES: Final = 16

_MAGIC: Final = {"state": b"PPDS", "report": b"PPDR"}
_FRONT: Final = struct.Struct(f"<4sB{DIGEST_BYTES}s")
_STATE: Final = struct.Struct(f"<BQ{REPORT_ID_BYTES}s")


class DeviceState(NamedTuple):
    """The state of a device.

    Args:
        task: the digest of its task.
        done: whether the report is made; then `row` is that of the report.
        tick: number of completed ticks; public.
        name: name of the report, drawn before the first tick.
        row: the ciphertexts.
    """

    task: bytes
    done: bool
    tick: int
    name: bytes
    row: bytes

    def __bytes__(self) -> bytes:
        front = _FRONT.pack(_MAGIC["state"], VERSION, self.task)
        return front + _STATE.pack(self.done, self.tick, self.name) + self.row

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Return a state from its stored bytes.

        Raises:
            InputError: it is none, or of another version.
        """
        task, rest = _front(data, "state")
        if len(rest) < _STATE.size or rest[0] > 1:
            raise InputError(_NONE.format("state"))
        done, tick, name = _STATE.unpack_from(rest)
        return cls(task, bool(done), tick, name, rest[_STATE.size :])


class Report(NamedTuple):
    """The report of a device.

    Args:
        name: random bytes by which a report that is sent twice counts once; they say nothing
            of the device.
        row: the ciphertexts.
    """

    name: bytes
    row: bytes

    def to_bytes(self, task: Task) -> bytes:
        """Return the report as it is sent."""
        return _FRONT.pack(_MAGIC["report"], VERSION, task.digest) + self.name + self.row

    @classmethod
    def read(cls, data: bytes, task: Task) -> Self:
        """Return a report that came.

        Raises:
            InputError: it is none, too long or too short, or of another task or version. The
                ciphertexts are not looked at.
        """
        found, rest = _front(data, "report")
        if found != task.digest:
            message = "the report is for another task"
            raise InputError(message)
        if len(rest) != REPORT_ID_BYTES + task.kind.answers * task.entry_bytes:
            message = "the report is too long or too short for its task: it is damaged"
            raise InputError(message)
        return cls(rest[:REPORT_ID_BYTES], rest[REPORT_ID_BYTES:])


_NONE: Final = "this is no {} of a device: it is damaged, or something else"


def report_bytes(task: Task) -> int:
    """Return the number of bytes of each report for a task."""
    return _FRONT.size + REPORT_ID_BYTES + task.kind.answers * task.entry_bytes


def _front(data: bytes, what: str) -> tuple[bytes, bytes]:
    """Return the digest of the task, and what comes after the front."""
    if not isinstance(data, bytes) or len(data) < _FRONT.size:
        raise InputError(_NONE.format(what))
    magic, version, task = _FRONT.unpack_from(data)
    if magic != _MAGIC[what]:
        raise InputError(_NONE.format(what))
    if version != VERSION:
        message = f"the {what} has version {version}, and this program knows {VERSION}"
        raise InputError(message)
    return task, data[_FRONT.size :]
