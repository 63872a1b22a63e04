"""The formulas of Digalakis et al., against sums over outcomes, brute force and known numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from panprivacy.papers.published.digalakis_theory import (
    Estimator,
    dwork_bits,
    printed_noise,
    repaired_noise,
    theorem_3_2,
    theorem_4_2,
    theorem_5_2,
    tuned_bits,
)
from panprivacy.privacy.guarantee import joint_loss, randomised_response

EPSILONS = [0.05, 0.2, 0.5]
KINDS = {"dwork": dwork_bits, "opt_bern": tuned_bits}


def estimators(epsilon):
    """Both estimators with both noises."""
    for bits in (dwork_bits(epsilon), tuned_bits(epsilon)):
        yield Estimator(bits, printed_noise(bits, epsilon))
        yield Estimator(bits, repaired_noise(epsilon))


def number_of_ones(bits, users, came):
    """The law of the number of ones, if so many of the sample came."""
    law = np.ones(1)
    for user in range(users):
        chance = bits.present if user < came else bits.absent
        law = np.convolve(law, [1 - chance, chance])
    return law


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("came", [0, 3, 8])
def test_the_error_of_a_fixed_sample_is_that_of_all_outcomes(epsilon, came):
    users, ones = 8, np.arange(9)
    for one in estimators(epsilon):
        law = number_of_ones(one.bits, users, came)
        off = (ones / users - one.bits.absent) / one.bits.contrast - came / users
        assert law @ off == pytest.approx(0, abs=1e-12)
        noise = one.noise.variance / (users * one.bits.contrast) ** 2
        assert one.fixed_sample_error(users, came / users) == pytest.approx(law @ off**2 + noise)


def test_sampling_adds_what_a_sample_without_replacement_does():
    universe, came, users = 7, 3, 4
    shares = [
        sum(user < came for user in sample) / users
        for sample in itertools.combinations(range(universe), users)
    ]
    one = next(estimators(0.3))
    added = one.error(users, came / universe, universe)
    fixed = np.mean([one.fixed_sample_error(users, share) for share in shares])
    assert added - fixed == pytest.approx(np.var(shares))
    everybody = one.error(universe, came / universe, universe)
    assert everybody == one.fixed_sample_error(universe, came / universe)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_variances_and_tails_of_noise_are_those_of_its_law(epsilon):
    sizes = np.arange(-2_000, 2_001)
    law = np.exp(-epsilon * abs(sizes))
    law /= law.sum()
    noise = repaired_noise(epsilon)
    assert noise.variance == pytest.approx(law @ sizes**2)
    for size in (1, 2, 7):
        tail = law[abs(sizes) >= size].sum()
        assert tail == pytest.approx(noise.factor * math.exp(-noise.rate * size))
    bits = tuned_bits(epsilon)
    printed, users = printed_noise(bits, epsilon), 50
    scale = 1 / (epsilon * users)
    assert printed.variance / (users * bits.contrast) ** 2 == pytest.approx(2 * scale**2)
    assert math.exp(-printed.rate * users * bits.contrast * 0.1) == pytest.approx(
        math.exp(-0.1 / scale)
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("users", [10, 1_000])
def test_the_printed_bounds_hold_of_the_printed_noise_and_not_of_the_repaired_one(epsilon, users):
    densities = np.linspace(0, 1, 11)
    for bits, theorem in ((dwork_bits(epsilon), theorem_3_2), (tuned_bits(epsilon), theorem_4_2)):
        printed = Estimator(bits, printed_noise(bits, epsilon))
        bound = theorem(users, epsilon)
        assert max(printed.error(users, d, 10**6) for d in densities) <= bound * (1 + 1e-12)
    assert theorem_3_2(users, epsilon) == pytest.approx(
        Estimator(dwork_bits(epsilon), printed_noise(dwork_bits(epsilon), epsilon))
        .fixed_sample_error(users, 0)
    )  # fmt: skip
    repaired = Estimator(tuned_bits(epsilon), repaired_noise(epsilon))
    assert repaired.fixed_sample_error(10, 0.5) > theorem_4_2(10, epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_fixed_sample_of_algorithm_2_errs_the_same_at_every_density(epsilon):
    """The bound of Theorem 4.2 has sampling variance, `1/(4 m)`, beside it."""
    bits, users = tuned_bits(epsilon), 40
    one = Estimator(bits, printed_noise(bits, epsilon))
    t = math.tanh(epsilon / 2)
    exact = (1 / t**2 - 1) / (4 * users) + 2 / (users * epsilon) ** 2
    assert [one.fixed_sample_error(users, d) for d in (0, 0.3, 1)] == pytest.approx([exact] * 3)
    assert theorem_4_2(users, epsilon) - exact == pytest.approx(1 / (4 * users))


def test_a_level_is_a_sample():
    assert theorem_5_2(1 << 17, 7, 0.3) == theorem_4_2(1 << 10, 0.3)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_dworks_bits_spend_about_half_and_tuned_ones_all(epsilon):
    assert dwork_bits(epsilon).loss == pytest.approx(-math.log(1 - epsilon / 2))
    assert tuned_bits(epsilon).loss == pytest.approx(epsilon)
    assert tuned_bits(epsilon, 0.3).loss == pytest.approx(epsilon)


def test_off_centre_zeros_tell_more_than_ones():
    assert tuned_bits(0.5, 0.8).loss == pytest.approx(4.58, abs=0.005)


def test_the_printed_noise_loses_what_the_audit_finds():
    losses = {
        name: Estimator(bits(0.1), printed_noise(bits(0.1), 0.1)).loss
        for name, bits in KINDS.items()
    }
    assert losses["dwork"] == pytest.approx(3.37, abs=0.005)
    assert losses["opt_bern"] == pytest.approx(1.57, abs=0.005)


@pytest.mark.parametrize(("state", "release"), [("0.1", "0.1"), ("0.2", "0.7"), ("1", "0.05")])
def test_the_repaired_noise_loses_what_is_charged_for_bits(state, release):
    state, release = Fraction(state), Fraction(release)
    charged = state + joint_loss(randomised_response(state), release)
    one = Estimator(tuned_bits(float(state)), repaired_noise(float(release)))
    assert one.loss == pytest.approx(float(charged))


def test_a_loss_is_never_above_that_of_state_and_release_together():
    for epsilon in EPSILONS:
        for bits in (dwork_bits(epsilon), tuned_bits(epsilon)):
            one = Estimator(bits, repaired_noise(epsilon))
            assert bits.loss < one.loss < bits.loss + epsilon


def as_printed(epsilon, users, alpha):
    """The cost that section 3.1 minimises, as it is printed."""
    return lambda one, two: (
        2 * math.exp(-2 * users * alpha**2 * (1 - one) ** 2)
        + 2 * math.exp(-users * epsilon**2 * alpha**2 * one**2 * (1 - two) ** 2 / 8)
        + math.exp(-epsilon * alpha * users * one * two)
    )


def test_the_parts_of_the_bound_add_up_to_the_printed_cost():
    epsilon, users, alpha = 0.3, 900, 0.2
    bits = dwork_bits(epsilon)
    parts = Estimator(bits, printed_noise(bits, epsilon)).failure_bound(users, alpha, 0.7, 0.2)
    assert sum(parts) == pytest.approx(as_printed(epsilon, users, alpha)(0.7, 0.2))


@pytest.mark.long
@pytest.mark.parametrize("users", [3_000, 30_000])
def test_the_tightest_beta_is_the_minimum_over_all_shares(users):
    alpha, shares = 0.1, np.linspace(0.005, 0.995, 199)
    for one in estimators(0.4):
        found = one.min_beta(alpha, users)
        tried = min(
            sum(one.failure_bound(users, alpha, float(a), float(b)))
            for a, b in itertools.product(shares, shares)
        )
        if tried >= 1:
            assert found > 0.98
            continue
        assert found <= tried * (1 + 1e-6)
        best = minimize(
            lambda x, one=one: math.log(sum(one.failure_bound(users, alpha, *x))),
            [0.9, 0.05],
            method="Nelder-Mead",
            bounds=[(0, 1)] * 2,
            options={"xatol": 1e-9, "fatol": 1e-12},
        )
        assert math.log(found) == pytest.approx(best.fun, abs=1e-6)


def test_the_tightest_beta_says_nothing_of_a_handful_of_users():
    assert all(one.min_beta(0.1, 5) == 1 for one in estimators(0.1))


@pytest.mark.long
@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.05), (0.02, 1e-6), (0.3, 0.9)])
def test_the_sample_size_is_the_fewest_users_for_whom_the_bound_says_so(alpha, beta):
    for one in estimators(0.5):
        users = one.sample_size(alpha, beta)
        assert one.min_beta(alpha, users) <= beta * (1 + 1e-6)
        assert one.min_beta(alpha, math.floor(users * 0.999) - 1) > beta


def test_the_sample_size_is_the_minimum_over_all_shares_as_printed():
    epsilon, alpha, beta = 0.5, 0.1, 0.05

    def spare(point):
        """How far below `e**point[0]` the three printed sizes are, in logarithms."""
        log_users, one, two, three, four = point
        sizes = (
            math.log(2 / (beta * three)) / (2 * alpha**2 * (1 - one) ** 2),
            8 * math.log(2 / (beta * four)) / (epsilon * alpha * one * (1 - two)) ** 2,
            math.log(1 / (beta * (1 - three - four))) / (epsilon * alpha * one * two),
        )
        return log_users - np.log(sizes)

    bits = dwork_bits(epsilon)
    users = Estimator(bits, printed_noise(bits, epsilon)).sample_size(alpha, beta)
    best = minimize(
        lambda point: point[0],
        [12, 0.9, 0.05, 0.2, 0.6],
        method="SLSQP",
        bounds=[(0, 20), *[(0.01, 0.99)] * 2, *[(0.001, 0.9)] * 2],
        constraints=[
            {"type": "ineq", "fun": spare},
            {"type": "ineq", "fun": lambda point: 0.999 - point[3] - point[4]},
        ],
    )
    assert best.success
    assert users - 1 <= math.exp(best.x[0]) * (1 + 1e-6)
    assert math.exp(best.x[0]) == pytest.approx(users, rel=1e-3)


@pytest.mark.long
def test_bounds_hold_in_fact_and_are_not_tight():
    """A million answers of each: with a false-alarm rate far below 1e-6, as they are far off."""
    generator, users, alpha, came, runs = np.random.default_rng(2), 2_000, 0.1, 600, 10**6
    for one in estimators(0.5):
        ones = generator.binomial(came, one.bits.present, runs)
        ones += generator.binomial(users - came, one.bits.absent, runs)
        size = generator.exponential(1 / one.noise.rate, runs)
        noise = size * generator.choice([-1, 1], runs)
        off = ((ones + noise) / users - one.bits.absent) / one.bits.contrast - came / users
        assert np.mean(abs(off) >= alpha) < 0.8 * one.min_beta(alpha, users)
