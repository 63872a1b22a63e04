"""How much do the products of users' states in two streams add up to?

Two tables of noisy sums, one for each stream. A user has the same cell and the same sign in both,
so the products of cells have the products of states as their expectation, and noise none.

Reference: N. Alon, P. Gibbons, Y. Matias, M. Szegedy, "Tracking join and self-join sizes in limited
storage", 1999. Where we differ: the cells are born with noise, of which a user who is in both
streams meets twice half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Unpack, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panprivacy.errors import InputError
from panprivacy.statistics.abilities import Sided
from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.deltas import concatenated_deltas
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.inner.cases import TRIALS, WALKS
from panprivacy.statistics.inner.plan import InnerPlan
from panprivacy.statistics.inner.sizes import InnerSizes
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.records import Whole
from panprivacy.statistics.release import Release
from panprivacy.statistics.statistic import Statistic
from panprivacy.statistics.table.memory import Batch, TableMemory
from panprivacy.tables.addressing import CellBatch
from panprivacy.tables.ids import Labels, SharedColumn, WholeNumbers, as_column, decoded, gatherable

_WANTED = " must be in a one-dimensional array or sequence"


class Sides(NamedTuple):
    """A batch that was checked, by sides; it holds ids.

    Args:
        plan: of the statistic that has checked it.
        left: the events of one stream.
        right: those of the other.
    """

    plan: Plan
    left: Batch
    right: Batch


class SidedMemory(TableMemory[Plan]):
    """The memory of a statistic of two streams, `abilities.Sided`: two tables, one for each."""

    __slots__ = ()

    @property
    def _labels(self) -> tuple[str, str]:
        return cast("Sided", self.plan).sides

    def prepare(  # type: ignore[override]
        self,
        users: Labels | SharedColumn,
        deltas: WholeNumbers | SharedColumn | None = None,
        sides: Labels | SharedColumn | str | None = None,
    ) -> Sides:
        """Check one batch of events without counting it, so that several statistics can take it.

        Args:
            users: as for `update`.
            deltas: as for `update`.
            sides: the stream of each event, `left` or `right` as the sizes call them; one word if
                all are of one stream; None for the left one.

        Raises:
            InputError: as for `update`, or a side that is none. The message names the row.
        """
        if sides is None or isinstance(sides, str):
            every = super().prepare(users, deltas)
            nobody = Batch(self.plan, [], None)
            word = self._labels[0] if sides is None else sides
            left = self._is_left(pa.chunked_array([[word]]))[0]
            return Sides(self.plan, *((every, nobody) if left else (nobody, every)))
        ids = gatherable(as_column(users, "user ids" + _WANTED))
        changes = None if deltas is None else as_column(deltas, "deltas" + _WANTED)
        column = as_column(sides, "sides" + _WANTED)
        for name, one in (("side", column), ("delta", changes)):
            if one is not None and len(one) != len(ids):
                message = (
                    f"there must be one {name} for each id: {len(ids):,} ids, {len(one):,} {name}s"
                )
                raise InputError(message)
        left = self._is_left(column)
        return Sides(
            self.plan, *(self._part(ids, changes, np.flatnonzero(of)) for of in (left, ~left))
        )

    def apply(self, *batches: Sides) -> None:  # type: ignore[override]
        """Count what this statistic has checked, or one of the same plan, in one pass.

        Args:
            batches: what `prepare` gave, in order.

        Raises:
            InputError: one was checked for another plan. Nothing was counted.
        """
        self.check_plans(one.plan for one in batches)
        cells, state = self.cells, self.now
        for side, several in enumerate(
            zip(*((one.left, one.right) for one in batches), strict=True)
        ):
            rows = CellBatch(self.addressing, [chunk for batch in several for chunk in batch.ids])
            deltas = concatenated_deltas([(sum(map(len, one.ids)), one.deltas) for one in several])
            table = cells.half(state.table, side)
            cells.update(table, rows, deltas, state.intrusions, self.coins)

    def _is_left(self, column: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Whether each event is of the left stream."""
        labels = self._labels
        wanted = f"the side must be {labels[0]} or {labels[1]}, as left= and right= say"
        try:
            texts = decoded(column).cast(pa.string())
        except pa.ArrowException:  # what it says quotes a value
            raise InputError(wanted) from None
        places = pc.index_in(texts, value_set=pa.array(labels))
        if places.null_count:
            missing = np.asarray(places.is_null())
            raise InputError(wanted, row=int(np.argmax(missing)) + 1)
        left: NDArray[np.bool_] = np.asarray(places) == 0
        return left

    def _part(
        self, ids: pa.ChunkedArray, deltas: pa.ChunkedArray | None, rows: NDArray[np.int64]
    ) -> Batch:
        """The events of one stream, checked."""
        chosen = None if deltas is None else deltas.take(pa.array(rows))
        try:
            return super().prepare(ids.take(pa.array(rows)), chosen)
        except InputError as error:
            row = None if error.row is None else int(rows[error.row - 1]) + 1
            raise InputError(error.reason, row=row) from None


class InnerProduct(Statistic[InnerPlan, Release]):
    """The sum over users of what they have in one stream times what they have in the other.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> bought_and_sent_back = pp.InnerProduct(bound=10, left="sale", right="return", epsilon=4)
    >>> bought_and_sent_back.update(np.arange(100_000), np.full(100_000, 10), sides="sale")
    >>> bought_and_sent_back.update(np.arange(50_000), np.full(50_000, 4), sides="return")
    >>> answer = bought_and_sent_back.release(confidence=1 - 1e-9)
    >>> answer.low < 2_000_000 < answer.high  # 50,000 * 10 * 4
    True

    It is the number of pairs of an event of one stream and an event of the other that are of the
    same user: the size of their join.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user, in both streams, are added or
    removed, *while the states of that user stay within 0 .. bound in either stream*, or -bound ..
    bound if `signed`. Who goes c times as far loses c times as much; who is in one of the streams
    alone, half. With `intrusions=k` that includes the states at k announced intrusions before that
    time. [tests/contract, tests/exact/test_moments.py, docs/guarantees/moments.md]

    Accuracy: unbiased before it is cut to its interval, also after deletions and beyond the bound.
    The error is proportional to the bound, and grows with the sums of squares F and G of both
    streams, not with the answer: it is about `12 bound sqrt(F + G)/epsilon` where the cells fit
    them. `plan.absolute_error(F)` predicts it for streams of F each.
    [tests/statistical/test_moments.py, docs/accuracy-moments.md]

    A release publishes every cell with noise of its own, or three noised sums, of products and of
    squares of cells that are cut off far out; the plan takes what errs less.
    """

    __slots__ = ()

    entry = CatalogueEntry(InnerSizes, trials=TRIALS, walks=WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            bound: Whole,
            left: str = "left",
            right: str = "right",
            signed: bool = False,
            expected: tuple[Whole, Whole] | Whole | str | None = None,
            cells: Whole | None = None,
            memory: Whole | None = None,
            clip: Whole | None = None,
            **arguments: Unpack[Arguments],
        ) -> None: ...

    _memory = SidedMemory
