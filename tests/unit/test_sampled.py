"""The parts of the sampled audit: bounds on proportions, views as words, and the adapters."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import ANNOUNCE, RELEASE
from panprivacy.audit.sampled.adapters import Sampler, differing_users
from panprivacy.audit.sampled.looks import FixedKeyCoins, look, read_bits, read_words
from panprivacy.audit.sampled.loss import _width, sampled_loss
from panprivacy.errors import PlanError
from panprivacy.privacy.coins import Coins
from panprivacy.tables.ids import read_ids

STREAM, NEIGHBOUR = [[1, 2], RELEASE, [2]], [[2], RELEASE, [2]]


def density(coins):
    return pp.Density(universe=20, epsilon=1, intrusions=1, coins=coins)


class Wrapper:
    def __init__(self, coins):
        self._coins, self._inner = coins, pp.Density(universe=8, epsilon=1, coins=coins)

    def update(self, users, deltas=None):
        self._inner.update(users)

    def release(self):
        return self._inner.release()

    def state(self):
        return self._inner.state()


def test_words_are_read_from_the_end_of_a_state():
    assert read_words(bytes([7, 1, 0, 255, 255]), 2).tolist() == [1, 65_535]
    assert read_words(bytes(range(9)), 8).tolist() == [int.from_bytes(range(1, 9), "little")]
    assert read_bits(bytes([1, 128])).tolist() == [1, *[0] * 14, 1]


def test_the_key_is_the_same_in_every_run_and_nothing_else_is():
    coins = FixedKeyCoins(b"abc")
    assert isinstance(coins, Coins)
    assert coins.key(7) == coins.key(7) == b"abcabca"
    half = Fraction(1, 2)
    assert (coins.bernoulli(half, 200) != coins.bernoulli(half, 200)).any()


def test_a_view_has_the_announced_states_the_last_one_and_all_counts():
    steps = [[1], ANNOUNCE, [(2, 1), (1, -1)], RELEASE, [3]]
    statistic = density(FixedKeyCoins())
    seen = look(statistic, steps, 5)
    assert len(seen.states) == 2
    assert seen.states[1] == statistic.state()
    assert len(seen.counts) == 1
    assert look(density(FixedKeyCoins()), [], 0).states


@pytest.mark.parametrize(
    ("streams", "arguments"),
    [
        (([[1]], [[1], []]), {}),
        (([[1], RELEASE], [[1], []]), {}),
        (([[1], ANNOUNCE, [1]], [[1], ANNOUNCE, []]), {"after_step": 1}),
        (([[1]], [[]]), {"after_step": 2}),
        (([[1]], [[]]), {"runs": 0}),
        (([[1]], [[]]), {"confidence": 1}),
        (([[1]], [[]]), {"cell_bytes": 9}),
    ],
)
def test_streams_and_arguments_that_make_no_sense_are_refused(streams, arguments):
    with pytest.raises(PlanError):
        sampled_loss(density, *streams, **arguments)


def test_few_runs_find_nothing_and_do_not_fail():
    assert sampled_loss(density, STREAM, NEIGHBOUR, runs=100).epsilon == 0
    with pytest.raises(PlanError, match="runs"):
        sampled_loss(density, STREAM, NEIGHBOUR, runs=7)


class TestAuditorium:
    """As `PrivacyTestRunner` and its testers call: by position, samples along the first axis."""

    @staticmethod
    def run(mechanism, generator, tester, num_samples):
        first, second = generator(None)
        samples = mechanism(first, num_samples), mechanism(second, num_samples)
        return tester(*map(np.tanh, samples)), samples

    def test_a_runner_can_drive_a_sampler(self):
        def classifier(first, second):
            assert len(first.shape) == len(second.shape) == 2
            parts = first[0 : len(first) // 2, ...], second[len(second) // 2 :, ...]
            return np.concatenate(parts, axis=0)

        features, samples = self.run(Sampler(density), lambda _: (STREAM, NEIGHBOUR), classifier, 6)
        assert features.dtype == float
        assert len(features) == 6
        assert samples[0].shape == samples[1].shape

    def test_one_whole_number_a_sample_is_one_column(self):
        def histogram(first, second):
            return np.bincount(first, minlength=2) - np.bincount(second, minlength=2)

        sampler = Sampler(density, after_step=1, parts=["states", "counts"])
        found = [sampler(stream, 9)[:, -2].astype(int) for stream in (STREAM, NEIGHBOUR)]
        assert histogram(*found).sum() == 0


class TestDeltaSiege:
    """As `Mechanism` is: made by keywords, called as `mechanism(input, n)`, named by `str`."""

    class Mechanism:
        """What the tool does with a subclass."""

        def __init__(self, *args, base_folder=None, logger=None, **kwargs):
            self._init_helper(*args, **kwargs)

        def _init_helper(self, epsilon, sensitivity):
            self.epsilon = epsilon

        def get_batches(self, given, n, batch_size):
            while n > 0:
                yield self(given, min(n, batch_size))
                n -= batch_size

    def test_a_subclass_can_be_trained_on(self):
        class Audited(self.Mechanism):
            def __call__(self, stream, size):
                def make(coins):
                    return pp.Density(universe=20, epsilon=self.epsilon, coins=coins)

                return Sampler(make)(stream, size)

        mechanism = Audited(epsilon=0.5, sensitivity=1.0)
        batches = [np.concatenate(list(mechanism.get_batches(s, 5, 2))) for s in ([[1]], [[]])]
        training = np.concatenate(batches, axis=0)
        assert training.shape[0] == 10
        assert training.ndim == 2
        assert str([[1]]) != str([[]])


class TestRecorder:
    """As `Auditor` does: by keywords, output replayed, distance of inputs, samples flattened."""

    def test_a_recorder_can_record_replay_and_sample(self):
        once = Sampler(density).once
        inputs = [{"steps": STREAM}, {"steps": NEIGHBOUR}]
        assert all(isinstance(given, dict) for given in inputs), "arrays cannot hold streams"
        params = {"users": 1}
        assert once(stream=inputs[0], **params).shape == once(stream=inputs[1], **params).shape
        assert differing_users(*inputs) <= float(params["users"]) + 1e-9
        samples = [np.array(once(stream=given, **params), float).ravel() for given in inputs * 3]
        assert np.isfinite(np.vstack(samples)).all()


# What other tools need


def heavy(coins):
    return pp.HeavyHitterCount(k=4, total=400, epsilon=1, coins=coins)


def test_users_lie_in_cells_of_their_own_unless_a_key_is_given():
    key = FixedKeyCoins().key(10_000)
    assert len(set(key)) == 256
    assert FixedKeyCoins().key(64) == key[:64]
    statistic = heavy(FixedKeyCoins())
    slots = np.concatenate(
        list(statistic.internals.memory.addressing.slots(read_ids(list(range(50)))))
    )
    assert len(np.unique(slots)) == statistic.plan.table.cells


@pytest.mark.parametrize("make", [density, heavy])
def test_parts_of_a_view_are_chosen(make):
    seen = look(make(FixedKeyCoins()), STREAM, 3)
    states, counts, bars = (
        Sampler(make, parts=[part])(STREAM, 4) for part in ("states", "counts", "bars")
    )
    assert states.shape == (4, 8 * len(seen.states[0]))
    assert counts.shape == (4, len(seen.counts))
    assert bars.shape == (4, len(seen.bars))
    assert (np.diff(bars.reshape(4, -1, 3)[:, :, [1, 0, 2]]) >= 0).all(), "low, value, high"
    assert Sampler(make)(STREAM, 1).shape[1] == states.shape[1] + counts.shape[1] + bars.shape[1]


def test_infinite_ends_and_lost_answers_are_numbers():
    bars = Sampler(Endless, parts=["bars"])([[0], RELEASE], 2)
    assert np.isfinite(bars).all()


class Endless(Wrapper):
    def release(self):
        return dataclasses.replace(self._inner.release(), high=math.inf)


@pytest.mark.long
def test_screening_keeps_what_tells_streams_apart():
    sampler = Sampler(lambda coins: pp.Density(universe=500, epsilon=4, coins=coins))
    stream, neighbour = [[7], RELEASE], [[], RELEASE]
    screened = sampler.screened(stream, neighbour, runs=300, most=2)
    assert screened(stream, 5).shape == (5, 2)
    first, second = (screened(steps, 400)[:, 0].mean() for steps in (stream, neighbour))
    assert first > 0.7
    assert second < 0.3


@pytest.mark.long
def test_scaling_makes_features_alike_and_can_be_screened():
    stream, neighbour = [[7], RELEASE], [[], RELEASE]
    sampler = Sampler(density, parts=["counts", "bars"])
    scaled = sampler.scaled(stream, neighbour, runs=400)
    both = np.concatenate([scaled(steps, 400) for steps in (stream, neighbour)])
    assert np.abs(both.mean(axis=0)).max() < 0.3
    deviations = both.std(axis=0)
    assert np.abs(deviations[deviations > 0] - 1).max() < 0.3, "ends that never move stay 0"
    assert (deviations[:2] > 0).all()
    one = scaled.screened(stream, neighbour, runs=50, most=1)
    assert one(stream, 3).shape == (3, 1)
    again = sampler.screened(stream, neighbour, runs=50, most=2).scaled(stream, neighbour, runs=400)
    assert abs(again(stream, 400).mean()) < 0.5


class Growing(Wrapper):
    """A state whose front is longer now and then."""

    def state(self):
        front = b"x" * int(self._coins.bernoulli(Fraction(1, 2), 1)[0])
        return front + self._inner.state()


def test_states_of_different_lengths_are_aligned_at_their_ends():
    sampler = Sampler(Growing, parts=["states"])
    plain = Sampler(Wrapper, parts=["states"])
    assert sampler([[1]], 60).shape[1] == plain([[1]], 1).shape[1] + 8
    fixed = sampler.screened([[1]], [[]], runs=50, most=10_000)
    assert fixed([[1]], 1).shape == fixed([[1]], 1).shape


def test_cells_of_another_width_are_refused_and_the_right_one_is_found():
    stream, neighbour = [[1]], [[]]
    with pytest.raises(PlanError, match="have 2 bytes: leave cell_bytes out"):
        sampled_loss(heavy, stream, neighbour, cell_bytes=4, runs=100)
    assert _width(heavy(FixedKeyCoins()), None) == 2
    assert _width(density(FixedKeyCoins()), None) == 1
    assert _width(Wrapper(FixedKeyCoins()), 3) == 3
    assert _width(grouped(FixedKeyCoins()), None) == 1


def grouped(coins):
    return pp.Grouped(
        lambda share: pp.Density(universe=20, epsilon=share, coins=coins), ["a", "b"], epsilon=4
    )


def windowed(coins):
    return pp.Windowed(
        lambda: pp.Density(universe=20, epsilon=4, coins=coins), every=60, clock=lambda: 7.0
    )


@pytest.mark.parametrize(
    ("make", "row"), [(grouped, (3, "a")), (windowed, 3), (grouped, (3, "b", -1))]
)
def test_groups_and_windows_are_sampled(make, row):
    stream, neighbour = [[row], RELEASE], [[], RELEASE]
    sampler = Sampler(make)
    assert sampler(stream, 3).shape == sampler(neighbour, 3).shape
    assert Sampler(make, parts=["counts"])(neighbour, 3).shape[1] >= 1
    assert differing_users({"steps": stream}, {"steps": neighbour}) == 1


def test_users_are_apart_where_their_rows_differ():
    def apart(first, second):
        return differing_users({"steps": first}, {"steps": second})

    assert apart(STREAM, STREAM) == 0
    assert apart([[1], [2]], [[2], [1]]) == 2
    assert apart([[1, 2]], [[2, 1]]) == 0
    assert apart([[1, 1], RELEASE], [[1], RELEASE]) == 1
    assert apart([[(1, 2)]], [[(1, -2)]]) == 1


class LeakyInterval(Wrapper):
    """The count is noised, and the interval is as wide as the table is full."""

    def release(self):
        answer = self._inner.release()
        return dataclasses.replace(answer, high=answer.low + self._inner.state()[-1].bit_count())


@pytest.mark.long
def test_an_interval_that_leaks_is_a_feature():
    stream, neighbour = [[0, 1, 2, 3], RELEASE], [[], RELEASE]
    bars = Sampler(LeakyInterval, parts=["bars"])
    widths = [
        (found[:, 2] - found[:, 1]).mean() for found in (bars(s, 200) for s in (stream, neighbour))
    ]
    assert abs(widths[0] - widths[1]) > 0.3


@pytest.mark.long
@pytest.mark.parametrize(("make", "row"), [(grouped, (3, "a")), (windowed, 3)])
def test_losses_of_groups_and_windows_are_bounded(make, row):
    assert 1 < sampled_loss(make, [[row]], [[]], runs=800).epsilon < 4
