"""What every plan says of its errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.catalogue import KINDS
from panprivacy.statistics.density.plan import plan_density
from panprivacy.statistics.distinct.plan import plan_distinct
from panprivacy.tables.decoders.intervals import noise_quantile
from tests.unit.test_planning import ONE


def test_a_margin_is_a_quantile_of_the_worst_error():
    for confidence in (0.8, 0.99):
        density = plan_density(1_000, None, ONE)
        quantile = noise_quantile(confidence, density.model(0).output_share(0.5))
        assert density.relative_margin(confidence) == quantile * density.relative_error(0.5)
        distinct = plan_distinct((1_000, 1_000), 4_096, ONE)
        quantile = noise_quantile(confidence, distinct.model(0).output_share(1_000.0))
        assert distinct.relative_margin(confidence) == pytest.approx(
            quantile * distinct.relative_error(1_000)
        )


@pytest.mark.parametrize("statistic", ["distinct", "cropped-sum"])
def test_a_plan_for_a_range_tells_errors_at_its_ends_and_middle(statistic):
    tau = {"tau": 10} if statistic == "cropped-sum" else {}
    plan = pp.plan(statistic, expected=(1_000, 100_000), epsilon=1, **tau)
    unit = tau.get("tau", 1)
    assert plan.error_points == (1_000 * unit, 10_000 * unit, 100_000 * unit)
    errors = [plan.relative_error(truth) for truth in plan.error_points]
    absolute = [plan.absolute_error(truth) for truth in plan.error_points]
    assert errors == pytest.approx(np.array(absolute) / plan.error_points)
    assert max(errors) <= plan.relative_error()
    assert max(absolute) <= plan.absolute_error()
    margins = [plan.relative_margin(0.95, truth) for truth in plan.error_points]
    assert all(1.9 < reach / one < 2.5 for reach, one in zip(margins, errors, strict=True))


TRIALS = [(kind, trial) for kind in KINDS for trial in kind.entry.trials]


@pytest.mark.parametrize(("kind", "trial"), TRIALS, ids=lambda one: getattr(one, "entry", one).name)
def test_errors_of_all_plans_say_in_their_names_what_they_are_relative_to(kind, trial):
    plan = pp.plan(kind.entry.name, **trial.sizes, epsilon=4)
    assert not {"error", "margin"} & set(dir(plan))
    if plan.error_points:
        for truth in plan.error_points:
            error, margin = plan.absolute_error(truth), plan.absolute_margin(0.9, truth)
            assert plan.relative_error(truth) == pytest.approx(error / truth)
            assert plan.relative_margin(0.9, truth) == pytest.approx(margin / truth)
    else:
        assert plan.relative_error() == pytest.approx(plan.absolute_error() / plan.largest)
        assert plan.relative_margin(0.9) == pytest.approx(plan.absolute_margin(0.9) / plan.largest)


@pytest.mark.parametrize(("kind", "trial"), TRIALS, ids=lambda one: getattr(one, "entry", one).name)
def test_a_table_of_errors_has_the_ends_and_the_middle_of_every_range(kind, trial):
    """A range that is planned for, whether it was said or not."""
    plan = pp.plan(kind.entry.name, **trial.sizes, epsilon=4)
    expected = trial.sizes.get("expected", kind.entry.sizes.fields().get("expected"))
    if isinstance(getattr(expected, "default", expected), tuple):
        low, middle, high = plan.error_points
        assert low < middle < high
        assert middle == pytest.approx(math.sqrt(low * high))


def test_errors_of_answers_that_move_say_their_unit():
    assert not {"error", "margin"} & set(dir(pp.ChangeTriggered))
    assert "absolute_margin" in dir(pp.ChangeTriggered)
