"""Counters lose no more than they claim, on every outcome of every coin."""

from __future__ import annotations

from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.audit import ANNOUNCE, RELEASE, EnumeratedCoins, exact_loss
from panprivacy.statistics.incidence.decoder import SharedModel
from panprivacy.statistics.incidence.strain import SharedSpectrum

LARGE = pp.Budget(state=1, release=Fraction(3, 2))
"""Output noise of a small scale, so that few outcomes are many of all."""


class Named:
    """An incidence count whose releases name statistics, read off a histogram once intruded on."""

    def __init__(self, coins, questions, **arguments):
        self._inner = pp.Incidence(coins=coins, **arguments)
        self._questions, self._intrusions = questions, 0

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def release(self):
        answer = self._inner.release(**self._questions)
        histogram = len(answer.counts) == self.plan.law.modulus
        assert histogram == bool(self._intrusions), "named counts and histograms are mixed up"
        return answer

    def announce_intrusion(self):
        self._inner.announce_intrusion()
        self._intrusions += 1


def named(modulus, questions, universe=1, budget=LARGE, releases=1, intrusions=0, **arguments):
    total = budget.total(releases=releases, intrusions=intrusions)
    law = pp.Law.flat(modulus, budget.state)
    return lambda coins: Named(
        coins,
        questions,
        law=law,
        epsilon=total,
        budget=budget,
        releases=releases,
        intrusions=intrusions,
        **{"universe": universe, "bound": modulus - 1, **arguments},
    )


def whole(law=None, universe=1, budget=LARGE, releases=1, intrusions=0, **arguments):
    noise = law or pp.Law.flat(3, budget.state)
    return lambda coins: pp.Incidence(
        coins=coins,
        universe=universe,
        bound=noise.modulus - 1,
        law=noise,
        epsilon=budget.total(releases=releases, intrusions=intrusions),
        budget=budget,
        releases=releases,
        intrusions=intrusions,
        **arguments,
    )


HISTORIES = {
    "appears once": ([[0]], [[]]),
    "appears again and again": ([[0, 0], [0]], [[], []]),
    "comes and goes": ([[(0, 1)], [(0, -1)], [(0, 2)]], [[], [], []]),
    "appears once less": ([[0], [0]], [[0], []]),
    "appears before and after a release": ([[0], RELEASE, [0]], [[], RELEASE, []]),
    "comes and goes around a release": ([[(0, 2)], RELEASE, [(0, -1)]], [[], RELEASE, []]),
    "appears after a release": ([[], RELEASE, [(0, 2)]], [[], RELEASE, []]),
}


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("modulus", [3, 7, 11])
def test_a_named_count_keeps_its_claim(history, modulus):
    stream, neighbour = HISTORIES[history]
    loss = exact_loss(named(modulus, {"exactly": (1,)}), stream, neighbour)
    assert loss.within(LARGE.total(releases=1, intrusions=0))
    assert loss.set_aside < Fraction(1, 100)


@pytest.mark.long
@pytest.mark.parametrize(
    ("questions", "tail"),
    [
        ({"at_least": (2,)}, 4),
        ({"cropped_sum": (2,)}, 4),
        ({"cropped_moment": (3, 2)}, 40),
        ({"distinct": True}, 4),
        ({"exactly": (0, 2)}, 4),
    ],
    ids=str,
)
def test_every_kind_of_named_count_keeps_its_claim(questions, tail):
    stream, neighbour = [[(0, 1)], RELEASE, [(0, 1)]], [[], RELEASE, []]
    loss = exact_loss(named(7, questions), stream, neighbour, coins=EnumeratedCoins(tail=tail))
    assert loss.within(LARGE.total(releases=1, intrusions=0))
    assert loss.set_aside < Fraction(1, 2)


@pytest.mark.long
def test_two_named_releases_keep_their_claim():
    stream = [[0], RELEASE, [(0, 2)], RELEASE]
    make = named(7, {"exactly": (1,)}, releases=2)
    loss = exact_loss(make, stream, [[], RELEASE, [], RELEASE])
    assert loss.within(LARGE.total(releases=2, intrusions=0))
    assert loss.set_aside < Fraction(1, 100)


@pytest.mark.parametrize("user", range(3))
def test_a_named_count_of_signed_states_in_a_sample_keeps_its_claim(user):
    stream, neighbour = [[(user, -2)], RELEASE, [(user, 1)]], [[], RELEASE, []]
    make = named(3, {"exactly": (-1,)}, universe=3, cells=2, bound=1, signed=True)
    loss = exact_loss(make, stream, neighbour)
    assert loss.within(LARGE.total(releases=1, intrusions=0))


@pytest.mark.long
@pytest.mark.parametrize("history", HISTORIES)
def test_a_histogram_keeps_its_claim(history):
    stream, neighbour = HISTORIES[history]
    loss = exact_loss(whole(), stream, neighbour, coins=EnumeratedCoins(tail=2))
    assert loss.within(LARGE.total(releases=1, intrusions=0))
    assert loss.set_aside < Fraction(9, 10)


