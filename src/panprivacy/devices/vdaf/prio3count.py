"""Prio3Count of draft-irtf-cfrg-vdaf-18; `panprivacy.devices.vdaf` has an example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from panprivacy.devices.vdaf import field64, flp, xof
from panprivacy.devices.vdaf.field64 import ELEMENT_BYTES, MODULUS, Elements
from panprivacy.errors import InputError, PlanError
from panprivacy.ground.validation import whole_number

_VERSION: Final = 18
_CLASS: Final = 0
"""VDAFs; the draft has other algorithms as well."""
_PRIO3_COUNT: Final = 1

_MEASUREMENT_SHARE: Final = 1
_PROOF_SHARE: Final = 2
_PROVE_RANDOMNESS: Final = 4
_QUERY_RANDOMNESS: Final = 5

_ONE_PROOF: Final = b"\x01"
_SHARE: Final = 1 + flp.PROOF
"""The elements of the leader's share: of the measurement, and of the proof."""

_MOST_CONTEXT: Final = 2**16 - 1 - 8
_REFUSED: Final = np.uint64(2**64 - 1)
"""An invalid element, sent for a report that is not valid, so that every aggregator rejects it."""


@dataclass(frozen=True, repr=False)
class Verification:
    """The result of one aggregator for its shares of n reports.

    Args:
        outputs: its shares of the measurements, for `aggregate`; of shape (n,).
        verifiers: what it sends to the others, `VERIFIER_BYTES` for each report.
        valid: which shares could be read; `decide` accepts no others.
    """

    outputs: Elements
    verifiers: bytes
    valid: NDArray[np.bool_]


@dataclass(frozen=True)
class Prio3Count:
    """Bits in shares, with a proof that each is 0 or 1.

    Guarantee: a report whose shares add up to anything but 0 or 1 is accepted with a probability of
    at most 2/p, where p is `MODULUS`: below 2**-62. Aggregators of which one is honest see the same
    law for 0 and for 1 until they ask for the sum, if each verifies a share once. Both hold for
    ideal bytes in the place of XofTurboShake128's.

    Args:
        context: names the application and the task; shares for one context are refused in another.
        shares: number of aggregators: the leader and, from 1, the helpers.

    Raises:
        PlanError: the context has more than 65,527 bytes, or shares are not 2 to 255.

    Reference: draft-irtf-cfrg-vdaf-18, section 7.
    """

    context: bytes
    shares: int = 2

    NONCE_BYTES: ClassVar = 16
    VERIFY_KEY_BYTES: ClassVar = xof.SEED_BYTES
    RANDOM_BYTES: ClassVar = 2 * xof.SEED_BYTES
    """Random bytes of a sharing between two; `HELPER_BYTES` more for each other aggregator."""
    LEADER_BYTES: ClassVar = _SHARE * ELEMENT_BYTES
    HELPER_BYTES: ClassVar = xof.SEED_BYTES
    VERIFIER_BYTES: ClassVar = flp.VERIFIER * ELEMENT_BYTES
    SHARE_BYTES: ClassVar = ELEMENT_BYTES
    """Size of an output or an aggregate, the lowest byte first."""

    def __post_init__(self) -> None:
        whole_number(2, 255, shares=self.shares)
        if not isinstance(self.context, bytes) or len(self.context) > _MOST_CONTEXT:
            message = f"context must be bytes, {_MOST_CONTEXT:,} at most"
            raise PlanError(message)

    def shard(self, measurements: Sequence[int], random: bytes) -> tuple[bytes, ...]:
        """Split measurements: `LEADER_BYTES` of each for the leader, `HELPER_BYTES` for a helper.

        Args:
            measurements: n of them, each 0 or 1; the same steps are taken for both.
            random: n * `RANDOM_BYTES` secret bytes, which are used for nothing else.

        Returns:
            One row of shares for each aggregator, the leader's first. The helper's is part of
            `random`. Nothing else has to be kept, or may be.

        Raises:
            InputError: a measurement is neither 0 nor 1, or the random bytes are too few or many.
        """
        numbers = _numbers(measurements)
        size = self.shares * xof.SEED_BYTES
        _counted(random, size, "random", len(numbers))
        *helpers, prove = (
            [random[at : at + xof.SEED_BYTES] for at in range(start, len(random), size)]
            for start in range(0, size, xof.SEED_BYTES)
        )
        seeds = self._elements(_PROVE_RANDOMNESS, prove, [_ONE_PROOF] * len(prove), flp.SEEDS)
        leader = np.column_stack([numbers, flp.prove(numbers, seeds)])
        for aggregator, helper in enumerate(helpers, 1):
            leader = field64.subtract(leader, self._expanded(helper, aggregator))
        return field64.encode(leader), *map(b"".join, helpers)

    def verify_leader(self, verify_key: bytes, nonces: bytes, shares: bytes) -> Verification:
        """Return the verifier that the leader sends for each report, and the part it stores.

        Args:
            verify_key: `VERIFY_KEY_BYTES` that the aggregators share, and no device knows.
            nonces: n * `NONCE_BYTES`: those that came with the reports.
            shares: n * `LEADER_BYTES`.

        Raises:
            InputError: one of these has another length.
        """
        _counted(shares, self.LEADER_BYTES, "shares")
        return self._verified(verify_key, nonces, *field64.decode(shares, _SHARE))

    def verify_helper(
        self, verify_key: bytes, nonces: bytes, seeds: bytes, aggregator: int = 1
    ) -> Verification:
        """Return the verifier that a helper sends for each report, and the part it stores.

        Args:
            verify_key: `VERIFY_KEY_BYTES` that the aggregators share, and no device knows.
            nonces: n * `NONCE_BYTES`: those that came with the reports.
            seeds: n * `HELPER_BYTES`.
            aggregator: the number of the helper.

        Raises:
            InputError: one of these has another length.
            PlanError: there is no helper with this number.
        """
        whole_number(1, self.shares - 1, aggregator=aggregator)
        _counted(seeds, self.HELPER_BYTES, "seeds")
        expanded = self._expanded(_rows(seeds, self.HELPER_BYTES), aggregator)
        return self._verified(verify_key, nonces, expanded, np.ones(len(expanded), bool))

    def decide(self, *verifiers: bytes) -> NDArray[np.bool_]:
        """Return which reports are accepted; all aggregators compute the same answer.

        Args:
            verifiers: n * `VERIFIER_BYTES` of each aggregator, in any order.

        Raises:
            InputError: the verifiers of an aggregator are missing, or have another length.
        """
        if len(verifiers) != self.shares:
            message = f"expected the verifiers of {self.shares} aggregators"
            raise InputError(message)
        number = _counted(verifiers[0], self.VERIFIER_BYTES, "verifiers")
        total, accepted = np.zeros((number, flp.VERIFIER), np.uint64), np.ones(number, bool)
        for encoded in verifiers:
            _counted(encoded, self.VERIFIER_BYTES, "verifiers", number)
            words, canonical = field64.decode(encoded, flp.VERIFIER)
            total, accepted = field64.add(total, words), accepted & canonical
        return accepted & flp.decide(total)

    def _verified(
        self, verify_key: bytes, nonces: bytes, shares: Elements, canonical: NDArray[np.bool_]
    ) -> Verification:
        """Query each proof at the point that the key and the nonce determine."""
        _counted(verify_key, self.VERIFY_KEY_BYTES, "verify_key", 1)
        _counted(nonces, self.NONCE_BYTES, "nonces", len(shares))
        binders = [_ONE_PROOF + nonce for nonce in _rows(nonces, self.NONCE_BYTES)]
        keys = [verify_key] * len(binders)
        (points,) = self._elements(_QUERY_RANDOMNESS, keys, binders, 1).T
        valid = canonical & ~flp.reveals(points)
        verifiers = flp.query(shares[:, 0], shares[:, 1:], points)
        verifiers[~valid] = _REFUSED
        return Verification(shares[:, 0] * valid, field64.encode(verifiers), valid)

    def _expanded(self, seeds: Sequence[bytes], aggregator: int) -> Elements:
        """Return a helper's shares, of the measurements and of the proofs."""
        who = [bytes([aggregator])] * len(seeds)
        numbers = self._elements(_MEASUREMENT_SHARE, seeds, who, 1)
        whose = [_ONE_PROOF + one for one in who]
        return np.hstack([numbers, self._elements(_PROOF_SHARE, seeds, whose, flp.PROOF)])

    def _elements(
        self, usage: int, seeds: Sequence[bytes], binders: Sequence[bytes], width: int
    ) -> Elements:
        """Return elements for one use, a row for each seed."""
        separation = (
            bytes([_VERSION, _CLASS])
            + _PRIO3_COUNT.to_bytes(4, "big")
            + usage.to_bytes(2, "big")
            + self.context
        )
        pairs = zip(seeds, binders, strict=True)
        return xof.elements([xof.absorbed(one, separation, binder) for one, binder in pairs], width)


