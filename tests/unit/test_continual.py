"""Counters as they are used: steps, runs, states, budgets, and what they refuse."""

from __future__ import annotations

import copy
import math
import pickle
import struct
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.continual import METHODS, Counter, Synthetic
from panprivacy.errors import BudgetError, InputError, PanPrivacyError, PlanError
from panprivacy.privacy.coins import SystemCoins
from panprivacy.privacy.guarantee import float_above
from panprivacy.tables.counters import running
from panprivacy.tables.planning.request import LEAST_EPSILON, MOST_EPSILON
from tests import refusals
from tests.contract.doubles import BreakableCoins, EntropyError

NAMED = {
    **{name: {"method": name} for name in METHODS},
    "tree": {"method": "tree", "pan_private": False},
    "exposed": {"pan_private": False},
    "open": {"open_steps": True},
    "endless": {"horizon": None},
    "endless, open": {"horizon": None, "open_steps": True},
}
OPEN = ["open", "endless, open"]
SEEN = [name for name in NAMED if name not in {"tree", "exposed"}]
"""Whose state may be seen."""
HORIZON = 300
FIXED = struct.calcsize("<8sIQIIQ")
"""Bytes before the front of a state."""
KNOWN = 8 * running.KNOWN
"""Those after its memory."""


class Fading(BreakableCoins):
    """Coins that fall silent when they are told to."""

    silent = False

    def discrete_laplace(self, scale, size):
        return np.zeros(size, np.int64) if self.silent else super().discrete_laplace(scale, size)

    def discrete_gaussian(self, scale, size):
        return np.zeros(size, np.int64) if self.silent else super().discrete_gaussian(scale, size)

    def bernoulli(self, probability, size):
        return np.zeros(size, np.uint8) if self.silent else super().bernoulli(probability, size)


def make(name, seed=1, *, coins=None, loss=1, **changed):
    arguments = {"horizon": HORIZON, "bound": 3, **NAMED[name], **changed}
    by_rho = METHODS[arguments.get("method", "mixed_radix")].by_rho
    arguments["rho" if by_rho else "epsilon"] = loss
    return Counter(coins=coins or Fading(seed), **arguments)


def going_on(counter, amounts):
    """The answers from here on, without more noise."""
    counter._kept._coins.silent = True
    values = [counter.step(int(amount)) for amount in amounts]
    return [(one.value, one.low, one.high, counter.tick) for one in values]


def text_of(error):
    """What it says: one line, which ends without a full stop, as all do."""
    said = str(error.value)
    assert "\n" not in said
    assert len(said) < 250
    return said


@pytest.mark.parametrize("name", NAMED)
def test_a_release_says_what_the_counter_says(name):
    counter = make(name)
    assert (counter.tick, counter.value, counter.interval()) == (0, 0, (0, 0))
    answer = counter.step(3, confidence=0.9)
    assert counter.tick == 1
    assert answer.value == min(max(counter.value, answer.low), answer.high)
    assert (answer.low, answer.high) == counter.interval(0.9)
    assert answer.low <= answer.value <= answer.high
    assert answer.confidence == 0.9
    assert all(isinstance(one, int) for one in answer.counts)
    assert answer.unit == "events"
    assert answer.epsilon == float_above(counter.guarantee.epsilon)
    assert counter.guarantee.adjacency == "event"
    assert "one event, not all events of a user" in counter.guarantee.conditions[0]
    values = counter.run([0, 1, 2])
    assert values.shape == (3,)
    assert values.dtype == float
    assert (counter.tick, counter.value) == (4, values[-1])
    assert counter.run([]).shape == (0,)
    assert counter.tick == 4
    assert counter.bound == 3
    assert counter.horizon == (None if "endless" in name else HORIZON)
    assert counter.method in repr(counter)


def test_a_guarantee_says_when_the_state_may_be_seen():
    assert "where nobody sees the state" in str(make("exposed").guarantee)
    assert "look at the whole state" not in str(make("exposed").guarantee)
    assert "look at the whole state" in str(make("mixed_radix").guarantee)
    for name in METHODS:
        said = "the state may be seen after every step" in make(name).guarantee.conditions
        assert said == (name in {"response", "noisy_steps"})


def test_a_rho_is_told_as_an_epsilon_as_well():
    told = Counter(10, rho=0.5).guarantee
    exact = 0.5 + 2 * math.sqrt(0.5 * math.log(1e9))
    assert exact <= float(told.epsilon) < exact + 1e-6
    assert (told.rho, float(told.delta)) == (0.5, 1e-9)


