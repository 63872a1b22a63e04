"""What a statistic needs of its plan, and the arguments that every plan has."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from panprivacy._validate import positive_fraction, positive_integer, whole_number
from panprivacy.addressing import Addressing
from panprivacy.cells import Cells
from panprivacy.cells.protocol import Table
from panprivacy.decoders import Model
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget
from panprivacy.planning import Request, Split

T = TypeVar("T")

MOST_EPSILON = 1_000_000
MOST_RELEASES = 1_000_000_000
MOST_INTRUSIONS = 100


def request(
    epsilon: object, releases: object, intrusions: object, budget: Budget | None
) -> Request:
    """Check the arguments that every constructor takes."""
    total = positive_fraction(epsilon=epsilon)
    if total > MOST_EPSILON:
        message = f"epsilon must be at most {MOST_EPSILON:,}"
        raise PlanError(message)
    return Request(
        total,
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


class Plan(Hashable, Protocol):
    """The public parameters of a statistic."""

    @property
    def request(self) -> Request:
        """Epsilon and what it covers."""

    @property
    def split(self) -> Split:
        """How epsilon is spent."""

    @property
    def table(self) -> Cells:
        """The table's cells."""

    @property
    def key_bytes(self) -> int:
        """Bytes of addressing key."""

    def address(self, key: bytes) -> Addressing:
        """Which cell a user maps to."""


class SummableCells(Cells, Protocol):
    """Cells of which a release publishes what they count for."""

    def group_sums(self, table: Table, groups: int, epoch: int) -> NDArray[np.int64]:
        """What the cells of each of `groups` equal runs count for, after `epoch` intrusions."""


class CountPlan(Plan, Protocol):
    """The public parameters of a statistic that has one answer."""

    @property
    def table(self) -> SummableCells:
        """The table's cells."""

    @property
    def groups(self) -> int:
        """How many counts a release publishes; a user moves one of them, by at most one."""

    def model(self, epoch: int) -> Model:
        """What counts that are released after `epoch` announced intrusions say."""
