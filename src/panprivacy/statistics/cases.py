"""The cases that a statistic brings for its own checks: lives, and walks of the exact audit.

Each statistic has them in its folder, so that the contract suite, the exact audit and the tests
take a new one without a line of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

RELEASE, ANNOUNCE, SAVE, CRASH = "release", "announce", "save", "crash"
"""Steps of a stream, beside batches of users or of pairs (user, delta)."""


@dataclass(frozen=True)
class Trial:
    """One way to set up a statistic, which the contract suite leads through a life.

    Args:
        name: shown by the tests.
        sizes: what the statistic is told; enough cells for thousands of users.
        tiny: sizes in place of some of these, that leave few enough coins to walk every outcome;
            users 0, 1 and 2 exist. None where so few cells cannot be read.
        deltas: what the stream of the life is made of.
        refused: deltas that cannot be counted.
        rounds: whether updates draw coins that round deltas, so that the same coins leave the same
            table only after the same batches.
        covers: the name of the argument that says how many releases there are.
        intrusions: whether an intrusion can be announced to it.
        publishes: whether a release is its table, so that it takes no budget, and is neither merged
            nor divided into slices.
    """

    name: str
    sizes: Mapping[str, Any]
    tiny: Mapping[str, Any] | None
    deltas: Sequence[int] = (1,)
    refused: Sequence[int] = ()
    rounds: bool = False
    covers: str = "releases"
    intrusions: bool = True
    publishes: bool = False


@dataclass(frozen=True)
class Short:
    """Every stream of so many batches out of a few, with releases and looks in every place.

    Args:
        batches: of users, or of pairs (user, delta).
        length: how many of them there are in a stream, at most.
        releases: how many releases; None for all that epsilon covers.
    """

    batches: Sequence[Sequence[Any]]
    length: int
    releases: int | None = None


@dataclass(frozen=True)
class Walk:
    """A statistic so small that the exact audit walks every outcome of its coins.

    Args:
        name: of the row of the audit.
        says: in one sentence, what it is.
        sizes: what the statistic is told; or a function of the epsilon of a look, where epsilon is
            split evenly.
        streams: each is compared with its neighbours.
        asked: what releases are asked.
        releases: how many epsilon covers.
        intrusions: how many announced intrusions it covers.
        evenly: split epsilon evenly over all looks and releases.
        users: whose rows neighbours lack, and to whom they are moved.
        tail: how far noise is walked; None to follow its scale.
        state_tail: the same of noise that stays in the state; None for the same.
        key: the addressing key; None for one of zeros.
    """

    name: str
    says: str
    sizes: Mapping[str, Any] | Callable[[Fraction], Mapping[str, Any]]
    streams: Sequence[Short | Sequence[Any]]
    asked: Mapping[str, Any] = field(default_factory=dict)
    releases: int = 1
    intrusions: int = 0
    evenly: bool = False
    users: Sequence[tuple[int, int]] = ((0, 1),)
    tail: int | None = None
    state_tail: int | None = None
    key: bytes | None = None
