"""A release is checked, then paid for, then noised; what was read is wiped."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers.published import CalibratedNorm
from panprivacy.statistics.table.releasing import TableReleasing, noised_sums
from panprivacy.tables.slices import Slice
from panprivacy.testing import SeededCoins
from tests import refusals
from tests.contract.doubles import BreakableCoins, EntropyError, SpyCoins


def density(**given):
    return pp.Density(**{"universe": 50, "epsilon": 1, "coins": SeededCoins(1), **given})


def visits(**given):
    return pp.Incidence(**{"universe": 50, "bound": 3, "epsilon": 4, **given})


class KeptCoins(SeededCoins):
    """Seeded coins that keep the arrays of noise they gave."""

    def __init__(self, seed):
        super().__init__(seed)
        self.given, self.copies = [], []

    def discrete_laplace(self, scale, size):
        noise = super().discrete_laplace(scale, size)
        self.given.append(noise)
        self.copies.append(noise.copy())
        return noise


class TestNoise:
    SUMS = np.array([10, 20, 30])

    def test_one_scale_is_that_of_all_sums(self):
        coins = SpyCoins()
        counts = noised_sums(self.SUMS, [Fraction(5)], coins)
        assert coins.sizes("discrete_laplace") == [3]
        again = SeededCoins(0).discrete_laplace(Fraction(5), 3)
        assert (counts - self.SUMS).tolist() == again.tolist()
        assert again.any()

    def test_each_sum_has_noise_of_its_own_scale(self):
        scales = [Fraction(1), Fraction(1_000), Fraction(10**6)]
        counts, again = noised_sums(self.SUMS, scales, SeededCoins(0)), SeededCoins(0)
        noise = [again.discrete_laplace(scale, 1)[0] for scale in scales]
        assert (counts - self.SUMS).tolist() == noise
        assert abs(noise[0]) < abs(noise[1]) < abs(noise[2])

    @pytest.mark.parametrize("scales", [[Fraction(9)], [Fraction(9), Fraction(8), Fraction(7)]])
    def test_noise_is_wiped_and_sums_are_left_as_they_were(self, scales):
        coins = KeptCoins(2)
        sums = self.SUMS.copy()
        counts = noised_sums(sums, scales, coins)
        assert (sums == self.SUMS).all()
        assert (counts - sums).tolist() == np.concatenate(coins.copies).tolist()
        assert np.concatenate(coins.copies).any()
        assert not np.concatenate(coins.given).any()


class TestPaying:
    def test_the_ledger_has_state_and_releases(self):
        made = density(releases=3)
        releasing = made.internals.releasing
        assert made.ledger.spent == releasing.state_epsilon > 0
        made.release()
        assert made.ledger.spent == releasing.state_epsilon + releasing.of_releases(1)
        assert (made.releases, releasing.made, releasing.planned) == (1, 1, 3)
        assert made.guarantee.epsilon <= 1

    def test_the_state_pays_for_planned_looks(self):
        budget = pp.Budget(Fraction(1, 4), Fraction(1, 8))
        once, thrice = (
            visits(intrusions=looks, budget=budget).internals.releasing for looks in (0, 2)
        )
        assert (once.state_epsilon, thrice.state_epsilon) == (Fraction(1, 4), Fraction(3, 4))
        assert [once.of_releases(n) for n in range(3)] == [0, Fraction(1, 8), Fraction(1, 4)]

    def test_a_release_is_paid_for_before_noise_is_drawn(self):
        coins = BreakableCoins(1)
        made = density(releases=2, coins=coins)
        cost, spent = made.internals.releasing.release_epsilon, made.ledger.spent
        coins.reads_left = 0
        with pytest.raises(EntropyError):
            made.release()
        assert made.ledger.spent == spent + cost
        assert made.releases == 0

    def test_no_release_is_made_beyond_those_that_are_planned(self):
        made = density(releases=1)
        made.internals.releasing.check_release()
        made.release()
        spent = made.ledger.spent
        for refused in (made.release, made.internals.releasing.check_release):
            with refusals.released():
                refused()
        assert (made.ledger.spent, made.releases) == (spent, 1)

    @pytest.mark.parametrize("asked", [{"confidence": 1}, {"confidence": 0}, {"exactly": 9},
                                       {"exactli": 1}])  # fmt: skip
    def test_a_release_that_is_asked_wrongly_costs_nothing(self, asked):
        made = visits()
        spent = made.ledger.spent
        for refused in (made.release, made.internals.releasing.check_release):
            with pytest.raises(pp.PlanError, match=next(iter(asked))):
                refused(**asked)
        assert (made.ledger.spent, made.releases) == (spent, 0)
        made.release()

    def test_a_slice_has_no_answer_of_its_own_and_spends_nothing(self):
        one = visits(slice_=Slice(0, 2, bytes(16)))
        spent = one.ledger.spent
        with pytest.raises(pp.PanPrivacyError, match="merge the contributions of all shards"):
            one.release()
        assert (one.ledger.spent, one.releases) == (spent, 0)


class TestAnswer:
    def test_it_has_the_name_of_the_statistic_and_the_confidence_asked(self):
        answer = density().release(confidence=0.6)
        assert (answer.name.statistic, answer.confidence) == ("density", 0.6)
        assert density().release().confidence == 0.95

    def test_it_is_the_sums_with_noise_of_the_scales_of_the_reading(self):
        made = visits(coins=(coins := KeptCoins(3)), releases=2)
        made.update([1, 2, 3])
        releasing, memory = made.internals.releasing, made.internals.memory
        reading = releasing.reading()
        sums = reading.sums(memory.cells, memory.now.table)
        coins.copies.clear()
        counts = releasing.with_noise(reading)
        assert (counts - sums).tolist() == np.concatenate(coins.copies).tolist()
        assert releasing.answer(reading, counts, 0.7).counts == tuple(counts)
        assert made.releases == 0

    @pytest.mark.parametrize("fails", [False, True])
    def test_the_sums_are_wiped_even_if_no_noise_could_be_drawn(self, monkeypatch, fails):
        coins, taken = BreakableCoins(1), []
        made = density(coins=coins)
        reading = type(made.internals.releasing.reading())
        genuine = reading.sums

        def sums(*given):
            taken.append(genuine(*given))
            assert taken[-1].any()
            return taken[-1]

        monkeypatch.setattr(reading, "sums", sums)
        if fails:
            coins.reads_left = 0
            with pytest.raises(EntropyError):
                made.release()
        else:
            made.release()
        assert [one.any() for one in taken] == [False]

    @pytest.mark.parametrize("asked", [{}, {"exactly": (1, 2)}, {"at_least": 2}])
    def test_answers_without_numbers_have_the_same_names_and_cost_nothing(self, asked):
        made = visits()
        releasing, spent = made.internals.releasing, made.ledger.spent
        found = [releasing.lost(**asked), releasing.unread(confidence=0.5, **asked)]
        assert (made.ledger.spent, made.releases) == (spent, 0)
        names = list(made.release(**asked).answers())
        assert {name.statistic for name in names} == {"incidence"}
        for one in found:
            assert set(one.values()) == {None}
        assert list(found[1]) == names


def test_whether_it_adds_noise_of_its_reading_is_derived():
    class Other(TableReleasing):
        def _add_noise(self, reading, sums):
            return sums + 1

    class Same(TableReleasing):
        pass

    assert (TableReleasing.adds_noise, Same.adds_noise, Other.adds_noise) == (True, True, False)
    assert density().internals.releasing.adds_noise
    sketch = CalibratedNorm(columns=[[1, 0], [3, 1]], modulus=11, universe=20, epsilon=1)
    assert sketch.internals.releasing.adds_noise is True
