"""A user of a statistic sees few names; everything else of it is in its internals."""

from __future__ import annotations

from functools import partial
from inspect import signature
from pydoc import plaintext, render_doc

import pytest

import panprivacy as pp
from panprivacy.statistics import catalogue

MOST = 14
"""Names of a statistic."""

OF_A_STATISTIC = {
    "announce_intrusion", "contribute", "contribute_cells", "entry", "forget", "guarantee",
    "internals", "ledger", "plan", "release", "releases", "resume", "state", "update",
}  # fmt: skip
OF_SEVERAL = OF_A_STATISTIC - {"entry", "plan"} | {"members", "statistics"}
OF_THE_INTERNALS = {"contributions", "memory", "releasing", "windows"}

DENSITY = partial(pp.Density, universe=100)
SEVERAL = {
    "together": (lambda: pp.Together({"here": DENSITY(epsilon=1)}), OF_SEVERAL),
    "groups": (
        lambda: pp.Grouped(lambda epsilon: DENSITY(epsilon=epsilon), ["a", "b"], epsilon=1),
        OF_SEVERAL | {"groups"},
    ),
    "moving": (
        lambda: pp.ChangeTriggered(DENSITY, threshold="0.1", updates=2, epsilon=100),
        OF_SEVERAL | {"absolute_margin", "check", "go_on_from", "left", "stands", "threshold"},
    ),
}


def names(one):
    return {name for name in dir(one) if not name.startswith("_")}


@pytest.mark.parametrize("kind", catalogue.KINDS, ids=lambda kind: kind.entry.name)
def test_a_statistic_has_few_names(kind):
    one = kind(**kind.entry.trials[0].sizes, epsilon=4)
    assert names(one) == OF_A_STATISTIC
    assert len(OF_A_STATISTIC) <= MOST
    assert names(one.internals) == OF_THE_INTERNALS


@pytest.mark.parametrize("name", SEVERAL)
def test_several_statistics_have_them_too(name):
    make, expected = SEVERAL[name]
    assert names(make()) == expected


@pytest.mark.parametrize("kind", catalogue.KINDS, ids=lambda kind: kind.entry.name)
def test_help_shows_the_arguments_and_nothing_internal(kind):
    text = render_doc(kind, renderer=plaintext)
    sizes = kind.entry.sizes.fields()
    assert {"epsilon", *sizes} <= signature(kind).parameters.keys()
    assert all(f"     {name} (" in text for name in ("epsilon", *sizes))
    for hidden in (
        "_memory",
        "_releasing",
        "adds_noise",
        "TableMemory",
        "prepare(",
        "check_state(",
    ):
        assert hidden not in text
