"""What a running distinct count loses: the joint law of bits, sums and all answers.

Which bits are drawn, and what they add to which sum, is what the shipping class does with coins
that are told what to show, and no noise. The laws of bits and noise come on top of that, in
floating point; nothing is set aside but what lies beyond the grid.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit.streams import ANNOUNCE, RELEASE
from panprivacy.audit.suite.products import products
from panprivacy.privacy.guarantee import exp_bounds, randomised_response
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.running.distinct import RunningDistinctSizes, sum_epsilon
from panprivacy.statistics.running.stepwise.counted import EventBits
from panprivacy.tables.counters.mechanism import Silent

STEPS = 3
GRID = np.arange(-12, 13)
LOOK, KEEP, RESUME = "look", "keep", "resume"


class TinySizes(RunningDistinctSizes, frozen=True, tag="one-bit"):
    def plan(self, request):
        return replace(super().plan(request), levels=1, cells_per_level=1)


class OneBit(pp.RunningDistinct):
    """All users share one bit."""

    entry = CatalogueEntry(TinySizes)


class PublicOutputs(Silent):
    """Coins that show what they are told, remember how likely that was, and draw no noise."""

    def __init__(self, bits):
        self.bits, self.probability = list(bits), 1.0

    def bernoulli(self, probability, size):
        shown = np.array([self.bits.pop(0) for _ in range(size)], np.uint8)
        for one in shown:
            self.probability *= float(probability if one else 1 - probability)
        return shown


def life(stream, bits, epsilon):
    """One run without noise: how likely it is, what each look finds, and what each node shows.

    Returns:
        A probability; the bit at each look; and for each step the numbers that are seen of its
        node, one after another: at looks while it is open, and as it leaves.
    """
    coins = PublicOutputs(bits)
    count = one_bit(stream, epsilon, coins)
    found, nodes = [], [[] for _ in range(stream.count(RELEASE))]
    for part in stream:
        if part == RELEASE:
            nodes[count.releases].append(count.release().counts[0])
        elif part == KEEP:
            kept = count.state()
        elif part == RESUME:
            count, released = one_bit(stream, epsilon, PublicOutputs([0])), count.releases
            count.internals.memory.coins = coins
            count.resume(kept, released=released)
        elif part in {LOOK, ANNOUNCE}:
            cells, state = count.plan.table, count.internals.memory.now
            (ones,) = cells.sums(state.table, state.tick, coins)
            found.append(int(cells.ones(state.table)[0]))
            nodes[count.releases].append(int(ones._memory.cells[0]))
            if part == ANNOUNCE:
                count.announce_intrusion()
        else:
            count.update([0] * part)
    assert not coins.bits
    return coins.probability, tuple(found), nodes


def one_bit(stream, epsilon, coins=None):
    steps, looks = stream.count(RELEASE), stream.count(ANNOUNCE)
    sizes = {"horizon": steps, "expected": 1, "memory": 1}
    return OneBit(**sizes, epsilon=epsilon, intrusions=looks, coins=coins)


def laplace(scale):
    """The law of discrete Laplace noise of a scale, on a wider grid."""
    weights = np.exp(-np.abs(np.arange(-120, 121)) / float(scale))
    return weights / weights.sum()


def shifted(law, by):
    """The law of noise, and what it is added to, on the grid."""
    middle = len(law) // 2
    return law[middle - by + GRID[0] : middle - by + GRID[-1] + 1]


def of_node(noise, seen):
    """The joint law of what is seen of a node: each time there is more noise on what was seen.

    At a look it is that of birth, or of the announcement before; as it leaves that of leaving.
    """
    if len(seen) == 1:
        return shifted(np.convolve(noise, noise, "same"), seen[0])
    law = shifted(noise, seen[0])
    for before, after in itertools.pairwise(seen):
        further = np.array([shifted(noise, int(cell) + after - before) for cell in GRID])
        law = law[..., None] * further
    return law


def joint_law(stream, epsilon):
    """Of the bit at each look, and of all that is seen of sums: by bits, then a grid for each."""
    plan = one_bit(stream, epsilon).plan
    draws = 1 + sum(part == ANNOUNCE or part in range(1, 9) for part in stream)
    laws = {}
    for bits in itertools.product([0, 1], repeat=draws):
        probability, found, nodes = life(stream, bits, epsilon)
        law = np.array(probability)
        for step, seen in enumerate(nodes):
            (scale,) = plan.tree.scales(step)
            law = np.multiply.outer(law, of_node(laplace(scale), seen))
        laws[found] = laws.get(found, 0) + law
    return laws


def stream_of(events, look):
    """Steps, each with so many events and its release, and a look after the events of one."""
    each = [[event, LOOK] if step == look else [event] for step, event in enumerate(events)]
    return [part for step in each for part in (*step, RELEASE)]


def without(stream, *places):
    """The neighbour that lacks an event, wherever it was sent."""
    return [part - 1 if at in places else part for at, part in enumerate(stream)]


def loss(stream, places, epsilon):
    """The largest ratio of the laws of a stream and its neighbour, in nats.

    What is rarer than rounding errors is left out.
    """
    laws = joint_law(stream, epsilon), joint_law(without(stream, *places), epsilon)
    found = []
    for bits in laws[0]:
        one, other = (each[bits] for each in laws)
        likely = (one > 1e-12) & (other > 1e-12)
        found.append(float(np.abs(np.log(one[likely] / other[likely])).max()))
    return max(found)


def events_of(stream):
    return [place for place, part in enumerate(stream) if part in range(1, 9)]


def worst(streams, epsilon):
    return max(loss(each, [place], epsilon) for each in streams for place in events_of(each))


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)], ids=str)
def test_no_event_costs_more_than_epsilon_whoever_looks_when(epsilon):
    streams = [
        stream_of(events, look)
        for events in itertools.product([0, 1], repeat=STEPS)
        for look in range(STEPS)
    ]
    found = worst(streams, epsilon)
    assert found < float(epsilon) * (1 + 1e-9)
    assert found > 0.92 * float(epsilon), "the claim is no larger than it has to be"


ANNOUNCED = [
    [1, ANNOUNCE, 1, LOOK, RELEASE, 1, RELEASE],
    [0, ANNOUNCE, 1, RELEASE, 0, LOOK, RELEASE],
    [1, RELEASE, 1, ANNOUNCE, 1, LOOK, RELEASE],
    [1, ANNOUNCE, RELEASE, 1, LOOK, RELEASE],
]


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)], ids=str)
def test_a_look_that_is_announced_costs_nothing_more(epsilon):
    assert worst(ANNOUNCED, epsilon) < float(epsilon)


CRASHED = [
    ([KEEP, 1, LOOK, RESUME, 0, RELEASE, 1, RELEASE], [1]),
    ([KEEP, 1, LOOK, RESUME, 0, RELEASE, 1, RELEASE], [1, 6]),
    ([KEEP, 1, RELEASE, LOOK, RESUME, 1, RELEASE], [1, 5]),
    ([1, RELEASE, KEEP, 1, LOOK, RESUME, 0, RELEASE], [3]),
    ([1, KEEP, 1, LOOK, RESUME, 1, RELEASE], [2, 5]),
    ([KEEP, 1, RELEASE, RESUME, 1, LOOK, RELEASE], [1]),
    ([0, RELEASE, KEEP, 1, LOOK, RESUME, 0, RELEASE], [3]),
]
TWICE = [
    ([KEEP, 1, LOOK, RESUME, 0, RELEASE, RESUME, 0, RELEASE], [1]),
    ([KEEP, 1, LOOK, RESUME, 0, RELEASE, 1, RELEASE, RESUME, 0, RELEASE], [1]),
    ([KEEP, 1, LOOK, RESUME, 1, RELEASE, RESUME, 1, RELEASE], [1, 4, 7]),
]
"""With two crashes."""
WORST = [0, RELEASE, KEEP, 1, LOOK, RESUME, 0, RELEASE, 1, RELEASE]
"""The bit is told at once, is seen, and goes back; then another event draws it anew."""


def said_of_what_is_lost(plan, crashes=1):
    bit, units = np.exp(float(plan.bit_epsilon)), np.exp(2 * float(plan.sum_epsilon))
    units **= crashes + 1
    return np.log(max(bit * (1 + bit * units) / (1 + bit), units))


@pytest.mark.parametrize(
    ("stream", "places"), [*CRASHED, *(pytest.param(*one, marks=pytest.mark.long) for one in TWICE)]
)
def test_an_event_that_a_crash_loses_costs_no_more_than_is_said(stream, places, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "GRID", np.arange(-6, 7))
    epsilon = Fraction(3)
    guarantee, plan = (getattr(one_bit(stream, epsilon), name) for name in ("guarantee", "plan"))
    crashes = stream.count(RESUME)
    said, lost = float(guarantee.crashed(crashes).epsilon), said_of_what_is_lost(plan, crashes)
    assert lost < said < 3 + 2 * crashes * float(plan.sum_epsilon) + 1e-6
    found = loss(stream, places, epsilon)
    assert found < (said if len(places) > 1 else lost)


def test_what_the_page_says_of_a_crash():
    """How much it adds follows from the plan, and is more where looks are announced."""
    plan = one_bit([0, RELEASE], Fraction(1)).plan
    assert 1.58 < said_of_what_is_lost(plan) < 1.59
    assert 1.71 < 1 + plan.guarantee.crash < 1.72
    looks = one_bit([0, ANNOUNCE, RELEASE], Fraction(1)).plan
    assert looks.guarantee.crash == 2 * (2 * looks.sum_epsilon + looks.bit_epsilon) > 2


@pytest.mark.long
@pytest.mark.parametrize(("again", "nearly"), [(False, 0.95), (True, 0.92)])
def test_that_is_nearly_lost(again, nearly, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "GRID", np.arange(-8, 9))
    plan = one_bit(WORST, Fraction(3)).plan
    found = loss(WORST, [3, 8] if again else [3], Fraction(3))
    assert 3 < nearly * said_of_what_is_lost(plan) < found < said_of_what_is_lost(plan)


def test_without_flipped_bits_a_second_look_tells_too_much(monkeypatch):
    """The control: bits that an announcement leaves nearly as they are."""
    monkeypatch.setattr(EventBits, "gain", lambda _: Fraction(15, 16))
    assert worst([ANNOUNCED[1]], Fraction(3) + Fraction(1, 10**6)) > 3.1


def test_with_more_for_the_sums_an_event_costs_more(monkeypatch):
    """The control: a quarter more than is left."""
    plan = "panprivacy.statistics.running.distinct"
    monkeypatch.setattr(f"{plan}.sum_epsilon", lambda *given: sum_epsilon(*given) * Fraction(5, 4))
    asked = Fraction(3) + Fraction(
        1, 10**7
    )  # plans are remembered: this one is asked for here alone
    assert worst([stream_of((0, 1, 0), 1)], asked) > float(asked)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(8), Fraction(900)])
@pytest.mark.parametrize("share", [Fraction(1, 64), Fraction(1, 2), Fraction(63, 64)])
def test_the_share_of_the_sums_is_all_that_is_left(epsilon, share):
    bits = epsilon * share
    sums = sum_epsilon(epsilon, bits)
    if sums <= 0:
        assert share == Fraction(63, 64)
        return
    odds = randomised_response(bits) / (1 - randomised_response(bits))

    def cost(each):
        changed = exp_bounds(2 * each)
        return [max(odds * (1 + odds * one) / (1 + odds), one) for one in changed]

    assert cost(sums)[1] <= exp_bounds(epsilon)[1]
    assert cost(sums + Fraction(2, 10**9))[0] > exp_bounds(epsilon)[0]
    assert 2 * sums >= (epsilon - bits) * (1 - Fraction(1, 10**6)), "no less than the plain sum"


@pytest.mark.long
def test_the_exact_audit_walks_it():
    subject = next(one for one in products(Fraction(4)) if one.name == "running-distinct")
    row = subject.row()
    assert row.holds, row.says
    assert float(row.worst) > 0
