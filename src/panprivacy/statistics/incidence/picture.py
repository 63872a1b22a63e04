"""Made-up users for a picture of counters: as many in each state as released answers say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from panprivacy.statistics.plan import MOST_MADE_UP
from panprivacy.statistics.release import Name, Release


def made_up_states(
    answers: Mapping[Name, Release | None], bound: int, universe: int | None
) -> NDArray[np.int64]:
    """States of made-up users, other than 0.

    Args:
        answers: that were released.
        bound: the largest state.
        universe: number of possible users, if there is one.
    """
    users = _users_by_state(answers, bound, universe)
    counts = np.array(list(users.values()))
    most = min(universe or MOST_MADE_UP, MOST_MADE_UP)
    if counts.sum() > most:
        counts *= most / counts.sum()
    return np.repeat(np.array(list(users), np.int64), counts.astype(np.int64))


def _users_by_state(
    answers: Mapping[Name, Release | None], bound: int, universe: int | None
) -> dict[int, float]:
    """How many users to make up in each state: where the answer is clearly not 0."""
    asked: dict[str, dict[int, Release]] = {}
    for name, one in answers.items():
        if one is not None:
            asked.setdefault(name.question, {})[name.argument or 0] = one
    exactly = asked.get("exactly", {})
    users = {state: one.value for state, one in exactly.items() if state and _clear(one)}
    for least, answer in sorted(asked.get("at_least", {}).items(), reverse=True):
        more = answer.value - sum(count for state, count in users.items() if state >= least)
        free = (state for state in range(least, bound + 1) if state not in users)
        if answer.low > 0 and more > 0:
            place = next(free, least)
            users[place] = users.get(place, 0.0) + more
    some = asked.get("distinct") or asked.get("cropped_sum")
    if not users and some:
        users[1] = min(some.items())[1].value
    if not users and universe is not None and 0 in exactly:
        users[1] = universe - exactly[0].value
    return users


def _clear(answer: Release) -> bool:
    """Whether an answer is above 0 by so much that hardly one of many states is so by chance."""
    return answer.value > 2 * (answer.value - answer.low)
