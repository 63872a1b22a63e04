"""Description of a state by its header, and the consequences for the people in the stream."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from panprivacy._version import VERSION
from panprivacy.errors import InputError, PlanError
from panprivacy.ground.validation import positive_fraction
from panprivacy.privacy.guarantee import Budget, Guarantee, PrivacyLoss
from panprivacy.statistics.abilities import searched_law
from panprivacy.statistics.arguments import request
from panprivacy.statistics.catalogue import StatisticType, kinds
from panprivacy.statistics.header import Header, public_text
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.records import Field, Sizes
from panprivacy.statistics.slicing import table_of
from panprivacy.tables.cells.protocol import Cells
from panprivacy.tables.planning.request import Request
from panprivacy.tables.slices import Slice

DAMAGED = "the state is damaged: its public parameters do not go together"
_OTHER = (
    "the state does not go together as panprivacy of this version plans; version {} made it: "
    "explain it with that one"
)
_VERSION = re.compile(r"[\w.+-]{1,40}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Progress:
    """Number made, and number planned."""

    made: int
    planned: int


@dataclass(frozen=True, slots=True)
class Description:
    """Header of a state, and the plan that the shipping code makes of it.

    Args:
        kind: the statistic.
        version: version of panprivacy that made it.
        sizes: the sizes given to the statistic.
        plan: the plan that follows.
        ledger: the total over all statistics that share its ledger.
        releases: answers that were published.
        intrusions: looks at the state that were announced.
        state_bytes: size of the complete state.
        compared: the loss by comparisons, if an answer stands until it has moved.
        slice_: the slice of the table; None for the complete table.
    """

    kind: StatisticType
    version: str
    sizes: Sizes
    plan: Plan
    ledger: Fraction
    releases: Progress
    intrusions: Progress
    state_bytes: int
    compared: PrivacyLoss = PrivacyLoss(Fraction(0))  # noqa: RUF009
    slice_: Slice | None = None

    @property
    def name(self) -> str:
        """The name of the statistic."""
        return self.kind.entry.name

    @property
    def budget(self) -> Budget:
        """Epsilon of each look and of each release."""
        return self.plan.split.budget

    @property
    def epsilon(self) -> Fraction:
        """The promised total."""
        return self.plan.request.epsilon

    @property
    def proofs(self) -> tuple[str, ...]:
        """Pages that prove its guarantee."""
        mapped = ("addressing", "composition") if self.plan.reads_ids else ()
        moves = ("moves",) if self.compared.epsilon else ()
        deltas = ("beliefs",) if self.guarantee.delta else ()
        pages = *self.plan.proofs, *mapped, *moves, *deltas
        return tuple(f"docs/guarantees/{page}.md" for page in pages)

    @property
    def checks(self) -> tuple[str, ...]:
        """The tests that check it."""
        return "tests/contract", *(f"tests/{check}.py" for check in self.plan.checks)

    def settled(self) -> list[tuple[Field, object]]:
        """Return the sizes of the plan: the given ones, and those that it chose."""
        found = []
        for entry in self.sizes.fields().values():
            told = getattr(self.sizes, entry.name)
            # A plan calls the unit of its answers so, and sizes that of amounts.
            value = told if entry.name == "unit" else getattr(self.plan, entry.name, told)
            if value is not None and entry.name != "memory":
                found.append((entry, value))
        return found

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the whole life: all planned looks, one more, and all releases."""
        return self.plan.guarantee.compared(self.compared)

    @property
    def so_far(self) -> PrivacyLoss:
        """The loss by this state, the looks announced before it, and all releases so far."""
        made, looks = self.releases.made, self.intrusions.made
        return self.compared + PrivacyLoss(self.budget.total(releases=made, intrusions=looks))


def describe(header: Header) -> Description:
    """Read the header of a state: plan its statistic, and compare the result.

    Nothing in it is trusted. The sizes are checked before anything is planned.

    Raises:
        InputError: it is inconsistent, or of a statistic that this version does not know.
    """
    public = header.public()
    name = public.get("statistic")
    kind = kinds().get(name) if isinstance(name, str) else None
    if kind is None:
        message = "the state is of a statistic that this version of panprivacy does not know"
        raise InputError(message)
    try:
        sizes = kind.entry.sizes.read(kind.entry.name, _part(public, "sizes"))
        asked = _request_of(_part(public, "request"), _part(public, "budget"))
        plan = sizes.planned(asked)
        ledger = positive_fraction(ledger=_text(public, "ledger"))
        slice_ = _slice(public)
        cells = table_of(plan, slice_)
    except PlanError:
        raise InputError(DAMAGED) from None
    described = Description(
        kind,
        _text(public, "version"),
        sizes,
        plan,
        ledger,
        Progress(header.releases, asked.releases),
        Progress(header.intrusions, asked.intrusions),
        header.state_bytes,
        slice_=slice_,
    )
    _check(described, cells, header)
    return described


def _check(described: Description, cells: Cells, header: Header) -> None:
    """Check that the shipping code would write this header."""
    plan, releases, intrusions = described.plan, described.releases, described.intrusions
    own = public_text(
        described.name,
        described.sizes,
        plan.request,
        plan.split.budget,
        described.ledger,
        searched_law(plan),
        described.slice_,
    )
    told = header.public() | {"version": VERSION}
    sound = (
        header.body_bytes == plan.key_bytes + cells.nbytes
        and releases.made <= releases.planned
        and intrusions.made <= intrusions.planned
        and described.epsilon <= described.ledger
        and json.loads(own) == told
        and header.tick == described.sizes.ticks(releases.made)
    )
    if not sound:
        other = described.version != VERSION
        raise InputError(_OTHER.format(described.version) if other else DAMAGED)


def _request_of(asked: Mapping[str, Any], budget: Mapping[str, Any]) -> Request:
    """Return the request, with its own budget if it had one."""
    parts = (_text(budget, part) for part in ("state", "release"))
    own = Budget(*parts) if asked.get("own_budget") is True else None
    releases: Any = asked.get("releases")
    intrusions: Any = asked.get("intrusions")
    return request(_text(asked, "epsilon"), releases, intrusions, own)


def _slice(public: Mapping[str, Any]) -> Slice | None:
    """Return the slice of the table, if it is one."""
    if "slice" not in public:
        return None
    told: Any = _part(public, "slice")
    try:
        key = bytes.fromhex(_text(told, "routing"))
    except ValueError:
        raise InputError(DAMAGED) from None
    return Slice(public.get("shard"), told.get("shards"), key)  # type: ignore[arg-type]


def _part(public: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = public.get(name)
    if not isinstance(found, dict):
        raise InputError(DAMAGED)
    return found


def _text(public: Mapping[str, Any], name: str) -> str:
    found = public.get(name)
    if not isinstance(found, str) or (name == "version" and not _VERSION.fullmatch(found)):
        raise InputError(DAMAGED)
    return found
