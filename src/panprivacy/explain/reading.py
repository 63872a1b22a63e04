"""Find the states in a file, without reading what is in their tables."""

from __future__ import annotations

import dataclasses
import io
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

from panprivacy._validate import positive_fraction
from panprivacy.errors import InputError, PlanError
from panprivacy.explain.description import DAMAGED, Description, describe
from panprivacy.files import read_rest
from panprivacy.guarantee import PrivacyLoss
from panprivacy.sealing import FRONT_BYTES, MOST_SEALED, is_sealed, unseal
from panprivacy.statistics.containers import OWN_BYTES
from panprivacy.statistics.header import Header, read_header

_OWN_BYTES = {
    "Stream": range(72, 1 << 62),  # when it was kept, paid and announced; releases; batches
    "ShardStream": range(170, 1 << 62),  # position, window, keys; batches; contributions
    "Windowed": range(8, 1 << 62, 16),  # what each of its statistics learned
    "Grouped": range(1),
    "Together": range(1),
    "Continual": range(8, 9),  # the answer that stands
}
"""What can hold the states of statistics, and how many bytes each may add to them."""
_MOST_STATES = 1 << 20
_MOST_FRONTS = 1 << 10
"""Different ones: each takes a while to describe."""
_DEEPEST = 8
"""So many of them may be within one another."""

_Around = tuple[Header, ...]
_Found = tuple[Header, _Around]


@dataclass(frozen=True, slots=True)
class Alike:
    """States that stand one after another and have the same front.

    Args:
        first: place of the first one in the file, counting from 1.
        last: place of the last one.
        description: of each.
        within: in what they stand, from the outside in: "Stream", "Windowed", "Grouped".
        share: of tables of groups, the share of those in which one user may be.
    """

    first: int
    last: int
    description: Description
    within: tuple[str, ...] = ()
    share: Fraction = Fraction(1)

    @property
    def count(self) -> int:
        """How many there are."""
        return self.last - self.first + 1

    @property
    def of_a_user(self) -> Fraction:
        """The number of these states in which one user may be; of groups an average."""
        return self.count * self.share


def read_states(path: Path, identity: Path | None = None) -> list[Alike]:
    """Describe the states that a file holds, one after another.

    Only their public fronts are read, without a buffer that would take in what follows; a sealed
    file has to be opened whole.

    Args:
        path: of the file.
        identity: a file with the age identities that may open it, if it is sealed.

    Raises:
        InputError: a file cannot be read, cannot be opened, or holds anything else. No message
            shows what a file holds.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            message = "a state is read from a file, and this is none"
            raise InputError(message)
        with path.open("rb", buffering=0) as stream:
            if is_sealed(stream.read(FRONT_BYTES)):
                return states_in(_opened(stream, identity))
            return states_in(stream)
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        raise InputError(message) from None


def states_in(stream: BinaryIO) -> list[Alike]:
    """Describe the states that bytes hold, one after another; see `read_states`."""
    return _grouped(_headers(stream))


def _headers(stream: BinaryIO) -> Iterator[_Found]:
    """The front of each state, in turn; of those that hold others, the fronts of these."""
    size = stream.seek(0, os.SEEK_END)
    start, place = 0, 1
    around: list[tuple[Header, int]] = []
    while start < size or place == 1:
        around = [(outer, end) for outer, end in around if start < end]
        end = around[-1][1] if around else size
        try:
            stream.seek(start)
            header = read_header(stream)
            own_bytes = _own_bytes(header, end - start, len(around))
        except InputError as error:
            where = f"after state {place - 1:,} of the file: " if place > 1 else ""
            raise InputError(where + error.reason) from None
        if own_bytes is None:
            yield header, tuple(outer for outer, _ in around)
            place += 1
            start += header.state_bytes
        else:
            around.append((header, start + header.state_bytes))
            start += header.front_bytes + own_bytes


def _own_bytes(header: Header, left: int, depth: int) -> int | None:
    """How many bytes of its own stand before the states that this one holds; None if it is one."""
    if header.state_bytes > left:
        message = "the state is cut off"
        raise InputError(message)
    public = header.public()
    own_bytes = public.get(OWN_BYTES)
    if own_bytes is None:
        return None
    possible = _OWN_BYTES.get(str(public.get("statistic")), ())
    known = type(own_bytes) is int and own_bytes in possible and own_bytes < header.body_bytes
    if not known or depth == _DEEPEST:
        raise InputError(DAMAGED)
    return own_bytes


def _opened(stream: BinaryIO, identity: Path | None) -> BinaryIO:
    """What a sealed file holds."""
    if identity is None:
        message = (
            "the file is sealed (encrypted with age): nothing in it can be read without the "
            "identity, which is kept elsewhere; where it is, name it with identity="
        )
        raise InputError(message)
    stream.seek(0)
    return io.BytesIO(unseal(read_rest(stream, MOST_SEALED), identity))


def _grouped(found: Iterable[_Found]) -> list[Alike]:
    """One description for each run of equal headers in the same surroundings."""
    runs: list[Alike] = []
    known: dict[Header, Description] = {}
    before = None
    for place, (header, around) in enumerate(found, start=1):
        fronts = header, tuple(outer.front for outer in around)
        if fronts == before:
            runs[-1] = dataclasses.replace(runs[-1], last=place)
        else:
            within = tuple(str(outer.public()["statistic"]) for outer in around)
            if header not in known:
                known[header] = describe(header)
            _check_number(place, len(known))
            described, share = _within(known[header], around)
            runs.append(Alike(place, place, described, within, share))
        before = fronts
    return runs


def _check_number(states: int, fronts: int) -> None:
    """Refuse a file of so many states that nobody has made it."""
    if states > _MOST_STATES or fronts > _MOST_FRONTS:
        message = f"the file holds more than {_MOST_STATES:,} states, or {_MOST_FRONTS:,} kinds"
        raise InputError(message)


def _within(described: Description, around: _Around) -> tuple[Description, Fraction]:
    """Return a description with what holds around it, and the share of such states of one user.

    Raises:
        InputError: they do not go together.
    """
    share = Fraction(1)
    for public in (outer.public() for outer in around):
        if public["statistic"] == "Continual":  # which has a ledger of its own
            described = dataclasses.replace(described, compared=_compared(public))
            if described.guarantee.epsilon != described.ledger:
                raise InputError(DAMAGED)
        if public["statistic"] == "Grouped":
            groups, per_user = public.get("groups"), public.get("per_user")
            if not (type(groups) is type(per_user) is int and 1 <= per_user <= groups):
                raise InputError(DAMAGED)
            share = Fraction(per_user, groups)
    return described, share


def _compared(public: Mapping[str, object]) -> PrivacyLoss:
    """Return the loss by comparisons that a front names."""
    try:
        return PrivacyLoss(
            positive_fraction(comparisons=public.get("comparisons")),
            positive_fraction(delta=public.get("delta")),
        )
    except PlanError:
        raise InputError(DAMAGED) from None
