"""The answers of 1, 2 and 4 slices have the law of those of one table.

`contract/test_slices.py` shows for every statistic that slices are one table, cell by cell. Here
answers are compared: false-alarm rate 1e-6 an assertion. Answers that are off by 30 % are rejected,
and so are those that stray twice as far, as four tables that are no slices do; each of these is
missed as rarely.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.cluster.routing import Router
from panprivacy.intake.programs.counting import numbered

from .checks import OFF, accepted, chi_square_tail, rejected
from .test_merging import IDS, INCIDENCES, SETTINGS, STATES, contributions

RUNS = 800
BINS = 8

EACH = {
    name: (setting.make, setting.deltas, {})
    for name, setting in SETTINGS.items()
    if setting.form == "sums"
}
EACH |= {
    f"incidence, {name}": (
        partial(pp.Incidence, bound=5, epsilon=4, **{k: given[k] for k in SIZES if k in given}),
        True,
        {k: given[k] for k in ("exactly", "at_least") if k in given} or {"exactly": (2,)},
    )
    for SIZES in [("universe", "cells", "expected")]
    for name, given in INCIDENCES.items()
    if "form" not in given
}
EACH |= {
    "heavy": (
        partial(pp.HeavyHitterCount, k=50, total=int(STATES.sum()), epsilon=4),
        True,
        {},
    ),
    "products": (
        partial(pp.InnerProduct, bound=6, expected=(1_000, 100_000), clip=150, cells=64, epsilon=4),
        True,
        {},
    ),
}
"""What makes a statistic, whether users have states, and what is asked."""

OF_A_SUM = {"sum"}
"""Each shard has a cell, with noise of its own: the law is that of so many tables."""

TRIED = [
    pytest.param(name, shards, marks=() if (name, shards) in BRIEF else pytest.mark.slow)
    for BRIEF in [{("density of a sample", 4)}]
    for name in EACH
    for shards in (1, 2, 4)
]


def only(answer):
    """The number that is compared."""
    return answer.value if isinstance(answer, pp.Release) else next(iter(answer.values())).value


def of_slices(name, shards, rng):
    """The answers of many clusters, each with a key of its own."""
    make, deltas, asked = EACH[name]
    is_numbered = numbered(pp.Together({"one": make()}))
    found = []
    for _ in range(RUNS):
        router = Router(shards, rng.bytes(16), numbered=is_numbered)
        of = router.shards_of(IDS)
        parts = []
        for shard in range(shards):
            rows = [(IDS[of == shard], STATES[of == shard])]
            own = partial(make, slice_=router.slice(shard))
            parts += contributions(own, rows, deltas=deltas, **asked)
        found.append(only(pp.merge(parts)))
    return np.array(found)


def of_tables(name, shards):
    """The answers of tables that are no slices: of one, or of several that are merged."""
    make, deltas, asked = EACH[name]
    found = []
    for _ in range(RUNS):
        rows = [(IDS[part::shards], STATES[part::shards]) for part in range(shards)]
        if shards == 1:
            statistic = make()
            statistic.update(IDS, *([STATES] if deltas else []))
            found.append(only(statistic.release(**asked)))
        else:
            found.append(only(pp.merge(contributions(make, rows, deltas=deltas, **asked))))
    return np.array(found)


def alike(one, other):
    """The chi-square test of two samples of one law, over eighths of both together."""
    edges = np.unique(np.quantile([one, other], np.linspace(0, 1, BINS + 1)[1:-1]))
    counts = np.array(
        [np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1)
         for sample in (one, other)]
    )  # fmt: skip
    counts = counts[:, counts.sum(axis=0) >= 100]
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return chi_square_tail(statistic, counts.shape[1] - 1)


@pytest.mark.long
@pytest.mark.parametrize(("name", "shards"), TRIED)
def test_answers_of_slices_have_the_law_of_one_table(name, shards):
    slices = of_slices(name, shards, np.random.default_rng(7))
    table = of_tables(name, shards if name in OF_A_SUM else 1)
    assert accepted(alike(slices, table))
    middle = np.median(slices)
    assert rejected(alike(middle + 2 * (slices - middle), table))
    if abs(middle) > 3 * slices.std():
        assert rejected(alike(OFF * slices, table))


@pytest.mark.slow
def test_four_tables_that_are_no_slices_are_told_from_one():
    assert rejected(alike(of_tables("density", 4), of_tables("density", 1)))
