"""Amounts become whole deltas that are right on average; a row that cannot be one is named."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.privacy.coins import SystemCoins
from panprivacy.statistics.amounts import in_units, read_unit, unit_of, whole_units
from tests.commands import run_command


def rounded(amounts, unit=60.0, bound=100, *, signed=False):
    rows = len(amounts)
    return whole_units(amounts, rows, unit, bound, signed=signed, coins=SystemCoins())


def test_whole_units_are_exact():
    assert rounded([0, 60, 120.0, 6_000]).tolist() == [0, 1, 2, 100]


def test_a_delta_is_the_whole_number_below_or_above():
    found = rounded(np.full(1_000, 90.0))
    assert set(found.tolist()) == {1, 2}  # one of them alone: once in 2**999 runs


@pytest.mark.parametrize("amount", [1.0, 20.0, 45.5, 59.9])
def test_a_total_is_right_on_average(amount):
    rows = 100_000
    total = rounded(np.full(rows, amount)).sum()
    share = amount / 60
    # 5.5 standard deviations of a binomial law: missed once in 2e7 runs.
    reach = 5.5 * math.sqrt(rows * share * (1 - share)) + 1
    assert abs(total - rows * share) < reach


def test_signed_amounts_round_to_either_side():
    assert set(rounded([-90.0] * 1_000, signed=True).tolist()) == {-2, -1}


@pytest.mark.parametrize(
    ("amount", "reason"),
    [
        (None, "null"),
        (math.nan, "not a number"),
        (-0.01, "below 0"),
        (6_000.1, "beyond 100 units of 60"),
        (math.inf, "beyond 100 units of 60"),
        ("four", "not a number"),
    ],
)
def test_a_row_that_cannot_be_counted_is_named(amount, reason):
    visits = pp.Incidence(universe=50_000, bound=100, unit=60, epsilon=1)
    before = visits.state()
    amounts = ["30", amount] if isinstance(amount, str) else pa.array([30.0, amount])
    with pytest.raises(pp.InputError, match=reason) as caught:
        visits.update([4_321, 4_322], amounts)
    assert caught.value.row == 2
    assert "432" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert visits.state() == before


def test_there_is_one_amount_for_each_id():
    spent = pp.CroppedSum(tau=9, universe=50_000, unit=100, epsilon=1)
    with pytest.raises(pp.InputError, match="one amount for each id: 2 ids, 1 amounts"):
        spent.update([1, 2], [3.0])
    with pytest.raises(pp.InputError, match="cropped-sum with unit= counts amounts"):
        spent.update([1, 2])


@pytest.mark.parametrize("unit", [0, -1, math.nan, math.inf, "x", True, "1/0", 1e-13])
def test_a_unit_is_a_number_above_0(unit):
    with pytest.raises(pp.PlanError, match="unit must be a number above 0"):
        pp.CroppedSum(tau=9, universe=50_000, unit=unit, epsilon=1)


@pytest.mark.parametrize("unit", [60, 60.0, "60", Decimal(60), "120/2"])
def test_a_unit_is_read_in_many_forms(unit):
    assert read_unit("unit", unit) == 60


def test_answers_are_in_units():
    visits = pp.Incidence(universe=50_000, bound=9, unit=60, epsilon=4)
    visits.update(np.arange(20_000), np.full(20_000, 240.0))
    answer = visits.release(mean=True, quantile=(0.5,), distinct=True)
    units = {one.name.question: one.unit for one in answer.values()}
    assert units == {
        "mean": "mean, in units of 60",
        "quantile": "units of 60",
        "distinct": "users",
    }
    assert all(visits.plan.unit_of(one) == unit for one, unit in units.items() if one != "distinct")
    assert answer["quantile 0.5"].value == 4  # its interval misses by chance once in 1e30 runs


def test_a_plan_says_what_amounts_are_divided_by():
    plan = pp.CroppedSum(tau=9, universe=50_000, unit=0.5, epsilon=1).plan
    assert unit_of(plan) == 0.5
    assert in_units(0.5) in plan.unit
    assert in_units(0.5) in plan.question
    assert unit_of(pp.DistinctCount(epsilon=1).plan) is None


def test_amounts_are_never_below_0_unless_signed():
    plan = pp.Incidence(universe=50_000, bound=9, unit=60, epsilon=1).plan
    assert plan.range_of_states[0] == 0
    assert not plan.remarks


def test_a_state_of_amounts_goes_on():
    sizes = {"universe": 50_000, "bound": 9, "unit": 60, "epsilon": 1}
    first, second, other = (
        pp.Incidence(**sizes),
        pp.Incidence(**sizes),
        pp.Incidence(**sizes | {"unit": 61}),
    )
    first.update([1, 2], [100.0, 30.0])
    second.resume(first.state())
    assert second.state() == first.state()
    with pytest.raises(pp.InputError):
        other.resume(first.state())


def test_groups_and_several_statistics_read_amounts():
    ledger = pp.Ledger(4)
    one = pp.Incidence(universe=9_000, bound=9, unit=60, epsilon=2, ledger=ledger)
    two = pp.CroppedSum(tau=3, universe=9_000, unit=30, epsilon=2, ledger=ledger)
    several = pp.Together({"minutes": one, "halves": two})
    several.update(np.arange(5_000), pa.array(np.full(5_000, 90.0)))
    assert {name.statistic for name in several.release()} == {"minutes", "halves"}


def test_a_seized_state_says_what_amounts_were_divided_by(tmp_path):
    path = tmp_path / "stay.state"
    path.write_bytes(pp.Incidence(universe=50_000, bound=9, unit=60, epsilon=1).state())
    said = " ".join(run_command("explain", path).stdout.split())
    assert "unit 60.0 (what amounts are divided by" in said
