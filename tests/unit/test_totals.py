"""Sums of answers: variances add up where noise is independent, else standard errors do."""

from __future__ import annotations

import math

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.release import Lost
from panprivacy.statistics.totals import total_of
from tests import refusals


def answer(estimate, error, low=0.0, **more):
    name = pp.Name("visitors", "distinct", more.pop("arguments", ()), more.pop("group", None))
    more = {"high": math.inf if estimate > 1e6 else 1e5, "epsilon": 0.5, **more}
    numbers = estimate, low, more.pop("high"), 0.95, more.pop("epsilon"), (1, 2)
    return pp.Release(*numbers, name, estimate=estimate, standard_error=error, **more)


def test_different_tables_add_variances_and_one_table_adds_standard_errors():
    apart = total_of([("a", answer(30, 3)), ("b", answer(40, 4))], 0.95)
    together = total_of([("a", answer(30, 3)), ("a", answer(40, 4))], 0.95)
    assert (apart.estimate, apart.standard_error, apart.epsilon) == (70, 5, 1)
    assert (together.estimate, together.standard_error, together.epsilon) == (70, 7, 0.5)
    assert apart.low < together.low + 5
    assert apart.value == 70
    assert (str(apart.name), apart.name.group, apart.unit, apart.counts) == (
        "distinct", None, "users", (),
    )  # fmt: skip


def test_an_estimate_below_0_counts_as_it_is():
    found = total_of(enumerate([answer(-50, 20), answer(30, 20)]), 0.95)
    assert (found.estimate, found.value, found.low) == (-20, 0, 0)
    assert "more noise than signal" in found.note
    signed = total_of(enumerate([answer(-50, 20, low=-90), answer(30, 20)]), 0.95)
    assert signed.value == -20 > signed.low


def test_biases_add_up_and_widen_the_interval():
    plain = total_of(enumerate([answer(500, 3)] * 4), 0.95)
    biased = total_of(enumerate([answer(500, 3, bias=7)] * 4), 0.95)
    assert (biased.bias, biased.standard_error) == (28, 6)
    assert plain.low - biased.low == pytest.approx(28) == biased.high - plain.high


def test_many_answers_have_nearly_normal_tails_and_one_those_of_laplace_noise():
    widths = [total_of(enumerate([answer(5_000, 1)] * n), 0.95) for n in (1, 100)]
    reach = [(one.high - one.estimate) / one.standard_error for one in widths]
    assert reach[0] == pytest.approx(math.log(20) / math.sqrt(2), rel=1e-3)
    assert reach[1] == pytest.approx(1.96, rel=5e-3)


def test_what_has_no_upper_end_leaves_the_sum_without_one():
    found = total_of(enumerate([answer(2e6, 5), answer(30, 20)]), 0.95)
    assert found.high == math.inf


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([], "needs one answer or more"),
        ([answer(3, math.nan)], "each with a standard error"),
        ([answer(3, 1), None], "is lost: choose those that are not with where"),
        ([answer(3, 1), answer(3, 1, unit="visits")], "answers to one question"),
    ],
)
def test_what_has_no_sum_is_refused(answers, said):
    with pytest.raises(pp.PanPrivacyError, match=said):
        total_of(enumerate(answers), 0.95)


def test_answers_of_groups_are_independent_and_those_of_a_histogram_are_not():
    groups = pp.Answers([answer(30, 3, group="a"), answer(40, 4, group="b")])
    assert groups.total().standard_error == 5
    states = [answer(9, 3, arguments=(("state", k),)) for k in (1, 2)]
    found = pp.Answers(states).total()
    assert (found.standard_error, str(found.name)) == (6, "distinct")
    with pytest.raises(pp.PanPrivacyError, match="is lost"):
        pp.Answers([Lost((pp.Name("a", "distinct"),))]).total()
    with refusals.confidence():
        groups.total(confidence=2)


def test_a_histogram_has_a_larger_error_than_any_sum_of_it():
    visits = pp.Incidence(universe=5_000, bound=6, epsilon=1)
    found = visits.release()
    asked = found.at_least(1)
    states = pp.Answers([found.exactly(k) for k in range(1, 7)]).total()
    assert states.standard_error >= asked.standard_error


def hourly(make):
    now = [0.0]
    windows = pp.Windowed(make, 3_600, clock=lambda: now[0])
    windows.update(np.arange(500))
    now[0] = 4 * 3_600.0
    return windows.release()


def test_windows_are_summed_and_what_goes_on_is_not():
    windows = hourly(lambda: pp.DistinctCount(expected=(100, 10_000), epsilon=1))
    each = [window.release for window in windows]
    found = windows.total(confidence=0.9)
    assert len(each) == 4
    assert found.confidence == 0.9
    assert found.estimate == pytest.approx(sum(one.estimate for one in each))
    assert found.standard_error == pytest.approx(math.hypot(*(one.standard_error for one in each)))
    assert windows[1:].total().estimate == pytest.approx(sum(one.estimate for one in each[1:]))
    running = hourly(lambda: pp.RunningCount(horizon=100, epsilon=1))
    for some in running, running[:2]:
        with pytest.raises(pp.PanPrivacyError, match="go on from window to window"):
            some.total()
