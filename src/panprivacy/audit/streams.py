"""What a statistic lives through when it is audited: batches, releases, announced intrusions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from panprivacy.errors import PlanError

RELEASE: Final = "release"
"""A step of a stream: the statistic publishes its answer."""

ANNOUNCE: Final = "announce"
"""A step of a stream: somebody reads the state, and the statistic is told."""

Step = Sequence[object] | str
"""A batch of user ids, or of pairs `(user, delta)`, or `RELEASE`, or `ANNOUNCE`."""

Stream = Sequence[Step]
"""What a statistic lives through."""


def checked(stream: Any, neighbour: Any) -> tuple[Stream, Stream]:
    """A stream and its neighbour, as lists of steps.

    Raises:
        PlanError: a step is none, or they differ in more than rows, which is public.
    """
    first, second = _steps(stream), _steps(neighbour)
    public = [[s if isinstance(s, str) else "batch" for s in steps] for steps in (first, second)]
    if public[0] != public[1]:
        message = "streams must agree in the number of steps and in every step but the batches"
        raise PlanError(message)
    return first, second


def _steps(stream: Any) -> list[Step]:
    try:
        return [_step(step) for step in stream]
    except TypeError:
        message = "a stream is a list of steps: batches (lists of rows), RELEASE or ANNOUNCE"
        raise PlanError(message) from None


def _step(step: Any) -> Step:
    if isinstance(step, str):
        if step not in {RELEASE, ANNOUNCE}:
            message = f"a step is a batch, RELEASE or ANNOUNCE, not {step!r}"
            raise PlanError(message)
        return step
    rows = step.tolist() if isinstance(step, np.ndarray) else list(step)
    pairs = [isinstance(row, tuple) and len(row) == 2 for row in rows]
    if any(pairs) and not all(pairs):
        message = "rows of a batch are all users, or all pairs (user, delta)"
        raise PlanError(message)
    return rows


def user_and_delta(row: Any) -> tuple[Any, int]:
    """A row as a pair; a user alone has the delta 1."""
    return row if isinstance(row, tuple) else (row, 1)


def take(statistic: Any, step: Step) -> Any:
    """Lead a statistic through one step; the answer if it is a release."""
    if isinstance(step, str):
        if step == RELEASE:
            return statistic.release()
        statistic.announce_intrusion()
    elif step and isinstance(step[0], tuple):
        statistic.update(*map(list, zip(*step, strict=True)))
    else:
        statistic.update(list(step))
    return None


def repeated(key: bytes, nbytes: int) -> bytes:
    """An addressing key cut or repeated to a length."""
    if not key:
        message = "addressing_key must have one byte or more"
        raise PlanError(message)
    return (key * (nbytes // len(key) + 1))[:nbytes]