@pytest.mark.parametrize("name", [name for name in NAMED if "endless" not in name])
def test_predicted_errors_are_those_of_the_steps(name):
    counter = make(name)
    whole, first = counter.predicted_variances(), counter.predicted_variances(7)
    assert whole.shape == (HORIZON,)
    assert first == pytest.approx(whole[:7])
    assert counter.predicted_error() == pytest.approx(math.sqrt(whole.mean()))
    assert counter.predicted_error(7) == pytest.approx(math.sqrt(first.mean()))
    assert (whole > 0).all() or name == "segments"
    with pytest.raises(PlanError, match="steps must be at most 300"):
        counter.predicted_variances(HORIZON + 1)
    counter.run(np.ones(100, int))
    assert counter._kept.last.variance == pytest.approx(whole[99])


def test_the_errors_of_an_unknown_horizon_are_those_of_so_many_steps():
    counter = make("endless")
    assert counter.predicted_variances(3_000).shape == (3_000,)
    with pytest.raises(PlanError, match="horizon"):
        counter.predicted_error()


@pytest.mark.parametrize("name", NAMED)
def test_a_counter_goes_on_from_its_state_at_every_tick(name):
    amounts = np.random.default_rng(2).integers(0, 4, 40)
    for tick in [*range(10), 250, 299]:
        counter = make(name, seed=tick)
        counter.run(np.resize(amounts, tick))
        if name in OPEN:
            counter.add(2)
        state = counter.state()
        assert counter.state() == state
        assert len(state) == counter.state_bytes
        assert state[FIXED:].startswith(counter.front)
        later = make(name, seed=99)
        later.check_state(state)
        assert later.tick == 0
        later.resume(state)
        assert later.state() == state
        assert (later.tick, later.value) == (tick, counter.value)
        assert later.interval() == counter.interval()
        rest = amounts[: min(HORIZON - tick, 12)]
        assert going_on(later, rest) == going_on(counter, rest)


@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("released", [6, 8, 299, 300])
def test_steps_that_left_after_the_state_are_never_made_again(name, released):
    earlier = make(name)
    earlier.run([1, 2, 3, 0, 1])
    before, state = earlier._kept.last, earlier.state()
    counter = make(name, seed=7)
    counter.resume(state, released=released)
    assert (counter.tick, counter.value) == (released, before.value)
    assert "endless" in name or counter._kept.left == HORIZON - released
    again = make(name, seed=8)
    again.resume(counter.state())
    assert again.state() == counter.state()
    rest = [3, 1, 2] if "endless" in name else [3, 1, 2][: HORIZON - released]
    if not rest:
        with pytest.raises(BudgetError):
            counter.step(1)
        return
    counter.run(rest)
    assert counter.tick == released + len(rest)
    assert counter._kept.last.variance > before.variance or name == "segments"


@pytest.mark.parametrize(
    "name", [one for one in SEEN if one not in {"response", "segments", "delayed"}]
)
def test_a_count_that_starts_anew_goes_on_from_its_last_answer(name):
    earlier = make(name)
    earlier.run([1, 2, 3, 0, 1])
    coins = Fading(3)
    coins.silent = True
    counter = make(name, coins=coins)
    counter.resume(earlier.state(), released=100)
    values = counter.run([3, 1, 2])
    assert values == pytest.approx(earlier.value + np.array([3, 4, 6]))
    fresh = make(name).predicted_variances(3)
    spread = earlier._kept.last.variance + fresh[-1]
    assert counter._kept.last.variance == pytest.approx(spread)


def test_what_segments_hide_stays_hidden_when_they_start_anew():
    earlier = make("segments", loss="0.1")
    length = earlier._kept.mechanism.radices[0]
    earlier.run([3] * (length + 2))
    low, high = earlier.interval()
    assert (earlier._kept.last.hidden, high > low) == (6, True)
    counter = make("segments", loss="0.1", seed=5)
    counter.resume(earlier.state(), released=150)
    counter.run([3] * 4)
    assert counter._kept.last.hidden == 6 + 12
    counter.run([3] * (length - 4))
    assert counter._kept.last.hidden == 6


@pytest.mark.parametrize("name", SEEN)
def test_announced_intrusions_cost_noise_and_no_epsilon(name):
    counter, seen = make(name), make(name)
    for one in (counter, seen):
        one.run(np.ones(150, int))
    state, spent = seen.state(), seen.ledger.spent
    seen.announce_intrusion()
    assert seen.ledger.spent == spent
    assert seen.value == counter.value
    resumed = make(name, seed=5)
    resumed.resume(state, announced=1)
    resumed.run([1] * 100)
    counter.run([1] * 100)
    seen.run([1] * 100)
    more = seen._kept.last.variance / counter._kept.last.variance
    kept = name in {"response", "noisy_steps"}
    assert more == pytest.approx(1) if kept else more >= 1 - 1e-9
    assert seen._kept.last.variance == pytest.approx(resumed._kept.last.variance)
    assert (seen.state() != state) or kept
    again = make(name, seed=6)
    again.resume(seen.state(), announced=1)  # it knows of it
    assert again.state() == seen.state()
    with refusals.begun():
        again.resume(state)


