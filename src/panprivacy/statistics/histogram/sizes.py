"""What a `Histogram` is told."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, ClassVar

from panprivacy.errors import PlanError
from panprivacy.statistics.histogram.plan import HistogramPlan
from panprivacy.statistics.records import MOST, Sizes, custom_field, flag, integer
from panprivacy.statistics.running.stepwise.event_plan import MOST_STEPS, at_birth
from panprivacy.tables.counters.forest import Forest
from panprivacy.tables.edges import MOST_BINS, MOST_EDGES, Edges
from panprivacy.tables.planning.request import Request

_DEFAULT_BINS = 100
_SCALES = "linear", "log"
_OUTSIDE = "open", "refuse"


def _number(name: str, value: object) -> float:
    """Return a finite number."""
    message = f"{name} must be a finite number"
    if isinstance(value, bool) or not isinstance(value, str | numbers.Real | Decimal):
        raise PlanError(message)
    try:
        found = float(value)
    except (ValueError, OverflowError):
        raise PlanError(message) from None
    if not math.isfinite(found):
        raise PlanError(message)
    return found


def _edges(name: str, value: object) -> tuple[float, ...]:
    """Return edges that rise."""
    message = f"{name} must be 2 to {MOST_EDGES:,} rising numbers, such as 0,10,50"
    given: object = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping):
        raise PlanError(message)
    found = tuple(_number(name, one) for one in given)
    rising = all(low < high for low, high in itertools.pairwise(found))
    if not (2 <= len(found) <= MOST_EDGES and rising):
        raise PlanError(message)
    return found


def _resolution(name: str, value: object) -> float:
    """Return a relative error."""
    found = _number(name, value)
    if not 0 < found <= 1:
        message = f"{name} must be above 0 and at most 1, such as 0.02 for 2 %"
        raise PlanError(message)
    return found


def _one_of(words: tuple[str, ...], name: str, value: object) -> str:
    """Return one of some words."""
    if isinstance(value, str) and value in words:
        return value
    message = f"{name} must be {' or '.join(words)}"
    raise PlanError(message)


def _scale(name: str, value: object) -> str:
    return _one_of(_SCALES, name, value)


def _outside(name: str, value: object) -> str:
    return _one_of(_OUTSIDE, name, value)


class HistogramSizes(Sizes, frozen=True, tag="histogram"):
    """The number of events in each bin of values, with percentiles and a mean; hides one event."""

    most_memory: ClassVar[int] = 8 * 16 * MOST_BINS

    low: Annotated[
        float | None, custom_field(_number, "X", "the lowest value that is told apart", 1)
    ] = None
    high: Annotated[
        float | None, custom_field(_number, "X", "the highest value that is told apart", 100_000)
    ] = None
    bins: Annotated[
        int | None,
        integer("bins between them; 100 unless told", MOST_BINS, example=100),
    ] = None
    scale: Annotated[
        str,
        custom_field(_scale, "linear or log", "bins of equal width, or of equal ratio", "log"),
    ] = "linear"
    resolution: Annotated[
        float | None,
        custom_field(_resolution, "X", "the relative error of percentiles, in place of bins: two "
                     "bins are so wide, of equal ratio", 0.02),
    ] = None  # fmt: skip
    edges: Annotated[
        tuple[float, ...] | None,
        custom_field(_edges, "X,Y,Z", "the edges of the bins one by one, in place of low and high",
                     "0,10,50,100"),
    ] = None  # fmt: skip
    outside: Annotated[
        str,
        custom_field(_outside, "open or refuse", "what becomes of a value outside of the edges: "
                     "bins without an end hold it, or its row is refused", "open"),
    ] = "open"  # fmt: skip
    horizon: Annotated[
        int, integer("how many answers there are at most, one a step", MOST_STEPS, example=24)
    ] = 1
    signed: Annotated[bool, flag("whether an event may take back an earlier one, by delta -1")] = (
        False
    )
    per_user: Annotated[
        int | None,
        integer("how many events a user has at most: the guarantee then says what they lose", MOST,
                example=10),
    ] = None  # fmt: skip
    expected: Annotated[
        int, integer("how many events errors are predicted for", MOST, example=1_000_000)
    ] = 1_000_000

    def plan(self, request: Request) -> HistogramPlan:
        """A tree of steps for each bin, each with the whole of epsilon: an event is in one bin."""
        edges = self._bins()
        forest = Forest.planted(edges.bins, self.horizon, request.epsilon, open_steps=True)
        told = self.horizon, self.signed, self.per_user, self.expected
        return HistogramPlan(edges, *told, request, at_birth(request), forest)

    def _bins(self) -> Edges:
        """Return the edges that are given, or those of a range.

        Raises:
            PlanError: too much is said, or too little.
        """
        is_open = self.outside == "open"
        if self.edges is not None:
            for name in ("low", "high", "bins", "resolution"):
                if getattr(self, name) is not None:
                    message = f"edges= says where bins are: leave out {name}="
                    raise PlanError(message)
            return Edges(self.edges, is_open, self._is_log(self.edges[0]))
        low, high = self._range()
        if self.resolution is not None:
            if self.bins is not None:
                message = "resolution= says how many bins there are: leave out bins="
                raise PlanError(message)
            return Edges.log(low, high, self._resolved(low, high), is_open=is_open)
        make = Edges.log if self._is_log(low) else Edges.linear
        return make(low, high, self.bins or _DEFAULT_BINS, is_open=is_open)

    def _is_log(self, low: float) -> bool:
        """Return whether bins have equal ratios, or are interpolated so."""
        if self.scale == "log" and low <= 0:
            message = "scale=log needs a lowest edge above 0"
            raise PlanError(message)
        return self.scale == "log"

    def _range(self) -> tuple[float, float]:
        """Return the range of values.

        Raises:
            PlanError: an end is missing, or they are in the wrong order.
        """
        if self.low is None or self.high is None:
            message = "histogram needs low= and high=, or edges=: which values are told apart"
            raise PlanError(message)
        if not self.low < self.high:
            message = "low must be below high"
            raise PlanError(message)
        return self.low, self.high

    def _resolved(self, low: float, high: float) -> int:
        """Return how many bins two of which are as wide as the resolution.

        Raises:
            PlanError: more than there may be, or the range reaches down to 0.
        """
        if low <= 0:
            message = "resolution= is relative to the value: low must be above 0"
            raise PlanError(message)
        needed = math.ceil(2 * math.log(high / low) / math.log1p(self.resolution or 1))
        if needed > MOST_BINS:
            message = f"resolution= needs {needed:,} bins, of at most {MOST_BINS:,}: ask for less"
            raise PlanError(message)
        return needed
