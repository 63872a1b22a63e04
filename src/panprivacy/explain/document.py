"""An explanation as plain data, with every number rounded away from what it bounds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction

from panprivacy.explain.bounds import PRIORS, Bound, float_above, float_below
from panprivacy.explain.reading import Alike

Number = float | str


@dataclasses.dataclass(frozen=True, slots=True)
class SharedLedger:
    """States that name a ledger of the same total, which may be one ledger.

    Args:
        total: of the ledger.
        promised: the sum of what the states promise.
    """

    total: Fraction
    promised: Fraction

    @property
    def possible(self) -> bool:
        """Whether one ledger has room for all of them."""
        return self.promised <= self.total


def so_far(states: Sequence[Alike]) -> Bound:
    """What all states of a file tell together, with what came before: losses add up."""
    return Bound(sum((one.count * one.description.so_far.epsilon for one in states), Fraction(0)))


def promised(states: Sequence[Alike]) -> Bound:
    """The same over their whole lives."""
    return Bound(sum((one.count * one.description.promised.epsilon for one in states), Fraction(0)))


def ledgers(states: Sequence[Alike]) -> list[SharedLedger]:
    """The totals that the states name, in order."""
    sums: dict[Fraction, Fraction] = {}
    for one in states:
        total, epsilon = one.description.ledger, one.count * one.description.promised.epsilon
        sums[total] = sums.get(total, Fraction(0)) + epsilon
    return [SharedLedger(total, epsilon) for total, epsilon in sums.items()]


def as_document(states: Sequence[Alike]) -> dict[str, object]:
    """Everything that an explanation says in numbers; infinite ones are "inf".

    Args:
        states: of one file.
    """
    return {
        "states": [_one(alike) for alike in states],
        "together": {
            "states": sum(one.count for one in states),
            "bytes": sum(one.count * one.description.state_bytes for one in states),
            "so_far": _bound(so_far(states)),
            "promised": _bound(promised(states)),
            "ledgers": [
                {
                    "total": _above(one.total),
                    "promised": _above(one.promised),
                    "possible": one.possible,
                }
                for one in ledgers(states)
            ],
        },
    }


def _one(alike: Alike) -> dict[str, object]:
    described = alike.description
    return {
        "first": alike.first,
        "last": alike.last,
        "within": list(alike.within),
        "statistic": described.kind.name,
        "question": described.plan.question,
        "version": described.version,
        "bytes": described.state_bytes,
        "key_bytes": described.plan.key_bytes,
        "cells": described.plan.table.cells,
        "sizes": {entry.name: _plain(value) for entry, value in described.settled()},
        "releases": dataclasses.asdict(described.releases),
        "intrusions": dataclasses.asdict(described.intrusions),
        "epsilon": _above(described.epsilon),
        "split": {
            "look": _above(described.budget.state),
            "release": _above(described.budget.release),
        },
        "comparisons": _above(described.compared),
        "ledger": _above(described.ledger),
        "so_far": _bound(described.so_far),
        "promised": _bound(described.promised),
        "conditions": list(described.plan.conditions),
        "proofs": list(described.proofs),
        "checks": list(described.checks),
    }


def _plain(value: object) -> object:
    """What JSON can write."""
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, bool | int) else str(value)


def _bound(bound: Bound) -> dict[str, object]:
    beliefs = []
    for prior in PRIORS:
        low, high = bound.posterior(prior)
        belief = {"before": float(prior), "low": float_below(low), "high": float_above(high)}
        beliefs.append(belief)
    return {
        "epsilon": _above(bound.epsilon),
        "odds": _factor(bound),
        "replaced_odds": _factor(bound.replaced),
        "beliefs": beliefs,
    }


def _factor(bound: Bound) -> Number:
    return "inf" if bound.odds is None else _above(bound.odds)


def _above(number: Fraction) -> Number:
    near = float_above(number)
    return near if math.isfinite(near) else "inf"
