"""Refuse statistics whose answers would be noise.

Every constructor asks here, and so do programs, through the constructors that they call.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from fractions import Fraction

from panprivacy.errors import NoiseError, noise_allowed
from panprivacy.statistics.alternatives import Alternatives, Target
from panprivacy.statistics.plan import smallest_error
from panprivacy.statistics.records import Sizes
from panprivacy.tables.planning.request import Request

_total: ContextVar[Fraction | None] = ContextVar("total", default=None)


@contextmanager
def sharing(epsilon: Fraction) -> Iterator[None]:
    """Make refusals in a block name an epsilon that the statistics share.

    Args:
        epsilon: the total that the caller can change; that of the outermost block counts.
    """
    before = _total.set(_total.get() or epsilon)
    try:
        yield
    finally:
        _total.reset(before)


def check_useful(sizes: Sizes, request: Request) -> None:
    """Refuse a statistic whose answers would be noise, saying what would do better.

    Args:
        sizes: of the problem.
        request: what is asked of its plan.

    Raises:
        NoiseError: the standard deviation exceeds the first of the plan's `limits`, everywhere in
            the range if one is planned for.
    """
    if noise_allowed() or _useful(sizes, request):
        return
    planned = sizes.planned(request)
    _, good = planned.limits
    parts = (_total.get() or request.epsilon) / request.epsilon

    target = Target(smallest_error, math.nextafter(good, 0), "least")
    error = smallest_error(planned)
    message = (
        f"this plan gives a standard deviation of at least {error:.2g} times {planned.measure}: "
        "the answer would be noise; "
    )
    if request.budget is not None and target(sizes.planned(replace(request, budget=None))):
        message += "without budget= it would do"
        raise NoiseError(message, "budget", error)
    search = Alternatives(sizes, request.releases, request.intrusions)
    ways = search.ways_to(request.epsilon, None, target, parts)
    message += str(ways)
    raise NoiseError(message, ways.field, error)


@functools.lru_cache(maxsize=128)
def _useful(sizes: Sizes, request: Request) -> bool:
    """Whether some answer of the plan errs by less than the limit."""
    planned = sizes.planned(request)
    return smallest_error(planned) < planned.limits[0]
