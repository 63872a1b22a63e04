"""From the public text of a state to a description; nothing in it is taken for granted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from panprivacy.cells.law import MOST_MODULUS
from panprivacy.errors import InputError, PlanError
from panprivacy.explain.description import Description, Progress, Sizes
from panprivacy.guarantee import LARGEST_EXPONENT, Budget, exp_bounds
from panprivacy.planning import Request
from panprivacy.planning.heavy import LEAST_INDEPENDENCE, MOST_INDEPENDENCE
from panprivacy.statistics.header import Header
from panprivacy.statistics.plans import MOST_EPSILON, MOST_INTRUSIONS, MOST_RELEASES

_MOST_SIZE = 1 << 62
_DAMAGED = "the state is damaged: its public parameters do not go together"

_FRACTION = re.compile(r"[0-9]+(/[0-9]*[1-9][0-9]*)?", re.ASCII)
_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){1,3}((a|b|rc|\.dev|\.post)[0-9]{1,4})?", re.ASCII)
_LAW = re.compile(
    r".* modulo ([0-9]{1,8}), weights ([0-9]{1,19}) to ([0-9]{1,19}), SHA-256 [0-9a-f]{64}",
    re.ASCII | re.DOTALL,
)


def describe(header: Header) -> Description:
    """Read the front of a state, and check that what it says goes together.

    Raises:
        InputError: it does not, or another version made it, which this one does not know.
    """
    public = _Public(header.public())
    request, budget = public.part("request"), public.part("budget")
    kind = _kind_of(public)
    described = Description(
        statistic=str(public.values["statistic"]),
        kind=kind,
        version=public.match("version", _VERSION)[0],
        sizes=_SIZES[kind](public),
        budget=Budget(budget.fraction("state"), budget.fraction("release")),
        epsilon=request.fraction("epsilon"),
        ledger=public.fraction("ledger"),
        releases=Progress(header.releases, request.whole("releases", MOST_RELEASES)),
        intrusions=Progress(
            header.intrusions, request.whole("intrusions", MOST_INTRUSIONS, least=0)
        ),
        state_bytes=header.state_bytes,
    )
    _check_spent(described)
    _check_law(public, described)
    if header.body_bytes != described.sizes.key_bytes + described.sizes.table_bytes:
        raise InputError(_DAMAGED)
    return described


def _check_spent(described: Description) -> None:
    """Refuse a state that has spent more than it promises."""
    releases, intrusions = described.releases, described.intrusions
    try:
        Request(described.epsilon, releases.planned, intrusions.planned, described.budget)
    except PlanError:
        raise InputError(_DAMAGED) from None
    overdone = releases.made > releases.planned or intrusions.made > intrusions.planned
    if overdone or not described.epsilon <= min(described.ledger, Fraction(MOST_EPSILON)):
        raise InputError(_DAMAGED)


def _check_law(public: _Public, described: Description) -> None:
    """Refuse counters whose noise loses more at a look than the state may."""
    if described.kind != "incidence":
        return
    high, low = map(int, public.match("law", _LAW).groups()[1:])
    affordable, _ = exp_bounds(min(described.budget.state, LARGEST_EXPONENT))
    if not low or not low <= high or Fraction(high, low) > affordable:
        raise InputError(_DAMAGED)


@dataclass(frozen=True, slots=True)
class _Public:
    """Public parameters, of which nothing is known yet."""

    values: Mapping[str, Any]

    def part(self, name: str) -> _Public:
        """Parameters within one of them."""
        found = self.values.get(name)
        if not isinstance(found, dict):
            raise InputError(_DAMAGED)
        return _Public(found)

    def whole(self, name: str, most: int = _MOST_SIZE, *, least: int = 1) -> int:
        """A whole number from `least` to `most`."""
        return _whole(self.values.get(name), most, least=least)

    def optional(self, name: str) -> int | None:
        """A size, or None where it was not said."""
        return None if self.values.get(name, 0) is None else self.whole(name)

    def truth(self, name: str) -> bool:
        """True or False."""
        found = self.values.get(name)
        if not isinstance(found, bool):
            raise InputError(_DAMAGED)
        return found

    def match(self, name: str, pattern: re.Pattern[str]) -> re.Match[str]:
        """A text that follows a pattern."""
        found = self.values.get(name)
        match = pattern.fullmatch(found) if isinstance(found, str) else None
        if match is None:
            raise InputError(_DAMAGED)
        return match

    def fraction(self, name: str) -> Fraction:
        """A fraction above 0."""
        try:
            found = Fraction(self.match(name, _FRACTION)[0])
        except ValueError:  # more digits than Python reads
            raise InputError(_DAMAGED) from None
        if not found:
            raise InputError(_DAMAGED)
        return found

    def users(self, name: str) -> tuple[int, int] | None:
        """A number of users or a range of them, or None where it was not said."""
        if isinstance(self.values.get(name), list):
            return self.range(name)
        found = self.optional(name)
        return None if found is None else (found, found)

    def range(self, name: str) -> tuple[int, int]:
        """Two sizes, the smaller one first."""
        found = self.values.get(name)
        if not isinstance(found, list) or len(found) != 2:
            raise InputError(_DAMAGED)
        low, high = (_whole(end, _MOST_SIZE) for end in found)
        if low > high:
            raise InputError(_DAMAGED)
        return low, high


def _whole(value: object, most: int, *, least: int = 1) -> int:
    if type(value) is not int or not least <= value <= most:
        raise InputError(_DAMAGED)
    return value


_KINDS = {
    "CroppedSum": "cropped",
    "Density": "density",
    "DistinctCount": "distinct",
    "HeavyHitterCount": "heavy",
    "Incidence": "incidence",
    "ThresholdCount": "threshold",
}


def _kind_of(public: _Public) -> str:
    name = public.values.get("statistic")
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        message = "the state is of a statistic that this version of panprivacy does not know"
        raise InputError(message)
    return "net" if kind == "distinct" and "chosen" in public.values else kind


def _density(public: _Public) -> Sizes:
    universe = public.whole("universe")
    return Sizes(cells=public.whole("cells", universe), universe=universe)


def _distinct(public: _Public) -> Sizes:
    levels = public.whole("levels")
    cells = levels * public.whole("cells_per_level")
    return Sizes(cells=cells, expected=public.range("expected"), levels=levels)


def _net(public: _Public) -> Sizes:
    levels = public.whole("levels")
    return Sizes(
        cells=levels * public.whole("cells_per_level"),
        expected=public.range("expected"),
        levels=levels,
        bound=public.whole("bound"),
        signed=public.truth("signed"),
        modulus=public.part("chosen").whole("modulus", MOST_MODULUS, least=2),
    )


def _incidence(public: _Public) -> Sizes:
    universe = public.optional("universe")
    return Sizes(
        cells=public.whole("cells", universe or _MOST_SIZE),
        universe=universe,
        expected=public.users("expected"),
        bound=public.whole("bound"),
        signed=public.truth("signed"),
        modulus=_whole(int(public.match("law", _LAW)[1]), MOST_MODULUS, least=2),
    )


def _cropped(public: _Public) -> Sizes:
    universe, levels = public.optional("universe"), public.whole("levels")
    tau = public.whole("tau", MOST_MODULUS)
    blocks = public.part("chosen").whole("modulus", MOST_MODULUS // tau, least=2)
    return Sizes(
        cells=public.whole("cells", universe or _MOST_SIZE),
        universe=universe,
        expected=public.users("expected"),
        levels=levels,
        bound=public.whole("bound"),
        signed=universe is not None,
        modulus=tau * blocks,
        tau=tau,
    )


def _heavy(public: _Public) -> Sizes:
    k, total = public.whole("k"), public.whole("total")
    block = total // (2 * k * public.whole("resolution"))
    if not 1 <= block <= MOST_MODULUS // 2:
        raise InputError(_DAMAGED)
    blocks = public.part("chosen").whole("modulus", MOST_MODULUS // block, least=2)
    return Sizes(
        cells=public.whole("cells"),
        modulus=block * blocks,
        k=k,
        total=total,
        independence=public.whole("independence", MOST_INDEPENDENCE, least=LEAST_INDEPENDENCE),
    )


def _threshold(public: _Public) -> Sizes:
    universe, least = public.whole("universe"), public.whole("least", MOST_MODULUS, least=2)
    block = least // 2
    blocks = public.part("chosen").whole("modulus", MOST_MODULUS // block, least=2)
    return Sizes(
        cells=public.whole("cells", universe),
        universe=universe,
        bound=public.whole("bound"),
        modulus=block * blocks,
        least=least,
    )


_SIZES = {
    "cropped": _cropped,
    "density": _density,
    "distinct": _distinct,
    "heavy": _heavy,
    "net": _net,
    "incidence": _incidence,
    "threshold": _threshold,
}
