"""The loss at a delta, of whole views and of one look, against what is worked out by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import pytest

from panprivacy.audit import ANNOUNCE, RELEASE, EnumeratedCoins
from panprivacy.audit.exact.approximate import OneLook, WholeViews

QUARTER = Fraction(1, 4)
CAME, NOBODY = [[0], RELEASE], [[], RELEASE]


class Response:
    """A bit that is right three times of four."""

    def __init__(self, coins, lies=QUARTER):
        self.coins, self.lies = coins, lies
        self.bit = int(coins.bernoulli(lies, 1)[0])

    def update(self, users):
        if 0 in users:
            self.bit = 1 - int(self.coins.bernoulli(self.lies, 1)[0])

    def release(self):
        return SimpleNamespace(counts=(self.bit,))

    def announce_intrusion(self):
        pass

    def state(self):
        return bytes([self.bit])


class Released(Response):
    """Its state is not seen."""

    def state(self):
        return b""


@pytest.mark.parametrize("walk", [WholeViews, OneLook])
@pytest.mark.parametrize(
    ("delta", "ratio"),
    [(Fraction(0), 3), (Fraction(1, 8), Fraction(5, 2)), (QUARTER, 2), (QUARTER * 2, 1)],
)
def test_delta_is_taken_from_the_likelier_side(walk, delta, ratio):
    coins = EnumeratedCoins()
    loss = walk(Released, coins).worst([(CAME, NOBODY)], claimed=Fraction(0), delta=delta)
    assert loss.epsilon == pytest.approx(math.log(ratio))


@pytest.mark.parametrize("walk", [WholeViews, OneLook])
def test_what_one_stream_alone_shows_has_no_finite_loss_until_delta_covers_it(walk):
    def certain(coins):
        return Response(coins, Fraction(0))

    views = walk(certain, EnumeratedCoins())
    pairs = [(CAME[:1], NOBODY[:1])]
    told = [views.worst(pairs, claimed=Fraction(1), delta=delta) for delta in map(Fraction, (0, 1))]
    assert [one.epsilon for one in told] == [math.inf, 0]


def test_whole_views_add_up_states_before_and_after():
    """Who sees the state of birth beside a fresh answer knows both."""
    views = WholeViews(Response, EnumeratedCoins())
    law = views._law(CAME)
    assert sum(law.values()) == 1
    assert {len(view) for view in law} == {len(CAME) + 1 + 1}
    assert law[b"\x00", b"\x01", (1,), b"\x01"] == Fraction(3, 4) ** 2


def test_one_look_is_at_one_state_and_all_answers():
    look = OneLook(Response, EnumeratedCoins())
    assert {len(view) for view in look._law(CAME, 1)} == {2}
    assert look._law(CAME, 0)[b"\x00", (1,)] == Fraction(3, 4) ** 2
    assert look._law([[0], ANNOUNCE, RELEASE], 3)[b"\x01", (1,), b"\x01"] == Fraction(3, 4)


def test_no_look_comes_before_an_announced_one():
    look = OneLook(Released, EnumeratedCoins())
    stream, neighbour = [[0], ANNOUNCE, RELEASE], [[], ANNOUNCE, RELEASE]
    loss = look.worst([(stream, neighbour)], claimed=Fraction(0), delta=Fraction(0))
    assert loss.after_step >= 2
    assert loss.epsilon == pytest.approx(math.log(3))


@pytest.mark.parametrize("walk", [WholeViews, OneLook])
def test_the_worst_pair_is_told_in_either_order(walk):
    pairs = [(NOBODY, NOBODY), (NOBODY, CAME)]
    loss = walk(Released, EnumeratedCoins()).worst(pairs, claimed=Fraction(0), delta=Fraction(0))
    assert loss.epsilon == pytest.approx(math.log(3))
    assert {repr(loss.stream), repr(loss.neighbour)} == {repr(CAME), repr(NOBODY)}