def test_a_state_that_was_exact_cannot_be_seen():
    for name in ("tree", "exposed"):
        with pytest.raises(PanPrivacyError, match="nothing can mend that"):
            make(name).announce_intrusion()


TICK, INTRUSIONS = range(FIXED - 8, FIXED), range(FIXED - 12, FIXED - 8)


@pytest.mark.parametrize("name", NAMED)
def test_damage_is_refused_or_harmless_and_changes_nothing(name):
    """All but noised numbers and public counts, which could be anything, is checked."""
    small = {} if "endless" in name else {"horizon": 20}
    earlier = make(name, **small)
    earlier.run([1, 2, 3, 0, 1])
    state, counter = earlier.state(), make(name, seed=2, **small)
    own, front = counter.state(), len(counter.front) + FIXED
    generator = np.random.default_rng(4)
    places = {*range(FIXED), *generator.integers(FIXED, len(state), 100).tolist()}
    places |= {*range(len(state) - KNOWN, len(state))}
    for place in places:
        damaged = bytearray(state)
        damaged[place] ^= 1 << int(generator.integers(8))
        try:
            counter.check_state(bytes(damaged))
        except InputError:
            with pytest.raises(InputError) as error:
                counter.resume(bytes(damaged))
            text_of(error)
            assert counter.state() == own
        else:
            assert place in TICK or place in INTRUSIONS or place >= front
            later = make(name, seed=3, **small)
            later.resume(bytes(damaged))
            low, high = later.interval()
            assert low <= high
    for damaged in (b"", state[:-1], state[:FIXED], state + b"\0", state[:front], own[:9]):
        with pytest.raises(InputError):
            counter.resume(damaged)
    for value in (math.nan, math.inf, -1e300):
        for back in range(8, len(state) - front, 8):
            damaged = bytearray(state)
            damaged[len(state) - back : len(state) - back + 8] = struct.pack("<d", value)
            if back > len(state) - front - counter._kept._memory.cells.nbytes:
                break
            try:
                counter.check_state(bytes(damaged))
            except InputError:
                continue
            assert value == -1e300  # an estimate may be anything finite
    assert counter.state() == own


@pytest.mark.parametrize("name", NAMED)
def test_no_state_is_older_than_its_start_or_beyond_the_horizon(name):
    earlier = make(name)
    earlier.run([1] * 5)
    state, counter = bytearray(earlier.state()), make(name, seed=2)
    start = len(state) - KNOWN
    assert struct.unpack_from("<d", state, start) == (0,)
    for wrong in (6.0, -1.0, 0.5):
        struct.pack_into("<d", state, start, wrong)
        with refusals.spoilt():
            counter.resume(bytes(state))
    struct.pack_into("<d", state, start, 0.0)
    struct.pack_into("<Q", state, FIXED - 8, (1 << 50) + 1)
    with refusals.spoilt():
        counter.resume(bytes(state))
    struct.pack_into("<Q", state, FIXED - 8, 5)
    struct.pack_into("<I", state, FIXED - 16, 1)
    with pytest.raises(InputError, match="damaged"):
        counter.resume(bytes(state))
    struct.pack_into("<I", state, FIXED - 16, 0)
    counter.resume(bytes(state))
    assert counter.tick == 5


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"horizon": 301}, "horizon"),
        ({"bound": 4}, "bound"),
        ({"loss": 2}, "epsilon, ledger"),
        ({"open_steps": True}, "open_steps"),
        ({"pan_private": False}, "pan_private"),
        ({"method": "segments"}, "method"),
    ],
)
def test_the_state_of_another_counter_is_refused(changed, said):
    with pytest.raises(InputError, match=f"another {said}"):
        make("mixed_radix", **changed).resume(make("mixed_radix").state())


def test_only_a_new_counter_goes_on_from_a_state():
    state = make("mixed_radix").state()
    stepped, announced = make("mixed_radix"), make("mixed_radix")
    stepped.step(1)
    announced.announce_intrusion()
    for counter in (stepped, announced):
        with refusals.begun():
            counter.resume(state)


@pytest.mark.parametrize("wrong", [{"released": -1}, {"released": 301}, {"announced": -1}])
def test_counts_that_nobody_can_have_made_are_refused(wrong):
    counter = make("mixed_radix")
    own = counter.state()
    with pytest.raises(PlanError, match=next(iter(wrong))):
        counter.resume(make("mixed_radix", seed=2).state(), **wrong)
    assert counter.state() == own


def test_counters_share_a_ledger():
    ledger = pp.Ledger(2)
    first = Counter(10, epsilon=1, ledger=ledger)
    assert (first.ledger, ledger.spent) == (ledger, 1)
    Counter(epsilon="1/2", ledger=ledger)
    assert ledger.available == pp.Ledger("1/2").available
    with pytest.raises(BudgetError):
        Counter(10, epsilon=1, ledger=ledger)
    assert ledger.available == pp.Ledger("1/2").available
    Counter(10, epsilon="1/2", ledger=ledger)
    assert ledger.available == 0
    with pytest.raises(BudgetError):
        Counter(10, epsilon="0.001", ledger=ledger)
    for _ in range(10):
        first.step(1)
    assert ledger.spent == 2
    with pytest.raises(PlanError, match="a ledger adds up epsilon alone"):
        Counter(10, rho=1, ledger=pp.Ledger(100))


