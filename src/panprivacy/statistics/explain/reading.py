"""Reading of the states in a file, without their tables."""

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

from panprivacy.errors import InputError, PlanError
from panprivacy.ground.files import read_rest
from panprivacy.ground.sealing import FRONT_BYTES, MOST_SEALED, is_sealed, unseal
from panprivacy.ground.validation import positive_fraction
from panprivacy.privacy.guarantee import PrivacyLoss
from panprivacy.statistics.composites.moves import CHANGE_TRIGGERED
from panprivacy.statistics.containers import OWN_BYTES
from panprivacy.statistics.explain.description import DAMAGED, Description, describe
from panprivacy.statistics.header import Header, read_header

_OWN_BYTES = {
    "Stream": range(72, 1 << 62),  # when it was stored, paid and announced; releases; batches
    "ShardStream": range(170, 1 << 62),  # position, window, keys; batches; contributions
    "Windowed": range(8, 1 << 62, 16),  # what each of its statistics learned
    "Grouped": range(1),
    "Together": range(1),
    CHANGE_TRIGGERED: range(8, 9),  # the answer that stands
}
"""Containers of states, and the possible numbers of bytes that each adds."""
_CLASSES = {CHANGE_TRIGGERED: "ChangeTriggered"}
"""Containers of states that are called otherwise than their class."""
_MOST_STATES = 1 << 20
_MOST_FRONTS = 1 << 10
"""Maximum number of different headers: each takes a while to describe."""
_DEEPEST = 8
"""Maximum depth of nested containers."""

_Around = tuple[Header, ...]
_Found = tuple[Header, _Around]


@dataclass(frozen=True, slots=True)
class StateRun:
    """Consecutive states with the same header.

    Args:
        first: position of the first one in the file, counting from 1.
        last: position of the last one.
        description: the description of each.
        within: the containers around them, from the outside in: "Stream", "Windowed", "Grouped".
        share: for tables of groups, the share of those in which one user may be.
    """

    first: int
    last: int
    description: Description
    within: tuple[str, ...] = ()
    share: Fraction = Fraction(1)

    @property
    def count(self) -> int:
        """Number of states."""
        return self.last - self.first + 1

    @property
    def of_a_user(self) -> Fraction:
        """Number of these states in which one user may be; for groups an average."""
        return self.count * self.share


def read_states(path: Path, identity: Path | None = None) -> list[StateRun]:
    """Describe the states in a file, one after another.

    Only their public headers are read, without a buffer that would take in the data after them; a
    sealed file has to be unsealed completely.

    Args:
        path: path of the file.
        identity: a file with the age identities that may unseal it, if it is sealed.

    Raises:
        InputError: a file cannot be read, cannot be unsealed, or contains anything else. No message
            shows the content of a file.
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


def states_in(stream: BinaryIO) -> list[StateRun]:
    """Describe the states in a byte stream, one after another; see `read_states`."""
    return _grouped(_headers(stream))


def _headers(stream: BinaryIO) -> Iterator[_Found]:
    """Yield the header of each state, in turn; of containers, the headers of their states."""
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
    """Return the size of a container's own data before its states; None for a state."""
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
    """Return the content of a sealed file."""
    if identity is None:
        message = (
            "the file is sealed (encrypted with age): nothing in it can be read without the "
            "identity, which is kept elsewhere; where it is, name it with identity="
        )
        raise InputError(message)
    stream.seek(0)
    return io.BytesIO(unseal(read_rest(stream, MOST_SEALED), identity))


def _grouped(found: Iterable[_Found]) -> list[StateRun]:
    """Return one description for each run of equal headers in the same containers."""
    runs: list[StateRun] = []
    known: dict[Header, Description] = {}
    before = None
    for place, (header, around) in enumerate(found, start=1):
        fronts = header, tuple(outer.front for outer in around)
        if fronts == before:
            runs[-1] = dataclasses.replace(runs[-1], last=place)
        else:
            names = (str(outer.public()["statistic"]) for outer in around)
            within = tuple(_CLASSES.get(name, name) for name in names)
            if header not in known:
                known[header] = describe(header)
            _check_number(place, len(known))
            described, share = _within(known[header], around)
            runs.append(StateRun(place, place, described, within, share))
        before = fronts
    return runs


def _check_number(states: int, fronts: int) -> None:
    """Check that the number of states is plausible."""
    if states > _MOST_STATES or fronts > _MOST_FRONTS:
        message = f"the file holds more than {_MOST_STATES:,} states, or {_MOST_FRONTS:,} kinds"
        raise InputError(message)


def _within(described: Description, around: _Around) -> tuple[Description, Fraction]:
    """Return a description with its containers, and the share of such states of one user.

    Raises:
        InputError: they are inconsistent.
    """
    share = Fraction(1)
    for public in (outer.public() for outer in around):
        if public["statistic"] == CHANGE_TRIGGERED:  # has its own ledger
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
    """Return the loss by comparisons in a header."""
    try:
        return PrivacyLoss(
            positive_fraction(comparisons=public.get("comparisons")),
            positive_fraction(delta=public.get("delta")),
        )
    except PlanError:
        raise InputError(DAMAGED) from None
