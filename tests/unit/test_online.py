"""Counters, experts and lists as they are used: steps, states, budgets, and what they refuse."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.errors import BudgetError, InputError, PlanError
from panprivacy.papers.online import ListUpdate, MultiCounter, PrivateExperts
from panprivacy.papers.online import multi_counter as module
from panprivacy.papers.online.counter_array import CounterArray
from panprivacy.tables.counters import forest
from tests import refusals
from tests.contract.doubles import BreakableCoins, EntropyError
from tests.contract.reachable import leaves, undeclared

FIXED = struct.calcsize("<8sIQIIQ")
"""Bytes before the front of a state."""
EXACT = 10**6
"""An epsilon at which noise is 0."""
pytestmark = pytest.mark.filterwarnings("ignore:epsilon .* protects nobody")

KINDS = {
    "counters": (MultiCounter, {"n": 5, "horizon": 40, "every": 3}),
    "list": (ListUpdate, {"n": 5, "horizon": 40, "every": 3, "weights": 4}),
    "advice": (PrivateExperts, {"n": 5, "horizon": 40, "unit": "advice"}),
    "round": (PrivateExperts, {"n": 5, "horizon": 40, "unit": "round", "perturbation": 2}),
}
COUNTING = ["counters", "list"]
DECIDING = ["advice", "round"]


def make(name, seed=1, *, epsilon=1, coins=None, **changed):
    kind, sizes = KINDS[name]
    return kind(**{**sizes, **changed}, epsilon=epsilon, coins=coins or BreakableCoins(seed))


def live(program, steps=10, first=0):
    """Let it live through some steps: events of one counter after another, and of none."""
    places = np.arange(first, first + steps) % 6 - 1
    if isinstance(program, PrivateExperts):
        program.run(places[:, None] == np.arange(program.n))
    else:
        program.run(places)


def told(program):
    """All that it tells."""
    shown = [getattr(program, name, None) for name in ("choice", "answered", "tick")]
    return [*shown, *program.values.tolist(), *getattr(program, "places", np.empty(0)).tolist()]


# Counts


@pytest.mark.parametrize("every", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("cuts", [[0], [1], [4, 5, 6], [13], list(range(40))])
@pytest.mark.parametrize("most", [1, 12, 1 << 20])
def test_counts_without_noise_are_those_up_to_the_last_answer(every, cuts, most, monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", most)
    program = make("counters", epsilon=EXACT, every=every)
    which = np.random.default_rng(every).integers(-1, 5, 40)
    for part in np.split(which, cuts):
        program.run(part)
        assert program.answered == program.tick // every * every
        seen = which[: program.answered]
        assert program.values.tolist() == np.bincount(seen[seen >= 0], minlength=5).tolist()
    assert program.tick == 40


def test_events_of_an_open_step_count_when_answers_are_due():
    program = make("counters", epsilon=EXACT, every=2)
    program.count([0, 0, 3])
    program.step()
    program.count(np.array([3], np.uint8))
    assert program.values.tolist() == [0] * 5
    program.step()
    assert program.values.tolist() == [2, 0, 0, 2, 0]
    program.count([])
    program.run([4, 4, 1])
    assert program.values.tolist() == [2, 0, 0, 2, 2]
    program.step()
    assert program.values.tolist() == [2, 1, 0, 2, 2]


def test_a_run_and_its_steps_are_the_same():
    """All coins are drawn for an answer, whichever way its events have come."""
    one, other = make("counters", seed=4), make("counters", seed=4)
    which = [3, 1, -1, 3, 0, 2, 2, -1]
    for event in which:
        one.count([event] if event >= 0 else [])
        one.step()
        other.run([event])
    assert one.state() == other.state()


def test_the_default_answers_as_often_as_a_logarithm_of_work_allows():
    assert [MultiCounter(n, 100, epsilon=1).every for n in (1, 2, 3, 100, 10_000)] == [
        1, 1, 2, 15, 715,
    ]  # fmt: skip


@pytest.mark.parametrize("confidence", [0.5, 0.999])
def test_the_largest_error_is_the_least_that_is_proved(confidence):
    program = make("counters", n=100, horizon=3_000)
    squares, most = program._kept.forest.exponents()
    answers = 100 * 1_000  # one every third step
    thetas = np.linspace(0, most, 10_001)[1:]
    proved = 2 * thetas * squares + math.log(2 * answers / (1 - confidence)) / thetas
    assert program.largest_error(confidence) == pytest.approx(proved.min(), rel=1e-6)


# Experts


def test_whoever_has_the_fewest_mistakes_is_followed():
    program = make("advice", epsilon=EXACT, perturbation=0)
    wrong = np.ones((7, 5), bool)
    wrong[2:, 3] = wrong[4:, 1] = False
    followed = program.run(wrong[:4])
    assert followed[3:].tolist() == [3]
    assert program.choice == 3
    assert program.round(wrong[4].tolist()) == 3
    assert program.values.tolist() == [5, 4, 5, 2, 5]
    assert program.run(np.empty((0, 5), bool)).tolist() == []


def test_a_perturbation_of_the_default_scale_has_the_least_bound():
    chosen = make("advice", n=4, horizon=10_000)
    best = chosen.bound(5_000)
    for factor in (0.7, 1.4):
        other = make("advice", n=4, horizon=10_000, perturbation=int(factor * chosen.perturbation))
        assert 0.97 * best < other.bound(5_000) < 1.2 * best
    assert chosen.bound(0) < chosen.bound(100) < best
    for perturbation in (0, 1, None):  # none, too little, and too few rounds
        assert make("advice", perturbation=perturbation).bound(20) == 40


@pytest.mark.parametrize("unit", ["advice", "round"])
def test_how_far_noise_strays_is_the_least_that_is_proved(unit):
    experts = make("advice", unit=unit, n=40, horizon=10_000)
    squares, most = experts._kept.forest.exponents()
    thetas = np.linspace(0, most, 10_001)[1:]
    found, theta = experts._strays()
    assert found == pytest.approx((math.log(40) / thetas + 4 * thetas * squares).min(), rel=1e-6)
    assert 0 < theta <= most


def test_choices_are_perturbed_anew_each_round():
    program = make("advice", epsilon=EXACT, perturbation=1_000)
    assert len(set(program.run(np.zeros((30, 5), bool)).tolist())) > 2


def test_a_guarantee_says_what_the_unit_is():
    assert "one event is what one expert advised in one round" in str(make("advice").guarantee)
    assert "one event is all advice and the outcome of one round" in str(make("round").guarantee)
    assert make("round").predicted_error() > 4 * make("advice").predicted_error()


# Lists


def test_a_list_is_ordered_by_counts_and_weights():
    shelf = make("list", epsilon=EXACT, weights=1, every=2)
    assert shelf.order.tolist() == [0, 1, 2, 3, 4]
    assert shelf.serve([4, 4, 4, 3, -1, 3, 3]).tolist() == [5, 5, 1, 5, 0, 2, 2]
    assert shelf.order.tolist() == [4, 3, 0, 1, 2]
    assert shelf.places.tolist() == [3, 4, 5, 2, 1]
    shelf.run([0])
    assert shelf.order.tolist() == [3, 4, 0, 1, 2]


@pytest.mark.parametrize("cuts", [[0], [1], [2, 9], list(range(40))])
def test_requests_cost_their_places_when_they_come(cuts):
    shelf, other = make("list", epsilon=EXACT), make("list", epsilon=EXACT)
    requests = np.random.default_rng(2).integers(0, 5, 40)
    costs = np.concatenate([shelf.serve(part) for part in np.split(requests, cuts)])
    expected = []
    for one in requests:
        expected.append(int(other.places[one]))
        other.run([one])
    assert costs.tolist() == expected
    assert shelf.state() == other.state()


def test_weights_are_drawn_once_and_kept():
    drawn = {tuple(make("list", seed=seed)._weights.tolist()) for seed in range(30)}
    assert {one for weights in drawn for one in weights} == {1, 2, 3, 4}
    assert len(drawn) > 20


def test_the_default_weights_have_the_least_bound():
    best = make("list", weights=None, horizon=10**5)
    for factor in (0.7, 1.4):
        other = make("list", weights=int(factor * best.largest_weight), horizon=10**5)
        assert best.bound() < other.bound() < 1.2 * best.bound()
    assert best.bound(100) < best.bound()


def test_without_noise_the_bound_is_that_of_weights_and_of_requests_not_yet_told():
    shelf = make("list", epsilon=EXACT, every=3, weights=4)
    weights, requests = 10 * 4 / 6, 4 * 30 * (3 + 3) / 2 / 4
    assert shelf.bound(30) == pytest.approx(weights + requests)


# States


@pytest.mark.parametrize("name", KINDS)
def test_a_program_goes_on_from_its_state_at_every_tick(name):
    for tick in range(8):
        earlier, later = make(name, seed=tick), make(name, seed=99)
        live(earlier, tick)
        later.resume(earlier.state())
        assert later.state() == earlier.state()
        assert told(later) == told(earlier)
        coins = BreakableCoins(5)
        earlier._coins = later._coins = earlier._kept._coins = coins
        live(earlier, 7, tick)
        later._kept._coins = later._coins = BreakableCoins(5)
        live(later, 7, tick)
        assert later.state() == earlier.state()
        assert later.state_bytes == len(later.state())


@pytest.mark.parametrize("name", KINDS)
def test_steps_that_were_made_after_a_state_are_never_made_again(name):
    earlier, later = make(name, epsilon=EXACT), make(name, epsilon=EXACT)
    live(earlier, 8)
    state, before = earlier.state(), earlier.values.tolist()
    live(earlier, 12, 8)
    later.resume(state, released=20)
    assert later.tick == 20
    assert later.values.tolist() == before
    live(later, 6, 20)
    again = make(name, epsilon=EXACT)
    live(again, 6, 20)
    assert later.values.tolist() == (again.values + before).tolist()
    live(later, 14, 26)
    with pytest.raises(BudgetError, match="0 of 40 steps are left, and 1 were to be made"):
        live(later, 1)
    third = make(name, epsilon=EXACT)
    third.resume(later.state())
    assert told(third) == told(later)


@pytest.mark.parametrize("name", KINDS)
def test_announced_intrusions_cost_noise_and_no_epsilon(name):
    program = make(name)
    live(program, 7)
    state, shown = program.state(), told(program)
    program.announce_intrusion()
    assert program.state() != state
    assert told(program) == shown
    assert program.ledger.spent == program.ledger.total == 1
    later = make(name, seed=2)
    later.resume(program.state(), announced=1)
    assert later.state() == program.state()
    more = make(name, seed=3)
    more.resume(program.state(), announced=3)
    front = FIXED + len(more.front)
    changed = more.state()[front:] != program.state()[front:]
    assert changed == (name in COUNTING)  # of few rounds no node is open between two
    with refusals.begun():
        program.resume(state)


@pytest.mark.parametrize("name", COUNTING)
def test_each_announcement_after_a_state_was_taken_adds_noise_once(name, monkeypatch):
    program, later, again = (make(name, seed=seed) for seed in (1, 2, 3))
    live(program, 7)
    program.announce_intrusion()
    calls, rerandomise = [], CounterArray.rerandomise
    monkeypatch.setattr(
        CounterArray, "rerandomise", lambda kept: (calls.append(1), rerandomise(kept))
    )
    later.resume(program.state(), announced=3)
    assert len(calls) == 2
    again.resume(later.state(), announced=3)  # it knows these
    assert len(calls) == 2
    assert again.state() == later.state() != program.state()


@pytest.mark.parametrize("name", COUNTING)
def test_noise_of_an_announcement_widens_what_follows(name):
    seen, plain = make(name, every=2), make(name, every=2)
    for program in (seen, plain):
        live(program, 7)
        if program is seen:
            program.announce_intrusion()
        live(program, 5, 7)
    assert seen._now.last.numbers[0] > plain._now.last.numbers[0]


@pytest.mark.parametrize("name", KINDS)
def test_damage_is_refused_or_harmless_and_changes_nothing(name):
    earlier, program = make(name), make(name, seed=2)
    live(earlier, 7)
    state, own = earlier.state(), program.state()
    front = FIXED + len(program.front)
    generator = np.random.default_rng(4)
    for place in {*range(FIXED), *generator.integers(FIXED, len(state), 150).tolist()}:
        damaged = bytearray(state)
        damaged[place] ^= 1 << int(generator.integers(8))
        try:
            program.check_state(bytes(damaged))
        except InputError:
            with pytest.raises(InputError):
                program.resume(bytes(damaged))
            assert program.state() == own
        else:
            assert place >= front or FIXED - 12 <= place < FIXED  # noised numbers, public counts
            later = make(name, seed=3)
            later.resume(bytes(damaged))
            assert all(map(math.isfinite, told(later)[2:]))
    for damaged in (b"", state[:-1], state[:FIXED], state + b"\0", state[:front]):
        with pytest.raises(InputError):
            program.resume(damaged)
    cells = program._kept._memory.cells.nbytes
    for back in range(front + cells, front + program._kept.nbytes, 8):
        for value in (math.nan, math.inf):
            damaged = bytearray(state)
            struct.pack_into("<d", damaged, back, value)
            with refusals.spoilt():
                program.check_state(bytes(damaged))
    assert program.state() == own


@pytest.mark.parametrize(
    ("name", "said"), [("advice", "no such expert"), ("list", "no such weight")]
)
def test_what_else_is_kept_is_checked(name, said):
    earlier, program = make(name), make(name, seed=2)
    own = program.state()
    for value in (5, -1, 1 << 60):
        state = bytearray(earlier.state())
        struct.pack_into("<q", state, len(state) - 8, value)
        with pytest.raises(InputError, match=said):
            program.resume(bytes(state))
    assert program.state() == own


@pytest.mark.parametrize("name", KINDS)
def test_the_state_of_another_program_is_refused(name):
    state = make(name).state()
    others = [make(name, horizon=41), make(name, n=6), make(name, epsilon=2)]
    others += [make(other) for other in KINDS if other != name]
    for other in others:
        with pytest.raises(InputError, match="the state is of"):
            other.resume(state)


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_left_after_it_is_forgotten(name):
    program = make(name)
    live(program)
    cells = program._kept._memory.cells
    program.forget()
    program.forget()
    assert not cells.any()
    acts = [program.state, program.predicted_error, lambda: live(program), lambda: program.tick]
    acts += [lambda: program.values, lambda: program.resume(b""), program.announce_intrusion]
    acts += [lambda: program.choice] if name in DECIDING else [program.step, program.interval]
    for act in acts:
        with refusals.wiped():
            act()


@pytest.mark.parametrize("name", KINDS)
def test_no_copy_of_events_is_left(name, monkeypatch):
    copies, program = [], make(name)
    planted = type(program._kept.forest)
    for method in ("run", "count"):
        inner = getattr(planted, method)

        def watched(self, memory, amounts, *coins, inner=inner):
            copies.append(amounts)
            return inner(self, memory, amounts, *coins)

        monkeypatch.setattr(planted, method, watched)
    live(program, 10)
    program._kept._coins.reads_left = 0
    before = program.tick
    with pytest.raises(EntropyError):
        live(program, 5, 3)
    assert program.tick == before
    assert len(copies) >= 2 or name in DECIDING
    assert not any(one.any() for one in copies)


@pytest.mark.parametrize("name", KINDS)
def test_coins_that_fail_leave_everything_as_it_was(name):
    program = make(name)
    live(program, 7)
    state, shown = program.state(), told(program)
    for reads in range(2 if name in DECIDING else 1):
        program._kept._coins.reads_left = reads
        if name in COUNTING:
            with pytest.raises(EntropyError):
                program.announce_intrusion()
        with pytest.raises(EntropyError):
            live(program, 5)
        program._kept._coins.reads_left = math.inf
        assert (program.state(), told(program)) == (state, shown)


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize("reads", range(2))
def test_a_program_that_cannot_go_on_from_a_state_stays_as_it_is(name, reads):
    earlier, later = make(name), make(name, seed=2)
    live(earlier, 7)
    state, shown, cells = later.state(), told(later), later._kept._memory.cells
    later._coins.reads_left = reads  # for what starts anew, and a look
    with pytest.raises(EntropyError):
        later.resume(earlier.state(), released=9, announced=1)
    assert (later.state(), told(later)) == (state, shown)
    assert later._kept._memory.cells is cells


def interrupted(function):
    """An interrupt that came while a function ran, and is seen once it has returned."""

    def first(*given):
        function(*given)
        raise KeyboardInterrupt

    return first


@pytest.mark.parametrize("name", KINDS)
def test_an_interrupt_of_the_kernel_leaves_the_memory_as_it_was(name, monkeypatch):
    """Else the nodes of the last step, of which none has noise, would count what comes next."""
    program = make(name)
    live(program, 9)
    state = program.state()
    with monkeypatch.context() as patched:
        patched.setattr(forest, "_advance_all", interrupted(forest._advance_all))
        with pytest.raises(KeyboardInterrupt):
            live(program, 30)
    assert program.state() == state


@pytest.mark.parametrize("name", KINDS)
def test_after_an_interrupt_no_more_steps_are_made_than_there_are_nodes_for(name, monkeypatch):
    program = make(name)
    with monkeypatch.context() as patched:
        patched.setattr(forest.Forest, "run", interrupted(forest.Forest.run))
        with pytest.raises(KeyboardInterrupt):
            live(program, 40)
    assert 39 <= program.tick <= 40
    assert program._kept._memory.tick == program._kept.answered // program._kept.every
    with pytest.raises(BudgetError):
        live(program, 2)


# Budgets and bad input


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize(
    ("which", "said"),
    [
        ([0, 5], "row 2 .*: each is a whole number, 0 to 4"),
        ([-2], "row 1 .*: each is a whole number, 0 to 4"),
        ([0.5], "say which by whole numbers"),
        ([[1, 2]], "say which by whole numbers"),
        ([[1], [1, 2]], "say which by whole numbers"),
        (np.array([0, 2**63], np.uint64), "row 2 .*"),
        (3, "say which by whole numbers"),
    ],
)
def test_events_of_no_counter_are_refused(name, which, said):
    program = make(name)
    live(program, 4)
    state = program.state()
    for act in (program.run, program.count, getattr(program, "serve", program.run)):
        with pytest.raises(InputError, match=said) as error:
            act(which)
        assert "5," not in str(error.value).partition(":")[2]
    with pytest.raises(InputError, match="row 1"):
        program.count([-1])
    assert program.state() == state


@pytest.mark.parametrize(
    "mistakes",
    [[[True] * 4], [True] * 5, [[0, 1, 0, 1, 0]], [[True] * 5, [True]], [["a"] * 5], None, []],
)
def test_mistakes_that_are_no_table_are_refused(mistakes):
    program = make("advice")
    live(program, 4)
    state = program.state()
    for act in (partial(program.run, mistakes), partial(program.round, [1, 0, 1, 0, 0])):
        with pytest.raises(InputError, match="True or False for each of 5 experts"):
            act()
    assert program.state() == state


@pytest.mark.parametrize("name", KINDS)
def test_there_are_no_more_steps_than_the_horizon(name):
    program = make(name)
    live(program, 38)
    state = program.state()
    with pytest.raises(BudgetError, match="2 of 40 steps are left, and 3 were to be made"):
        live(program, 3)
    assert program.state() == state
    live(program, 2)
    if name in COUNTING:
        for act in (program.step, lambda: program.count([1])):
            with pytest.raises(BudgetError):
                act()


@pytest.mark.parametrize(
    ("name", "changed", "said"),
    [
        ("counters", {"n": 0}, "n must be a whole number of at least 1"),
        ("counters", {"horizon": 0}, "horizon must be"),
        ("counters", {"every": 0}, "every must be"),
        ("counters", {"n": 1 << 30}, "n must be at most"),
        ("counters", {"horizon": 1 << 40, "every": 1}, "at most 16,777,216 answers"),
        (
            "counters",
            {"n": 1, "horizon": 1 << 40, "every": 1 << 16, "epsilon": Fraction(1, (1 << 14) + 1)},
            "must fit into 64 bits",
        ),
        ("counters", {"epsilon": 0}, "epsilon must be"),
        ("counters", {"epsilon": 10**7}, "most counts need"),
        ("list", {"n": 1}, "n must be a whole number of at least 2"),
        ("list", {"weights": 0}, "weights must be"),
        ("advice", {"n": 1}, "n must be a whole number of at least 2"),
        ("advice", {"unit": "user"}, '"advice" for what one expert advised'),
        ("advice", {"unit": None}, "unit must say what one event is"),
        ("advice", {"perturbation": -1}, "perturbation must be"),
        ("advice", {"perturbation": 0.5}, "perturbation must be"),
    ],
)
def test_what_cannot_be_planned_is_refused(name, changed, said):
    ledger = pp.Ledger(1)
    with pytest.raises(PlanError, match=said):
        make(name, **{"ledger": ledger, **changed})
    assert ledger.spent == 0


def test_experts_have_no_unit_unless_somebody_says_it():
    with pytest.raises(TypeError, match="unit"):
        PrivateExperts(3, 10, epsilon=1)


def test_confidence_lies_between_0_and_1():
    program = make("counters")
    for act in (program.interval, program.largest_error):
        for wrong in (0, 1, 1.5, "a"):
            with refusals.confidence():
                act(wrong)


# What an intruder finds


NOISED = {"_kept._memory.cells", "_kept._memory.told", "_kept._known"}
"""What has noise, and answers."""
PUBLIC = {"_choice", "_places"}
"""What is decided by answers alone."""


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("steps", [1, 3, 8])
def test_nothing_but_noised_counts_and_answers_depends_on_events(name, steps):
    found = []
    for first in (0, 3):
        program = make(name)
        live(program, steps, first)
        getattr(program, "places", None)
        held = {path: one for path, one in leaves(program).items() if "_coins" not in path}
        as_text = {
            path: one.tobytes() if isinstance(one, np.ndarray) else repr(one)
            for path, one in held.items()
        }
        found.append(as_text)
    differing = {path for path in found[0] if found[0][path] != found[1][path]}
    assert found[0].keys() == found[1].keys()
    assert {path.removesuffix(".base") for path in differing} <= NOISED | PUBLIC
    assert differing & NOISED


DECLARED = {
    "_account", "_coins", "_each", "_epsilon", "_intrusions", "_kept", "_ledger", "_open_steps",
    "_sizes",
    "_choice", "_perturbation", "_places", "_places_of", "_weights",
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_nothing_undeclared_is_reachable(name):
    program = KINDS[name][0](**KINDS[name][1], epsilon=1)
    live(program)
    getattr(program, "places", None)
    held = {path for one in NOISED | PUBLIC | {"_weights"} for path in (one, f"{one}.base")}
    assert undeclared(program, DECLARED, held) == set()


def test_after_a_crash_the_noise_of_the_last_answers_stays_in_those_that_follow():
    program, later = (make("counters") for _ in range(2))
    live(program, 6)
    later.resume(program.state(), released=7)
    before = program._kept.last.numbers[:2].copy()
    later.step()
    later.step()
    later.step()
    first = later._kept.forest.variances()[0]
    assert later._kept.last.numbers[0] == pytest.approx(before[0] + first)
    assert later._kept.last.numbers[1] > before[1]


@pytest.mark.parametrize("start", [1.0, 0.5, -1.0, 41.0])
def test_a_state_that_began_at_no_step_that_was_made_is_refused(start):
    kept = make("counters")._kept
    body, memory = bytearray(kept.packed()), kept._memory
    kept.check(0, memoryview(body))
    struct.pack_into("<d", body, memory.cells.nbytes + memory.told.nbytes, start)
    with refusals.spoilt():
        kept.check(0, memoryview(body))


@pytest.mark.parametrize("epsilon", [0.01, 1, 100])
def test_exponents_are_taken_where_they_are_proved(epsilon):
    experts = make("advice", n=1_000, horizon=2, epsilon=epsilon)
    _, theta = experts._strays()
    assert 0 < theta <= experts._kept.forest.exponents()[1]


def test_a_list_that_was_looked_at_has_the_order_of_the_state_that_it_goes_on_from():
    program, later = make("list", seed=1), make("list", seed=2)
    own = later.order.tolist()
    later.resume(program.state())
    assert later.order.tolist() == program.order.tolist() != own
