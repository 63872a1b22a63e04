"""What running counts add up, whatever the noise, and how far it makes them stray."""

from __future__ import annotations

import itertools
import math
import zlib
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from panprivacy.privacy.guarantee import randomised_response
from panprivacy.tables.counters import delayed, factorised, shapes, tree
from panprivacy.tables.counters.accumulator import Accumulator
from panprivacy.tables.counters.delayed import Delayed
from panprivacy.tables.counters.endless import Endless
from panprivacy.tables.counters.factorised import Factorised
from panprivacy.tables.counters.mechanism import Silent, variances
from panprivacy.tables.counters.naive import FreshNoise, NoisySteps, RandomisedResponseCounter
from panprivacy.tables.counters.running import Running
from panprivacy.tables.counters.tree import Tree
from tests.contract.doubles import BreakableCoins

ONE = Fraction(1)


def deep(horizon, loss, bound, *, open_steps=False):
    """A tree of few children, as the best one of many steps has many levels."""
    radices = (3, *[2] * max((-(-horizon // 3) - 1).bit_length(), 1))
    shares = shapes.best_shares(radices, 1 + open_steps, 2)
    return Tree(horizon, loss, radices, shares, bound, open_steps, combined=True)


EXACT = {
    "mixed radix": shapes.mixed_radix,
    "mixed radix, open": lambda steps, loss, bound: shapes.mixed_radix(
        steps, loss, bound, open_steps=True
    ),
    "mixed radix, exposed": lambda steps, loss, bound: shapes.mixed_radix(
        steps, loss, bound, pan_private=False
    ),
    "deep": deep,
    "deep, open": lambda *arguments: deep(*arguments, open_steps=True),
    "tree": lambda steps, loss, bound: shapes.even_tree(steps, loss, bound, pan_private=False),
    "twice noised": lambda steps, loss, bound: shapes.even_tree(
        steps, loss, bound, pan_private=True
    ),
    "segments": shapes.segments,
    "endless": lambda steps, loss, bound: Endless(loss, bound),
    "endless, open": lambda steps, loss, bound: Endless(loss, bound, open_steps=True),
    "accumulator": Accumulator,
    "noisy steps": NoisySteps,
    "fresh noise": FreshNoise,
    "factorised": Factorised,
}
"""All whose answers are exact without noise."""
OPEN = ["mixed radix, open", "deep, open", "endless, open"]
TREES = [
    "mixed radix", "mixed radix, open", "mixed radix, exposed", "deep", "deep, open",
    "tree", "twice noised", "segments",
]  # fmt: skip
ALL = {**EXACT, "response": RandomisedResponseCounter}


class Streams(Silent):
    """Coins whose noise of one scale is the same, one by one, however it is drawn."""

    def __init__(self, seed=0):
        self._seed, self._streams = seed, {}

    def _next(self, what, size):
        start = [self._seed, zlib.crc32(repr(what).encode())]
        stream = self._streams.setdefault(what, np.random.default_rng(start))
        return stream.random(size)

    def bernoulli(self, probability, size):
        return (self._next(probability, size) < float(probability)).astype(np.uint8)

    def discrete_laplace(self, scale, size):
        return np.floor(self._next(scale, size) * 1001).astype(np.int64) - 500

    discrete_gaussian = discrete_laplace


class Given(Silent):
    """Coins that play back noise and note its parameters; then there is none."""

    def __init__(self, noise=()):
        self.asked, self._noise = [], list(noise)

    def discrete_laplace(self, scale, size):
        self.asked += [scale] * size
        given, self._noise = self._noise[:size], self._noise[size:]
        return np.array(given + [0] * (size - len(given)), np.int64)

    discrete_gaussian = discrete_laplace


def taken(mechanism, coins, amounts, cuts=(), looks=()):
    """The answers of runs in pieces, as one table each, and the memory at the end."""
    memory, parts = mechanism.initial(coins), []
    edges = sorted({0, *(cut for cut in cuts if cut < len(amounts)), len(amounts)})
    for start, end in itertools.pairwise(edges):
        answers = mechanism.run(memory, np.array(amounts[start:end], np.int64), coins)
        parts.append([answers.values, answers.variances, answers.fourths])
        if end in looks:
            mechanism.rerandomise(memory, coins)
    assert memory.tick == len(amounts)
    return np.concatenate(parts, axis=1), memory


@st.composite
def streams(draw, most=200):
    """A horizon, a bound, amounts, and where the runs end."""
    horizon, bound = draw(st.integers(1, most)), draw(st.sampled_from([1, 2, 7, 1_000]))
    steps = draw(st.integers(1, horizon))
    amounts = draw(st.lists(st.integers(0, bound), min_size=steps, max_size=steps))
    return horizon, bound, amounts, draw(st.lists(st.integers(1, most), max_size=6))


@pytest.mark.parametrize("name", EXACT)
@given(streams())
@example((1, 1, [1], []))
@example((200, 1_000, [1_000] * 200, [*range(200)]))
@settings(max_examples=10)
def test_without_noise_every_answer_is_the_sum(name, stream):
    horizon, bound, amounts, cuts = stream
    mechanism = EXACT[name](horizon, ONE, bound)
    found, _ = taken(mechanism, Silent(), amounts, cuts)
    ticks = np.arange(1, len(amounts) + 1)
    lag = np.cumsum(amounts) - found[0]
    hidden = np.array([mechanism.hidden(SimpleNamespace(tick=int(tick))) for tick in ticks])
    assert (lag > -1e-6).all()
    assert (lag < hidden + 1e-6).all()
    assert name == "segments" or not hidden.any()
    if name != "factorised":
        assert np.array_equal(found[0], np.rint(found[0]))


@pytest.mark.parametrize("name", [name for name in ALL if name != "accumulator"])
@given(streams(most=60), st.integers(0, 3))
@settings(max_examples=8)
def test_steps_in_pieces_are_those_of_one_run(name, stream, seed):
    """Not only in law: where one scale is drawn in the order of time, each answer is the same."""
    horizon, bound, amounts, cuts = stream
    mechanism = ALL[name](horizon, ONE, bound)
    whole, memory = taken(mechanism, Streams(seed), amounts)
    pieces, later = taken(mechanism, Streams(seed), amounts, cuts)
    assert pieces == pytest.approx(whole, rel=1e-9, abs=1e-5)
    assert np.array_equal(later.cells, memory.cells)
    assert later.told == pytest.approx(memory.told, rel=1e-9, abs=1e-5)


@pytest.mark.parametrize("name", ["endless", "endless, open"])
def test_one_tree_follows_another_in_any_pieces(name):
    amounts = np.random.default_rng(3).integers(0, 8, 5_000)
    mechanism = EXACT[name](None, ONE, 7)
    exact, _ = taken(mechanism, Silent(), amounts)
    assert np.array_equal(exact[0], np.cumsum(amounts))
    whole, memory = taken(mechanism, Streams(), amounts)
    cuts = [1, 255, 256, 257, 2_000, 2_303, 2_304, 2_305, 2_816]
    pieces, later = taken(mechanism, Streams(), amounts, cuts)
    assert pieces == pytest.approx(whole, rel=1e-12)
    assert np.array_equal(later.cells, memory.cells)


def cumulants(name, parameter):
    """The variance and the fourth cumulant of one noise, summed up from its law."""
    if name == "factorised":
        return float(parameter), 0.0
    numbers = np.arange(-math.ceil(60 * parameter), math.ceil(60 * parameter) + 1)
    law = np.exp(-np.abs(numbers) / float(parameter))
    law /= law.sum()
    variance = (law * numbers**2.0).sum()
    return variance, (law * numbers**4.0).sum() - 3 * variance**2


@pytest.mark.parametrize("loss", [Fraction(1, 2), Fraction(6)], ids=str)
@pytest.mark.parametrize("looks", [(), (4,), (3, 6, 11)], ids=str)
@pytest.mark.parametrize("name", EXACT)
def test_answers_stray_as_predicted(name, looks, loss):
    """Each is a sum of noises, and the weight of a noise is what an answer gains if it is one."""
    mechanism, amounts, cuts = EXACT[name](13, loss, 1), [1] * 13, [2, *looks, 12]
    silent = Given()
    found, _ = taken(mechanism, silent, amounts, cuts, looks)
    sums, exact = found[0], np.zeros((2, 13))
    for place, parameter in enumerate(silent.asked):
        impulse = [0] * place + [1]
        gained = taken(mechanism, Given(impulse), amounts, cuts, looks)[0][0] - sums
        variance, fourth = cumulants(name, parameter)
        exact += gained**2 * variance, gained**4 * fourth
    assert found[1] == pytest.approx(exact[0], rel=1e-6)
    assert found[2] == pytest.approx(exact[1], rel=1e-6)
    if not looks:
        assert variances(mechanism, 13) == pytest.approx(exact[0], rel=1e-6)


GROWING = [name for name in EXACT if name not in {"noisy steps", "tree", "mixed radix, exposed"}]


@pytest.mark.parametrize("name", GROWING)
def test_a_look_makes_later_answers_stray_more_and_no_earlier_ones(name):
    mechanism, amounts = EXACT[name](400, ONE, 1), [1] * 400
    calm, _ = taken(mechanism, Silent(), amounts)
    seen, _ = taken(mechanism, Silent(), amounts, [200], [200])
    assert seen[0] == pytest.approx(calm[0], abs=1e-6)
    assert seen[1][:200] == pytest.approx(calm[1][:200])
    assert (seen[1][200:] >= calm[1][200:] * (1 - 1e-9)).all()
    assert seen[1].sum() > calm[1].sum() * 1.001


@pytest.mark.parametrize("loss", [Fraction(1, 3), Fraction(7, 2)], ids=str)
@pytest.mark.parametrize("bound", [1, 5])
@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("horizon", [1, 2, 9, 300])
def test_a_step_spends_all_of_epsilon_on_its_way_and_no_more(name, horizon, bound, loss):
    tree = EXACT[name](horizon, loss, bound)
    for tick in range(horizon):
        spent = sum(bound / scale for scale in tree.scales(tick) if scale)
        assert spent <= loss
        if name not in {"tree", "twice noised", "segments"}:
            assert spent > loss * Fraction(95, 100)
    assert name in {"tree", "twice noised"} or spent > loss * Fraction(95, 100)


@pytest.mark.parametrize("bound", [1, 5])
def test_noise_has_the_scale_that_the_proofs_ask_for(bound):
    def asked(mechanism, steps=None):
        coins = Given()
        memory = mechanism.initial(coins)
        if steps:
            mechanism.run(memory, np.zeros(steps, np.int64), coins)
        return coins.asked

    loss = Fraction(1, 2)
    assert set(asked(NoisySteps(9, loss, bound), 9)) == {bound / loss}
    assert len(asked(NoisySteps(9, loss, bound), 9)) == 9
    assert set(asked(Accumulator(9, loss, bound), 9)) == {5 * bound / loss}
    assert len(asked(Accumulator(9, loss, bound), 9)) == 1 + 9 + 5 + 3 + 2
    assert set(asked(Accumulator(8, loss, bound), 8)) == {4 * bound / loss}
    birth, *others = asked(FreshNoise(9, loss, bound), 9)
    assert len(others) == 9
    assert len(set(others)) == 1
    assert bound / birth + 8 * bound / others[0] == loss
    assert 9 * bound / others[0] <= loss
    squares = sum((math.comb(2 * k, k) / 4**k) ** 2 for k in range(9)) * factorised.UNIT**2
    (variance,) = set(asked(Factorised(9, loss, bound), 9))
    assert float(variance) == pytest.approx(squares * bound**2 / (2 * float(loss)), rel=1e-3)
    exact = sum(int(one) ** 2 for one in factorised.strategy(9).tolist())
    assert exact * bound**2 <= 2 * loss * variance < exact * bound**2 + 2 * loss
    assert len(asked(Factorised(9, loss, bound), 9)) == 18


def test_fewer_noises_where_less_is_seen():
    def count(name):
        coins = Given()
        taken(EXACT[name](64, ONE, 1), coins, [0] * 64)
        return len(coins.asked)

    assert count("tree") == 64 + 32 + 16 + 8 + 4 + 2
    assert count("twice noised") == 64 + 2 * (32 + 16 + 8 + 4 + 2)
    radices = shapes.mixed_radix(64, ONE).radices
    assert len(radices) == 1 or count("mixed radix") > count("mixed radix, exposed")
    assert count("mixed radix, open") > count("mixed radix")


@pytest.mark.parametrize("name", ["deep", "mixed radix", "deep, open", "endless"])
def test_noise_so_rare_that_its_variance_is_0_is_weighed_as_well(name):
    mechanism = EXACT[name](1_000, Fraction(10**6), 1)
    found, _ = taken(mechanism, BreakableCoins(1), [1] * 1_000, [10, 500])
    assert np.array_equal(found[0], np.arange(1, 1_001))
    assert not found[1:].any()


def root_mean(errors):
    return math.sqrt(errors.mean())


@pytest.mark.slow
def test_the_errors_of_a_million_steps_are_as_told():
    steps = 1 << 20
    errors = {
        name: root_mean(variances(EXACT[name](steps, ONE if name != "factorised" else ONE / 2, 1)))
        for name in ["mixed radix", "accumulator", "factorised"]
    }
    assert errors == pytest.approx(
        {"mixed radix": 52.0, "accumulator": 136, "factorised": 7.5}, rel=0.01
    )


@pytest.mark.parametrize("horizon", [1, 2, 3, 5, 17, 100, 257, 1_000, 4_096, 70_000])
def test_a_tree_has_a_place_for_every_step_and_its_shares_are_right(horizon):
    for name in TREES:
        tree = EXACT[name](horizon, ONE, 1)
        assert math.prod(tree.radices) >= horizon
        assert len(tree.shares) == len(tree.radices)
        assert all(0 <= share <= 1024 for row in tree.shares for share in row)
        assert all(len(row) >= radix for row, radix in zip(tree.shares, tree.radices, strict=True))


@pytest.mark.parametrize("name", OPEN)
def test_events_of_an_open_step_are_in_its_answer(name):
    mechanism = EXACT[name](300, ONE, 3)
    generator = np.random.default_rng(1)
    memory, total = mechanism.initial(Silent()), 0
    for _ in range(300):
        for amount in generator.integers(0, 4, generator.integers(0, 4)):
            mechanism.add(memory, int(amount))
            total += amount
        last = int(generator.integers(0, 4))
        total += last
        answers = mechanism.run(memory, np.array([last]), Silent())
        assert answers.values[-1] == total


@pytest.mark.parametrize("name", [name for name in ALL if name not in OPEN])
def test_what_has_no_open_steps_adds_nothing_within_one(name):
    mechanism = ALL[name](9, ONE, 1)
    if name in {"accumulator", "noisy steps", "fresh noise", "factorised", "response"}:
        with pytest.raises(NotImplementedError):
            mechanism.add(mechanism.initial(Silent()), 1)


@pytest.mark.parametrize("name", [*TREES, "accumulator", "factorised"])
def test_nothing_is_kept_of_what_has_closed(name):
    """A cell holds what its open node has counted: none at a step with which all begin anew."""
    mechanism = EXACT[name](37, ONE, 100)
    memory = mechanism.initial(Silent())
    for step in range(37):
        mechanism.run(memory, np.array([100]), Silent())
        if name == "factorised":
            assert not memory.cells[: step + 1].any()
        elif name == "accumulator":
            assert memory.cells[0] == 100 * (step + 1)
            assert not memory.cells[1:].any()
        else:
            sizes = np.cumprod([1, *mechanism.radices[:-1]])
            used = mechanism._units(min(step + 1, 36)) > 0
            within = (step + 1) % sizes
            assert (memory.cells[used] == 100 * within[used]).all() or step == 36
            assert not memory.cells[0]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("reads", range(7))
def test_coins_that_fail_change_nothing(name, reads):
    coins = BreakableCoins(5)
    mechanism = ALL[name](300, ONE, 1)
    memory = mechanism.initial(coins)
    mechanism.run(memory, np.ones(250, np.int64), coins)
    before = memory.cells.copy(), memory.told.copy(), memory.tick
    for act in (
        lambda: mechanism.run(memory, np.ones(50, np.int64), coins),
        lambda: mechanism.rerandomise(memory, coins),
    ):
        coins.reads_left = reads
        try:
            act()
        except OSError:
            assert np.array_equal(memory.cells, before[0])
            assert np.array_equal(memory.told, before[1])
            assert memory.tick == before[2]
        else:
            before = memory.cells.copy(), memory.told.copy(), memory.tick


@pytest.mark.parametrize("name", ALL)
def test_the_size_of_what_is_kept_is_known_without_a_copy_of_it(name):
    running = Running(ALL[name](300, ONE, 1), Silent())
    assert running.nbytes == len(running.packed())


def test_a_look_adds_noise_to_what_is_open_alone():
    """One noise to each number that is kept, as large as that of its birth."""

    def asked(mechanism, steps):
        memory, coins = mechanism.initial(Silent()), Given()
        mechanism.run(memory, np.ones(steps, np.int64), Silent())
        mechanism.rerandomise(memory, coins)
        return coins.asked

    for open_steps in (False, True):
        tree = deep(40, ONE, 1, open_steps=open_steps)
        kept = [scale for scale in tree.scales(7)[1 - open_steps :] if scale]
        assert sorted(asked(tree, 7)) == sorted(kept)
        assert len(kept) > 2
    assert asked(shapes.mixed_radix(20, ONE), 7) == []
    assert asked(Accumulator(8, ONE), 6) == [4, 4]
    assert asked(Accumulator(8, ONE), 7) == [4, 4, 4]
    assert asked(Accumulator(8, ONE), 8) == [4]
    assert len(asked(Factorised(8, ONE), 3)) == 5
    assert len(asked(FreshNoise(8, ONE), 3)) == 1
    assert asked(NoisySteps(8, ONE), 3) == asked(RandomisedResponseCounter(8, ONE), 3) == []
    mixed = shapes.mixed_radix(256, ONE)
    assert len(asked(Endless(ONE), 3)) == len(asked(mixed, 3)) + 1  # the sum of all steps


@pytest.mark.parametrize("name", ["deep", "deep, open", "twice noised"])
def test_a_node_has_its_share_of_epsilon_rounded_down(name):
    tree = EXACT[name](40, ONE, 1)
    for tick in range(40):
        left = ONE
        for level in reversed(range(len(tree.radices))):
            place = tick // math.prod(tree.radices[:level]) % tree.radices[level]
            scale, own = tree.scales(tick)[level], left * tree.shares[level][place] / 1024
            assert (scale is None) == (own == 0)
            if scale:
                assert 1 / own <= scale <= 1 / own + Fraction(1, 63)
                left -= 1 / scale


def watched(monkeypatch, module, name):
    """The arguments and the results of all calls of a function."""
    calls, function = [], getattr(module, name)

    def called(*arguments):
        calls.append((arguments, function(*arguments)))
        return calls[-1][1]

    monkeypatch.setattr(module, name, called)
    return calls


@pytest.mark.parametrize("name", ["accumulator", "fresh noise"])
def test_exact_sums_are_wiped(name, monkeypatch):
    mechanism, amounts = EXACT[name](9, ONE, 1), np.ones(9, np.int64)
    memory, calls = mechanism.initial(Silent()), watched(monkeypatch, np, "cumsum")
    mechanism.run(memory, amounts, Silent())
    sums = [result for arguments, result in calls if arguments[0] is amounts]
    assert [len(one) for one in sums] == [9]
    assert not any(one.any() for one in sums)


def test_exact_products_are_wiped(monkeypatch):
    calls = watched(monkeypatch, np.fft, "rfft"), watched(monkeypatch, np.fft, "irfft")
    amounts, coefficients = np.ones(5, np.int64), factorised.strategy(9)
    assert factorised._added(amounts, coefficients)[0] == factorised.UNIT
    (of_amounts, _), (product,) = ([result for _, result in some] for some in calls)
    assert not of_amounts.any()
    assert not product.any()


PLANNED = {
    2: [(2,), (2,), (2,)],
    100: [(20, 5), (10, 10), (10, 10)],
    257: [(26, 10), (20, 13), (20, 13)],
    5_000: [(35, 12, 12), (13, 7, 7, 8), (13, 7, 7, 8)],
    10**6: [(38, *[12, 13, 13, 13]), (10,) * 6, (10,) * 6],
    10**9: [(21, *7 * [9], 10), (10,) * 9, (10,) * 9],
}


@pytest.mark.parametrize("horizon", PLANNED)
def test_a_tree_that_was_planned_once_is_planned_again(horizon):
    """A state has so many numbers."""
    ways = {}, {"open_steps": True}, {"pan_private": False}
    found = [shapes.mixed_radix(horizon, ONE, **how).radices for how in ways]
    assert found == PLANNED[horizon]


@pytest.mark.parametrize("horizon", [1, 2, 3, 9, 256, 257, 1_000, 10**6, 1 << 40])
def test_trees_of_equal_radices_near_the_root_are_tried(horizon):
    expected = {(horizon,)} if horizon <= 256 else set()
    for above in range(1, 9):
        root = max(round(horizon ** (1 / (above + 1))), 2)
        for radix in range(max(root - 8, 2), root + 3):
            for wider in range(above):
                row = (*[radix] * (above - wider), *[radix + 1] * wider)
                lowest = math.ceil(Fraction(horizon, math.prod(row)))
                if 2 <= lowest <= 256:
                    expected.add((lowest, *row))
    assert set(shapes._candidates(horizon)) == expected


@pytest.mark.parametrize("radices", [(6, 4, 3), (16, 8), (3, 2, 2, 2)], ids=str)
@pytest.mark.parametrize(
    ("draws", "how"),
    [((1, 2), {}), ((2, 2), {"open_steps": True}), ((1, 1), {"at_birth": False})],
    ids=str,
)
def test_the_errors_that_trees_are_compared_by_are_those_of_large_noise(radices, draws, how):
    shares = shapes.best_shares(radices, *draws)
    tree = Tree(math.prod(radices), ONE / 1_000, radices, shares, combined=True, **how)
    exact = variances(tree) / 1e6
    mean, largest = shapes._variances(radices, *draws)
    assert mean == pytest.approx(exact.mean(), rel=0.05)
    assert largest == pytest.approx(exact.max(), rel=0.01)
    assert shapes.largest_deviation(tree) == pytest.approx(1_000 * math.sqrt(largest))
    twice = replace(tree, bound=2)
    assert shapes.largest_deviation(twice) == 2 * shapes.largest_deviation(tree)


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5, 1_000])
def test_an_even_tree_is_binary_and_shares_evenly(horizon):
    levels = max(math.ceil(math.log2(horizon)), 1)
    tree = shapes.even_tree(horizon, ONE, 1, pan_private=True)
    assert tree.radices == (2,) * levels
    assert tree.shares == tuple((1_024 // (level + 1),) * 2 for level in range(levels))


@pytest.mark.parametrize(
    ("horizon", "loss", "radices"),
    [(1_000, 1, (16, 63)), (3, 1, (3, 1)), (10**6, Fraction(1, 2), (252, 3_969)), (1, 9, (1, 1))],
)
def test_segments_are_as_long_as_makes_their_noise_that_of_one(horizon, loss, radices):
    tree = shapes.segments(horizon, Fraction(loss), 1)
    assert tree.radices == radices
    assert tree.shares == ((0,) * radices[0], (1_024,) * radices[1])


@pytest.mark.parametrize(
    "how", [{}, {"open_steps": True}, {"at_birth": False}, {"at_closing": False}], ids=str
)
@pytest.mark.parametrize("start", [0, 1, 5, 11])
def test_all_noise_of_some_steps_is_listed_within_its_bounds(start, how):
    """In plain Python, which notices an index beyond the end."""
    mechanism = Tree(16, ONE, (2,) * 4, shapes.best_shares((2,) * 4, 2, 2), **how)
    for steps in range(17 - start):
        listed = tree.draws_of.plain(start, steps, 16, *mechanism._shape)
        assert listed.tolist() == tree.draws_of(start, steps, 16, *mechanism._shape).tolist()


# Delayed


@pytest.mark.parametrize(("loss", "bound"), [(ONE, 1), (Fraction(4), 3)], ids=str)
@pytest.mark.parametrize("horizon", [1, 10, 1_000, 10**6, 10**12])
def test_a_delayed_count_has_the_sizes_of_the_lecture(horizon, loss, bound):
    one = Delayed(horizon, loss, Fraction(1, 10**9), bound)
    unhurried = horizon * float(loss) / (4 * math.log(horizon + 1))
    assert one.updates == min(max(int(math.sqrt(unhurried)), 1), 10_000)
    birth, compared, answered = one.scales
    assert birth == 8 * bound / loss
    assert answered == 8 * one.updates * bound / loss
    feigned = float(compared) * math.log(1 + horizon / one.updates)
    assert one.delay == math.ceil(horizon * bound / one.updates + feigned)
    assert one.estimates == 1


def compared_cost(scale, updates, delta, bound):
    """What comparisons cost, from the laws themselves."""
    tail = math.exp(-1 / scale)

    def at_least(number):
        return tail**number / (1 + tail) if number > 0 else 1 - tail ** (1 - number) / (1 + tail)

    grown = max(
        math.log1p(-at_least(number - bound)) / math.log1p(-at_least(number))
        for number in range(1, bound + 1)
    )
    hazard = optimize.brentq(
        lambda most: stats.poisson.cdf(updates - 1, most) - delta, 1e-9, 10 * updates + 200
    )
    return updates * bound / scale + (grown - 1) * hazard


@pytest.mark.parametrize("bound", [1, 2, 30])
@pytest.mark.parametrize("updates", [1, 2, 6, 100])
@pytest.mark.parametrize("loss", [Fraction(1, 2), Fraction(6)], ids=str)
def test_a_comparison_has_the_least_noise_that_its_loss_allows(loss, updates, bound):
    delta = Fraction(1, 10**9)
    scale = delayed.comparison_scale(loss, updates, delta, bound)
    assert (scale / bound * 1_024).denominator == 1
    cost = compared_cost(float(scale), updates, float(delta), bound)
    assert cost <= float(loss) * (1 - 1e-7)
    finer = compared_cost(float(scale - Fraction(bound, 1_024)), updates, float(delta), bound)
    assert finer > float(loss) * (1 - 2e-6)


@pytest.mark.parametrize("updates", [1, 2, 7, 1_000])
@pytest.mark.parametrize("delta", [0.3, 1e-9])
def test_a_hazard_is_exceeded_as_rarely_as_delta_and_hardly_more_rarely(updates, delta):
    found = stats.poisson.cdf(updates - 1, delayed._hazard(updates, delta))
    assert delta * (1 - 2e-6) < found <= delta * (1 - 0.9e-6)


def test_a_delayed_count_answers_so_often_and_then_stands_still():
    one = Delayed(1_000, ONE, Fraction(1, 10**9), bound=1_000)
    memory, asked = one.initial(Silent()), Given()
    assert (memory.cells.tolist(), memory.told.shape) == ([0], (4,))
    first = one.run(memory, np.full(500, 1_000), asked)
    later = one.run(memory, np.full(500, 1_000), asked)
    released = [*first.released.tolist(), *later.released.tolist()]
    due, told = [], 0
    for total in range(1_000, 1_000_001, 1_000):
        if total >= told + one.delay and len(due) < one.updates:
            told = total
            due.append(total)
    assert released == due
    assert memory.told[:2].tolist() == [due[-1], one.updates - len(due)]
    assert memory.tick == 1_000
    assert memory.cells.tolist() == [1_000_000]
    values = np.concatenate([first.values, later.values])
    steps = np.array(due) // 1_000
    assert values.tolist() == [
        due[np.searchsorted(steps, step, side="right") - 1] if step >= steps[0] else 0
        for step in range(1, 1_001)
    ]


def test_what_a_delayed_count_hides_is_all_once_no_answer_may_follow():
    one = Delayed(1_000, ONE, Fraction(1, 10**9), bound=3)
    memory = one.initial(Silent())
    assert one.hidden(memory) == one.delay
    memory.told[1] = 0
    assert one.hidden(memory) == 3_000


def test_noise_of_a_look_is_as_large_as_that_of_birth_and_is_told():
    one, coins = Delayed(1_000, ONE, Fraction(1, 10**9)), Given([5, 7])
    memory = one.initial(coins)
    memory.told[:2] = 11, 2
    one.rerandomise(memory, coins)
    assert coins.asked == [8, 8]
    assert memory.cells.tolist() == [12]
    variance, fourth = tree.laplace_cumulants(8.0)
    assert memory.told.tolist() == [11, 2, 2 * variance, 2 * fourth]


def test_a_delayed_answer_is_off_by_the_larger_noise():
    one = Delayed(1_000, ONE, Fraction(1, 10**9))
    answers = one.run(one.initial(Silent()), np.zeros(3, np.int64), Silent())
    birth, more = (
        tree.laplace_cumulants(float(scale)) for scale in (one.scales[0], max(one.scales[1:]))
    )
    assert answers.variances == pytest.approx(birth[0] + more[0])
    assert answers.fourths == pytest.approx(birth[1] + more[1])


# The others


@pytest.mark.parametrize("horizon", [1, 2, 3, 10, 1_000])
def test_fresh_noise_is_shared_so_that_it_errs_least(horizon):
    one = FreshNoise(horizon, ONE)
    birth, answer = one._losses
    if horizon == 1:  # an event is before the look or after it
        assert (birth, answer) == (1, 1)
        return
    assert birth + (horizon - 1) * answer == 1
    assert horizon * answer <= 1
    assert (birth * 2**20).denominator == 1

    def error(share):
        return share**-2 + ((horizon - 1) / (1 - share)) ** 2

    for moved in (birth * Fraction(99, 100), birth * Fraction(101, 100)):
        assert error(birth) < error(moved) or moved < Fraction(1, horizon)


def test_one_step_of_a_factorised_count_takes_no_transform(monkeypatch):
    """Each would take as long as the whole count."""
    one, coins = Factorised(50, ONE, 3), Streams()
    memory, whole = one.initial(coins), one.initial(Streams())
    expected = one.run(whole, np.array([3, 0, 2]), Silent())
    monkeypatch.delattr(np.fft, "rfft")
    for at, amount in enumerate([3, 0, 2]):
        found = one.run(memory, np.array([amount]), Silent())
        assert found.values == pytest.approx(expected.values[at])
        assert found.variances == pytest.approx(expected.variances[at])


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5, 33, 1_000])
def test_what_left_is_combined_by_the_inverse_of_what_a_step_adds(horizon):
    """`c * f` is 1 everywhere, and `f_k` is `binom(2k, k)/4**k` to a half of a unit."""
    strategy = factorised.strategy(horizon)
    exact = [float(Fraction(math.comb(2 * k, k), 4**k)) for k in range(horizon)]
    assert strategy == pytest.approx(np.array(exact) * 4_096, abs=0.5001)
    product = np.convolve(factorised.combination(horizon), strategy)[:horizon]
    assert product == pytest.approx(np.ones(horizon), abs=1e-9)


def test_cumulants_of_one_step_are_added_at_each():
    for one in (
        NoisySteps(9, ONE, 2),
        RandomisedResponseCounter(9, ONE, 1),
        RandomisedResponseCounter(9, ONE, 2),
    ):
        memory = one.initial(Silent())
        assert (memory.cells.shape, memory.told.shape) == ((1,), (2, 1))
        each = one.run(memory, np.zeros(1, np.int64), Streams())
        more = one.run(memory, np.zeros(3, np.int64), Streams())
        assert more.variances == pytest.approx(np.arange(2, 5) * each.variances)
        assert more.fourths == pytest.approx(np.arange(2, 5) * each.fourths)
        assert memory.told[:, 0] == pytest.approx([4 * each.variances[0], 4 * each.fourths[0]])


@pytest.mark.parametrize("bound", [1, 2, 5])
def test_a_response_varies_as_its_coin_does(bound):
    one, surest = RandomisedResponseCounter(9, ONE, bound), float(randomised_response(ONE))
    answers = one.run(one.initial(Silent()), np.zeros(1, np.int64), Streams())
    assert one.grain == pytest.approx(bound / (2 * surest - 1))
    most = surest * (1 - surest) if bound == 1 else 1 / 4
    assert answers.variances == pytest.approx(most * one.grain**2)
    assert answers.fourths.tolist() == [0]
