"""Sizes that several statistics have: their bounds, and that all say the same of them."""

from __future__ import annotations

from typing import get_args

import pytest

from panprivacy.errors import PlanError
from panprivacy.ground.validation import MOST_BYTES
from panprivacy.statistics import common_sizes
from panprivacy.statistics.catalogue import kinds
from panprivacy.tables.addressing import MAX_UNIVERSE


def read(size, value):
    _, meta = get_args(size)
    return meta.extra["read"]("size", value)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("Universe", 1, MAX_UNIVERSE),
        ("PerhapsUniverse", 1, MAX_UNIVERSE),
        ("CounterCells", 1, MOST_BYTES),
        ("CounterMemory", 1, MOST_BYTES),
        ("Below", 0, 1 << 62),
    ],
)
def test_a_size_has_its_ends(name, least, most):
    size = getattr(common_sizes, name)
    assert (read(size, least), read(size, most)) == (least, most)
    assert read(size, float(least)) == least
    for wrong in (least - 1, most + 1, 1.5, "1", True):
        with pytest.raises(PlanError, match="size must be"):
            read(size, wrong)


def test_an_example_may_be_given():
    for name in ("Universe", "CounterCells", "CounterMemory", "Below"):
        _, meta = get_args(getattr(common_sizes, name))
        assert read(getattr(common_sizes, name), meta.extra["example"]) == meta.extra["example"]


def test_memory_means_the_same_wherever_it_is():
    says = {
        kind.entry.sizes.fields()["memory"].form
        for kind in kinds().values()
        if "memory" in kind.entry.sizes.fields()
    }
    assert says == {"N"}
