"""What every statistic takes beside its sizes."""

from __future__ import annotations

import hashlib
from typing import Required, TypedDict, TypeVar

from panprivacy.errors import PlanError
from panprivacy.ground.validation import positive_fraction, positive_integer, whole_number
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import Budget, Epsilon, Ledger
from panprivacy.tables.planning.request import Request
from panprivacy.tables.slices import Slice

MOST_RELEASES = 1_000_000_000
MOST_INTRUSIONS = 100

_LEAST_KEY = 16

T = TypeVar("T")


class Arguments(TypedDict, total=False):
    """The arguments of every statistic beside its sizes, for type checkers; see `Statistic`."""

    epsilon: Required[Epsilon]
    releases: int
    intrusions: int
    budget: Budget | None
    ledger: Ledger | None
    coins: Coins | None
    key: bytes | None
    slice_: Slice | None


def request(
    epsilon: Epsilon, releases: object = 1, intrusions: int = 0, budget: Budget | None = None
) -> Request:
    """Check the arguments that every statistic takes."""
    return Request(
        positive_fraction(epsilon=epsilon),
        positive_integer(MOST_RELEASES, releases=releases),
        whole_number(0, MOST_INTRUSIONS, intrusions=intrusions),
        instance(Budget, budget=budget),
    )


def instance(kind: type[T], **named: object) -> T | None:
    """Read an object of one class, or None."""
    ((name, value),) = named.items()
    if value is not None and not isinstance(value, kind):
        message = f"{name} must be a {kind.__name__}"
        raise PlanError(message)
    return value


def shared_key(key: bytes | None, size: int) -> bytes | None:
    """An addressing key of so many bytes, made of one that shards share."""
    if key is None:
        return None
    if not isinstance(key, bytes) or len(key) < _LEAST_KEY:
        message = f"key must be {_LEAST_KEY} random bytes or more, the same for all shards"
        raise PlanError(message)
    return hashlib.shake_256(key).digest(size)
