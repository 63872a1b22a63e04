"""A generator that is kept: whoever has it draws again what was drawn before."""

from __future__ import annotations

from fractions import Fraction

from panprivacy.audit.kept_generator import KeptGenerator


def test_who_has_the_seed_and_the_calls_draws_the_same():
    coins = KeptGenerator(b"seed")
    drawn = [coins.key(8), coins.discrete_laplace(Fraction(9), 4).tolist()]
    assert coins.calls == 2
    again = KeptGenerator(b"seed")
    assert [again.key(8), again.discrete_laplace(Fraction(9), 4).tolist()] == drawn
    resumed = KeptGenerator(b"seed", calls=1)
    assert resumed.discrete_laplace(Fraction(9), 4).tolist() == drawn[1]


def test_neither_calls_nor_seeds_repeat():
    coins = KeptGenerator(b"seed")
    keys = {coins.key(8) for _ in range(300)}
    assert len(keys) == 300
    assert KeptGenerator(b"other").key(8) not in keys
