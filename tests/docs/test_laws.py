"""The page of the laws says what the plans predict, and its limits hold."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from benchmarks import laws
from hypothesis import given
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.tables.cells.difference_sets import residues
from panprivacy.tables.cells.law import on_blocks
from tests.docs.pins import ROOT, has_test, named_tests

PAGE = laws.PAGE.read_text()
EVERY_TRIAL = [laws.Trial(*one) for one in itertools.product(laws.LAWS, laws.TAUS, laws.CELLS)]


def numbers(line):
    """The numbers of a row of a table; NaN where it has none."""
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    return [float(cell.replace(",", "")) if cell else math.nan for cell in cells]


def printed(tau, cells):
    """A row of the page's first table."""
    start = f"| {tau:,} | {cells:,} |"
    return next(numbers(line) for line in PAGE.splitlines() if line.startswith(start))


@pytest.mark.parametrize("cells", laws.CELLS)
@pytest.mark.parametrize("tau", laws.TAUS)
def test_the_predicted_deviations_are_those_of_the_plans(tau, cells):
    """To the last of three digits, which another machine may round the other way."""
    expected = numbers("|".join(laws.predicted_row(tau, cells)))
    assert printed(tau, cells) == pytest.approx(expected, rel=0.011, nan_ok=True)


def test_the_page_says_in_words_what_the_script_says():
    words = laws.predicted_section().split("| tau |")[0]
    assert words in PAGE


def test_no_row_that_was_measured_is_outside_of_its_limits():
    assert "missed" not in PAGE


@pytest.mark.parametrize("tau", laws.TAUS)
def test_the_worst_stream_of_blocks_is_as_bad_as_the_plan_says(tau):
    trial = laws.Trial("block", tau, 10**5)
    assert math.sqrt(laws.predicted(trial).variance) == pytest.approx(
        trial.plan.absolute_error(), rel=1e-3
    )


@pytest.mark.parametrize("law", laws.MODULI)
@pytest.mark.parametrize("tau", [1, 10, 1_000])
def test_the_worst_stream_of_a_law_is_as_bad_as_answers_state(law, tau):
    """The variance of the cells by the script's own moments is that of the decoder."""
    trial = laws.Trial(law, tau, 10**4)
    question = trial.plan.states.cropped_sum(tau)
    second, _ = laws.moments(trial.plan.law, question.scores)
    cells = trial.cells * second[: laws.BOUND + 1].max()
    model, variance = trial.plan.model(0), laws.predicted(trial).variance
    if law == "geometric":
        assert variance == pytest.approx(
            cells + model.histogram_noise(question, laws.discrete_laplace_variance(2.0)), rel=1e-6
        )
    else:
        estimates = model.named(question, 0, 0.0)
        assert float(estimates.constant) == pytest.approx(trial.cells * second.max(), rel=1e-6)
        assert variance >= cells


@pytest.mark.parametrize("law", [pp.Law.flat(103, 1), pp.Law.flat(503, 2), pp.Law.singer(121, 1)])
@pytest.mark.parametrize("tau", [1, 10])
def test_a_linear_query_under_a_flat_law_varies_as_claimed(law, tau):
    """Claim 4: a sum of squares over the one size of the spectrum."""
    modulus, scores = law.modulus, np.minimum(np.arange(law.modulus), tau)
    second, _ = laws.moments(law, scores)
    high, ratio = law.weights > law.weights.min(), law.weights.max() / law.weights.min()
    members = high.sum()
    shared = members * (members - 1) / (modulus - 1)
    size = (ratio - 1) ** 2 * (members - shared) / (modulus + (ratio - 1) * members) ** 2
    assert np.abs(np.fft.fft(law.probabilities())[1:]) ** 2 == pytest.approx(size)  # Claim 3
    squares = ((scores - scores.mean()) ** 2).sum()
    assert second.mean() == pytest.approx(squares / (modulus * size) - scores.var(), rel=1e-6)


# Limits


@pytest.mark.parametrize("trial", EVERY_TRIAL, ids=str)
def test_no_law_does_better_than_the_limits(trial):
    assert laws.least_of_all(trial.tau) < laws.least(trial.tau) < laws.in_roots(trial)
    plan = trial.plan
    scores = (
        laws.block_scores(plan)
        if trial.law == "block"
        else plan.states.cropped_sum(trial.tau).scores.astype(float)
    )
    assert laws.least_modulo(scores) < laws.in_roots(trial)


@pytest.mark.parametrize("tau", laws.TAUS)
def test_blocks_are_within_a_tenth_of_the_limit_modulo_m(tau):
    trial = laws.Trial("block", tau, 10**6)
    assert laws.in_roots(trial) < 1.1 * laws.least_modulo(laws.block_scores(trial.plan))


@st.composite
def channels(draw, epsilon=1.0):
    """The laws of a cell with few values in two states, nowhere further apart than epsilon."""
    size = draw(st.integers(2, 5))
    weights = st.lists(st.floats(0.05, 1), min_size=size, max_size=size)
    tilts = st.lists(st.sampled_from([-1.0, -0.3, 0.2, 1.0]), min_size=size, max_size=size)
    absent = np.array(draw(weights))
    present = absent * np.exp(epsilon / 2 * np.array(draw(tilts)))
    return absent / absent.sum(), present / present.sum()


RESPONSE = np.array([math.e, 1]) / (1 + math.e), np.array([1, math.e]) / (1 + math.e)
"""Randomised response, which is as far apart as epsilon 1 allows."""