def test_a_counter_without_coins_costs_nothing():
    ledger, coins = pp.Ledger(1), BreakableCoins(1)
    coins.reads_left = 0
    with pytest.raises(EntropyError):
        Counter(10, epsilon=1, method="fresh_noise", ledger=ledger, coins=coins)
    assert ledger.available == 1


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("reads", range(4))
def test_coins_that_fail_leave_everything_as_it_was(name, reads):
    counter = make(name)
    counter.run(np.ones(255, int))
    acts = [lambda: counter.step(2), lambda: counter.run([1, 0, 3])]
    acts += [counter.announce_intrusion] if name in SEEN else []
    for act in acts:
        before = counter.state(), counter.value, counter.interval(), counter.tick
        counter._kept._coins.reads_left = reads
        try:
            act()
        except OSError:
            assert (counter.state(), counter.value, counter.interval(), counter.tick) == before
    state, later = counter.state(), make(name, seed=4)
    own = later.state()
    later._kept._coins.reads_left = reads
    try:
        later.resume(state, released=260, announced=1 if name in SEEN else 0)
    except OSError:
        assert later.state() == own
        later._kept._coins.reads_left = math.inf
        later.resume(state, released=260)
    assert later.tick == 260


@pytest.mark.parametrize("reads", range(2))
def test_a_counter_that_cannot_go_on_from_a_state_stays_as_it_is(reads):
    earlier, later = (make("pan_private_tree", seed=seed) for seed in (1, 2))
    earlier.run([1] * 7)
    own, cells = later.state(), later._kept._memory.cells
    later._kept._coins.reads_left = reads  # for what starts anew, and a look
    with pytest.raises(EntropyError):
        later.resume(earlier.state(), released=9, announced=1)
    assert later.state() == own
    assert later._kept._memory.cells is cells


@pytest.mark.parametrize(
    "wrong",
    [
        -1,
        4,
        0.5,
        1.0,
        math.nan,
        2**70,
        -(2**70),
        "1",
        None,
        [1],
        b"1",
        np.timedelta64(1, "s"),
        1 + 0j,
    ],
    ids=repr,
)
@pytest.mark.parametrize("name", ["mixed_radix", "open", "endless", "factorised", "response"])
def test_a_step_that_adds_anything_else_is_refused(name, wrong):
    counter = make(name)
    counter.run([1, 2])
    state = counter.state()
    with pytest.raises(InputError, match="whole number, 0 to 3") as error:
        counter.step(wrong)
    assert "bound=" in text_of(error)
    if name in OPEN:
        with pytest.raises(InputError, match="whole number, 0 to 3"):
            counter.add(wrong)
    assert (counter.state(), counter.tick) == (state, 2)


RUNS = {
    "an ndarray": np.array([0, 1, 3]),
    "bytes of it": np.array([0, 1, 3], np.uint8),
    "backwards": np.array([3, 1, 0])[::-1],
    "big-endian": np.array([0, 1, 3], ">i4"),
    "unsigned": np.array([0, 1, 3], np.uint64),
    "a list": [0, 1, 3],
    "a tuple": (0, 1, 3),
    "a range": range(3),
    "an Arrow array": pa.array([0, 1, 3]),
    "a chunked one": pa.chunked_array([[0, 1], [3]]),
    "a Series": pd.Series([0, 1, 3], index=[7, 7, 7]),
    "truths": np.array([True, False, True]),
    "read-only": np.frombuffer(bytes([0, 1, 3]), np.uint8),
}


@pytest.mark.parametrize("amounts", RUNS.values(), ids=RUNS)
def test_a_run_takes_whole_numbers_from_anywhere(amounts):
    plain = [int(one) for one in np.asarray(amounts)]
    found = make("mixed_radix").run(amounts)
    assert np.array_equal(found, make("mixed_radix").run(plain))


WRONG = {
    "negative": ([1, -1], "row 2 (counting from 1): a step adds a whole number, 0 to 3"),
    "above the bound": ([1, 2, 4, 5], "row 3 (counting from 1)"),
    "unsigned and huge": (np.array([0, 2**64 - 1], np.uint64), "row 2"),
    "floats": ([0.0, 1.0], "whole numbers, in one row of integers"),
    "not a number": ([math.nan], "whole numbers, in one row of integers"),
    "beyond 64 bits": ([2**70], "whole numbers, in one row of integers"),
    "two rows": ([[1, 2], [0, 1]], "whole numbers, in one row of integers"),
    "rows of two lengths": ([[1, 2], [0]], "whole numbers, in one row of integers"),
    "a number": (3, "whole numbers, in one row of integers"),
    "text": (["1"], "whole numbers, in one row of integers"),
    "None": (None, "whole numbers, in one row of integers"),
    "with a null": (pa.array([1, None]), "whole numbers, in one row of integers"),
    "durations": (np.array([1, 2], "m8[s]"), "whole numbers, in one row of integers"),
    "no rows of two": (np.empty((0, 2)), "whole numbers, in one row of integers"),
}


