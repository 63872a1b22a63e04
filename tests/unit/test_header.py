"""The header of a state."""

from __future__ import annotations

import pytest

import panprivacy as pp
from panprivacy.errors import InputError
from panprivacy.statistics.header import _CUT


def test_a_longer_body_behind_a_consistent_header_is_refused():
    """The header says how long its body is, and both are longer than those of this plan."""
    statistic = pp.Density(universe=40, epsilon=1)
    state, body = statistic.state(), statistic.plan.table.nbytes + statistic.plan.key_bytes
    front = state[: len(state) - body]
    size = body.to_bytes(8, "little")
    assert front.count(size) == 1
    longer = front.replace(size, (body + 1).to_bytes(8, "little")) + state[-body:] + b"\0"
    for refuse in (statistic.internals.memory.check_state, statistic.resume):
        with pytest.raises(InputError, match=_CUT):
            refuse(longer)
    assert statistic.state() == state
