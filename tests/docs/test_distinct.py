"""The limits of bits hold and are met, and the page of distinct users says what they are."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from benchmarks import distinct, limits, sketches
from hypothesis import given, settings
from hypothesis import strategies as st

PAGE = distinct.PAGE.read_text()
PROOFS = " ".join((distinct.ROOT / "docs/laws.md").read_text().split())
EPSILONS = [0.1, 0.5, 1.0, 2.0, 4.0]


def told(absent, present, load):
    """The Fisher information of a cell about the logarithm of its load, from its two laws."""

    def law(log_load):
        empty = math.exp(-math.exp(log_load))
        return empty * absent + (1 - empty) * present

    step, at = 1e-5, math.log(load)
    slope = (law(at + step) - law(at - step)) / (2 * step)
    return float((slope**2 / law(at)).sum())


def response(epsilon):
    """The laws of a redrawn bit: of no user, and of any."""
    absent = np.array([math.exp(epsilon), 1]) / (1 + math.exp(epsilon))
    return absent, absent[::-1]


@st.composite
def cells(draw):
    """A load, an epsilon, and the laws of a cell that are within it of one another."""
    size, epsilon = draw(st.integers(2, 5)), draw(st.floats(0.05, 4))
    weights = st.lists(st.floats(0.05, 1), min_size=size, max_size=size)
    tilts = st.lists(st.floats(-0.5, 0.5), min_size=size, max_size=size)
    absent = np.array(draw(weights))
    present = absent * np.exp(epsilon * np.array(draw(tilts)))
    return draw(st.floats(0.05, 6)), epsilon, absent / absent.sum(), present / present.sum()


@pytest.mark.long
@settings(max_examples=200)
@given(cells())
def test_no_cell_tells_more_than_a_redrawn_bit(cell):
    load, epsilon, absent, present = cell
    assert np.abs(np.log(present / absent)).max() <= epsilon + 1e-9
    assert told(absent, present, load) <= limits.information(load, epsilon) * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("load", [0.1, 1.0, 3.0])
def test_a_redrawn_bit_tells_what_the_formula_says(load, epsilon):
    assert told(*response(epsilon), load) == pytest.approx(
        limits.information(load, epsilon), rel=1e-6
    )


def test_the_numbers_in_the_proofs_are_those_of_the_formula():
    best = limits.limit(1.0)
    assert f"{best.most:.3f}" == "0.118"
    assert f"{best.load:.2f}" == "1.05"
    assert 100 / math.sqrt(best.most * distinct.BITS) == pytest.approx(0.403, abs=5e-4)
    numbers = [
        f"`x = {best.load:.2f}` users a bit",
        f"{100 * -math.expm1(-best.load):.0f} % of the bits are met",
        f"`I = {best.most:.3f}`",
        f"`most m` is {best.most * distinct.BITS:,.0f}",
        f"the other term {4 * math.pi**2 / math.log(2) ** 2:.0f} for",
        f"smallest, {100 * limits.least_ever(distinct.BITS):.3f} %",
        f"Above {best.load:.2f} users a bit",
        f"Below {best.early:.2f} `C(x)` is `{best.each:.3f} x`",
        f"{math.sqrt(1 / best.each - 1):.1f} times the root of n",
        f"`area` is {best.area:.4f}",
    ]
    assert [number for number in numbers if number not in PROOFS] == []


def test_a_small_epsilon_and_none_are_as_the_proofs_say():
    assert limits.limit(0.05).most == pytest.approx((0.05 / math.e) ** 2, rel=1e-3)
    free = limits.limit(math.inf)
    assert (free.most, free.load) == pytest.approx((0.6476, 1.594), rel=1e-3)
    assert free.area == pytest.approx(math.pi**2 / 6, rel=1e-4)


@pytest.mark.parametrize("epsilon", [*EPSILONS, math.inf])
def test_between_its_two_best_loads_the_information_is_concave(epsilon):
    """So the least concave function above it is itself there, and a line before."""
    best = limits.limit(epsilon)
    told = limits.information(np.linspace(best.early, best.load, 1_000), epsilon)
    assert np.diff(told, 2).max() <= 1e-12
    grid = np.geomspace(1e-3, 10, 1_000)
    assert (limits.information(grid, epsilon) <= best.each * grid * (1 + 1e-9)).all()


@pytest.mark.parametrize(
    ("rate", "epsilon"), [*itertools.product([1.0, 3.0, 8.0], [0.5, 1.0, 3.0])]
)
def test_an_answer_that_is_right_near_a_rate_errs_by_the_third_limit(rate, epsilon):
    """The best of them, over every outcome of three bits and of a Poisson number of users."""
    shares, most = np.array([0.5, 0.3, 0.2]), 80
    numbers = np.arange(most)
    chances = np.exp(numbers * math.log(rate) - rate - np.array([*map(math.lgamma, numbers + 1)]))
    outcomes, (absent, present) = list(itertools.product((0, 1), repeat=3)), response(epsilon)
    given_number = np.zeros((most, len(outcomes)))
    for met in outcomes:  # which bits are met, by inclusion and exclusion
        law = [[absent, present][one] for one in met]
        for subset in outcomes:
            inside = sum(s for s, m, b in zip(shares, met, subset, strict=True) if m and b)
            if any(b > m for m, b in zip(met, subset, strict=True)):
                continue
            weight = (-1) ** (sum(met) - sum(subset)) * inside**numbers
            for place, bits in enumerate(outcomes):
                given_number[:, place] += weight * np.prod(
                    [one[b] for one, b in zip(law, bits, strict=True)]
                )
    joint = chances[:, None] * given_number
    slope = ((numbers - rate)[:, None] / rate * joint).sum(axis=0)
    law = joint.sum(axis=0)
    answer = rate + slope / law / (slope**2 / law).sum()
    error = float((joint * (answer - numbers[:, None]) ** 2).sum())
    total = limits.information(shares * rate, epsilon).sum()
    assert answer @ law == pytest.approx(rate)
    assert answer @ slope == pytest.approx(1)
    assert error == pytest.approx(rate**2 / total - rate, rel=1e-6)


@pytest.mark.parametrize("users", distinct.KNOWN)
def test_no_plan_beats_the_limit_for_a_known_number(users):
    plan = distinct.planned(users).plan
    assert distinct.relative(plan, users) >= limits.least(users, distinct.BITS)


def test_a_table_of_a_user_a_bit_attains_nearly_all():
    users = distinct.BITS
    limit, error = (
        limits.least(users, users),
        distinct.relative(distinct.planned(users).plan, users),
    )
    assert 0.93 < (limit / error) ** 2 < 1


def test_a_plan_that_leaves_users_out_would_err_as_the_page_says():
    """Those that are kept meet a table of a user a bit; which are kept adds its own chance."""
    users, kept = 10**7, distinct.BITS
    flat = distinct.relative(distinct.planned(kept).plan, kept)
    error = math.sqrt(flat**2 + (1 - kept / users) / kept)
    assert f"would err by about {100 * error:.2f} %" in distinct.OPEN


@pytest.mark.parametrize("expected", distinct.RANGES)
def test_no_plan_beats_the_limits_of_its_range(expected):
    error, _, limit, known = (float(cell.rstrip(" %")) for cell in distinct.range_row(expected)[4:])
    assert error > max(limit, known)


def test_levels_that_halve_tell_the_same_of_every_number_within_their_range():
    """The area over ln 2 a level, as the page says."""
    loads = np.geomspace(1, 2, 50)[:, None] * 2.0 ** np.arange(-30, 30)
    total = limits.information(np.minimum(loads, 300), 1.0).sum(axis=1)
    assert total == pytest.approx(limits.limit(1.0).area / math.log(2), rel=5e-3)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("others", [0, 1, 5])
def test_a_hyperloglog_with_phantoms_is_private_when_it_leaves(others, epsilon, monkeypatch):
    """By the law of a single register of a few values, with a user and without."""
    monkeypatch.setattr(sketches, "EPSILON", epsilon)
    sketch = sketches.Loglog(1)

    def law(users):
        inside = np.arange(users + 1)
        ways = np.array([math.comb(users, one) for one in inside])
        sampled = ways * sketch.kept**inside * (1 - sketch.kept) ** (users - inside)
        below = [(1 - 0.5**value) ** (sketch.phantoms + inside) for value in range(30)]
        return np.diff([sampled @ one for one in below], append=1)

    losses = np.abs(np.log(law(others + 1) / law(others)))
    assert losses.max() <= epsilon + 1e-9


@pytest.mark.long
@pytest.mark.parametrize("name", distinct.THEIRS)
def test_what_is_drawn_of_the_others_errs_as_predicted(name):
    """Within 5 standard errors, which is 29 % of the error."""
    way, runs = distinct.THEIRS[name], 150
    errors = way.answers(100_000, runs) / 100_000 - 1
    expected = way.predicted(100_000)
    assert abs(errors.mean()) < 5 * expected / math.sqrt(runs)
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(expected, rel=5 / math.sqrt(2 * runs))


def test_the_levels_of_both_layouts_fill_the_same_memory():
    layouts = [distinct.laid(levels).plan for levels in (1, distinct.PUBLISHED_LEVELS)]
    sizes = [layout.table.nbytes for layout in layouts]
    assert max(sizes) - min(sizes) <= 1
    assert [layout.levels for layout in layouts] == [1, 24]


def test_the_page_says_what_the_formulas_say():
    sections = [
        distinct.bound_section(),
        distinct.known_section({}, []).split("The same in tables")[0],
        distinct.range_section(),
    ]
    for section in sections:
        for line in section.strip().splitlines():
            assert line in PAGE


def test_no_row_that_was_measured_is_outside_of_its_limits():
    assert "missed" not in PAGE
    assert PAGE.endswith(distinct.OPEN)