@pytest.mark.parametrize(("amounts", "said"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("name", ["mixed_radix", "factorised"])
def test_a_run_of_anything_else_is_refused(name, amounts, said):
    counter = make(name)
    counter.step(1)
    state = counter.state()
    for take in (counter.run, Synthetic(counter).run):
        with pytest.raises(InputError) as error:
            take(amounts)
        assert said in text_of(error)
    assert (counter.state(), counter.tick) == (state, 1)


@pytest.mark.parametrize("name", [name for name in NAMED if "endless" not in name])
def test_there_are_no_more_steps_than_the_horizon(name):
    counter = make(name)
    counter.run(np.zeros(298, int))
    state = counter.state()
    with pytest.raises(
        BudgetError, match="2 of 300 steps are left, and 3 were to be made"
    ) as error:
        counter.run([1, 1, 1])
    assert "larger horizon=" in text_of(error)
    assert (counter.state(), counter.tick) == (state, 298)
    counter.run([1, 1])
    state = counter.state()
    with pytest.raises(BudgetError, match="0 of 300 steps are left"):
        counter.step(0)
    if name in OPEN:
        with pytest.raises(BudgetError):
            counter.add(1)
    assert (counter.state(), counter.tick) == (state, 300)


def test_events_of_an_open_step_need_open_steps():
    counter = make("mixed_radix")
    with pytest.raises(PanPrivacyError, match="open_steps=True"):
        counter.add(1)


@pytest.mark.parametrize("name", OPEN)
def test_events_of_open_steps_are_counted(name):
    coins = Fading(1)
    coins.silent = True
    counter, total = make(name, coins=coins), 0
    for step in range(HORIZON):
        for amount in range(step % 4):
            counter.add(amount)
            counter.add()
            total += amount + 1
        total += step % 3
        assert counter.step(step % 3).value == total


PLANS = [
    ({}, "give either epsilon= or rho="),
    ({"epsilon": 1, "rho": 1}, "give either epsilon= or rho="),
    *[({"epsilon": one}, "epsilon must be a positive") for one in (0, -1, math.nan, "", True, [])],
    *[({"epsilon": one}, "epsilon must be from") for one in (1e-300, "1e-400", 1e9, 1e-7)],
    *[({"rho": one}, "rho must be from") for one in (1e-300, 1e9)],
    ({"rho": 0}, "rho must be a positive"),
    *[({"epsilon": 1, "horizon": one}, "horizon must be a whole") for one in (0, -1, 2.5, "9")],
    ({"epsilon": 1, "horizon": 2**41}, "horizon must be at most"),
    ({"epsilon": 1, "bound": 0}, "bound must be a whole"),
    ({"epsilon": 1, "bound": 1.5}, "bound must be a whole"),
    ({"epsilon": 1, "horizon": 2**40, "bound": 2**15}, "smaller horizon or bound"),
    ({"epsilon": 1e-6, "horizon": 2**40}, "smaller horizon or bound"),
    ({"epsilon": 1, "bound": 2**40, "horizon": None}, "smaller horizon or bound"),
    ({"epsilon": 1, "method": "none"}, "method must be one of mixed_radix"),
    ({"epsilon": 1, "method": 3}, "method must be one of"),
    ({"epsilon": 1, "method": ["tree"]}, "method must be one of"),
    ({"epsilon": 1, "method": "factorised"}, "factorised needs rho="),
    ({"rho": 1, "method": "segments"}, "segments needs epsilon="),
    ({"epsilon": 1, "method": "tree"}, "say pan_private=False"),
    ({"epsilon": 1, "method": "segments", "pan_private": False}, "leave out pan_private=False"),
    ({"rho": 1, "pan_private": False}, "leave out pan_private=False"),
    ({"epsilon": 1, "method": "segments", "open_steps": True}, "leave out open_steps"),
    ({"rho": 1, "open_steps": True}, "leave out open_steps"),
    ({"epsilon": 1, "open_steps": 1}, "open_steps must be True or False"),
    ({"epsilon": 1, "pan_private": 0}, "pan_private must be True or False"),
    ({"rho": 1, "horizon": None}, "horizon must say"),
    ({"epsilon": 1, "horizon": None, "method": "segments"}, "horizon must say"),
    ({"epsilon": 1, "horizon": None, "pan_private": False}, "horizon must say"),
    ({"rho": 1, "horizon": 2**27}, "a number a step"),
    ({"rho": 1, "bound": 1_001}, "bound of at most 1,000"),
    ({"epsilon": 1, "method": "response", "signed": True}, "leave out signed"),
    ({"epsilon": 1, "method": "delayed", "signed": True}, "leave out signed"),
    ({"epsilon": 1, "signed": 1}, "signed must be True or False"),
]


@pytest.mark.parametrize(("arguments", "said"), PLANS, ids=repr)
def test_what_cannot_be_planned_is_refused(arguments, said):
    with pytest.raises(PlanError) as error:
        Counter(**{"horizon": 100, **arguments})
    assert said in text_of(error)


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("loss", ["1e-6", 1, 10**6], ids=str)
@pytest.mark.parametrize("horizon", [1, 2, 2**40])
def test_extreme_counts_have_answers(name, loss, horizon):
    """What fits; a number for each step of 2**40 does not."""
    if horizon == 2**40 and (loss == "1e-6" or name in {"factorised", "segments"}):
        return
    counter = make(name, loss=loss, bound=1, **({} if "endless" in name else {"horizon": horizon}))
    values = counter.run([1] * min(horizon, 50))
    assert np.isfinite(values).all()
    assert np.isfinite(counter.interval(0.99)).all()
    if loss == 10**6 and name not in {"factorised", "fresh_noise", "delayed"}:
        assert values == pytest.approx(np.arange(1, len(values) + 1), abs=1e-6)


@pytest.mark.parametrize("confidence", [0, 1, -1, math.nan, "0.9", True])
def test_a_confidence_lies_between_0_and_1(confidence):
    counter = make("mixed_radix")
    for act in (
        partial(counter.step, 1, confidence=confidence),
        lambda: counter.interval(confidence),
    ):
        with refusals.confidence():
            act()
    assert counter.tick == 0


@pytest.mark.parametrize("name", NAMED)
def test_nothing_is_left_after_it_is_forgotten(name):
    counter = make(name)
    counter.run([3] * 17)
    cells = counter._kept._memory.cells
    counter.forget()
    counter.forget()
    assert not cells.any()
    acts = [counter.state, counter.interval, lambda: counter.step(1), lambda: counter.run([1])]
    acts += [lambda: counter.tick, lambda: counter.value, lambda: counter.resume(b"")]
    for act in acts:
        with refusals.wiped():
            act()


def test_what_was_there_before_a_resume_is_overwritten():
    counter, earlier = make("fresh_noise"), make("fresh_noise", seed=2)
    cells, others = (one._kept._memory.cells for one in (counter, earlier))
    assert (cells != others).any()
    counter.resume(earlier.state())
    assert (cells == others).all()


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_counter_is_not_copied(copied):
    with refusals.copied():
        copied(make("mixed_radix"))


class Told(Counter):
    """A counter that says what it is told."""

    def __init__(self, answers, bound):
        super().__init__(len(answers), epsilon=1, bound=bound)
        self._answers = np.array(answers)

    def run(self, amounts):
        told, self._answers = np.split(self._answers, [len(amounts)])
        return told


@given(st.data(), st.integers(1, 4), st.lists(st.integers(0, 4), min_size=1, max_size=30))
@settings(max_examples=100)
def test_a_synthetic_count_rises_as_a_count_and_errs_as_the_counter(data, bound, amounts):
    amounts = [min(one, bound) for one in amounts]
    sums = np.cumsum(amounts)
    errors = st.floats(-9, 9, allow_nan=False)
    answers = sums + data.draw(st.lists(errors, min_size=len(sums), max_size=len(sums)))
    synthetic, cut = Synthetic(Told(answers, bound)), data.draw(st.integers(0, len(sums)))
    found = np.concatenate([synthetic.run(amounts[:cut]), synthetic.run(amounts[cut:])])
    rises = np.diff(found, prepend=0)
    assert (rises >= 0).all()
    assert (rises <= bound).all()
    largest = np.maximum.accumulate(np.abs(answers - sums))
    assert (np.abs(found - sums) <= largest + 0.5).all()
    assert found.dtype == np.int64
    assert synthetic.value == found[-1]


def test_a_synthetic_count_follows_its_counter():
    counter = make("mixed_radix", loss=10**6)
    synthetic = Synthetic(counter)
    assert synthetic.value == 0
    assert [synthetic.step(one) for one in (0, 3, 1)] == [0, 3, 4]
    assert synthetic.run([1, 2]).tolist() == [5, 7]
    assert synthetic.counter is counter
    assert counter.tick == 5
    assert synthetic.run([]).tolist() == []
    assert synthetic.value == 7


def test_the_coins_of_the_system_are_the_default():
    assert type(Counter(10, epsilon=1)._kept._coins) is pp.SystemCoins
    first, second = (Counter(1000, epsilon=0.1).run([1] * 1000) for _ in range(2))
    assert first.tolist() != second.tolist()  # some 500 answers above 0, each with noise of its own


@pytest.mark.parametrize("name", NAMED)
def test_the_copy_of_what_steps_add_is_wiped(name, monkeypatch):
    copies, counter = [], make(name)
    run = counter._kept.mechanism.run

    class Watched:
        def __getattr__(self, attribute):
            return getattr(inner, attribute)

        def run(self, memory, amounts, coins):
            copies.append(amounts)
            return run(memory, amounts, coins)

    inner, given = counter._kept.mechanism, np.array([1, 2, 3])
    counter._kept.mechanism = Watched()
    counter.step(3)
    counter.run(given)
    counter._kept._coins.reads_left = 0
    with pytest.raises(EntropyError):
        counter.run(np.resize(given, 30))
    assert [one.size for one in copies] == [1, 3, 30]
    assert not any(one.any() for one in copies)
    assert given.tolist() == [1, 2, 3]


def test_a_synthetic_count_follows_closed_counters_from_where_they_are():
    for other in (5, make("open"), make("mixed_radix", signed=True)):
        with pytest.raises(PlanError, match="must be a Counter, made without open_steps"):
            Synthetic(other)
    counter = make("mixed_radix", horizon=5_000)
    counter.run([3] * 4_000)
    assert Synthetic(counter).value == max(round(counter.value), 0)


def test_what_is_drawn_for_a_randomised_response_does_not_depend_on_amounts():
    class Noting(SystemCoins):
        def __init__(self):
            self.asked = []

        def bernoulli(self, probability, size):
            self.asked.append((probability, size))
            return super().bernoulli(probability, size)

    asked = []
    for amounts in ([0, 0, 0], [3, 1, 0]):
        coins = Noting()
        make("response", coins=coins).run(amounts)
        asked.append(coins.asked)
    assert asked[0] == asked[1]


def test_an_amount_is_answered_with_its_own_probability():
    counter = make("response", coins=SystemCoins(), horizon=60_000, loss=2)
    counter.run([2] * 60_000)
    share = counter._kept._memory.cells[0] / 60_000
    assert share == pytest.approx(1 / 3 * 0.1192 + 2 / 3 * 0.8808, abs=0.011)  # 5 deviations


EDGES = {
    "epsilon": (LEAST_EPSILON, MOST_EPSILON),
    "rho": (LEAST_EPSILON, MOST_EPSILON),
}


@pytest.mark.parametrize("name", EDGES)
def test_a_loss_is_taken_from_end_to_end(name):
    least, most = EDGES[name]
    for loss in (least, most):
        assert Counter(1, **{name: loss}).guarantee is not None
    for loss in (least * Fraction(999, 1_000), most + 1):
        with pytest.raises(PlanError) as refused:
            Counter(1, **{name: loss})
        assert str(refused.value) == (
            f"{name} must be from {float(least):.6f} to {most:,}: most counts need 0.1 to 10"
        )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give either epsilon= or rho=: how much one event may change what is seen"),
        ({"epsilon": 1, "rho": 1}, "give either epsilon= or rho="),
        ({"rho": 1, "bound": 1_001}, "at most 16,777,216 steps, and a bound of at most 1,000"),
        ({"rho": 1, "horizon": (1 << 24) + 1}, "a factorised count keeps a number a step"),
        ({"epsilon": 1, "method": "factorised"}, "factorised needs rho=, not epsilon="),
        ({"rho": 1, "method": "response"}, "response needs epsilon=, not rho="),
        ({"epsilon": 1, "method": "response", "bound": 4_097}, "a bound of at most 4,096"),
        ({"epsilon": 1, "method": "delayed", "bound": 4_097}, "a bound of at most 4,096"),
        (
            {"epsilon": 1, "method": "segments", "horizon": (1 << 24) + 1},
            "a count by segments has at most 16,777,216 steps",
        ),
        ({"epsilon": 1, "method": "none"}, "method must be one of mixed_radix, factorised"),
        ({"epsilon": 1, "method": 7}, "method must be one of mixed_radix, factorised"),
        ({"epsilon": 1, "method": "segments", "open_steps": True}, "segments takes one amount"),
        ({"epsilon": 1, "method": "tree"}, "its state must not be seen: say pan_private=False"),
        (
            {"epsilon": 1, "method": "segments", "pan_private": False},
            "its state may be seen: leave out pan_private=False",
        ),
        ({"epsilon": 1, "horizon": None, "method": "segments"}, "only mixed_radix can do without"),
        ({"epsilon": 1, "horizon": None, "pan_private": False}, "only mixed_radix can do without"),
        ({"epsilon": 1, "horizon": (1 << 34) + 1, "bound": 1 << 20}, "must fit into 64 bits"),
        ({"epsilon": "1/2", "horizon": 1 << 34, "bound": 1 << 20}, "must fit into 64 bits"),
        ({"epsilon": 1, "horizon": None, "bound": (1 << 24) + 1}, "must fit into 64 bits"),
    ],
)
def test_what_a_counter_cannot_be_is_said(given, said):
    with pytest.raises(PlanError) as refused:
        Counter(**{"horizon": 10, **given})
    assert said in str(refused.value)