@pytest.mark.long
@pytest.mark.parametrize("halves", [(1,), (1, 1), (3, 1)], ids=str)
def test_amounts_keep_the_claim(halves):
    """Amounts of half a unit, or of three halves, which a coin each rounds."""
    stream = [[(0, amount)] for amount in halves]
    make = named(3, {"exactly": (1,)}, unit=2)
    loss = exact_loss(make, stream, [[] for _ in halves], coins=EnumeratedCoins(tail=4))
    assert loss.within(LARGE.total(releases=1, intrusions=0))
    assert loss.set_aside < Fraction(1, 2)
    assert float(loss) > 0


@pytest.mark.long
def test_two_histograms_keep_their_claim():
    stream = [[0], RELEASE, [0], RELEASE]
    make = whole(releases=2, budget=pp.Budget(state=1, release=3))
    loss = exact_loss(make, stream, [[], RELEASE, [], RELEASE], coins=EnumeratedCoins(tail=1))
    assert loss.within(7)
    assert loss.set_aside < Fraction(9, 10)


@pytest.mark.long
@pytest.mark.parametrize("users", [[5, 6], [5, 5, 7]])
def test_hashed_counters_that_users_share_keep_their_claim(users, monkeypatch):
    """Two counters are too few to be read; what is published is the same."""
    monkeypatch.setattr(SharedSpectrum, "is_readable", lambda *_: True)
    monkeypatch.setattr(SharedModel, "is_full", lambda *_: False)
    others = [user for user in users if user != 5]
    make = whole(universe=None, cells=2, budget=pp.Budget(state=1, release=3))
    stream, neighbour = [users, RELEASE, [5]], [others, RELEASE, []]
    loss = exact_loss(make, stream, neighbour, coins=EnumeratedCoins(tail=2))
    assert loss.within(4)
    assert loss.set_aside < Fraction(9, 10)


BEFORE, AFTER, BOTH = "before", "after", "before and after"
INTRUDED = {
    BEFORE: ([[0], RELEASE, [0], ANNOUNCE, [(0, 1)]], [[], RELEASE, [], ANNOUNCE, []]),
    AFTER: ([[(0, 2)], ANNOUNCE, [(0, -1)], RELEASE], [[], ANNOUNCE, [], RELEASE]),
    BOTH: ([[0], RELEASE, ANNOUNCE, [0], RELEASE], [[], RELEASE, ANNOUNCE, [], RELEASE]),
}
"""Releases before and after an announced intrusion."""


@pytest.mark.parametrize("intrusions", [1, 2])
def test_counters_keep_their_claim_after_announced_intrusions(intrusions):
    stream = [[0], *[ANNOUNCE, [(0, 1)]] * intrusions]
    neighbour = [[], *[ANNOUNCE, []] * intrusions]
    budget = pp.Budget(state=Fraction(1, 2), release=1)
    loss = exact_loss(whole(budget=budget, intrusions=intrusions), stream, neighbour)
    assert loss.within((intrusions + 1) * Fraction(1, 2))


@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_histograms_around_an_announced_intrusion_keep_their_claim(when):
    budget = pp.Budget(state=Fraction(1, 2), release=3)
    make, coins = whole(budget=budget, intrusions=1), EnumeratedCoins(tail=1)
    loss = exact_loss(make, *INTRUDED[when], coins=coins)
    assert loss.within(budget.total(releases=1, intrusions=1))
    assert loss.set_aside < Fraction(9, 10)


@pytest.mark.parametrize("modulus", [3, 7])
def test_a_named_count_before_an_announced_intrusion_keeps_its_claim(modulus):
    make = named(modulus, {"exactly": (1,)}, intrusions=1)
    loss = exact_loss(make, *INTRUDED[BEFORE])
    assert loss.within(LARGE.total(releases=1, intrusions=1))
    assert loss.set_aside < Fraction(1, 100)


@pytest.mark.long
def test_a_named_count_and_a_histogram_around_an_announced_intrusion_keep_their_claim():
    budget = pp.Budget(state=1, release=3)
    make = named(3, {"exactly": (1,)}, budget=budget, releases=2, intrusions=1)
    loss = exact_loss(make, *INTRUDED[BOTH], coins=EnumeratedCoins(tail=1))
    assert loss.within(budget.total(releases=2, intrusions=1))
    assert loss.set_aside < Fraction(9, 10)


LAWS = [
    (pp.Law.flat(7, 1), 1),
    (pp.Law.geometric(3, 1), 1),
    (pp.Law.of([4, 1, 2]), Fraction("1.387")),
    (pp.Law.of([9, 1, 2, 5]), Fraction("2.198")),
]
"""Laws, and a little more than what each of them loses."""


