"""The cases of an incidence count: small enough to be walked, and each of a law of its own."""

from __future__ import annotations

from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.statistics.catalogue import kinds
from panprivacy.statistics.incidence.cases import TRIALS, WALKS, _modulo


def test_walks_are_of_counters_of_as_many_values_as_their_names_say():
    named = [one for one in WALKS if one.name.startswith("incidence-named-")]
    assert named
    for walk in named:
        modulus = int(walk.name.rpartition("-")[2])
        sizes = walk.sizes(Fraction(1, 2))
        assert sizes["law"].modulus == modulus
        assert sizes["bound"] == modulus - 1


def test_a_law_has_the_share_of_epsilon_that_it_is_given():
    for share in (Fraction(1, 4), Fraction(3)):
        assert _modulo(7)(share)["law"].within(share)
        assert _modulo(7, cells=9)(share)["cells"] == 9


@pytest.mark.parametrize("trial", TRIALS, ids=lambda one: one.name)
def test_a_trial_takes_its_deltas_and_refuses_the_others(trial):
    made = kinds()["incidence"](**trial.sizes, epsilon=4)
    for delta in trial.deltas:
        made.internals.memory.prepare([1], [delta])
    for delta in trial.refused:
        with pytest.raises(pp.InputError):
            made.internals.memory.prepare([1], [delta])