def test_sums_that_just_fit_are_taken():
    Counter(1 << 34, epsilon=1, bound=1 << 20)
    Counter(1 << 34, epsilon=5, bound=1 << 20)
    Counter(1 << 33, epsilon="1/2", bound=1 << 20)


def test_errors_are_predicted_of_so_many_steps_at_a_time():
    with pytest.raises(PlanError, match="say steps=: at most 134,217,728 can be predicted"):
        Counter((1 << 27) + 1, epsilon=1).predicted_variances()
    with pytest.raises(PlanError, match="steps must be"):
        Counter(10, epsilon=1).predicted_variances(0)


@pytest.mark.parametrize("rho", ["1/2", "1/100", "7"])
def test_the_epsilon_of_a_rho_is_that_of_the_formula_rounded_up(rho):
    loss = Fraction(rho)
    told = Counter(10, rho=loss).guarantee
    exact = float(loss) + 2 * math.sqrt(float(loss) * math.log(1e9))
    assert float(told.epsilon) == pytest.approx(exact, abs=3e-9)
    assert (told.rho, told.delta) == (loss, Fraction(1, 10**9))
    square = (told.epsilon - loss) ** 2
    assert square >= 4 * loss * Fraction(math.log(1e9)) * (1 - Fraction(1, 10**15))


