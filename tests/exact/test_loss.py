"""The audit itself: its products hold, its controls are caught, and it is not fooled."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import ANNOUNCE, RELEASE, EnumeratedCoins, exact_loss, worst_loss
from panprivacy.audit.neighbours import add_remove, pairs, short_streams

# It is not fooled


def bits(coins, universe=1):
    return pp.Density(universe=universe, epsilon=1, coins=coins)


class Wrapper:
    def __init__(self, coins):
        self._inner = bits(coins)

    def update(self, users, deltas=None):
        self._inner.update(users)

    def release(self):
        return self._inner.release()

    def state(self):
        return self._inner.state()


class HiddenMemory(Wrapper):
    """What the state does not show comes out with the next answer."""

    def __init__(self, coins):
        super().__init__(coins)
        self._came = False

    def update(self, users, deltas=None):
        super().update(users)
        self._came |= bool(users)

    def release(self):
        answer = self._inner.release()
        return Shown(answer.counts, self._came)


class Shown:
    def __init__(self, counts, more):
        self.counts, self.more = counts, more


def test_what_is_hidden_from_the_state_is_found_in_the_answer():
    hidden = [[0], RELEASE], [[], RELEASE]
    loss = exact_loss(HiddenMemory, *hidden)
    assert loss.epsilon == math.inf
    assert exact_loss(HiddenMemory, [[0]], [[]]).within(1), "the state does not show it"


class InClosure(Wrapper):
    """The same, kept where no attribute is."""

    def __init__(self, coins):
        super().__init__(coins)
        rows = 0

        def update(users, deltas=None):
            nonlocal rows
            rows += len(users)
            self._inner.update(users)

        self.update = update
        self.release = lambda: Shown(self._inner.release().counts, rows)


def test_what_a_closure_keeps_is_found_too():
    assert exact_loss(InClosure, [[0], RELEASE], [[], RELEASE]).epsilon == math.inf


def test_answers_that_far_noise_reaches_are_set_aside():
    loss = exact_loss(bits, [[0], RELEASE], [[], RELEASE])
    assert 0 < loss.set_aside < Fraction(1, 10)
    assert "were set aside" in str(loss)


class Odd(Wrapper):
    """A program that the audit cannot compare, so that it has to say so."""

    seen: ClassVar[list[object]] = []

    def __init__(self, coins):
        super().__init__(coins)
        self._coins = coins


class Clipped(Odd):
    def release(self):
        return Shown((max(self._inner.release().counts[0], 0),), None)


class Truncated(Odd):
    """The ends of the noise tell the count, and any further noise leads there."""

    def release(self):
        noise = int(self._coins.discrete_laplace(Fraction(1), 1)[0])
        return Shown((self.state()[-1] + max(-2, min(2, noise)),), None)


class Rounded(Odd):
    def release(self):
        return Shown((5 * (self._inner.release().counts[0] // 5),), None)


class TwoNoises(Odd):
    def release(self):
        noise = self._coins.discrete_laplace(Fraction(1), 1)
        return Shown((self._inner.release().counts[0] + int(noise[0]),), None)


class Gaussian(Odd):
    def release(self):
        noise = self._coins.discrete_gaussian(Fraction(100), 1)
        return Shown((self.state()[-1] + int(noise[0]),), None)


class DrawsInState(Odd):
    def state(self):
        return super().state() + self._coins.bernoulli(Fraction(1, 2), 1).tobytes()


class InAClassVariable(Odd):
    def update(self, users, deltas=None):
        super().update(users)
        self.seen.extend(users)

    def release(self):
        return Shown(self._inner.release().counts, len(self.seen))


class AGeneratorOfItsOwn(Odd):
    def update(self, users, deltas=None):
        if users:
            self.drawn = np.random.default_rng().random()


class NoCounts(Odd):
    def release(self):
        return 7


class Quarters(Odd):
    def release(self):
        return Shown((self._inner.release().counts[0] / 4,), None)


class ArrayState(Odd):
    def state(self):
        return np.zeros(1)


ODD = {
    Clipped: "noise must be added to whole numbers",
    Truncated: "noise must be added to whole numbers",
    Rounded: "noise must be added to whole numbers",
    TwoNoises: "noise must be added to whole numbers",
    Gaussian: "Gaussian noise has no finite loss",
    DrawsInState: "comes out otherwise although its coins fall as before",
    InAClassVariable: "something of the rows is left in the variable tests.exact.test_loss.Odd",
    AGeneratorOfItsOwn: "comes out otherwise although its coins fall as before",
    NoCounts: "must have `counts`",
    Quarters: "must have `counts`",
    ArrayState: "must return bytes, not ndarray",
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[pytest.mark.traces, pytest.mark.long])
        if kind is InAClassVariable
        else kind
        for kind in ODD
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(kind):
    Odd.seen.clear()
    with pytest.raises(pp.PlanError, match=ODD[kind]):
        exact_loss(kind, [[0], [0], RELEASE], [[], [0], RELEASE])


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ([7], "a stream is a list of steps"),
        (["relase"], "not 'relase'"),
        ([[0, (1, 1)]], "all users, or all pairs"),
    ],
)
def test_streams_that_are_none_are_refused(stream, message):
    with pytest.raises(pp.PlanError, match=message):
        exact_loss(bits, stream, stream)


class ArrayCounts(Wrapper):
    def release(self):
        return Shown(np.array(self._inner.release().counts), None)


def test_counts_may_be_arrays():
    pair = [[0], RELEASE], [[], RELEASE]
    assert float(exact_loss(ArrayCounts, *pair)) == float(exact_loss(bits, *pair))


def test_batches_may_be_arrays():
    loss = exact_loss(bits, [np.array([0])], [np.array([], int)])
    assert float(loss) == float(exact_loss(bits, [[0]], [[]]))


class Named(HiddenMemory):
    """Two answers with the same counts, one of which names a user."""

    def release(self):
        return PublicOutputs(self._inner.release().counts, "ada" if self._came else "nobody")


@dataclasses.dataclass(frozen=True)
class PublicOutputs:
    counts: tuple[int, ...]
    who: str


def test_words_show_what_tells_beyond_the_counts():
    loss = exact_loss(Named, [[0], RELEASE], [[], RELEASE])
    assert float(loss) == math.inf
    assert "who='ada'" in str(loss) or "who='nobody'" in str(loss)


class Tally(Wrapper):
    """An exact count that nobody sees, and noise of scale 1 on it when it is asked for."""

    def __init__(self, coins):
        super().__init__(coins)
        self._coins, self._count = coins, 0

    def update(self, users, deltas=None):
        self._count += len(users)

    def state(self):
        return b""

    def release(self):
        return Shown((self._count + int(self._coins.discrete_laplace(Fraction(1), 1)[0]),), None)


def test_the_loss_of_one_noise_is_its_epsilon():
    loss = exact_loss(Tally, [[0], RELEASE], [[], RELEASE])
    assert float(loss) == pytest.approx(1, rel=1e-12)
    assert "a state that holds nothing" in str(loss).replace("the state that", "a state that")


def test_a_look_right_after_an_announcement_is_tried():
    make = lambda coins: pp.Density(universe=1, epsilon=1, intrusions=1, coins=coins)  # noqa: E731
    loss = exact_loss(make, [[0], ANNOUNCE], [[], ANNOUNCE])
    state = make(None).plan.split.budget.state
    assert float(loss) == pytest.approx(float(state), rel=1e-6)


def brute_force(make, stream, neighbour, coins):
    """The worst ratio of a whole view, every outcome walked from the start, nothing merged."""
    laws = [{}, {}]
    for law, steps in zip(laws, (stream, neighbour), strict=True):
        for _ in coins:
            statistic = make(coins)
            views, released = [statistic.state()], []
            for step in steps:
                if step == RELEASE:
                    released.append(statistic.release().counts)
                else:
                    statistic.update(step)
                views.append(statistic.state())
            for time, state in enumerate(views):
                mass, far = law.get((time, state, *released), (Fraction(0), False))
                law[time, state, *released] = mass + coins.probability, far or coins.far
    shared = [view for view in laws[0] if not laws[0][view][1] and not laws[1][view][1]]
    return max(max(r, 1 / r) for r in (laws[0][v][0] / laws[1][v][0] for v in shared))


@pytest.mark.long
@pytest.mark.parametrize(
    ("stream", "neighbour"),
    [
        ([[0], RELEASE, [0]], [[], RELEASE, []]),
        ([RELEASE, [0, 1], RELEASE], [RELEASE, [1], RELEASE]),
    ],
)
def test_merging_changes_nothing(stream, neighbour):
    coins = EnumeratedCoins(tail=2)
    make = lambda coins: pp.Density(universe=2, epsilon=1, releases=2, coins=coins)  # noqa: E731
    loss = exact_loss(make, stream, neighbour, coins=EnumeratedCoins(tail=2))
    smaller, larger = sorted(loss.probabilities)
    assert larger / smaller == brute_force(make, stream, neighbour, coins)


def test_the_worst_of_several_pairs_is_the_worst_of_each():
    tried = list(pairs(short_streams([[0], [1]], 2), lambda stream: add_remove(stream, 0)))
    make = lambda coins: bits(coins, 2)  # noqa: E731
    worst = worst_loss(make, tried)
    assert float(worst) == max(float(exact_loss(make, *pair)) for pair in tried)


def test_nothing_to_compare_is_refused():
    with pytest.raises(ValueError, match="no pairs"):
        worst_loss(bits, [])


def test_a_loss_says_what_attains_it():
    words = str(exact_loss(bits, [[0], RELEASE], [[], RELEASE]))
    assert "reads the state …0" in words
    assert "is told (" in words
    assert "after [0] release" in words
    assert "after [] release" in words
    announced = exact_loss(
        lambda coins: pp.Density(universe=1, epsilon=1, intrusions=1, coins=coins),
        [[0], ANNOUNCE, [0]],
        [[], ANNOUNCE, []],
    )
    assert "read the state …0" in str(announced)


# Streams


# The command
