"""The samplers have exactly the stated laws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panprivacy.privacy import noise
from panprivacy.privacy.coins import aes_stream


def scripted(*data):
    """A byte source that plays back `data`."""
    rest = list(data)

    def draw(nbytes):
        played, rest[:nbytes] = rest[:nbytes], []
        return np.array(played, np.uint8)

    return draw


def one_byte_law(sample):
    """The exact law of a sampler that reads one byte, by trying all 256."""
    outcomes = [sample(scripted(byte)) for byte in range(256)]
    return {value: Fraction(outcomes.count(value), 256) for value in set(outcomes)}


@pytest.mark.parametrize("numerator", [0, 1, 77, 255, 256])
def test_a_coin_with_a_whole_number_of_256ths_reads_one_byte(numerator):
    law = one_byte_law(lambda draw: int(noise.bernoulli(draw, Fraction(numerator, 256), 1)[0]))
    assert law.get(1, 0) == Fraction(numerator, 256)


def test_a_tie_is_decided_by_the_next_byte():
    probability = Fraction(7, 256) + Fraction(3, 256**2)
    without = sum(
        int(noise.bernoulli(scripted(first), probability, 1)[0])
        for first in range(256)
        if first != 7
    )
    tied = sum(
        int(noise.bernoulli(scripted(7, second), probability, 1)[0]) for second in range(256)
    )
    assert Fraction(256 * without + tied, 256**2) == probability


@pytest.mark.parametrize("numerator", [0, 1, 255, 256, 7 * 256 + 3, 128 * 256, 65_535, 65_536])
def test_a_coin_is_exact_over_all_streams_of_two_bytes(numerator):
    """One coin for each stream: the first byte of coin `i` is `i // 256`, the second `i % 256`."""
    coins, second = np.arange(256**2), np.arange(256)
    draws = iter([(coins // 256).astype(np.uint8), second.astype(np.uint8)])
    bits = noise.bernoulli(lambda _: next(draws), Fraction(numerator, 256**2), 256**2)
    assert bits.tolist() == (coins < numerator).astype(int).tolist()


def decided_by_digits(values, spare, digits, *, ends):
    """What `_decide` says of each byte, digit by digit: 2 where it is tied in all of them."""
    bits, tied, compared = [int(one < digits[0]) for one in values], [], 1
    tied = [at for at, one in enumerate(values) if one == digits[0]]
    while tied and compared < len(digits) and len(tied) <= len(spare):
        here, spare = spare[: len(tied)], spare[len(tied) :]
        for at, byte in zip(tied, here, strict=True):
            bits[at] = int(byte < digits[compared])
        tied = [at for at, byte in zip(tied, here, strict=True) if byte == digits[compared]]
        compared += 1
    decided = not tied or (ends and compared == len(digits))
    for at in tied:
        bits[at] = 0 if decided else 2
    return bits, 0 if decided else compared


@given(
    st.lists(st.integers(0, 255), min_size=1, max_size=3),
    st.integers(0, 4),
    st.binary(max_size=200),
    st.binary(max_size=90),
    st.booleans(),
)
def test_bytes_are_compared_and_ties_found_wherever_they_stand(digits, near, data, more, ends):
    """Half of the bytes are near a digit, so that many are tied."""
    values, spare = (np.frombuffer(one, np.uint8).copy() for one in (data, more))
    values[::2] = digits[0] + values[::2] % (near + 1) - near // 2
    spare[::2] = digits[1 % len(digits)]
    expected = decided_by_digits(values.tolist(), spare.tolist(), digits, ends=ends)
    compared = noise._decide(values, spare, np.array(digits, np.uint8), ends)
    assert (values.tolist(), compared) == expected
    assert not spare.any()


@pytest.mark.parametrize("byte", [4, 5, 6])
def test_ties_in_all_stored_digits_are_decided_by_exact_arithmetic(byte):
    probability = sum(Fraction(digit, 256**at) for at, digit in enumerate((7, 3, 9, 5), 1))
    draws = iter([[7, 3, 9, 200], [byte]])
    bits = noise.bernoulli(lambda _: np.array(next(draws), np.uint8), probability, 1)
    assert bits.tolist() == [int(byte < 5)]


@pytest.mark.parametrize("with_spare", [True, False])
@pytest.mark.parametrize("probability", [Fraction(1, 3), Fraction(1, 2)])
def test_of_what_is_tossed_the_bits_alone_are_left(probability, with_spare, monkeypatch):
    """Ties are wiped too: they tell which of the zeros were near."""
    drawn, places = [], []
    stream = aes_stream(bytearray(b"bits are all that is left of it!"))

    def draw(nbytes):
        drawn.append(stream(nbytes if with_spare else min(nbytes, 20_000)))
        return drawn[-1]

    def found(bits):
        places.append(np_flatnonzero(bits))
        return places[-1]

    np_flatnonzero = np.flatnonzero
    monkeypatch.setattr(np, "flatnonzero", found)
    bits = noise.bernoulli(draw, probability, 20_000)
    assert set(bits.tolist()) == {0, 1}
    second = probability != Fraction(1, 2) and not with_spare
    assert len(drawn) == 1 + second == 1 + len(places)
    assert np.shares_memory(drawn[0], bits)
    assert not [one for one in [drawn[0][20_000:], *drawn[1:], *places] if np.any(one)]


def test_a_uniform_integer_rejects_what_is_too_large():
    assert noise.uniform_below(scripted(7, 6, 5, 2), 5, 1).tolist() == [2]
    law = {byte & 7 for byte in range(256) if byte & 7 < 5}
    assert law == set(range(5))


@given(st.integers(1, 2**80))
@settings(max_examples=60)
def test_uniform_integers_of_any_size_stay_in_range(bound):
    values = noise.uniform_below(aes_stream(bytearray(32)), bound, 50)
    assert all(0 <= value < bound for value in values.tolist())


@pytest.mark.parametrize("bits", [63, 64, 65, 72, 130])
def test_a_uniform_integer_of_many_bits_is_made_of_the_bytes_that_it_needs(bits):
    width, data = -(-bits // 8), list(range(1, 100))
    values = noise.uniform_below(scripted(*data), 1 << bits, 3)
    assert values.tolist() == [
        int.from_bytes(data[at : at + width], "little") % (1 << bits)
        for at in range(0, 3 * width, width)
    ]


def test_the_key_stream_continues_across_pieces():
    whole, pieces = aes_stream(bytearray(32)), aes_stream(bytearray(32))
    together = np.concatenate([pieces(3), pieces(0), pieces(40), pieces(1)])
    assert whole(44).tolist() == together.tolist()


SAMPLERS = {
    "discrete Laplace": lambda draw: noise.discrete_laplace(draw, Fraction(3_000_000_001, 7), 200),
    "discrete Gaussian": lambda draw: noise.discrete_gaussian(draw, Fraction(50, 3), 60),
    "categorical": lambda draw: noise.categorical(draw, [3, 1, 5], 200),
}
PARTS = ["uniform_below", "_uniform_bits", "bernoulli", "bernoulli_exp", "_bernoulli_exp_unit",
         "discrete_laplace"]  # fmt: skip


@pytest.mark.parametrize("name", SAMPLERS)
def test_nothing_of_a_sample_is_left_beside_it(name, monkeypatch):
    """Whatever one part of a sampler hands to another is zero once there is a sample."""
    seen = []

    def spied(part):
        def run(*arguments):
            result = part(*arguments)
            seen.extend(result if isinstance(result, tuple) else [result])
            return result

        return run

    for part in PARTS:
        monkeypatch.setattr(noise, part, spied(getattr(noise, part)))
    samples = SAMPLERS[name](aes_stream(bytearray(b"nothing is left of what is drawn")))
    others = [one for one in seen if one is not None and one is not samples]
    assert others
    assert np.any(samples)
    assert not [one for one in others if np.any(one) and not np.shares_memory(one, samples)]


WORDS = st.lists(st.integers(0, 2**16 - 1), min_size=2, max_size=400)
SCALES = st.fractions(min_value=Fraction(1, 50), max_value=1_000, max_denominator=60)


@pytest.mark.long
@given(WORDS, SCALES)
def test_samples_do_not_depend_on_where_words_are_cut(words, scale):
    """What is left of the words of a piece is where the next sample begins."""
    numbers, whole = np.array(words, np.int64), np.zeros(50, np.int64)
    made, used = noise._fill_laplace(numbers, *scale.as_integer_ratio(), whole)
    assert used <= len(words)
    samples, done, rest = np.zeros(50, np.int64), 0, numbers[:0]
    for start in range(0, len(words), 7):
        rest = np.concatenate([rest, numbers[start : start + 7]])
        more, taken = noise._fill_laplace(rest, *scale.as_integer_ratio(), samples[done:])
        done, rest = done + more, rest[taken:]
    assert (samples.tolist(), done) == (whole.tolist(), made)


@pytest.mark.long
@given(WORDS, SCALES)
def test_numbers_that_no_word_holds_take_the_same_way(words, scale):
    compiled, plain = np.zeros(50, np.int64), np.zeros(50, np.int64)
    ratio = scale.as_integer_ratio()
    found = noise._fill_laplace(np.array(words, np.int64), *ratio, compiled)
    assert noise._fill_laplace.plain(np.array(words, object), *ratio, plain) == found
    assert compiled.tolist() == plain.tolist()


def test_a_discrete_laplace_sample_is_made_step_by_step():
    """Scale 3/2: an offset below 3, coins of exp(-offset/3) and exp(-1), a sign."""
    two, kept = [2, 0], [2, 0]  # 2 is not below 2 of 3: the first coin fails, an odd one
    head = [0, 0, 0, 1]  # the coin of 1/1 succeeds, that of 1/2 fails: an even one is a tail
    words = [3, 0, *two, *kept, *head, 0, 1]
    samples = np.zeros(1, np.int64)
    assert noise._fill_laplace(np.array(words), 3, 2, samples) == (1, len(words))
    assert samples.tolist() == [-1]


@pytest.mark.parametrize("weights", [[], [0], [0, 0], [1, -1], [-1], [2, -1], [2**70, -1]])
def test_weights_that_give_no_law_are_refused(weights):
    with pytest.raises(ValueError, match="whole numbers of at least 0, not all 0"):
        noise.categorical(np.zeros, weights, 1)


@pytest.mark.parametrize("scale", [0, Fraction(-1, 3)])
def test_noise_has_a_scale_above_0(scale):
    with pytest.raises(ValueError, match="scale must be positive"):
        noise.discrete_laplace(np.zeros, Fraction(scale), 1)


@pytest.mark.parametrize(
    ("weights", "fits"),
    [([1, 2], True), ([2**60, 2**60 - 2**10], True), ([2**60, 2**60], False), ([2**70], False)],
)
def test_sums_of_weights_are_words_below_two_to_the_61(weights, fits):
    sums = noise._cumulated(weights)
    assert (sums.dtype == np.int64) == fits
    assert sums.tolist() == list(itertools.accumulate(weights))


@pytest.mark.parametrize("weights", [[1], [3, 0, 5, 1], [0, 7], [1] * 100, [2**40, 1, 2**50]])
def test_a_guide_begins_at_the_first_index_that_may_be_right(weights):
    sums = noise._cumulated(weights)
    guide, shift = noise._guide(sums)
    total = sum(weights)
    for value in {0, min(1, total - 1), total // 3, total // 2, total - 1}:
        index = next(at for at, end in enumerate(sums.tolist()) if end > value)
        assert guide[value >> shift] <= index
        values = np.array([value], np.int64)
        assert noise._search(values, sums, guide, shift).tolist() == [index]
    assert len(guide) <= 4 * len(weights) + 2


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 2), (1, 1), (5, 2), (7, 3)])
def test_coins_of_an_exponential_are_as_rare_as_it_says(numerator, denominator):
    """False alarm 1e-6 (4.9 deviations); a place that is counted wrongly is off by 10 % or more."""
    runs = 20_000
    numbers = np.full(runs, numerator, np.int64)
    heads = noise.bernoulli_exp(aes_stream(b"k" * 32), numbers, denominator)
    expected = math.exp(-numerator / denominator)
    assert heads.mean() == pytest.approx(
        expected, abs=4.9 * math.sqrt(1 / 4 / runs) * (numerator > 0)
    )


@pytest.mark.parametrize("variance", ["1/100", "1/2", "2", "30"])
def test_gaussian_noise_has_its_law(variance):
    """False alarm 1e-6 for each number."""
    runs, width = 20_000, float(Fraction(variance))
    drawn = noise.discrete_gaussian(aes_stream(b"g" * 32), Fraction(variance), runs)
    line = np.arange(-60, 61)
    law = np.exp(-(line**2.0) / (2 * width))
    law /= law.sum()
    counts = np.bincount(drawn + 60, minlength=121)
    assert (np.abs(counts - runs * law) <= 5.5 * np.sqrt(runs * law * (1 - law)) + 5).all()


@pytest.mark.parametrize("variance", [0, -1])
def test_gaussian_noise_has_a_variance_above_0(variance):
    with pytest.raises(ValueError, match="variance must be positive"):
        noise.discrete_gaussian(np.zeros, Fraction(variance), 1)
