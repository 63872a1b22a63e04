"""XofTurboShake128: random bytes and field elements that a seed determines.

Reference: draft-irtf-cfrg-vdaf-18, section 6.2.1; RFC 9861 for TurboSHAKE128.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from panprivacy.devices.vdaf import field64
from panprivacy.devices.vdaf.field64 import ELEMENT_BYTES, MODULUS, Elements
from panprivacy.errors import install

try:
    from Crypto.Hash import TurboSHAKE128
except ImportError as error:
    message = f"Prio3Count needs pycryptodome: {install('federated')}"
    raise ImportError(message) from error

SEED_BYTES: Final = 32
_DOMAIN: Final = 1


def absorbed(seed: bytes, separation: bytes, binder: bytes) -> bytes:
    """Return the input of the sponge: the tag that separates uses, the seed, and the binder."""
    tag = len(separation).to_bytes(2, "little") + separation
    return tag + len(seed).to_bytes(1, "little") + seed + binder


def stream(message: bytes, size: int) -> bytes:
    """Return the first bytes of the stream of what was absorbed."""
    return TurboSHAKE128.new(domain=_DOMAIN, data=message).read(size)


def elements(messages: Sequence[bytes], width: int) -> Elements:
    """Return the first `width` words of each stream that are field elements, one row a stream.

    About one word in 2**32 is none. Its stream is read again, with more words.
    """
    streams = b"".join([stream(one, width * ELEMENT_BYTES) for one in messages])
    words, complete = field64.decode(streams, width)
    for row in np.flatnonzero(~complete).tolist():
        words[row] = _sampled(messages[row], width)
    return words


def _sampled(message: bytes, width: int) -> Elements:
    """Return the first words of one stream that are field elements."""
    size, kept = width, np.empty(0, np.uint64)
    while kept.size < width:
        size += 1
        words = np.frombuffer(stream(message, size * ELEMENT_BYTES), "<u8")
        kept = words[words < MODULUS].astype(np.uint64)
    return kept[:width]
