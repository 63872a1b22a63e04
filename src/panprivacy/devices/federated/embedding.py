"""Up to 31 bytes as a point, and back.

The x of the point is a counter of one byte and 31 bytes of content. The counter is the smallest
for which the curve has that x: about every other one. The point's y is even if the content is a
payload of 31 bytes, and odd if it is a shorter one, zeros and its length.

Reference: N. Koblitz, Mathematics of Computation 48 (1987), section 3.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import numpy as np

from panprivacy.devices.federated import group
from panprivacy.devices.federated.group import POINT_BYTES
from panprivacy.errors import InputError

PAYLOAD_BYTES: Final = 31
"""The most that a point holds."""

_FULL: Final = b"\x02"
_SHORTER: Final = b"\x03"
_COUNTERS: Final = range(255)
"""Counters to try in turn. With 255 the x could exceed the field's prime. All of them fail once in
2**255."""


def embed(payload: bytes) -> bytes:
    """Return the point of a payload, in SEC 1's compressed form; the time depends on the payload.

    Args:
        payload: 0 to 31 bytes.

    Raises:
        InputError: they are more.

    >>> extract(embed(b"a share"))
    b'a share'
    """
    if len(payload) > PAYLOAD_BYTES:
        message = f"a point holds {PAYLOAD_BYTES} bytes at most: split the payload"
        raise InputError(message)
    kind, content = _FULL, payload
    if len(payload) < PAYLOAD_BYTES:
        kind, content = _SHORTER, payload.ljust(PAYLOAD_BYTES - 1, b"\0") + bytes([len(payload)])
    for counter in _COUNTERS:
        point = kind + bytes([counter]) + content
        with suppress(InputError):
            group.parse(np.frombuffer(point, np.uint8).reshape(1, POINT_BYTES))
            return point
    message = "no point holds this payload: change a byte of it"
    raise InputError(message)


def extract(point: bytes) -> bytes:
    """Return the payload of a point.

    Raises:
        InputError: `embed` gives no such point.
    """
    content = point[2:]
    payload = content if point[:1] == _FULL else content[: content[-1]] if content else b""
    if len(payload) > PAYLOAD_BYTES or embed(payload) != point:
        message = "this point holds no payload: it is damaged, or was made for something else"
        raise InputError(message)
    return payload