def aggregate(outputs: Elements, accepted: NDArray[np.bool_]) -> int:
    """Return an aggregator's share of the sum of all accepted measurements, below `MODULUS`.

    Sums of several batches add up, modulo `MODULUS`, as does noise.
    """
    return sum(outputs[np.asarray(accepted, bool)].tolist()) % MODULUS


def unshard(*aggregates: int) -> int:
    """Return the sum, from the aggregates of all aggregators; noise may make it negative.

    Raises:
        InputError: an aggregate is not from 0 to `MODULUS` - 1.
    """
    if not all(0 <= one < MODULUS for one in aggregates):
        message = f"an aggregate must be a whole number from 0 to {MODULUS - 1}"
        raise InputError(message)
    total = sum(map(int, aggregates)) % MODULUS  # NumPy's numbers would overflow
    return total - MODULUS * (total > MODULUS // 2)


# What comes in


def _numbers(measurements: Sequence[int]) -> Elements:
    """Return measurements as elements."""
    numbers = np.asarray(measurements)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "biu"):
        message = "expected a sequence of measurements, each 0 or 1"
        raise InputError(message)
    wrong = (numbers != 0) & (numbers != 1)
    if wrong.any():
        message = "a measurement must be 0 or 1"
        raise InputError(message, row=int(np.argmax(wrong)) + 1)
    return numbers.astype(np.uint64)


def _counted(data: bytes, size: int, name: str, number: int | None = None) -> int:
    """Return the number of rows of `size` bytes; check it against `number`, if that is known."""
    found, rest = divmod(len(data), size) if isinstance(data, bytes) else (0, 1)
    if not rest and number in (None, found):
        return found
    right = f"{size} for each report" if number is None else f"{size * number:,} of them"
    message = f"{name} must be bytes, {right}"
    raise InputError(message)


def _rows(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]