def test_what_a_guarantee_of_events_says():
    plain = Counter(10, epsilon=1).guarantee
    assert (plain.adjacency, plain.delta, plain.rho, plain.looks) == ("event", 0, None, True)
    assert plain.conditions == ("what is hidden is one event, not all events of a user",)
    response = Counter(10, epsilon=1, method="response").guarantee
    assert response.conditions[1:] == ("the state may be seen after every step",)
    assert Counter(10, epsilon=1, method="delayed").guarantee.delta == Fraction(1, 10**9)
    assert not Counter(10, epsilon=1, pan_private=False).guarantee.looks


@pytest.mark.parametrize(
    "amounts", [[[1]], np.ones((2, 2), int), [1.0], ["1"], [[1], [2, 3]], np.array(1)]
)
def test_steps_are_one_row_of_whole_numbers(amounts):
    counter = Counter(10, epsilon=1)
    with pytest.raises(InputError, match="whole numbers, in one row of integers"):
        counter.run(amounts)
    assert counter.tick == 0
    assert counter.run([]).shape == (0,)
    assert counter.run(np.empty(0)).shape == (0,)


@pytest.mark.parametrize(("amounts", "row"), [([4, 0], 1), ([0, 3, -1, 4], 3), ([3, 3, 4], 3)])
def test_an_amount_out_of_range_is_named_by_its_row(amounts, row):
    counter = Counter(10, epsilon=1, bound=3)
    with pytest.raises(InputError) as refused:
        counter.run(amounts)
    assert refused.value.row == row
    assert refused.value.reason == (
        "a step adds a whole number, 0 to 3: for more, make it with bound=, for less with "
        "signed=True"
    )
    for amount in (4, -1, 1.0, "1", None, np.timedelta64(1)):
        with pytest.raises(InputError, match="0 to 3"):
            counter.step(amount)
    counter.step(3)
    assert counter.step(np.int8(0)).unit == "events"


