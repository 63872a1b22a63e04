"""A statistic as people write it: its name, its sizes, and what a release is asked.

Written the same way everywhere: `cropped-sum,tau=10,universe=50_000` on the command line, a table
with `name = "cropped-sum"`, `tau = 10` in a configuration, the same in the front of a state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Self

from panprivacy.errors import PlanError
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import Ledger
from panprivacy.statistics.catalogue import StatisticType, kind_of, kinds
from panprivacy.statistics.composites.together import Together
from panprivacy.statistics.records import Query, Sizes
from panprivacy.statistics.statistic import Statistic
from panprivacy.statistics.useful import sharing
from panprivacy.tables.slices import Slice

NAME, LABEL = "name", "as"
"""What a table says beside the sizes and questions of the statistic."""

_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,63}")


class SpecificationError(PlanError):
    """One of several statistics cannot be counted as it is specified.

    Args:
        position: of the specification among all of them.
        reason: what is wrong and what to do.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position, self.reason = position, reason


@contextmanager
def blamed(position: int) -> Iterator[None]:
    """Say of which specification something is wrong."""
    try:
        yield
    except PlanError as error:
        raise SpecificationError(position, str(error)) from None


@dataclass(frozen=True, slots=True)
class Specification:
    """The specification of a statistic to count.

    Args:
        kind: the statistic.
        label: what its answers are called: its name unless told.
        sizes: of the problem.
        query: what a release is asked.
    """

    kind: StatisticType
    label: str
    sizes: Sizes
    query: Query

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read `cropped-sum,tau=10,universe=50_000`.

        A part without `=` continues the value before it, as in `incidence,bound=30,exactly=1,2,5`;
        the bare name of a field is true.

        Raises:
            PlanError: it is none.
        """
        name, *parts = text.split(",")
        first, *more = name.split() or [""]
        if more and first in kinds():
            message = f"a comma parts a statistic from its sizes: {','.join([first, *more])}"
            raise PlanError(message)
        kind = kind_of(name.strip())
        texts = _texts(kind, parts)
        label = texts.pop(LABEL, kind.entry.name)
        sizes, query = _parted(kind, texts)
        return cls.of(
            kind,
            label,
            kind.entry.sizes.parse(kind.entry.name, sizes),
            kind.entry.query.parse(kind.entry.name, query),
        )

    @classmethod
    def from_table(cls, table: Mapping[str, object]) -> Self:
        """Read `{"name": "cropped-sum", "tau": 10, "universe": 50_000}`.

        Raises:
            PlanError: it is none.
        """
        if NAME not in table:
            message = f'name is missing; it is needed, such as {NAME} = "distinct"'
            raise PlanError(message)
        try:
            kind = kind_of(table[NAME])
        except PlanError as error:
            message = f"{NAME}: {error}"
            raise PlanError(message) from None
        named = {key: value for key, value in table.items() if key not in {NAME, LABEL}}
        return cls.of(kind, table.get(LABEL, kind.entry.name), *_parted(kind, named))

    @classmethod
    def of(
        cls,
        kind: StatisticType,
        label: object,
        sizes: Mapping[str, object],
        query: Mapping[str, object],
    ) -> Self:
        """Check all parts."""
        if not isinstance(label, str) or not _LABEL.fullmatch(label):
            message = f"{LABEL}= must be 1 to 64 of a-z, 0-9, _ and -, first a letter"
            raise PlanError(message)
        checked = (
            kind.entry.sizes.read(kind.entry.name, sizes),
            kind.entry.query.read(kind.entry.name, query),
        )
        return cls(kind, label, *checked)

    def without_deltas(self) -> Self:
        """The same where each event counts once."""
        return replace(self, sizes=self.sizes.without_deltas())

    def make(
        self,
        *,
        epsilon: Fraction,
        releases: int,
        intrusions: int = 0,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
        key: bytes | None = None,
        slice_: Slice | None = None,
    ) -> Statistic[Any, Any]:
        """The statistic."""
        covers: dict[str, Any] = {"releases": releases, "intrusions": intrusions}
        arguments: dict[str, Any] = {"ledger": ledger, "coins": coins, "key": key, "slice_": slice_}
        return self.kind(self.sizes, epsilon=epsilon, **covers, **arguments)

    def asked(self) -> dict[str, Any]:
        """The arguments of `release`, but the confidence."""
        return {name: getattr(self.query, name) for name in self.query.plain()}


def together(
    specifications: Sequence[Specification],
    *,
    epsilon: Fraction,
    releases: int,
    intrusions: int = 0,
    key: bytes | None = None,
    table_key: bytes | None = None,
    slice_: Slice | None = None,
) -> Together[str, Statistic[Any, Any]]:
    """The statistics, which share epsilon equally.

    Args:
        specifications: of the statistics.
        epsilon: total loss.
        releases: number of releases that epsilon covers.
        intrusions: number of announced intrusions that it covers.
        key: key of the addressing; None for a key of its own.
        table_key: key of the addressing of tables that are published; None for `key`.
        slice_: the slice of the tables to count; None for the complete tables.

    Raises:
        SpecificationError: two have one label, or one cannot be planned or would answer noise.
    """
    ledger, share = Ledger(epsilon), epsilon / max(len(specifications), 1)
    members: dict[str, Statistic[Any, Any]] = {}
    for position, one in enumerate(specifications):
        with blamed(position), sharing(epsilon):
            if one.label in members:
                message = f"two statistics are called {one.label}: give one another name with "
                message += f"{LABEL}="
                raise PlanError(message)
            covers: dict[str, Any] = {"releases": releases, "intrusions": intrusions}
            chosen = table_key or key if one.sizes.published else key
            made = one.make(epsilon=share, **covers, ledger=ledger, key=chosen, slice_=slice_)
            made.internals.releasing.check_release(**one.asked())
            members[one.label] = made
    return Together(members, {one.label: one.asked() for one in specifications})


def _texts(kind: StatisticType, parts: Sequence[str]) -> dict[str, str]:
    """The values by name, as texts."""
    texts: dict[str, str] = {}
    last = None
    for part in parts:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if equals or (name.isidentifier() and name != LABEL):  # numbers continue, words do not
            last = name
            if last in texts:
                message = f"{kind.entry.name}, {last}= is given twice"
                raise PlanError(message)
            texts[last] = value if equals else "true"
        elif last is None:
            message = (
                f"{kind.entry.name} wants name=value, such as {kind.entry.name},{_example(kind)}"
            )
            raise PlanError(message)
        else:
            texts[last] += f",{name}"
    return texts


def _example(kind: StatisticType) -> str:
    """A size as it is written."""
    first = next(iter(kind.entry.sizes.fields().values()), None)
    return "as=mine" if first is None else f"{first.name}={first.form}"


def _parted(kind: StatisticType, named: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of sizes and of the query; unknown ones go to the nearest of both."""
    asked, known = kind.entry.query.fields(), kind.entry.sizes.fields()
    nearest = {name: get_close_matches(name, [*known, *asked], 1) for name in named}
    queried = {name for name in named if nearest[name] and nearest[name][0] in asked}
    sizes = {name: value for name, value in named.items() if name not in queried}
    return sizes, {name: value for name, value in named.items() if name in queried}
