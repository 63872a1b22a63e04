"""What continual counters lose, on the code that ships, for every event and every look."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.exact.loss import exact_loss
from panprivacy.audit.exact.numbers import exp
from panprivacy.audit.exact.shifts import ANNOUNCED, LOOK, AddingProgram, shifted_loss
from panprivacy.audit.exact.traces import LeakError
from panprivacy.audit.streams import ANNOUNCE
from panprivacy.continual import METHODS, Counter
from panprivacy.tables.counters.delayed import Delayed, comparison_scale
from panprivacy.tables.counters.running import Running
from panprivacy.tables.counters.shapes import best_shares, even_tree
from panprivacy.tables.counters.tree import Tree

EPSILON = Fraction(7, 5)
HORIZONS = [1, 2, 3, 6, pytest.param(9, marks=pytest.mark.long)]
LINEAR = [name for name in METHODS if name not in {"response", "delayed", "tree"}]


def counter(horizon, method, bound=1, **more):
    loss = {"rho" if METHODS[method].by_rho else "epsilon": EPSILON}
    return lambda coins: Counter(horizon, method=method, bound=bound, coins=coins, **loss, **more)


class Stepping:
    """A mechanism by itself, with the methods that the audit leads it by."""

    def __init__(self, mechanism, coins):
        self.running = Running(mechanism, coins)

    def step(self, amount):
        released = self.running.run(np.array([amount])).released
        return SimpleNamespace(counts=tuple(released.tolist()), last=self.running.last)

    def add(self, amount):
        self.running.add(amount)

    def save(self, amount):
        self.saved = self.running.tick, self.running.packed()

    def crash(self, amount):
        """Go on from what was saved, after the steps that left since."""
        left = self.running.tick
        lost, self.running = self.running, Running(self.running.mechanism, self.running._coins)
        lost.forget()
        self.running.unpack(self.saved[0], memoryview(self.saved[1]))
        if left > self.saved[0]:
            self.running.restart(left)

    def announce_intrusion(self):
        self.running.rerandomise()

    def state(self):
        return self.running.packed()


def mechanism(one):
    return lambda coins: Stepping(one, coins)


def act(program, action, amount):
    return getattr(program, action)(amount)


def cells(program):
    running = program.running if isinstance(program, Stepping) else program._kept
    return running._memory.cells


def audited(make, actions, bound=1):
    subject = AddingProgram(make, act, lambda left: left.counts, cells, lambda one: one.state())
    return shifted_loss(subject, actions, bound)


def steps(horizon, between=()):
    """Looks before, after and between all steps."""
    return [LOOK, *[one for _ in range(horizon) for one in (*between, "step", LOOK)]]


@pytest.mark.parametrize("horizon", HORIZONS)
@pytest.mark.parametrize("method", LINEAR)
def test_no_event_and_no_look_costs_more_than_is_claimed(method, horizon):
    found = audited(counter(horizon, method), steps(horizon))
    assert found.loss <= EPSILON
    assert found.loss >= Fraction(97, 100) * EPSILON or method == "pan_private_tree"


def take_back(program, action, amount):
    return getattr(program, action)(-amount)


@pytest.mark.parametrize("horizon", [1, 3, pytest.param(6, marks=pytest.mark.long)])
@pytest.mark.parametrize("method", LINEAR)
def test_an_event_that_takes_back_costs_no_more_than_one_that_adds(method, horizon):
    make = counter(horizon, method, bound=3, signed=True)
    subject = AddingProgram(
        make, take_back, lambda left: left.counts, cells, lambda one: one.state()
    )
    found = shifted_loss(subject, steps(horizon), 3)
    assert found.loss == audited(counter(horizon, method, bound=3), steps(horizon), 3).loss
    assert found.loss <= EPSILON


def tree(radices, *, open_steps=False, combined=True, shares=None, **more):
    shares = shares or best_shares(radices, 2 if open_steps else 1, 2)
    horizon = int(np.prod(radices))
    return Tree(horizon, EPSILON, radices, shares, open_steps=open_steps, combined=combined, **more)


TREES = [tree((3, 3)), tree((2, 2, 2)), tree((2, 4), combined=False), tree((4, 2), bound=3)]


@pytest.mark.long
@pytest.mark.parametrize("one", TREES, ids=lambda one: str(one.radices))
def test_a_tree_spends_all_of_epsilon_on_some_event_and_no_more_on_any(one):
    found = audited(mechanism(one), steps(one.horizon), one.bound)
    assert Fraction(97, 100) * EPSILON <= found.loss <= EPSILON


@pytest.mark.long
@pytest.mark.parametrize("radices", [(2,), (3, 2), (2, 2, 2)], ids=str)
def test_the_memory_may_be_seen_between_two_events_of_a_step(radices):
    one = tree(radices, open_steps=True)
    found = audited(mechanism(one), steps(one.horizon, between=("add", LOOK, "add", LOOK)))
    assert Fraction(97, 100) * EPSILON <= found.loss <= EPSILON


def test_a_look_within_a_step_shows_what_a_closed_step_adds():
    one = tree((2, 2))
    found = audited(mechanism(one), [LOOK, "add", LOOK, "add", LOOK, "step", LOOK, "step"])
    assert found.loss == np.inf


@pytest.mark.parametrize("method", LINEAR)
def test_announced_looks_cost_nothing_more(method):
    life = ["step", ANNOUNCED, "step", "step", ANNOUNCED, "step", LOOK, "step", LOOK]
    assert audited(counter(5, method), life).loss <= EPSILON


def test_two_looks_with_no_announcement_between_them_are_not_covered():
    class Deaf(Counter):
        def announce_intrusion(self):
            pass

    def make(coins):
        return Deaf(3, epsilon=EPSILON, method="fresh_noise", coins=coins)

    assert audited(make, ["step", ANNOUNCED, "step", LOOK, "step"]).loss == np.inf


@pytest.mark.long
@pytest.mark.parametrize("open_steps", [False, True])
def test_a_count_without_a_horizon_keeps_its_claim_from_tree_to_tree(monkeypatch, open_steps):
    monkeypatch.setattr("panprivacy.tables.counters.endless._FIRST", 2)
    monkeypatch.setattr("panprivacy.tables.counters.endless._GROWTH", 2)
    between = ("add", LOOK) if open_steps else ()
    found = audited(counter(None, "mixed_radix", open_steps=open_steps), steps(7, between))
    assert Fraction(97, 100) * EPSILON <= found.loss <= EPSILON


CRASHED = [tree((2, 2), open_steps=True), even_tree(4, EPSILON, 1, pan_private=True)]


@pytest.mark.parametrize("one", CRASHED, ids=["mixed", "even"])
def test_a_step_that_left_before_a_crash_is_never_made_again(one):
    life = [LOOK, "step", LOOK, "save", "step", LOOK, "step", LOOK, "crash", LOOK, "step", LOOK]
    assert audited(mechanism(one), life).loss <= EPSILON


class Unaware(Stepping):
    """It goes on from what was saved, whatever left since."""

    def crash(self, amount):
        self.running.unpack(self.saved[0], memoryview(self.saved[1]))


class SendingAgain(Stepping):
    """What a crash loses is sent again: as one more event, or as what a step adds."""

    sent = 0

    def add(self, amount):
        self.sent += amount
        super().add(amount)

    def again(self, amount):
        super().add(self.sent + amount)

    def last(self, amount):
        self.sent += amount
        return super().step(amount)

    def after(self, amount):
        return super().step(self.sent + amount)


OPEN_LIVES = [
    (["save", "add", LOOK, "crash", "step", "step"], 2),
    (["step", "save", "add", LOOK, "crash", "step", "step"], 2),
    (["save", "add", LOOK, "crash", "again", "step", "step"], 1),
    (["save", "add", LOOK, "crash", "step", "again", "step"], 3),
    (["save", "add", "step", LOOK, "crash", "again", "step"], 2),
    (["save", "add", "crash", "step", "again", "step"], 1),
]
"""With how often one event costs epsilon, where all nodes of its step close with the step."""


@pytest.mark.parametrize(("life", "times"), OPEN_LIVES, ids=str)
def test_what_a_crash_costs_where_steps_are_open(life, times):
    for one in (tree((2,), open_steps=True), tree((2, 2), open_steps=True)):
        found = audited(lambda coins, one=one: SendingAgain(one, coins), life)
        assert found.loss <= times * EPSILON
        if one.radices == (2,):
            assert found.loss > Fraction(99, 100) * times * EPSILON
    counting = counter(2, "mixed_radix", open_steps=True)(None)
    assert times * EPSILON <= counting.guarantee.crashed(1).epsilon


class PublicOutputs(SendingAgain):
    """Every intrusion that was announced since the state was saved is announced to a branch."""

    announced = before = 0

    def announce_intrusion(self):
        self.announced += 1
        super().announce_intrusion()

    def save(self, amount):
        self.before = self.announced
        super().save(amount)

    def crash(self, amount):
        super().crash(amount)
        for _ in range(self.announced - self.before):
            self.running.rerandomise()


LATER = ["step", "again", "step", "crash", "again", "step"]
SEEN = ["crash", ANNOUNCED, "again", ANNOUNCED]
SEVERAL_CRASHES = [
    (["save", "add", LOOK, "crash", *LATER], 4),
    (["save", "add", LOOK, "crash", *LATER, "crash", "again", "step"], 5),
    (["save", "add", LOOK, "crash", "crash", "crash", "step"], 2),
    (["save", "add", ANNOUNCED, *SEEN, "crash", "step", "again", LOOK, "step"], 5),
    (["save", "add", ANNOUNCED, *SEEN, *SEEN, "crash", *LATER[:3]], 7),
]
"""Nodes that are open close on one branch only; to be seen on others takes announcements."""


@pytest.mark.parametrize(("life", "times"), SEVERAL_CRASHES, ids=str)
def test_what_several_crashes_cost_where_steps_are_open(life, times):
    one = tree((6,), open_steps=True)
    found = audited(lambda coins: PublicOutputs(one, coins), life)
    assert Fraction(99, 100) * times * EPSILON < found.loss <= times * EPSILON
    crashes, announced = life.count("crash"), life.count(ANNOUNCED)
    promise = counter(6, "mixed_radix", open_steps=True)(None).guarantee
    said = promise.crashed(crashes, announced=announced).epsilon
    assert said == (1 + crashes + min(crashes, 1 + announced)) * EPSILON
    assert said == times * EPSILON or "again" not in life


def test_noise_that_is_added_after_a_crash_hides_nothing_more():
    class Rerandomising(SendingAgain):
        def crash(self, amount):
            super().crash(amount)
            self.running.rerandomise()

    (life, times), one = OPEN_LIVES[0], tree((2,), open_steps=True)
    found = audited(lambda coins: Rerandomising(one, coins), life)
    assert Fraction(99, 100) * times * EPSILON < found.loss <= times * EPSILON


CLOSED_LIVES = [
    (["step", "save", "last", LOOK, "crash", "step"], 1),
    (["step", "save", "last", LOOK, "crash", "after", "step"], 2),
]


@pytest.mark.parametrize(("life", "times"), CLOSED_LIVES, ids=str)
@pytest.mark.parametrize("method", LINEAR)
def test_what_a_crash_costs_where_steps_are_closed(method, life, times):
    one = counter(4, method)(None)
    found = audited(lambda coins: SendingAgain(one._kept.mechanism, coins), life)
    assert found.loss <= times * EPSILON
    if times == 2 and method in {"mixed_radix", "noisy_steps", "factorised"}:
        assert found.loss > EPSILON
    if not METHODS[method].by_rho:
        assert times * EPSILON <= one.guarantee.crashed(1).epsilon


def test_several_crashes_cost_epsilon_each_where_steps_are_closed():
    life = ["save", "last", LOOK, "crash", "after", "step", "crash", "after", "step"]
    one = counter(6, "mixed_radix")(None)
    found = audited(lambda coins: SendingAgain(tree((6,)), coins), life)
    said = one.guarantee.crashed(2).epsilon
    assert Fraction(99, 100) * said < found.loss <= said == 3 * EPSILON


def test_to_make_a_step_again_that_left_costs_more():
    one = tree((4,), open_steps=True)
    life = ["save", "add", "step", LOOK, "crash", "step", LOOK, "step"]
    assert audited(mechanism(one), life).loss <= EPSILON
    life = ["save", "add", LOOK, "step", "crash", "step", "step"]
    assert audited(lambda coins: Unaware(one, coins), life).loss > EPSILON
    assert audited(mechanism(one), life).loss <= EPSILON


# What has to be caught


@pytest.mark.long
def test_the_tree_of_figure_12_1_does_not_survive_a_look():
    make = counter(9, "tree", pan_private=False)
    assert audited(make, steps(9)).loss == np.inf
    assert audited(make, ["step"] * 9).loss <= EPSILON  # which nobody takes, it is private


@pytest.mark.long
def test_answers_from_open_nodes_show_an_event_to_who_has_looked():
    """A signed-digit tree counts back from the end of a node that is still open."""

    class SignedDigits(Stepping):
        def step(self, amount):
            answer = super().step(amount)
            if self.running.tick % 3 == 2:
                answer.counts = (*answer.counts, int(self.running._memory.cells[1]))
            return answer

    one = tree((3, 3), combined=False)
    assert audited(lambda coins: SignedDigits(one, coins), steps(9)).loss == np.inf
    assert audited(lambda coins: Stepping(one, coins), steps(9)).loss <= EPSILON


def test_a_level_with_too_large_a_share_is_caught():
    class Greedy(Tree):
        def _scale(self, units):
            return super()._scale(units) * Fraction(9, 10)

    one = Greedy(4, EPSILON, (2, 2), best_shares((2, 2), 1, 2))
    assert EPSILON < audited(mechanism(one), steps(4)).loss < np.inf


@pytest.mark.parametrize("left", ["last", "counts"])
def test_a_program_that_does_more_than_add_is_refused(left):
    class Telling(Stepping):
        def step(self, amount):
            answer = super().step(amount)
            self.exact = getattr(self, "exact", 0) + amount
            if left == "last":
                answer.last = self.exact
            else:
                answer.counts = (answer.counts[0] // 2,)
            return answer

    with pytest.raises(LeakError, match="more than sums"):
        audited(lambda coins: Telling(tree((3,)), coins), steps(3))


# Where every outcome can be walked


class Walked:
    """A counter as the walker of outcomes takes it: a batch of n users is a step that adds n."""

    def __init__(self, horizon, coins, **more):
        self.counter = Counter(horizon, epsilon=EPSILON, coins=coins, **more)
        self.answers = []

    def update(self, users, deltas=None):
        self.answers.append(self.counter.step(len(users)))

    def release(self):
        return SimpleNamespace(counts=self.answers[-1].counts)

    def state(self):
        return self.counter.state()

    def announce_intrusion(self):
        self.counter.announce_intrusion()


@pytest.mark.long
def test_randomised_response_survives_announced_looks():
    life = [[0], ANNOUNCE, [], ANNOUNCE, [0], ANNOUNCE, [0]]
    for place in (0, 2, 4, 6):
        other = [*life]
        other[place] = [] if life[place] else [0]
        found = exact_loss(lambda coins: Walked(4, coins, method="response"), life, other)
        assert found.within(EPSILON)
        assert found.epsilon == pytest.approx(float(EPSILON), rel=1e-9)


def all_seen(amounts):
    """The law of all answers, and of the states at birth and after every step."""
    make, law = counter(len(amounts), "response"), {(): Fraction(1)}
    for amount in (None, *amounts):  # None is birth
        grown = defaultdict(Fraction)
        for seen, probability in law.items():
            coins = EnumeratedCoins()
            for _ in coins:
                program = make(coins)
                if seen:
                    program.resume(seen[-1])
                answer = () if amount is None else program.step(amount).counts
                grown[*seen, answer, program.state()] += probability * coins.probability
        law = grown
    return law


@pytest.mark.long
@pytest.mark.parametrize("horizon", HORIZONS)
def test_randomised_response_survives_a_look_at_every_step(horizon):
    events = [step % 3 == 1 for step in range(horizon)]
    law = all_seen(events)
    assert len(law) == 2**horizon
    assert sum(law.values()) == 1
    for place in {0, horizon // 2, horizon - 1}:
        other = all_seen([event ^ (step == place) for step, event in enumerate(events)])
        assert law.keys() == other.keys()
        worst = max(max(law[seen] / other[seen], other[seen] / law[seen]) for seen in law)
        assert Fraction(97, 100) * EPSILON <= math.log(worst)
        assert worst <= exp(EPSILON)


def views(one, amounts, look, tail):
    """The law of what leaves and of what is kept after `look` steps, and what is set aside."""
    coins, law, near = EnumeratedCoins(tail=tail), defaultdict(Fraction), Fraction(0)
    for _ in coins:
        program = Stepping(one, coins)
        seen = [program.state()] if look == 0 else []
        for step, amount in enumerate(amounts, 1):
            seen.append(program.step(amount).counts)
            if step == look:
                seen.append(program.state())
        law[tuple(seen)] += coins.probability
        near += coins.probability
    return law, 1 - near


@pytest.mark.slow
@pytest.mark.parametrize("look", [0, 1, 2])
def test_delayed_answers_lose_more_than_epsilon_no_more_often_than_is_claimed(look):
    one = Delayed(2, Fraction(6), Fraction(1, 10))
    assert one.updates == 1
    for amounts, others in (([1, 1], [0, 1]), ([1, 1], [1, 0])):
        first, aside = views(one, amounts, look, tail=3)
        second, _ = views(one, others, look, tail=3)
        for law, other in ((first, second), (second, first)):
            above = [law[view] - exp(one.epsilon) * other.get(view, 0) for view in law]
            assert sum(max(one, 0) for one in above) <= one.delta + aside
            assert aside < Fraction(1, 20)


def chance(scale, needed):
    """That discrete Laplace noise is so much or more."""
    tail = math.exp(-1 / scale)
    if needed > 0:
        return tail**needed / (1 + tail)
    return 1 - tail ** (1 - needed) / (1 + tail)


def beyond(scale, epsilon, needed, bound, steps):
    """How often the moment of the first answer says more than epsilon of an event of the bound."""
    odds = [chance(scale, needed - bound), chance(scale, needed)]
    silent = np.arange(steps + 1)
    laws = [silent * math.log1p(-p) + np.where(silent < steps, math.log(p), 0) for p in odds]
    return max(
        np.maximum(np.exp(law) - np.exp(epsilon + other), 0).sum()
        for law, other in (laws, laws[::-1])
    )


@pytest.mark.long
@pytest.mark.parametrize("bound", [1, 5])
def test_silence_costs_what_is_set_aside_for_it(bound):
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    scale = float(comparison_scale(epsilon, 1, delta, bound))
    needed = range(-20, 300 * bound, 7)
    lives = [(one, bound, steps) for one in needed for steps in (1, 10, 1_000, 30_000)]
    assert max(beyond(scale, 1.0, *life) for life in lives) <= delta
    assert max(beyond(bound, 1.0, *life) for life in lives) > 0.01  # enough for the answer alone


@pytest.mark.parametrize("rho", ["1/1000", "1/2", "30"])
def test_the_epsilon_of_a_rho_is_rounded_up(rho):
    promised = Counter(4, rho=rho).guarantee
    spent = float(promised.rho) + 2 * (float(promised.rho) * -np.log(float(promised.delta))) ** 0.5
    assert spent <= float(promised.epsilon) <= spent + 1e-8