@pytest.mark.parametrize(("law", "state"), LAWS, ids=repr)
def test_the_state_of_a_counter_spends_all_that_its_law_loses(law, state):
    budget = pp.Budget(state=state, release=3)
    streams = [[[(0, delta)]] for delta in range(1, law.modulus)]
    losses = [exact_loss(whole(law, budget=budget), stream, [[]]) for stream in streams]
    assert all(loss.within(state) for loss in losses)
    assert max(map(float, losses)) == pytest.approx(law.loss, abs=1e-9)
    assert law.loss == pytest.approx(float(state), abs=1e-3)


@pytest.mark.long
@pytest.mark.parametrize(("law", "state"), LAWS[1:], ids=repr)
@pytest.mark.parametrize(
    "history", ["comes and goes around a release", "appears after a release", "comes and goes"]
)
def test_a_histogram_of_any_law_keeps_its_claim(law, state, history):
    budget = pp.Budget(state=state, release=3)
    loss = exact_loss(whole(law, budget=budget), *HISTORIES[history], coins=EnumeratedCoins(tail=1))
    assert loss.within(budget.total(releases=1, intrusions=0))
    assert loss.set_aside < Fraction(9, 10)


@pytest.mark.parametrize(("law", "state"), LAWS[1:3], ids=repr)
@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_a_histogram_of_any_law_keeps_its_claim_around_an_announced_intrusion(law, state, when):
    budget = pp.Budget(state=state, release=3)
    make, coins = whole(law, budget=budget, intrusions=1), EnumeratedCoins(tail=1)
    loss = exact_loss(make, *INTRUDED[when], coins=coins)
    assert loss.within(budget.total(releases=1, intrusions=1))
    assert loss.set_aside < Fraction(9, 10)


def net(**arguments):
    plan = {"epsilon": 1, "expected": (1, 4), "memory": 2, "deletions": True, "bound": 2}
    return lambda coins: pp.DistinctCount(coins=coins, **{**plan, **arguments})


NET = [
    ([[(5, 1)], [(5, -1)], [(5, 2)]], [[], [], []]),
    ([[(5, 1), (6, 1)], [(5, -1)]], [[(6, 1)], []]),
    ([[(5, 1)], RELEASE, [(5, -1)]], [[], RELEASE, []]),
    ([[(5, 2), (6, 1)], RELEASE, [(5, -2)]], [[(6, 1)], RELEASE, []]),
]
NET_INTRUDED = [
    ([[(5, 1)], ANNOUNCE, [(5, -1)]], [[], ANNOUNCE, []]),
    ([[(5, 1)], RELEASE, [(5, -1)], ANNOUNCE, [(5, 1)]], [[], RELEASE, [], ANNOUNCE, []]),
    ([[(5, 1), (6, 1)], ANNOUNCE, [(5, -1)], RELEASE], [[(6, 1)], ANNOUNCE, [], RELEASE]),
    ([[(5, 2)], RELEASE, ANNOUNCE, [(5, -1)], RELEASE], [[], RELEASE, ANNOUNCE, [], RELEASE]),
]


def bounded(histories):
    """Each history with every bound that its deltas keep to."""

    def largest(stream):
        return max(abs(delta) for step in stream if isinstance(step, list) for _, delta in step)

    return [(bound, *pair) for bound in (1, 2) for pair in histories if largest(pair[0]) <= bound]


@pytest.mark.parametrize(("bound", "stream", "neighbour"), bounded(NET))
def test_a_distinct_count_with_deletions_keeps_its_claim(bound, stream, neighbour):
    budget = pp.Budget(state=1, release=3)
    make = net(bound=bound, epsilon=4, budget=budget)
    loss = exact_loss(make, stream, neighbour, coins=EnumeratedCoins(tail=3))
    assert loss.within(4)
    assert loss.set_aside < Fraction(1, 2)


@pytest.mark.parametrize(("bound", "stream", "neighbour"), bounded(NET_INTRUDED))
def test_a_distinct_count_with_deletions_keeps_its_claim_after_an_announced_intrusion(
    bound, stream, neighbour
):
    budget, releases = pp.Budget(state=1, release=3), max(stream.count(RELEASE), 1)
    claimed = budget.total(releases=stream.count(RELEASE), intrusions=1)
    planned = {"releases": releases, "intrusions": 1, "budget": budget}
    make = net(bound=bound, epsilon=budget.total(releases=releases, intrusions=1), **planned)
    loss = exact_loss(make, stream, neighbour, coins=EnumeratedCoins(tail=3))
    assert loss.within(claimed)
    assert loss.set_aside < Fraction(1, 2)


def test_a_law_that_loses_more_than_the_state_may_is_refused():
    with pytest.raises(pp.PlanError, match="loss"):
        pp.Incidence(universe=1, bound=2, law=pp.Law.flat(3, 2), epsilon=1)