SIGNED = [name for name in NAMED if name not in {"response", "delayed"}]


@pytest.mark.parametrize("name", SIGNED)
def test_what_takes_back_is_counted_with_its_sign(name):
    """By the same noise: answers differ by the sum of what is added, whatever its sign."""
    amounts = np.array([3, -3, -2, 0, 1, -3, 2])
    one, other = make(name, signed=True), make(name, signed=True)
    moved = one.run(amounts) - other.run(-amounts)
    assert (one.bound, one.signed, one.tick) == (3, True, 7)
    if name != "segments":
        assert moved == pytest.approx(2 * np.cumsum(amounts))
    low, high = one.interval(0.999)
    assert low < 0 < high
    assert one.value - low == pytest.approx(high - one.value)


@pytest.mark.parametrize("amount", [4, -4, 1.0, None])
def test_a_signed_step_is_within_the_bound_either_way(amount):
    counter = make("mixed_radix", signed=True)
    with pytest.raises(InputError, match=r"whole number, -3 to 3: for more, make it with bound=$"):
        counter.step(amount)
    assert counter.step(-3).unit == "events"


def test_a_state_says_whether_steps_are_signed():
    """One of before does not, and is gone on from."""
    plain, signed = make("mixed_radix"), make("mixed_radix", signed=True)
    assert b"signed" not in plain.state()
    with pytest.raises(InputError):
        make("mixed_radix").resume(signed.state())
    again = make("mixed_radix", signed=True)
    again.resume(signed.state())
    assert again.state() == signed.state()
