"""Questions about states, each a score for every state."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.statistics.incidence.linear_queries import States


@st.composite
def asked(draw):
    """States within a bound, and an argument that is allowed."""
    bound, signed = draw(st.integers(1, 20)), draw(st.booleans())
    least = 2 * bound + 1 if signed else bound + 1
    states = States(draw(st.integers(least, least + 30)), bound, signed)
    return states, draw(st.integers(1, bound))


@given(asked())
def test_a_question_scores_each_state_as_its_name_says(question):
    states, argument = question
    scored = {
        states.exactly(argument): lambda state: state == argument,
        states.exactly(states.listed()[0]): lambda state: state == states.listed()[0],
        states.at_least(argument): lambda state: state >= argument,
        states.cropped_sum(argument): lambda state: min(max(state, 0), argument),
        states.cropped_moment(argument, 3): lambda state: min(max(state, 0), argument) ** 3,
        states.distinct(): lambda state: state != 0,
    }
    reach = range(states.lowest, states.highest + 1)
    residues = {state % states.modulus: state for state in reach}
    assert len(residues) == states.modulus
    assert set(states.listed()) <= set(reach)
    assert set(states.values()[states.within()]) == set(states.listed())
    if (above := states.above()) is not None:
        scored[above] = lambda state: state > states.bound
    assert (above is None) == (states.highest == states.bound)
    for asked_for, score in scored.items():
        for residue, state in residues.items():
            assert asked_for.scores[residue] == score(state), asked_for.name
    assert {at: int(states.values()[at]) for at in residues} == residues


@given(asked())
def test_a_question_beyond_the_bound_is_refused(question):
    states, _ = question
    least = {states.exactly: states.listed()[0], states.at_least: 1, states.cropped_sum: 1}

    def cropped_moment(tau):
        return states.cropped_moment(tau, 2)

    least[cropped_moment] = 1
    for ask, lowest in least.items():
        for beyond in (lowest - 1, states.bound + 1):
            with pytest.raises(pp.PlanError, match=ask.__name__):
                ask(beyond)
