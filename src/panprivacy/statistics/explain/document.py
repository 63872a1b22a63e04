"""An explanation as plain data, with every number rounded away from what it bounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction

from panprivacy.privacy.guarantee import PrivacyLoss, float_above, float_below, number_above
from panprivacy.statistics.explain.reading import StateRun

PRIORS = tuple(Fraction(text) for text in ("1/1000000", "1/1000", "1/100", "1/10", "1/2", "9/10"))
"""Possible beliefs before; the bounds hold for every other belief too."""


@dataclasses.dataclass(frozen=True, slots=True)
class SharedLedger:
    """States with a ledger of the same total, which may be one ledger.

    Args:
        total: total of the ledger.
        promised: the sum of the promises of the states.
    """

    total: Fraction
    promised: Fraction

    @property
    def possible(self) -> bool:
        """Whether one ledger has room for all of them."""
        return self.promised <= self.total


def so_far(states: Sequence[StateRun]) -> PrivacyLoss:
    """Return the loss by all states of a file, and by earlier releases and looks: losses add up.

    Of tables of groups, those count in which one user may be.
    """
    return PrivacyLoss.total(one.description.so_far.times(one.of_a_user) for one in states)


def promised(states: Sequence[StateRun]) -> PrivacyLoss:
    """Return the same loss over their complete lives."""
    return PrivacyLoss.total(one.description.guarantee.loss.times(one.of_a_user) for one in states)


def ledgers(states: Sequence[StateRun]) -> list[SharedLedger]:
    """Return the ledgers of the states, by total, in order."""
    sums: dict[Fraction, PrivacyLoss] = {}
    for one in states:
        total, promise = one.description.ledger, one.description.guarantee.loss.times(one.count)
        sums[total] = sums.get(total, PrivacyLoss(Fraction(0))) + promise
    return [SharedLedger(total, promise.epsilon) for total, promise in sums.items()]


def as_document(states: Sequence[StateRun]) -> dict[str, object]:
    """Return all numbers of an explanation; infinite ones are "inf".

    Args:
        states: the states of one file.
    """
    return {
        "states": [_document(alike) for alike in states],
        "together": {
            "states": sum(one.count for one in states),
            "bytes": sum(one.count * one.description.state_bytes for one in states),
            "so_far": _bound(so_far(states)),
            "promised": _bound(promised(states)),
            "ledgers": [
                {
                    "total": number_above(one.total),
                    "promised": number_above(one.promised),
                    "possible": one.possible,
                }
                for one in ledgers(states)
            ],
        },
    }


def _document(alike: StateRun) -> dict[str, object]:
    described = alike.description
    return {
        "first": alike.first,
        "last": alike.last,
        "within": list(alike.within),
        "statistic": described.name,
        "question": described.plan.question,
        "version": described.version,
        "bytes": described.state_bytes,
        "key_bytes": described.plan.key_bytes,
        "cells": described.plan.table.cells,
        "sizes": {entry.name: _plain(value) for entry, value in described.settled()},
        "releases": dataclasses.asdict(described.releases),
        "intrusions": dataclasses.asdict(described.intrusions),
        "epsilon": number_above(described.epsilon),
        "split": {
            "look": number_above(described.budget.state),
            "release": number_above(described.budget.release),
        },
        "comparisons": number_above(described.compared.epsilon),
        "ledger": number_above(described.ledger),
        "so_far": _bound(described.so_far),
        "promised": _bound(described.guarantee.loss),
        "adjacency": described.guarantee.adjacency,
        "conditions": list(described.guarantee.conditions),
        "crash": number_above(described.guarantee.crash),
        "crash_again": number_above(described.guarantee.additional_crash),
        "proofs": list(described.proofs),
        "checks": list(described.checks),
    }


def _plain(value: object) -> object:
    """Return a value that JSON can represent."""
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, bool | int) else str(value)


def _bound(loss: PrivacyLoss) -> dict[str, object]:
    beliefs = []
    for prior in PRIORS:
        (low, high), (least, most) = loss.posterior(prior), loss.average(prior)
        belief = {"before": float(prior), "low": float_below(low), "high": float_above(high)}
        belief |= {"average_low": float_below(least), "average_high": float_above(most)}
        beliefs.append(belief)
    return {
        **loss.document(),
        "odds": _factor(loss),
        "exceptions": float_above(loss.exceptions),
        "replaced_odds": _factor(loss.of_people(2)),
        "replaced_exceptions": float_above(loss.of_people(2).exceptions),
        "beliefs": beliefs,
    }


def _factor(loss: PrivacyLoss) -> float | str:
    return "inf" if loss.odds is None else number_above(loss.odds)
