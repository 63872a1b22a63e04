"""Decoding: a state that answers too accurately is a list of people.

The intruder runs the program forward from the stolen state, any number of times, feeds it chosen
people and reads the counts. `D(a) + D(q) - D(a or q)` is the dot product of the wanted bits with
the query (Corollary 1), and enough of these reveal the bits.

Our state can be run forward just as well, with the public laws of its coins, and without the noise
of the release, which would only hide the count. But every result is a function of a
private state.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from panprivacy.audit.attacks.guesses import Guesses, Truths, percent
from panprivacy.audit.attacks.outcome import (
    ORDINARY,
    PRODUCT,
    AttackResult,
    Finding,
    Panel,
    bounded_share,
    fallen,
)
from panprivacy.audit.attacks.reconstruction import (
    Accuracy,
    RealNumbers,
    consistent,
    least_absolute,
    least_squares,
    sparse_vectors,
    unions,
)
from panprivacy.audit.attacks.seized import Seized, integers, shuffled, tossed
from panprivacy.ground.validation import positive_fraction
from panprivacy.privacy.coins import Coins, SystemCoins
from panprivacy.statistics.density.plan import DensityPlan
from panprivacy.statistics.density.statistic import Density

PEOPLE = 1_000
QUERIES = 4 * PEOPLE
ERROR = 3
"""A tenth of the root of the people."""

LEAST_DECODED = 0.95
_WRONG = QUERIES // 5
_SPARSE_PEOPLE, _SPARSE_ONES = 40, 4
_SPARSE_ACCURACY = Accuracy(share=0.05, more=0.3)


class Queried(Protocol):
    """A state that was taken, and can be run forward."""

    def counts_with(self, fed: Truths) -> RealNumbers:
        """Feed the people of each row to a copy of the state, and ask how many there are."""


@dataclass(frozen=True, slots=True, eq=False)
class AccurateCount:
    """An ordinary program that stores who came, and adds noise to the output only."""

    came: Truths
    coins: Coins

    def counts_with(self, fed: Truths) -> RealNumbers:
        """Return the number who came or are fed, within a tenth of the root of the total."""
        exact = (self.came | fed).sum(axis=1)
        return (exact + integers(self.coins, ERROR, len(fed))).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class SeizedDensity:
    """The state of a `Density`, run forward by the intruder with coins of the intruder's own."""

    seized: Seized[DensityPlan]
    coins: Coins

    def counts_with(self, fed: Truths) -> RealNumbers:
        """Redraw the bits of the people who are fed, and read the count."""
        plan, shares = self.seized.plan, []
        for row in fed:
            table = self.seized.table.copy()
            plan.table.update(table, [np.flatnonzero(row)], None, 0, self.coins)
            ones = plan.table.group_sums(table, plan.groups, 0)
            shares.append(plan.model(0).estimate(ones))
        return (plan.universe * np.array(shares)).astype(np.float32)


def attack(epsilon: Fraction | float) -> AttackResult:
    """Decode 1,000 bits from a count that is too accurate, and from a `Density`."""
    total, coins = positive_fraction(epsilon=epsilon), SystemCoins()
    came = tossed(coins, PEOPLE)
    exact, ours = AccurateCount(came, coins), seize_density(total, came, coins)
    squares = Guesses(came, decode_products(exact, coins))
    absolute = Guesses(came, decode_signs(exact, coins, wrong=_WRONG))
    ours_squares = Guesses(came, decode_products(ours, coins))
    ours_absolute = Guesses(came, decode_signs(ours, coins, wrong=0))
    findings = (
        decoded("accurate count, least squares", squares),
        decoded("accurate count, 20 % wrong", absolute),
        _decode_sparse(coins),
        held("Density, least squares", ours_squares, total),
        held("Density, least absolute", ours_absolute, total),
    )
    panels = (
        Panel("accurate count,\nleast squares", ORDINARY, squares),
        Panel("accurate count,\n20 % of answers wrong", ORDINARY, absolute),
        Panel("Density,\nleast squares", PRODUCT, ours_squares),
    )
    return AttackResult("decoding", float(total), findings, panels)


