"""Constructors refuse statistics whose answers would be noise, as programs do."""

from contextvars import Context
from fractions import Fraction
from functools import partial

import pytest

import panprivacy as pp
from panprivacy.intake.programs.counting import Grouping, make_counting
from panprivacy.statistics.arguments import request
from panprivacy.statistics.catalogue import KINDS
from panprivacy.statistics.specification import Specification, SpecificationError
from panprivacy.testing import allow_noise

EVENTS = {"running-count", "histogram"}
"""Of these nobody knows how many events come, so none is too small."""

USELESS = {
    "distinct": {"memory": 1},
    "density": {"universe": 2},
    "overlap": {"universe": 2},
    "both": {"expected": 3},
    "incidence": {"universe": 3, "bound": 3},
    "cropped-sum": {"universe": 3, "tau": 3, "bound": 3},
    "threshold": {"universe": 3, "threshold": 2, "bound": 3},
    "heavy-hitters": {"k": 1, "total": 10, "independence": 4, "cells": 10},
    "moment": {"order": 2, "bound": 1_000_000, "expected": (1, 2)},
    "inner-product": {"bound": 1_000_000, "expected": (1, 2), "cells": 2},
    "running-distinct": {"horizon": 1_000, "expected": 3},
    "running-cropped-sum": {"horizon": 1_000, "universe": 3, "tau": 2, "bound": 3},
    "running-heavy-hitters": {"k": 1, "total": 10, "horizon": 1_000},
}


def as_shipped(function, *arguments, **named):
    """Call a function as it is called outside of tests."""
    return Context().run(function, *arguments, **named)


def test_every_statistic_is_here():
    assert USELESS.keys() | EVENTS == {kind.entry.name for kind in KINDS}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.entry.name in USELESS], ids=str)
def test_a_constructor_refuses_what_would_answer_noise(kind):
    with pytest.raises(pp.NoiseError, match="the answer would be noise; ") as caught:
        as_shipped(kind, epsilon=Fraction(1, 10), **USELESS[kind.entry.name])
    planned = kind.entry.sizes.read(kind.entry.name, USELESS[kind.entry.name]).planned(
        request(Fraction(1, 10))
    )
    assert caught.value.error >= planned.limits[0]


def test_the_argument_to_change_is_named():
    with pytest.raises(pp.NoiseError) as caught:
        as_shipped(pp.DistinctCount, memory=1, epsilon=1)
    assert caught.value.field == "memory"
    with pytest.raises(pp.NoiseError) as caught:
        as_shipped(pp.Density, universe=10, epsilon="0.1")
    assert caught.value.field == "epsilon"


def test_a_split_that_leaves_noise_is_blamed():
    budget = pp.Budget(Fraction(1, 1_000), Fraction(999, 1_000))
    with pytest.raises(pp.NoiseError, match="without budget= it would do") as caught:
        as_shipped(pp.Density, universe=300, epsilon=1, budget=budget)
    assert caught.value.field == "budget"


def test_a_refusal_spends_nothing():
    ledger = pp.Ledger(1)
    with pytest.raises(pp.NoiseError):
        as_shipped(pp.DistinctCount, memory=1, epsilon=1, ledger=ledger)
    assert ledger.available == 1


def test_the_library_and_programs_have_one_rule():
    stat = Specification.from_text("distinct,memory=1")
    with pytest.raises(pp.NoiseError) as library:
        as_shipped(pp.DistinctCount, memory=1, epsilon=1)
    with pytest.raises(SpecificationError) as program:
        as_shipped(make_counting, [stat], epsilon=Fraction(1))
    assert str(library.value) == str(program.value)


def test_groups_name_the_epsilon_of_all_of_them():
    """A share of it would be refused again."""
    make = partial(pp.Density, universe=30)
    with pytest.raises(pp.NoiseError) as alone:
        as_shipped(make, epsilon=Fraction(1, 10))
    with pytest.raises(pp.NoiseError) as caught:
        as_shipped(
            pp.Grouped, lambda share: make(epsilon=share), ["a", "b"], epsilon="0.2", per_user=2
        )
    one, both = (float(str(error.value).split()[-3]) for error in (alone, caught))
    assert both == pytest.approx(2 * one)
    grouping = Grouping(["a", "b"], per_user=2)
    stat = Specification.from_text("density,universe=30")
    with pytest.raises(SpecificationError) as program:
        as_shipped(make_counting, [stat], epsilon=Fraction(1, 5), grouping=grouping)
    assert str(program.value) == str(caught.value)


def tiny():
    """Make one where it is allowed."""
    with allow_noise():
        return pp.DistinctCount(memory=1, epsilon=1)


def test_tests_and_audits_may_make_it():
    counted = as_shipped(tiny)
    counted.update(["ada"])
    assert counted.release(confidence=1 - 1e-6).low == 0  # or once in a million runs not
