"""Exact numbers: bounds of e^x, randomised response, budgets, and what is accepted as a number."""

from __future__ import annotations

import contextlib
import math
import threading
from contextvars import copy_context
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.privacy import guarantee
from panprivacy.privacy.guarantee import (
    RANDOMISATION_BITS,
    exact,
    exp_bounds,
    joint_loss,
    joint_releases,
    loss_over,
    losses,
    randomised_response,
    unseen_bits,
    unseen_count,
    unseen_loss,
)
from panprivacy.privacy.guarantee import loss as loss_

GRID = Fraction(1, 2**RANDOMISATION_BITS)
EXPONENTS = st.fractions(-200, 200, max_denominator=10**9)
MODERATE = st.fractions(Fraction(1, 10**6), Fraction(5, 2), max_denominator=10**9)


def precise(function, argument):
    """A Decimal function of a Fraction, at 100 digits."""
    with localcontext(prec=100):
        return Fraction(function(Decimal(argument.numerator) / Decimal(argument.denominator)))


# exp_bounds


@given(EXPONENTS)
def test_the_bounds_bracket_the_exponential_tightly(exponent):
    below, above = exp_bounds(exponent)
    truth = precise(Decimal.exp, exponent)
    assert below < truth < above
    assert above - below < truth / 10**49


@pytest.mark.parametrize("exponent", [10_000, -10_000, Fraction(-1, 10**60), Fraction(1, 3**400)])
def test_the_bounds_hold_at_the_ends(exponent):
    below, above = exp_bounds(Fraction(exponent))
    assert below < precise(Decimal.exp, Fraction(exponent)) < above


def test_the_bounds_of_one_are_around_one():
    below, above = exp_bounds(Fraction(0))
    assert below < 1 < above


@pytest.mark.parametrize("exponent", [10_001, -10_001])
def test_an_exponent_that_is_too_large_is_refused(exponent):
    with pytest.raises(ValueError, match="10,000"):
        exp_bounds(Fraction(exponent))


# randomised_response


def loss(present):
    """The loss of a bit that is 1 with probability `present` or `1 - present`."""
    return abs(precise(Decimal.ln, present / (1 - present)))


@given(st.fractions(Fraction(1, 10**30), 100, max_denominator=10**40))
def test_randomised_response_costs_at_most_epsilon(epsilon):
    assert loss(randomised_response(epsilon)) <= epsilon


@given(MODERATE)
def test_randomised_response_wastes_nothing(epsilon):
    assert epsilon - loss(randomised_response(epsilon)) < Fraction(1, 2**60)


@pytest.mark.long
@given(st.fractions(Fraction(1, 10**6), 40, max_denominator=10**9))
def test_randomised_response_is_the_largest_on_the_grid(epsilon):
    present = randomised_response(epsilon)
    assert (present / GRID).denominator == 1
    assert loss(present + GRID) > epsilon


@pytest.mark.parametrize("epsilon", [50, 10_000, 10_001, 10**9])
def test_a_huge_epsilon_leaves_the_smallest_doubt_there_is(epsilon):
    assert randomised_response(Fraction(epsilon)) == 1 - GRID


@pytest.mark.parametrize("epsilon", [Fraction(1, 2**63), Fraction(1, 10**30), Fraction(1, 10**100)])
def test_a_tiny_epsilon_leaves_a_fair_coin(epsilon):
    assert randomised_response(epsilon) == Fraction(1, 2)


# Releases of bits


def joint(surest, releases):
    """The logarithm of `1 - p + p e**releases`, to 80 digits or more."""
    mean = 1 - surest + surest * precise(Decimal.exp, releases)
    return precise(Decimal.ln, mean)


CHANCES = st.builds(randomised_response, st.fractions(0, 30, max_denominator=10**6))
LOSSES = st.fractions(Fraction(1, 10**9), 300, max_denominator=10**9)


@pytest.mark.long
@given(CHANCES, LOSSES)
def test_what_releases_of_bits_cost_is_rounded_up(surest, releases):
    cost, exact = joint_loss(surest, releases), joint(surest, releases)
    assert exact * (1 - Fraction(1, 10**80)) <= cost <= releases
    assert float(cost) == pytest.approx(float(exact), rel=1e-13)
    assert len(str(cost)) < 50  # a ledger has to write it