def seize_density(epsilon: Fraction, came: Truths, coins: Coins) -> Queried:
    """Return the state of a `Density` after these people came."""
    members = Density(universe=len(came), epsilon=epsilon)
    members.update(np.flatnonzero(came))
    return SeizedDensity(Seized.of(members), coins)


def dot_products(program: Queried, queries: Truths) -> RealNumbers:
    """Return the dot product of each query with the bits of the state, as Corollary 1 has it."""
    alone = program.counts_with(np.zeros((1, queries.shape[1]), np.bool_))
    return alone + queries.sum(axis=1, dtype=np.float32) - program.counts_with(queries)


def decode_products(program: Queried, coins: Coins) -> Truths:
    """Decode from dot products with random bits (Theorem 9)."""
    queries = tossed(coins, QUERIES * PEOPLE).reshape(QUERIES, PEOPLE)
    return least_squares(queries.astype(np.float32), dot_products(program, queries))


def decode_signs(program: Queried, coins: Coins, *, wrong: int) -> Truths:
    """Decode from dot products with random signs, some of them arbitrarily wrong (Theorem 10).

    Signs are the difference of two queries of bits (Theorem 13).
    """
    plus = tossed(coins, QUERIES * PEOPLE).reshape(QUERIES, PEOPLE)
    of_plus, of_minus = np.split(dot_products(program, np.vstack([plus, ~plus])), 2)
    answers = of_plus - of_minus
    answers[shuffled(coins, QUERIES)[:wrong]] = integers(coins, PEOPLE, wrong)
    signs = 2 * plus.astype(np.float32) - 1  # the errors of the answers are far larger
    return least_absolute(signs, answers, accuracy=ERROR)


def _decode_sparse(coins: Coins) -> Finding:
    """Find the only sparse vector that agrees with all answers to union queries (Theorem 11)."""
    vectors = sparse_vectors(_SPARSE_PEOPLE, _SPARSE_ONES)
    came = np.zeros((1, _SPARSE_PEOPLE), np.float32)
    came[0, shuffled(coins, _SPARSE_PEOPLE)[:_SPARSE_ONES]] = 1
    truths = unions(came, vectors)[0]
    error = integers(coins, 999, len(vectors)) / 1_000
    answers = (truths + error * _SPARSE_ACCURACY.reach(truths)).astype(np.float32)
    found = consistent(vectors, answers, _SPARSE_ACCURACY)
    wrong = np.abs(found - came).sum(axis=1).max() if len(found) else _SPARSE_ONES
    share = 1 - float(wrong) / _SPARSE_ONES
    sentence = (
        f"{len(found)} of {len(vectors):,} sets of up to {_SPARSE_ONES} out of {_SPARSE_PEOPLE} "
        f"people agrees with all answers to within {percent(_SPARSE_ACCURACY.share)} and "
        f"{_SPARSE_ACCURACY.more}"
    )
    return fallen("accurate unions, sparse", "set decoded", share, sentence, least=LEAST_DECODED)


def decoded(target: str, guesses: Guesses) -> Finding:
    """Return an ordinary program, of whose people nearly all are to be decoded."""
    sentence = f"{guesses.right:,} of {PEOPLE:,} people are decoded from {QUERIES:,} queries"
    return fallen(target, "share of guesses right", guesses.share, sentence, least=LEAST_DECODED)


def held(target: str, guesses: Guesses, epsilon: Fraction) -> Finding:
    """Return the finding for our program, beside the bound of epsilon."""
    sentence = f"{guesses.right:,} of {PEOPLE:,} people are guessed from {QUERIES:,} queries"
    return bounded_share(target, guesses, epsilon, sentence)
