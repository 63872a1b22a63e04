"""What help, editors and `repr` show of a statistic."""

from __future__ import annotations

import inspect

import pytest

import panprivacy as pp
from panprivacy.statistics.catalogue import KINDS


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: getattr(one, "entry", one).name)
def test_help_has_each_argument_with_its_type_and_nothing_internal(kind):
    parameters = inspect.signature(kind).parameters
    assert next(iter(parameters)) == "epsilon"
    assert parameters["epsilon"].default is inspect.Parameter.empty
    assert {"slice_", "sizes"}.isdisjoint(parameters)
    for name, one in parameters.items():
        assert one.annotation is not inspect.Parameter.empty, name
        assert f"\n        {name}" in kind.__doc__
    assert (
        "expected (int | tuple[int, int] | Literal['learn']): how many" in pp.DistinctCount.__doc__
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: getattr(one, "entry", one).name)
def test_a_missing_epsilon_names_the_class(kind):
    with pytest.raises(pp.PlanError, match=f"^{kind.__name__} needs epsilon=, the total"):
        kind(**kind.entry.trials[0].sizes)


def test_a_plan_is_of_a_class_or_of_its_name():
    assert pp.plan(pp.DistinctCount, epsilon=1) == pp.plan("distinct", epsilon=1)
    assert pp.plan(pp.Density, universe=50, epsilon=1) == pp.plan("density", universe=50, epsilon=1)
    for wrong in int, pp.Together, pp.DistinctCount(epsilon=1):
        with pytest.raises(pp.PlanError, match="statistic") as refused:
            pp.plan(wrong, epsilon=1)
        assert "\n" not in str(refused.value)


def test_a_representation_has_the_sizes_that_were_settled():
    count = pp.DistinctCount(epsilon=1)
    told = "expected=(1000, 1000000000) memory=65536 epsilon=1: 1 of 1 releases left"
    assert repr(count) == f"<DistinctCount {told}>"
