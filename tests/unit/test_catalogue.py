"""All statistics there are."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from panprivacy import statistics
from panprivacy.statistics.catalogue import KINDS, kinds
from panprivacy.statistics.statistic import Statistic


@pytest.mark.parametrize("kind", kinds().values(), ids=lambda kind: kind.entry.name)
def test_what_a_text_gives_for_an_example_may_be_given(kind):
    for record in (kind.entry.sizes, kind.entry.query):
        for field in record.fields().values():
            if field.example is not None:
                field.value(field.example)


def test_the_catalogue_has_each_statistic_of_the_package():
    """`merge`, the command line and the service know the catalogue alone."""
    found = set()
    for module in pkgutil.walk_packages(statistics.__path__, "panprivacy.statistics."):
        for kind in vars(importlib.import_module(module.name)).values():
            if isinstance(kind, type) and issubclass(kind, Statistic) and hasattr(kind, "entry"):
                found.add(kind)
    assert found == {*KINDS}
