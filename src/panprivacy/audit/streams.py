"""The streams of an audit: batches, releases, announced intrusions."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any, Final

import numpy as np

from panprivacy.errors import PlanError

RELEASE: Final = "release"
"""A step of a stream: the statistic publishes its answer."""

ANNOUNCE: Final = "announce"
"""A step of a stream: an announced intrusion."""

SAVE: Final = "save"
"""A step of a stream: the state is written to a sealed file, in place of the last one."""

CRASH: Final = "crash"
"""A step of a stream: the process ends, and another one goes on from the sealed file."""

_PUBLIC: Final = {RELEASE, ANNOUNCE, SAVE, CRASH}

Step = Sequence[object] | str
"""A batch of user ids, or of tuples, or `RELEASE`, `ANNOUNCE`, `SAVE` or `CRASH`.

A tuple has what the statistic's `update` takes, such as `(user, delta)`, or `(user, group)`.
"""

EventStream = Sequence[Step]
"""Steps of a statistic: batches, releases, announced intrusions."""


def checked(stream: Any, neighbour: Any) -> tuple[EventStream, EventStream]:
    """Return a stream and its neighbour, as lists of steps.

    Raises:
        PlanError: a step is none, or they differ in more than rows, which is public.
    """
    first, second = _steps(stream), _steps(neighbour)
    public = [[s if isinstance(s, str) else "batch" for s in steps] for steps in (first, second)]
    if public[0] != public[1]:
        message = "streams must agree in the number of steps and in every step but the batches"
        raise PlanError(message)
    return first, second


def format_stream(stream: EventStream) -> str:
    """Return the steps of a stream on one line."""
    return " ".join(step if isinstance(step, str) else str(list(step)) for step in stream)


def _steps(stream: Any) -> list[Step]:
    try:
        return [_step(step) for step in stream]
    except TypeError:
        message = (
            "a stream is a list of steps: batches (lists of rows), RELEASE, ANNOUNCE, SAVE, CRASH"
        )
        raise PlanError(message) from None


def _step(step: Any) -> Step:
    if isinstance(step, str):
        if step not in _PUBLIC:
            message = f"a step is a batch, RELEASE, ANNOUNCE, SAVE or CRASH, not {step!r}"
            raise PlanError(message)
        return step
    rows = step.tolist() if isinstance(step, np.ndarray) else list(step)
    columns = {len(row) if isinstance(row, tuple) else 0 for row in rows}
    if len(columns) > 1:
        message = "rows of a batch are all users, or all pairs (user, delta), or tuples of a length"
        raise PlanError(message)
    return rows


def user_and_rest(row: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a user and the row's values; a user alone has the delta 1."""
    return (row[0], row[1:]) if isinstance(row, tuple) else (row, (1,))


def take(statistic: Any, step: Step) -> Any:
    """Lead a statistic through one step; the answer if it is a release."""
    if step == RELEASE:
        if hasattr(statistic, "close"):  # windows release at their ends
            statistic.close()
        return statistic.release()
    if step == ANNOUNCE:
        statistic.announce_intrusion()
    elif step == SAVE:
        statistic.save()
    elif step == CRASH:
        statistic.crash()
    elif step and isinstance(step[0], tuple):
        statistic.update(*map(list, zip(*step, strict=True)))
    elif step:
        statistic.update(list(step))
    else:
        statistic.update(*([] for _ in range(_columns(statistic))))
    return None


def _columns(statistic: Any) -> int:
    """Return the number of columns of a batch, also of one without rows; groups need theirs."""
    counting = getattr(statistic, "current", statistic)
    taken = signature(getattr(counting, "prepare", counting.update)).parameters.values()
    needed = [one for one in taken if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    return sum(one.kind is not one.VAR_POSITIONAL for one in needed) or 1


def repeated(key: bytes, nbytes: int) -> bytes:
    """Return an addressing key cut or repeated to a length."""
    if not key:
        message = "addressing_key must have one byte or more"
        raise PlanError(message)
    return (key * (nbytes // len(key) + 1))[:nbytes]
