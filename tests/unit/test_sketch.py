"""An `OverlapSketch`: its plans, its release, its windows; the bytes of a sketch; sets."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.overlaps.occupancy import BitNoise
from panprivacy.statistics.overlaps.patterns import CellLayout
from panprivacy.statistics.overlaps.prediction import predict, two_windows
from panprivacy.statistics.sketch.decoder import overlap_deviations
from panprivacy.testing import SeededCoins
from tests.contract.doubles import BreakableCoins, EntropyError

KEY = b"the same for all windows"


def made(**given):
    return pp.OverlapSketch(**{"epsilon": 4, "expected": 2_000, "key": KEY, **given})


def published(users, **given):
    one = made(**given)
    one.update(np.asarray(users))
    return one.release().sketch


class TestPlans:
    def test_cells_are_three_for_each_expected_user(self):
        assert made().plan.layout == CellLayout(6_000)
        assert made(memory=400).plan.layout.cells <= 3_200

    def test_a_range_has_levels(self):
        assert made(expected=(100, 100_000)).plan.layout.levels > 3

    def test_a_universe_has_a_cell_each_or_a_sample_has(self):
        assert made(expected=None, universe=500).plan.layout == CellLayout(500, universe=500)
        sampled = made(expected=None, universe=5_000, cells=800).plan.layout
        assert sampled == CellLayout(800, universe=5_000)
        within = made(expected=None, universe=5_000, memory=100).plan.layout
        assert within.cells == 800

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"expected": None}, "overlap needs expected="),
            ({"universe": 50}, "overlap needs expected="),
            ({"cells": 50}, "overlap needs expected="),
            ({"covers": "both"}, "covers must be seizure or publication"),
            ({"share": 1.5}, "share must be a number from 0 to 1"),
            ({"share": "half"}, "share must be a number from 0 to 1"),
            ({"intrusions": 1}, "leave out intrusions="),
            ({"budget": pp.Budget(1, 1)}, "leave out budget="),
        ],
    )
    def test_what_cannot_be_planned_is_refused_in_one_line(self, given, said):
        with pytest.raises(pp.PlanError) as refused:
            made(**given)
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)

    def test_the_error_of_the_return_rate_is_told(self):
        (said,) = pp.plan("overlap", expected=100_000, share="0.3", epsilon=1).remarks
        assert said.startswith("where 30 % come back, 95 % of return rates are within ±")

    def test_designs_are_compared_by_the_error_that_is_predicted(self):
        for given in {"expected": 20_000}, {"expected": (1_000, 100_000)}, {"universe": 40_000}:
            plan = pp.plan("overlap", **given, epsilon=2)
            told = plan.layout, *plan.published, np.array([20_000.0]), plan.share
            noise = BitNoise(*((one, one) for one in plan.published))
            windows = two_windows(20_000, 20_000, plan.share)
            right = predict(plan.layout, noise, windows).intersection
            assert overlap_deviations(*told)[0] == pytest.approx(right, rel=0.01)

    def test_fewer_cells_and_more_err_more(self):
        best = made(expected=50_000, epsilon=2).plan
        users = np.array([50_000.0])
        errors = [
            overlap_deviations(
                CellLayout(int(factor * best.layout.cells)), *best.published, users, 0.5
            )
            for factor in (0.4, 1, 4)
        ]
        assert errors[1] < errors[0]
        assert errors[1] < errors[2]

    def test_a_guarantee_says_what_is_covered(self):
        seen, alone = made().guarantee, made(covers="publication").guarantee
        assert seen.looks
        assert 0 < seen.crash < seen.epsilon
        assert seen.crashed(1).epsilon == seen.crashed(5).epsilon == seen.epsilon + seen.crash
        assert seen.unseen < seen.epsilon
        assert not alone.looks
        assert alone.crash == 0
        assert alone.unseen == alone.epsilon
        assert "is not covered" in str(alone)


class TestReleases:
    def test_an_answer_is_read_off_its_table(self):
        one = made()
        one.update(np.arange(2_000))
        answer = one.release()
        assert abs(answer.value - 2_000) < 300  # seven standard deviations
        assert bytes(answer.counts) == answer.sketch.table
        assert answer.sketch.layout == one.plan.layout

    def test_the_table_of_the_state_is_overwritten(self):
        one = made(coins=SeededCoins(5), releases=2)
        one.update(np.arange(2_000))
        before = one.internals.memory.now.table.copy()
        table = one.internals.memory.now.table
        sketch = one.release().sketch
        assert table is one.internals.memory.now.table
        assert (np.unpackbits(before) != np.unpackbits(table)).mean() > 0.2
        assert sketch.table not in one.state()

    def test_windows_of_one_object_have_tables_of_their_own(self):
        one = made(releases=2, epsilon=8)
        one.update(np.arange(2_000))
        first = one.release().sketch
        one.update(np.arange(1_000, 3_000))
        found = pp.overlap(first, one.release().sketch)
        answer = found.intersection(confidence=1 - 1e-6)
        assert answer.low < 1_000 < answer.high < 2_000

    def test_after_the_last_table_nothing_is_counted(self):
        one = made()
        prepared = one.internals.memory.prepare([1, 2])
        one.release()
        before = one.state()
        with pytest.raises(pp.PanPrivacyError, match="its table was published"):
            one.update([1, 2])
        with pytest.raises(pp.PanPrivacyError, match="its table was published"):
            one.internals.memory.apply(prepared)
        assert one.state() == before

    def test_a_published_window_goes_on_as_a_new_one(self):
        one = made(releases=2, epsilon=8)
        one.update(np.arange(2_000))
        earlier = one.state()
        later = made(releases=2, epsilon=8)
        later.resume(earlier, released=1)
        assert later.releases == 1
        assert float(later.release()) < 700  # nobody of the published window
        same = made(releases=2, epsilon=8)
        same.resume(earlier)
        assert float(same.release()) > 1_300

    @pytest.mark.parametrize("reads", [0, 1, 2])
    def test_coins_that_fail_publish_nothing_and_end_nothing(self, reads):
        coins = BreakableCoins(3)
        one = made(coins=coins, releases=2)
        one.update([1, 2, 3])
        before = one.state()
        coins.reads_left = reads
        with pytest.raises(EntropyError):
            one.release()
        assert one.state() == before
        assert one.releases == 0

    def test_it_cannot_trigger_on_change(self):
        with pytest.raises(pp.PlanError):
            pp.ChangeTriggered(
                lambda epsilon: made(epsilon=epsilon), threshold=100, updates=2, epsilon=4
            )