def test_releases_of_bits_beyond_the_exponential_cost_their_sum():
    assert joint_loss(Fraction(1, 2), Fraction(10_001)) == 10_001
    assert joint_loss(Fraction(1, 2), Fraction(0)) == 0


@pytest.mark.long
@given(CHANCES, LOSSES, st.integers(1, 10**6))
@example(Fraction(1, 2), Fraction(10_000), 1)
@example(Fraction(1, 2), 10_000 - Fraction(1, 10**3), 1)
@example(Fraction(1, 2), 10_000 - Fraction(1, 10**13), 1)
def test_releases_of_bits_cost_no_more_than_they_may(surest, cost, releases):
    each = joint_releases(surest, cost, releases)
    assert joint_loss(surest, releases * each) <= cost
    assert float(joint_loss(surest, releases * each)) == pytest.approx(float(cost), rel=1e-4)
    assert releases * each >= cost * (1 - Fraction(1, 10**6))


@pytest.mark.parametrize("tenths", [13, 14, 16, 17])
def test_what_is_charged_more_for_its_few_digits_is_taken_off_before(tenths):
    """With a cost that is hardly more than that of so many tenths, which 7 digits hold."""
    surest, total = Fraction(3, 4), Fraction(tenths, 10)
    cost = joint(surest, total) * (1 + Fraction(2, 10**15))
    assert joint_loss(surest, joint_releases(surest, cost, 1)) <= cost


# Unseen states

PARTS = st.fractions(Fraction(1, 10**6), 30, max_denominator=10**6)
NINTH = Fraction(1, 9)


def logarithm(ratio):
    return precise(Decimal.ln, ratio)


@pytest.mark.long
@given(PARTS, PARTS, st.integers(1, 40))
@example(NINTH, NINTH, 40)
@example(Fraction(20), NINTH, 40)
def test_what_an_unseen_state_loses_is_rounded_up(state, release, releases):
    """To a hundred digits, and over many releases: a bound on the wrong side shows."""
    exact, odds, each = Fraction(0), state, precise(Decimal.exp, release)
    for _ in range(releases):
        one = precise(Decimal.exp, odds)
        more = logarithm((1 + one * each) / (one + each))
        exact, odds = exact + more, odds + more + release
    bound = unseen_loss(state, release, releases)
    assert exact <= bound <= min(exact + Fraction(1, 10**45), releases * release)


def test_releases_that_are_not_followed_cost_all_of_theirs(monkeypatch):
    two, five = (unseen_loss(Fraction(3), NINTH, releases) for releases in (2, 5))
    monkeypatch.setattr(losses, "_MOST_STEPS", 2)
    bound = unseen_loss.__wrapped__(Fraction(3), NINTH, 5)
    assert five < bound == two + 3 * NINTH < 5 * NINTH


@pytest.mark.long
@given(CHANCES, PARTS, st.integers(1, 40))
@example(randomised_response(NINTH), NINTH, 40)
def test_what_unseen_bits_lose_is_rounded_up(present, release, releases):
    bound = unseen_bits.__wrapped__(present, release, releases)
    each = precise(Decimal.exp, release)
    assert (bound is None) == (each > (present / (1 - present)) ** 2)
    if bound is not None:
        most = logarithm(1 - present + present * precise(Decimal.exp, releases * release))
        exact = most - releases * logarithm(present + (1 - present) * each)
        assert exact <= bound <= exact + Fraction(1, 10**45)


@pytest.mark.long
@given(PARTS, st.fractions(0, 1, max_denominator=10**6), st.fractions(0, 1, max_denominator=10**6))
def test_what_an_unseen_count_loses_is_rounded_up(release, one, other):
    fewest, most = sorted((one, other))
    each = precise(Decimal.exp, release)
    exact = max(
        logarithm((1 - most + most * each) / (1 - fewest + fewest * each)),
        logarithm((fewest + (1 - fewest) * each) / (most + (1 - most) * each)),
    )
    assert exact <= unseen_count.__wrapped__(fewest, most, release) <= exact + Fraction(1, 10**45)


# The safe side


def off_by(below, above):
    """Bounds of the exponential that are wider than they need to be, on one side or the other."""

    def bounds(exponent):
        least, most = exp_bounds(exponent)
        return least * below, most * above

    return bounds


