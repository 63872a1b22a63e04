"""Sets that are shaped to a threshold: what is asked of them, their price, and its limit."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from panprivacy.tables.cells import shapes
from panprivacy.tables.cells.law import Law
from panprivacy.tables.cells.shapes import Shape

SHAPES = [Shape(2, 2, 3, 1), Shape(2, 8, 11, 3), Shape(10, 50, 57, 16), Shape(100, 250, 283, 80)]


def spectral_price(law, question):
    """The definition, from the weights."""
    asked, noise = np.fft.fft(question)[1:], law.spectrum()[1:]
    return float((np.abs(asked) ** 2 / np.abs(noise) ** 2).sum()) / law.modulus**2


def test_what_a_user_counts_falls_on_a_line_beyond_the_bound():
    assert Shape(2, 4, 9, 3).question() == pytest.approx([0, 0, 1, 1, 1, 0.8, 0.6, 0.4, 0.2])
    assert Shape(3, 3, 4, 1).question().tolist() == [0, 0, 0, 1]
    assert Shape(2, 3, 7, 3, below=2).question() == pytest.approx([0, 0, 1, 1, 0.5, 0, 0])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("epsilon", [0.3, 1])
def test_a_price_is_that_of_the_law_and_above_the_limit(shape, epsilon):
    sizes = shape.threshold, shape.bound, shape.modulus, shape.size
    law = Law.shaped(*sizes, epsilon)
    price = spectral_price(law, shape.question())
    assert shape.price(epsilon) == pytest.approx(price, rel=1e-6)
    assert shape.price_bound(epsilon) <= price
    assert len(shape.members()) == shape.size


@pytest.mark.parametrize("epsilon", [0.3, 1, 4])
def test_no_law_of_its_loss_comes_below_the_limit(epsilon):
    """Laws of any weights, of which those at the two extremes come nearest."""
    coins, shape = np.random.default_rng(3), Shape(5, 20, 23, 6)
    for share in (0.05, 0.2, 0.5):
        for steep in (False, True):
            weights = np.exp(epsilon * coins.random((200, 23)) ** (0.01 if steep else 1))
            weights[coins.random((200, 23)) > share] = 1
            weights[:, 0] = math.exp(epsilon)
            for one in weights:
                law = Law.of(np.rint(one * 2**20).astype(int).tolist())
                # Rounded weights may lose a little more than epsilon.
                assert spectral_price(law, shape.question()) > 0.999 * shape.price_bound(epsilon)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_search_finds_nearly_the_best_of_all_sets(size):
    """Of all sets of so many residues, by trying each."""
    shape = Shape(3, 9, 11, size)

    def price(members):
        weights = np.ones(11)
        weights[list(members)] = math.e
        spectrum = np.abs(np.fft.fft(weights / weights.sum()))[1:]
        asked = np.abs(np.fft.fft(shape.question()))[1:]
        return float((asked**2 / spectrum**2).sum()) / 121

    best = min(price((0, *rest)) for rest in itertools.combinations(range(1, 11), size - 1))
    assert best <= shape.price(1) * (1 + 1e-9) <= 1.1 * best


@pytest.mark.parametrize("shape", SHAPES)
def test_the_last_digits_of_a_transform_do_not_change_the_set(shape, monkeypatch):
    """As on another machine, whose library adds in another order."""
    found = shape.members()
    coins, forward, backward = np.random.default_rng(5), np.fft.rfft, np.fft.irfft

    def blurred(values):
        return values * (1 + 1e-14 * coins.standard_normal(values.shape))

    monkeypatch.setattr(np.fft, "rfft", lambda *given: blurred(forward(*given)))
    monkeypatch.setattr(np.fft, "irfft", lambda *given: blurred(backward(*given)))
    again = shapes._best_set(shape)
    assert np.array_equal(found, again)
    assert np.any(np.fft.rfft(np.arange(9.0)) != forward(np.arange(9.0)))


def test_a_long_search_for_a_set_is_made_once(tmp_path, monkeypatch):
    """Its result is read by other processes; a set of another size is not believed."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(shapes, "_SECONDS_UNSTORED", 0)
    shape = Shape(30, 290, 331, 80)
    found = shapes._best_set(shape)

    def refused(_):
        raise AssertionError

    search = shapes._search.__wrapped__
    assert np.array_equal(search(shape), found)
    monkeypatch.setattr(shapes, "_best_set", refused)
    assert np.array_equal(search(shape), found)
    (stored,) = (path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size)
    told = json.loads(stored.read_text())
    stored.write_text(json.dumps({**told, "found": "80" + told["found"][2:]}))
    with pytest.raises(AssertionError):
        search(shape)
    with pytest.raises(AssertionError):
        search(replace(shape, bound=289))
