"""The proof of Prio3Count in fields so small that all numbers, proofs and points are tried."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from panprivacy.devices.vdaf import flp


@pytest.fixture(params=[5, 13, 17])
def prime(request, monkeypatch):
    """A prime that is 1 modulo 4, in the place of the field's."""
    p = request.param
    monkeypatch.setattr(flp, "add", lambda a, b: (a + b) % p)
    monkeypatch.setattr(flp, "subtract", lambda a, b: (a + p - b) % p)
    monkeypatch.setattr(flp, "multiply", lambda a, b: a * b % p)
    monkeypatch.setattr(flp, "_HALF", np.uint64((p + 1) // 2))
    root = next(i for i in range(p) if i * i % p == p - 1)
    monkeypatch.setattr(flp, "_ROOT", np.uint64(root))
    return p


def rows(*ranges):
    """All combinations, as columns."""
    return np.array([*product(*ranges)], np.uint64).T


def answers(number, a, b, points):
    """What all verifiers together see of an honest proof, at each point."""
    count = len(points)
    numbers, seeds = np.full(count, number, np.uint64), np.tile([[a, b]], (count, 1))
    proofs = flp.prove(numbers, seeds.astype(np.uint64))
    return [tuple(row) for row in flp.query(numbers, proofs, points).tolist()]


def test_an_honest_proof_is_accepted_at_every_point(prime):
    numbers, a, b, points = rows(range(2), *[range(prime)] * 3)
    proofs = flp.prove(numbers, np.stack([a, b], axis=1))
    assert flp.decide(flp.query(numbers, proofs, points)).all()


def test_a_number_that_is_no_bit_is_accepted_at_two_points_at_most(prime):
    """All proofs but those that fail at once, whose last value is another number."""
    seeds = [range(prime)] * 2 if prime == 5 else [range(3), range(2)]
    numbers, a, b, first, middle, points = rows(range(2, prime), *seeds, *[range(prime)] * 3)
    proofs = np.stack([a, b, first, middle, numbers], axis=1)
    accepted = flp.decide(flp.query(numbers, proofs, points)) & ~flp.reveals(points)
    per_proof = accepted.reshape(-1, prime).sum(axis=1)
    assert per_proof.max() == 2


def test_a_parabola_that_fails_at_minus_1_is_accepted_nowhere(prime):
    numbers, last, points = rows(*[range(prime)] * 3)
    zeros = np.zeros_like(numbers)
    proofs = np.stack([zeros, zeros, zeros, zeros, last], axis=1)
    accepted = flp.decide(flp.query(numbers, proofs, points))
    assert not accepted[last != numbers].any()


def test_what_verifiers_see_has_one_law_for_both_bits(prime):
    """At each point but -1, where the lines are at the bit; at 1 they are at the seeds."""
    points = np.arange(prime, dtype=np.uint64)
    laws = [
        [
            Counter(column)
            for column in zip(
                *(answers(bit, a, b, points) for a, b in product(range(prime), repeat=2)),
                strict=True,
            )
        ]
        for bit in range(2)
    ]
    same = [zero == one for zero, one in zip(*laws, strict=True)]
    assert same == [point != prime - 1 for point in range(prime)]
    assert flp.reveals(points).nonzero()[0].tolist() == [1, prime - 1]


def test_two_points_tell_the_bit(prime):
    """So nobody may verify a share twice."""
    points = np.array([0, 2], np.uint64)
    zero, one = (
        {tuple(answers(bit, a, b, points)) for a, b in product(range(prime), repeat=2)}
        for bit in range(2)
    )
    assert not zero & one