@pytest.fixture(params=[(Fraction(9, 10), 1), (1, Fraction(10, 9))], ids=["below", "above"])
def wide(request, monkeypatch):
    """With all digits a bound and the other one are alike, so that no number tells them apart."""
    for module in (exact, loss_, losses):
        monkeypatch.setattr(module, "exp_bounds", off_by(*request.param))


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("release", [Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize("state", [Fraction(3, 4), Fraction(3)])
def test_whatever_rests_on_an_exponential_rests_on_its_safe_side(state, release):
    present = guarantee.randomised_response.__wrapped__(state)
    assert loss(present) <= state
    each, odds = precise(Decimal.exp, release), precise(Decimal.exp, state)
    unseen = guarantee.unseen_loss.__wrapped__(state, release)
    assert unseen >= logarithm((1 + odds * each) / (odds + each))
    assert guarantee.joint_loss.__wrapped__(present, release) >= joint(present, release)
    for releases in (1, 3):
        total = releases * joint_releases(present, release, releases)
        assert joint(present, total) <= release
    for fewest, most in [(Fraction(1, 9), Fraction(8, 9)), (Fraction(1, 2), 1 - GRID)]:
        exact = logarithm((1 - most + most * each) / (1 - fewest + fewest * each))
        assert unseen_count.__wrapped__(fewest, most, release) >= exact
    promise = pp.Guarantee(state, delta=Fraction(1, 10**6))
    assert promise.replace_delta >= promise.delta * (1 + odds)


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(("percent", "releases"), [(99, 1), (60, 10), (70, 3)])
def test_what_unseen_bits_lose_rests_on_the_safe_side_too(percent, releases):
    present = Fraction(percent, 100)
    release = Fraction(3, 2) * min(logarithm(present / (1 - present)), 1)
    release = release.limit_denominator(1_000)
    each = precise(Decimal.exp, release)
    bound = unseen_bits.__wrapped__(present, release, releases)
    assert bound is not None
    most = logarithm(1 - present + present * precise(Decimal.exp, releases * release))
    assert bound >= most - releases * logarithm(present + (1 - present) * each)


def test_what_is_proved_of_small_releases_is_used_where_these_are_surely_small(monkeypatch):
    monkeypatch.setattr(losses, "exp_bounds", lambda _: (Fraction(3), Fraction(5)))
    assert unseen_bits.__wrapped__(Fraction(2, 3), Fraction(1), 1) is None, (
        "5 is more than 2 times 2"
    )
    assert unseen_bits.__wrapped__(Fraction(3, 4), Fraction(1), 1) is not None


# Guarantee and Budget


def test_moving_updates_to_another_user_costs_twice_as_much():
    guarantee = pp.Guarantee(Fraction(3, 4))
    assert guarantee.replace == Fraction(3, 2)
    assert "epsilon 0.75 " in str(guarantee)
    assert "1.5 for replacing" in str(guarantee)


def test_a_budget_adds_up_looks_and_releases():
    budget = pp.Budget("0.2", 0.1)
    assert (budget.state, budget.release) == (Fraction(1, 5), Fraction(1, 10))
    assert budget.total(releases=3, intrusions=2) == Fraction(9, 10)


@pytest.mark.parametrize(("state", "release", "name"), [(0, 1, "state"), (1, -1, "release")])
def test_a_budget_names_the_part_that_is_wrong(state, release, name):
    with pytest.raises(pp.PlanError, match=f"^{name} must be a positive"):
        pp.Budget(state, release)


def test_several_programs_cover_what_each_of_them_does():
    one = pp.Guarantee(Fraction(1), 2, 3, rho=Fraction(1))
    other = pp.Guarantee(Fraction(2), 1, 5, rho=Fraction(1, 2), looks=False)
    for each in ([one, other], [other, one]):
        assert pp.Guarantee.of_all(each) == pp.Guarantee(
            Fraction(3), 1, 3, rho=Fraction(3, 2), looks=False
        )
    none = pp.Guarantee(Fraction(1))
    assert pp.Guarantee.of_all([none, one]) == pp.Guarantee(Fraction(2), 0, 3)
    for alone in (one, other, none):
        assert pp.Guarantee.of_all([alone]) == alone


# Ledger


SPENDING = st.lists(st.builds(Fraction, st.integers(1, 50), st.just(100)), max_size=20)


@given(SPENDING)
def test_an_account_never_spends_more_than_its_limit(amounts):
    account, spent = pp.Ledger(1).open(Fraction(1)), Fraction(0)
    for amount in amounts:
        if spent + amount <= 1:
            account.spend(amount)
            spent += amount
        else:
            with pytest.raises(pp.BudgetError):
                account.spend(amount)
        assert account.spent == spent <= account.limit


@given(SPENDING)
def test_accounts_never_get_more_than_the_ledger_has(limits):
    ledger, open_limits = pp.Ledger(1), Fraction(0)
    for limit in limits:
        if open_limits + limit <= 1:
            ledger.open(limit).spend(limit / 2)
            open_limits += limit
        else:
            with pytest.raises(pp.BudgetError):
                ledger.open(limit)
        assert ledger.available == 1 - open_limits
        assert ledger.spent == open_limits / 2 == 1 - ledger.remaining


def test_a_ledger_tells_what_is_left():
    ledger = pp.Ledger("0.3")
    ledger.open(Fraction(1, 5)).spend(Fraction(1, 10))
    assert repr(ledger) == "Ledger(total=0.3, spent=0.1, remaining=0.2)"
    assert ledger.available == Fraction(1, 10)


def test_a_refusal_says_how_much_is_left_and_what_to_do():
    ledger = pp.Ledger(1)
    account = ledger.open(Fraction(3, 4))
    account.spend(Fraction(1, 2))
    with pytest.raises(pp.BudgetError, match=r"epsilon 0\.5 and 0\.25 is left; .*releases="):
        account.spend(Fraction(1, 2))
    with pytest.raises(pp.BudgetError, match=r"epsilon 0\.25 available .* asks for 0\.5"):
        ledger.open(Fraction(1, 2))


# Numbers that are accepted, and refused


def test_a_minimum_is_included():
    pp.Density(universe=1, epsilon=1, intrusions=0)
    with pytest.raises(pp.PlanError, match=r"^intrusions must be a whole number of at least 0$"):
        pp.Density(universe=1, epsilon=1, intrusions=-1)


@pytest.mark.parametrize("amount", [0, -5, float("nan"), float("inf")])
def test_nothing_but_a_positive_amount_is_set_aside_or_spent(amount):
    ledger = pp.Ledger(1)
    account = ledger.open(Fraction(1, 2))
    with pytest.raises(pp.PlanError):
        ledger.open(amount)
    with pytest.raises(pp.PlanError):
        account.spend(amount)
    assert (ledger.available, ledger.spent) == (Fraction(1, 2), 0)


def test_statistics_of_many_threads_share_a_ledger_exactly():
    ledger, won = pp.Ledger(1), []

    def construct():
        with contextlib.suppress(pp.BudgetError):
            won.append(pp.Density(universe=8, epsilon=1, ledger=ledger))

    threads = [threading.Thread(target=copy_context().run, args=(construct,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert ledger.remaining == 1 - won[0].plan.split.budget.state


def test_a_ledger_and_an_account_are_changed_by_one_thread_at_a_time():
    ledger = pp.Ledger(1)
    account = ledger.open(Fraction(1, 2))
    for lock, change in [(account._lock, account.spend), (ledger._lock, ledger.open)]:
        thread = threading.Thread(target=change, args=(Fraction(1, 2),))
        with lock:
            thread.start()
            thread.join(0.02)
            assert thread.is_alive()
        thread.join()
    assert (ledger.available, ledger.spent) == (0, Fraction(1, 2))


def test_the_guarantee_names_the_intrusions_it_covers():
    statistic = pp.Density(universe=8, epsilon=1, intrusions=2)
    assert "2 announced intrusions" in str(statistic.guarantee)


def test_a_delta_is_told_rounded_up_and_doubled_with_what_epsilon_makes_of_it():
    promise = pp.Guarantee(Fraction(1), delta=Fraction(10001, 10**13))
    assert "epsilon 1 and delta 1.01e-9 for adding or removing one user" in str(promise)
    exact = promise.delta * (1 + Fraction(math.e))
    assert exact < promise.replace_delta < exact * (1 + Fraction(1, 10**15))
    assert "2 and delta 3.72e-9 for replacing one by another" in str(promise)
    assert "delta" not in str(pp.Guarantee(Fraction(1)))
    assert pp.Guarantee(Fraction(1)).replace_delta == 0
    assert pp.Guarantee(Fraction(10**6), delta=Fraction(1, 2)).replace_delta == 1


def test_rho_adjacency_and_conditions_are_told():
    promise = pp.Guarantee(
        Fraction(3), 1, 2, Fraction(1, 10**6), Fraction(1, 3), "device", ("coins are fair", "x")
    )
    text = str(promise)
    assert text.startswith("rho 0.333334, that is epsilon 3 and delta 0.000001 for adding")
    assert "one device" in text
    assert "one user" not in text
    assert "1 announced intrusion and one unannounced look" in text
    assert text.endswith("each further group costs them 1.5 and delta 5e-7 more; coins are fair; x")
    assert promise.replace == 6


@pytest.mark.long
@given(
    st.fractions(Fraction(1, 2), Fraction(999, 1000)),
    st.fractions(Fraction(1, 100), Fraction(3)),
    st.integers(1, 20),
    st.integers(0, 20),
)
def test_a_window_that_is_begun_again_costs_no_more_than_one(surest, release, before, after):
    """The releases of a table that was thrown away, and those of the one in its place."""
    apart = joint_loss(surest, before * release) + joint_loss(surest, after * release)
    together = joint_loss(surest, (before + after) * release)
    assert apart <= together * (1 + Fraction(1, 10**14))


# What is printed, and what follows from a guarantee


def test_a_ledger_rounds_what_it_allows_up_and_what_is_left_down():
    ledger = pp.Ledger("1/3")
    account = ledger.open(Fraction(1, 3))
    assert repr(ledger) == "Ledger(total=0.333334, spent=0, remaining=0.333333)"
    account.spend(Fraction(1, 9))
    assert repr(ledger) == "Ledger(total=0.333334, spent=0.111112, remaining=0.222222)"


@given(st.fractions(Fraction(1, 10**12), 10**18), st.integers(1, 8))
def test_what_is_shown_is_no_smaller_and_what_is_left_no_larger(number, digits):
    above, below = (
        Fraction(text.replace(",", ""))
        for text in (
            guarantee.format_rounded_up(number, digits),
            guarantee.format_rounded_down(number, digits),
        )
    )
    assert below <= number <= above <= below * (1 + 2 * Fraction(10, 10**digits))
    assert guarantee.float_below(number) <= number <= guarantee.float_above(number)


def test_losses_and_odds_are_written_in_as_many_digits_as_are_asked_for():
    third = guarantee.PrivacyLoss(Fraction(1, 3))
    assert (third.text(), third.text(3), str(third)) == ("0.333334", "0.334", "epsilon 0.333334")
    assert guarantee.PrivacyLoss(Fraction(0)).text(3) == "0"
    assert guarantee.PrivacyLoss(Fraction(1)).says_of_odds(3) == "a factor of 2.72"
    assert guarantee.PrivacyLoss(Fraction(10**6)).says_of_odds(3).endswith("too large to write")
    rarely = "a factor of 6.44, but for outcomes of probability 0.2"
    assert guarantee.PrivacyLoss(Fraction(1), Fraction(1, 10)).says_of_odds(3) == rarely


PROMISE = pp.Guarantee(Fraction(1), delta=Fraction(1, 10**9), unseen=Fraction(1, 25))


def test_a_year_of_contributions_is_a_year_of_intrusions():
    handed_out = PROMISE.contributed()
    assert PROMISE.over(365).epsilon == 1 + 364 * Fraction(1, 25)
    assert handed_out.over(365) == handed_out.over(365, seen=365)
    assert handed_out.over(365) == guarantee.PrivacyLoss(Fraction(365), Fraction(365, 10**9))
    assert "a contribution is the look at its window" in str(handed_out)


def test_where_no_look_is_covered_no_window_is_seen():
    tables = pp.Guarantee(Fraction(1), unseen=Fraction(1), looks=False)
    assert tables.over(365) == tables.over(365, seen=0)
    assert "365 windows of a year, where nobody sees the state, loses" in tables.says_of_year(
        86_400
    )
    with pytest.raises(pp.PlanError, match="covers no look at the state"):
        tables.over(365, seen=1)
    assert "365 windows of a year, one of them seen, loses" in PROMISE.says_of_year(86_400)
    always = pp.Guarantee(Fraction(1))
    assert "365 windows of a year, seen or not, loses" in always.says_of_year(86_400)


def test_an_event_is_in_one_window():
    event = pp.Guarantee(Fraction(1), adjacency="event")
    assert event.over(365, seen=3) == event.loss


def test_crashes_add_what_is_said():
    event = pp.Guarantee(Fraction(1), adjacency="event", crash=Fraction(2))
    assert event.crashed(3) == guarantee.PrivacyLoss(Fraction(7))
    assert str(event).endswith(
        "each crash after which an earlier state goes on adds up to epsilon 2"
    )
    assert PROMISE.crashed(3) == PROMISE.loss
    assert "crash" not in str(PROMISE)
    delayed = pp.Guarantee(Fraction(1), delta=Fraction(1, 10**9), crash=Fraction(1))
    assert delayed.crashed(2) == guarantee.PrivacyLoss(Fraction(3), Fraction(3, 10**9))
    assert "adds up to epsilon 1 and delta 1e-9" in str(delayed).replace("0.000000001", "1e-9")


def test_groups_and_comparisons_add_up():
    grouped = PROMISE.compared(guarantee.PrivacyLoss(Fraction(2), Fraction(1, 10**9))).in_groups(3)
    assert grouped.loss == guarantee.PrivacyLoss(Fraction(9), Fraction(6, 10**9))
    assert grouped.unseen == 3 * (2 + Fraction(1, 25))
    assert "each further group costs them 3 and delta 2e-9 more" in str(grouped).replace(
        "0.000000002", "2e-9"
    )


def test_a_crash_after_which_further_ones_are_free_is_told_as_that():
    once = pp.Guarantee(Fraction(1), crash=Fraction(1, 2), crash_again=Fraction(0))
    assert once.says_of_crashes().endswith("adds up to epsilon 0.5, and further ones add nothing")
    announced = pp.Guarantee(Fraction(1), 1, crash=Fraction(1, 2), crash_again=Fraction(0))
    assert "as much as the first where intrusions are announced" in announced.says_of_crashes()


def test_a_further_crash_may_add_less_than_the_first_one():
    event = pp.Guarantee(Fraction(1), adjacency="event", crash=Fraction(2), crash_again=Fraction(1))
    assert [event.crashed(n).epsilon for n in range(4)] == [1, 3, 4, 5]
    assert [event.crashed(n, announced=1).epsilon for n in range(4)] == [1, 3, 5, 6]
    assert event.crashed(3, announced=9).epsilon == 7
    twice = pp.Guarantee.of_all([event, event])
    assert twice.crashed(2).epsilon == event.in_groups(2).crashed(2).epsilon == 8
    assert (event.document()["crash"], event.document()["crash_again"]) == (2, 1)
    assert str(event).endswith(
        "the first crash after which an earlier state goes on adds up to epsilon 2, and each "
        "further one 1, or as much as the first where intrusions are announced"
    )


def test_a_delta_is_never_more_than_certain():
    often = pp.Guarantee(Fraction(1), delta=Fraction(1, 10))
    assert often.over(365).delta == 1
    assert often.over(365).odds is None
    assert often.loss.of_people(40).delta == 1


@pytest.mark.parametrize(("days", "windows"), [(1, 365), (7, 53), (400, 1), (30, 13)])
def test_a_year_has_no_fewer_windows_than_begin_in_it(days, windows):
    assert guarantee.windows_in_a_year(days * 86_400) == windows
    assert PROMISE.year(days * 86_400) == (windows, PROMISE.over(windows))


def test_a_document_has_every_bound_rounded_up():
    told = pp.Guarantee(Fraction(1, 3), delta=Fraction(1, 10**9), conditions=("c",)).document()
    assert told["epsilon"] > Fraction(1, 3)
    assert told["delta"] >= Fraction(1, 10**9)
    assert (told["adjacency"], told["conditions"]) == ("user", ["c"])


def test_windows_of_different_guarantees_lose_their_unseen_losses_and_the_dearest_look():
    small, large = pp.Guarantee(Fraction(1), unseen=Fraction(1, 4)), pp.Guarantee(Fraction(2))
    dear = pp.Guarantee(Fraction(3), unseen=Fraction(1))
    assert loss_over([small, large, dear]).epsilon == Fraction(1, 4) + 2 + 3
    assert loss_over([small]) == small.loss
    for windows in 2, 5:
        assert loss_over([dear] * windows).epsilon == 3 + (windows - 1) * 3 - 2 * (windows - 1)
        assert loss_over([dear] * windows) == dear.over(windows)
    assert loss_over([dear, small, dear], [[0, 2], [1]]) == dear.loss.times(2) + small.unseen_loss
