"""A histogram of events: an event moves one bin, and all intervals follow from one release."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit.suite.products import products
from panprivacy.statistics.histogram.decoder import BinsModel
from panprivacy.tables.edges import Edges
from panprivacy.testing import SeededCoins

NEAR = 1 - 1e-9
SURE = 10**6
"""An epsilon without noise."""


def histogram(seed=1, **overrides):
    sizes = {"low": 0, "high": 10, "bins": 5, "epsilon": 1}
    given = {**({} if "edges" in overrides else sizes), "epsilon": 1, **overrides}
    return pp.Histogram(**given, coins=SeededCoins(seed))


def counts(answer):
    return [one.estimate for one in answer.bins()]


# Answers


def test_it_tells_how_many_events_each_bin_has():
    times = histogram(epsilon=SURE)
    times.update([-1, 0, 1.9, 2, 9.99, 10, 11, math.inf, -math.inf])
    answer = times.release()
    assert counts(answer) == [2, 2, 1, 0, 0, 1, 3]
    assert [str(name) for name in answer][:3] == ["count -inf to 0", "count 0 to 2", "count 2 to 4"]
    first = answer.bins()[0]
    assert (first.unit, first.epsilon, first.name.statistic) == ("events", 0, "histogram")
    assert answer.events().estimate == 9
    assert len(answer) == 7


def test_every_step_answers_for_all_steps_so_far():
    times = histogram(horizon=20)
    for step in range(1, 21):
        times.update([1, 5, 5] * 100)
        answer = times.release(confidence=NEAR)
        truth = [0, 100 * step, 0, 200 * step, 0, 0, 0]
        for one, count in zip(answer.bins(), truth, strict=True):
            assert one.low <= count <= one.high
            assert one.high - one.low < 2 * 8 * times.plan.deviation + 1
    with pytest.raises(pp.BudgetError, match="horizon="):
        times.update([1])
    with pytest.raises(pp.BudgetError, match="horizon="):
        times.release()


def test_an_event_is_taken_back():
    times = histogram(signed=True, epsilon=SURE)
    times.update([1, 3, 3], [1, 1, 1])
    times.update([3, 5], [-1, 0])
    assert counts(times.release()) == [0, 1, 1, 0, 0, 0, 0]


def test_batches_of_a_step_are_one_batch():
    one, several = histogram(), histogram()
    one.update([1, 5, 9, 1, 1])
    several.update([1, 5])
    memory = several.internals.memory
    memory.apply(memory.prepare([9, 1]), memory.prepare([1]))
    assert one.state() == several.state()


def test_questions_are_answered_from_one_release():
    times = histogram(bins=1_000, epsilon=SURE)
    values = np.random.default_rng(1).uniform(0, 10, 10_000)
    times.update(values)
    answer = times.release(quantile=(0.5, 0.95), mean=True, cumulative=True)
    asked = [str(name) for name in answer][:4]
    assert asked == ["quantile 0.5", "quantile 0.95", "mean", "share below 0"]
    assert len(answer) == len(list(answer.values())) == 2 + 1 + 1_001
    for share in (0.5, 0.95):
        (found,) = answer.quantiles(share)
        assert found.low <= np.quantile(values, share, method="inverted_cdf") <= found.high
        assert found.high - found.low < 0.025
    mean = answer.mean()
    assert mean.low <= values.mean() <= mean.high
    assert mean.high - mean.low < 0.011
    shares = answer.cumulative()
    assert [one.name.arguments[0] for one in shares[:2]] == [("edge", 0.0), ("edge", 0.01)]
    for one in shares[::50]:
        assert one.value == pytest.approx((values < one.name.arguments[0][1]).mean())
    assert answer["quantile 0.5"].value == answer.quantile(0.5).value


def test_quantiles_at_the_ends_and_of_nothing():
    times = histogram(epsilon=SURE)
    times.update([3, 3, 7] * 100)
    ends = [(one.low, one.high) for one in times.release().quantiles(0, 0.5, 0.9, 1)]
    assert ends == [(-math.inf, 4), (2, 4), (6, 8), (6, math.inf)]
    nothing = histogram(epsilon=1).release(quantile=0.5)
    (median,) = nothing.values()
    assert (median.low, median.high) == (-math.inf, math.inf)
    assert median.note is not None
    mean = nothing.mean()
    assert mean.high - mean.low > 5


def test_the_mean_cuts_values_to_the_outer_edges():
    times = histogram(bins=1, epsilon=SURE)
    times.update([-100, 1_000, 1_000, 10] * 1_000)
    found = times.release().mean()
    assert found.value == 7.5
    assert (found.low, found.high) == pytest.approx((7.5, 7.5), abs=0.01)
    assert "cut" in found.note


def test_the_interval_of_a_mean_is_that_of_fieller():
    # One bin between equal ends: m is possible while |sum count (end - m)| is within its reach.
    edges = Edges((0.0, 1.0), is_open=True)
    values = np.array([300.0, 0.0, 100.0])
    model = BinsModel(edges, values, 4.0, 0.0)
    _, (low, high) = model.mean(0.95)
    for mean, moves in ((low, np.array([0, 0, 1]) - low), (high, np.array([0, 1, 1]) - high)):
        reach = 1.96 * 2 * math.sqrt((moves**2).sum()) + 0.5 * abs(moves).max()
        assert abs(values @ moves) == pytest.approx(reach, rel=1e-3)
        assert 0 < mean < 1


def test_questions_share_what_may_go_wrong():
    times = histogram(bins=50)
    times.update(np.random.default_rng(1).uniform(0, 10, 1_000))
    answer = times.release(quantile=(0.5, 0.9), mean=True, counts=True)
    alone, together = answer.mean(), answer["mean"]
    assert together.high - together.low > alone.high - alone.low
    widths = [list(answer.at(level).values())[-1] for level in (0.5, 0.999)]
    assert widths[1].high > widths[0].high


def test_percentiles_of_a_million_response_times_are_within_two_percent():
    values = np.random.default_rng(1).lognormal(5, 1, 1_000_000)
    times = pp.Histogram(low=1, high=60_000, resolution=0.02, epsilon=1, coins=SeededCoins(1))
    times.update(values)
    shares = (0.5, 0.95, 0.99)
    for share, one in zip(shares, times.release(quantile=shares).values(), strict=True):
        truth = np.quantile(values, share)
        assert one.low <= truth <= one.high
        assert abs(one.value / truth - 1) < 0.02
        assert max(truth / one.low, one.high / truth) < 1.03


# The state


def test_it_goes_on_from_its_state():
    before = histogram(horizon=10)
    for _ in range(4):
        before.update([1, 1, 9] * 10)
        before.release()
    before.update([5] * 50)
    after = histogram(2, horizon=10)
    after.resume(before.state())
    assert after.state() == before.state()
    answer = after.release(confidence=NEAR)
    for one, truth in zip(answer.bins(), [0, 80, 0, 50, 0, 40, 0], strict=True):
        assert one.low <= truth <= one.high


def test_a_step_that_left_is_never_made_again():
    before = histogram(horizon=10)
    before.update([5] * 100)
    before.release()
    old = before.state()
    after = histogram(2, horizon=10)
    after.resume(old, released=4)
    assert after.releases == 4
    after.update([5] * 100)
    answer = after.release(confidence=NEAR)
    assert answer.bins()[3].low <= 200 <= answer.bins()[3].high
    assert after.state() != old


def test_an_announced_intrusion_adds_noise_to_every_bin():
    times = histogram(epsilon="1/1000", intrusions=1, horizon=3)
    table = times.internals.memory.now.table.copy()
    times.announce_intrusion()
    changed = times.internals.memory.now.table - table
    assert changed[: times.plan.table.cells].all()
    usual, wider = (one.release() for one in (histogram(epsilon="1/1000", horizon=3), times))
    assert wider.model.variance > 1.4 * usual.model.variance


def test_a_damaged_state_is_refused():
    times = histogram(horizon=2)
    state = bytearray(times.state())
    state[-8:] = np.array([math.nan]).tobytes()
    with pytest.raises(pp.InputError, match="no such state"):
        histogram(horizon=2).resume(bytes(state))


# The guarantee


@pytest.mark.long
@pytest.mark.parametrize("name", ["histogram", "histogram-signed", "histogram-announced"])
def test_the_exact_audit_finds_epsilon_for_one_event(name):
    row = next(one for one in products(Fraction(1)) if one.name == name).row()
    assert row.holds, row.says
    assert float(row.worst) == pytest.approx(1)


def test_the_guarantee_says_what_a_user_loses():
    promise = histogram(per_user=12, epsilon="1/2").guarantee
    assert promise.of_user.epsilon == 6
    assert "a user of up to 12 events in all loses epsilon 6" in str(promise)
    assert "are announced, for each event of a user;" in str(promise)
    assert "takes one back" in str(histogram(per_user=12, signed=True).guarantee)
    assert "takes one back" not in str(histogram(signed=True).guarantee) + str(promise)
    assert promise.document()["user"]["epsilon"] == 6
    assert promise.crash == 1
    alone = histogram().guarantee
    assert alone.of_user is None
    assert "user" not in alone.document()
    both = pp.Together({"a": histogram(per_user=3, ledger=(one := pp.Ledger(3))),
                        "b": histogram(epsilon=2, ledger=one)})  # fmt: skip
    assert both.guarantee.of_user.epsilon == 9


def test_all_is_paid_at_birth():
    times = histogram(horizon=5)
    assert times.ledger.spent == 1
    times.release()
    assert times.ledger.spent == 1


def test_the_noise_does_not_grow_with_the_bins():
    one, many = (histogram(bins=bins).plan.deviation for bins in (1, 10_000))
    assert one == many == pytest.approx(2, rel=0.05)


def test_a_plan_predicts_the_error_of_a_percentile():
    plan = pp.plan("histogram", low=1, high=1_000, resolution=0.1, expected=10_000, epsilon=1)
    said = " ".join(plan.remarks)
    assert plan.edges.bins == 147
    assert plan.absolute_error() == pytest.approx(math.sqrt(147), rel=0.05)
    assert "p50: ±0.24; p95: ±0.1; p99: ±0.047" in said
    assert "up to 4.9 % wide" in said


# Refused


@pytest.mark.parametrize(
    ("values", "row", "reason"),
    [
        ([1, 2, None], 3, "null"),
        ([1, math.nan, 2], 2, "NaN"),
        (["1", "2", "x7"], 3, "not a number"),
        (["7", "", "2"], 2, "not a number"),
        ([[1], [2]], None, "must be numbers"),
        (np.array([1 + 2j]), None, "must be numbers"),
        (np.ones((2, 2)), None, "must be numbers"),
        (np.array([1], "M8[s]"), None, "must be numbers"),
        ([True, False], None, "must be numbers"),
        (7.5, None, "must be numbers"),
        (np.ma.masked_equal([1, 2], 2), 2, "null"),
    ],
)
def test_a_row_that_cannot_be_counted_is_named(values, row, reason):
    times = histogram()
    before = times.state()
    with pytest.raises(pp.InputError, match=reason) as caught:
        times.update(values)
    assert caught.value.row == row
    assert "x7" not in str(caught.value)
    assert times.state() == before


@pytest.mark.parametrize("wrong", [-0.001, 10.001, math.inf, -math.inf])
def test_closed_edges_refuse_what_lies_outside(wrong):
    times = histogram(outside="refuse", epsilon=SURE)
    with pytest.raises(pp.InputError, match="outside=open") as caught:
        times.update([1, 10, wrong])
    assert caught.value.row == 3
    times.update([0, 10])
    assert counts(times.release()) == [1, 0, 0, 0, 1]


@pytest.mark.parametrize(("signed", "delta"), [(False, -1), (False, 2), (True, -2), (True, 2)])
def test_a_delta_is_one_event(signed, delta):
    with pytest.raises(pp.InputError, match="delta must be 1") as caught:
        histogram(signed=signed).update([1, 1], [1, delta])
    assert caught.value.row == 2


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({}, "low= and high="),
        ({"low": 1}, "low= and high="),
        ({"low": 5, "high": 5}, "low must be below high"),
        ({"low": 0, "high": 5, "scale": "log"}, "above 0"),
        ({"low": 0, "high": 5, "resolution": 0.1}, "above 0"),
        ({"low": 1, "high": 5, "resolution": 0.1, "bins": 3}, "leave out bins="),
        ({"low": 1, "high": 1e300, "resolution": 1e-3}, "ask for less"),
        ({"low": 1, "high": 5, "edges": (1, 2)}, "leave out low="),
        ({"edges": (1, 1)}, "rising"),
        ({"edges": (1,)}, "rising"),
        ({"edges": "1,x"}, "finite"),
        ({"edges": (0, math.nan)}, "finite"),
        ({"edges": (-1, 1), "scale": "log"}, "above 0"),
        ({"low": 1, "high": 1 + 1e-15, "bins": 100}, "so narrow"),
        ({"low": -1e308, "high": 1e308}, "apart"),
        ({"low": 1, "high": 5, "scale": "round"}, "linear or log"),
        ({"low": 1, "high": 5, "outside": "drop"}, "open or refuse"),
        ({"low": 1, "high": 5, "resolution": 0}, "0.02"),
    ],
)
def test_sizes_that_make_no_bins_are_refused(sizes, reason):
    with pytest.raises(pp.PlanError, match=reason):
        pp.Histogram(**sizes, epsilon=1)


@pytest.mark.parametrize("asked", [1.5, -0.1, "x", True, None, [2], math.nan])
def test_a_quantile_is_a_share(asked):
    times = histogram()
    with pytest.raises(pp.PlanError, match="share from 0 to 1"):
        times.release(quantile=asked)
    assert times.releases == 0


def test_it_has_no_slices_and_nothing_to_merge():
    with pytest.raises(pp.PlanError, match="let each shard release"):
        histogram().contribute()


def test_numbers_of_a_configuration_are_decimals():
    sizes = {"low": Decimal("0.5"), "high": Decimal("2.5"), "bins": 4}
    assert (
        pp.plan("histogram", **sizes, epsilon=1).edges
        == pp.plan("histogram", low=0.5, high=2.5, bins=4, epsilon=1).edges
    )