def least_variance(pairs):
    """Of all functions of these cells that are unbiased for how many users are present.

    They need not be sums over cells. It is the least norm under as many linear conditions as there
    are streams.
    """
    streams = list(itertools.product([0, 1], repeat=len(pairs)))
    joint = []
    for stream in streams:
        law = np.ones(1)
        for pair, state in zip(pairs, stream, strict=True):
            law = np.outer(law, pair[state]).ravel()
        joint.append(law)
    roots = np.sqrt(joint[0])
    means = np.array([sum(stream) for stream in streams], float)
    answer, *_ = np.linalg.lstsq(np.array(joint) / roots, means, rcond=None)
    unbiased = np.allclose(np.array(joint) / roots @ answer, means, atol=1e-8)
    return float(answer @ answer) if unbiased else math.inf


@given(st.lists(channels(), min_size=1, max_size=3))
def test_no_unbiased_answer_varies_less_than_the_limit(pairs):
    assert least_variance(pairs) >= len(pairs) * laws.least(1) ** 2 * (1 - 1e-9)


@pytest.mark.parametrize("users", [1, 2, 3])
def test_randomised_response_attains_the_limit(users):
    assert least_variance([RESPONSE] * users) == pytest.approx(users * laws.least(1) ** 2)


def left(pair):
    """The mean square error of the best guess of a state that is present half of the time."""
    absent, present = pair
    return float((absent * present / (absent + present)).sum() / 2)


@given(channels())
def test_no_answer_at_all_errs_less_than_its_limit(pair):
    assert left(pair) >= laws.least_of_all(1) ** 2 * (1 - 1e-12)


def test_the_best_guess_after_randomised_response_attains_the_limit():
    assert left(RESPONSE) == pytest.approx(laws.least_of_all(1) ** 2)


LAWS = [
    *(pp.Law.flat(modulus, 1) for modulus in (3, 7, 11, 103)),
    pp.Law.biquadratic(37, 1),
    pp.Law.singer(13, 1),
    pp.Law.spike(9, 1),
    pp.Law.geometric(9, 1),
]
WEIGHTS = st.lists(st.integers(1_000, 2_718), min_size=3, max_size=12).filter(
    lambda weights: np.abs(np.fft.fft(weights)).min() > 1
)


def check_average(law, scores):
    """The variance of the one unbiased vote, averaged over states, is above the limit."""
    second, _ = laws.moments(law, scores)
    assert math.sqrt(second.mean()) >= laws.least_modulo(scores.astype(float)) * (1 - 1e-6)


@given(st.one_of(st.sampled_from(LAWS), WEIGHTS.map(pp.Law.of)), st.integers(1, 12))
def test_no_law_modulo_m_varies_less_than_its_limit_on_average(law, tau):
    check_average(law, np.minimum(np.arange(law.modulus), tau))
    around = np.minimum(np.arange(law.modulus), law.modulus - np.arange(law.modulus))
    check_average(law, np.minimum(around, tau))


@pytest.mark.parametrize(
    ("law", "nearness"), [(pp.Law.biquadratic(8_837, 1), 0.002), (pp.Law.singer(9_841, 1), 0.02)]
)
def test_difference_sets_of_about_the_best_density_nearly_attain_the_limit(law, nearness):
    """The best one is 1/(1 + e); these have 1/4 and 1/3."""
    scores = (np.arange(law.modulus) > 0).astype(np.int64)
    second, _ = laws.moments(law, scores)
    limit = laws.least_modulo(scores.astype(float))
    assert limit <= math.sqrt(second.mean()) <= (1 + nearness) * limit


def test_the_vote_of_blocks_is_unbiased_for_their_scores_at_every_residue():
    plan = laws.Trial("block", 1_000, 10**4).plan
    high = plan.law.weights > plan.law.weights.min()
    seen = np.array([np.roll(high, -a) @ plan.law.probabilities() for a in range(0, 7_000, 50)])
    model, scores = plan.model(0), laws.block_scores(plan)[::50]
    assert plan.chosen == residues(7)
    assert on_blocks(plan.chosen, plan.tau, laws.BUDGET.state) is plan.law
    assert (1 - seen - model.absent) / model.contrast * plan.tau == pytest.approx(scores, abs=1e-6)


def test_every_test_that_checks_a_claim_exists():
    """The table at the end of the page on the laws names each claim."""
    page = (ROOT / "docs/laws.md").read_text()
    claims = [int(one) for one in re.findall(r"^\*\*Claim (\d+)\.\*\*", page, re.MULTILINE)]
    assert claims == list(range(1, 19))
    table = page.partition("## How to check this page")[2]
    checked = set()
    for numbers, tests in re.findall(r"^\| ([\d, to]+) \| (.*) \|$", table, re.MULTILINE):
        first, last = re.findall(r"\d+", numbers)[0], re.findall(r"\d+", numbers)[-1]
        checked |= set(range(int(first), int(last) + 1))
        assert [test for test in named_tests(tests) if not has_test(test)] == []
    assert checked == set(claims)


def test_the_table_of_the_laws_is_that_of_the_measurements():
    """Each of its rows is a row for a million users, with some columns left out."""
    kept = (0, 2, 3, 6, 7, 8, 9, 10)
    text = (ROOT / "docs/laws.md").read_text().partition("## Measurements")[2]
    for tau in (1, 10, 100, 1_000):
        start = f"| {tau:,} | "
        row = next(line for line in text.splitlines() if line.startswith(start))
        expected = np.array(printed(tau, 10**6))[list(kept)]
        assert numbers(row) == pytest.approx(expected.tolist(), nan_ok=True)


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {pp.__version__}\n" in citation
    assert citation.startswith("cff-version: 1.2.0\n")
