"""All statistics there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from panprivacy import statistics
from panprivacy.statistics.catalogue import KINDS, kinds


@pytest.mark.parametrize("kind", kinds().values(), ids=lambda kind: kind.entry.name)
def test_what_a_text_gives_for_an_example_may_be_given(kind):
    for record in (kind.entry.sizes, kind.entry.query):
        for field in record.fields().values():
            if field.example is not None:
                field.value(field.example)


def test_the_catalogue_has_each_statistic_of_the_package():
    """A statistic that can contribute has its folder there, and `merge` knows the catalogue."""
    folders = {kind.__module__.removeprefix("panprivacy.statistics.") for kind in KINDS}
    here = Path(statistics.__file__).parent
    files = {file.relative_to(here).with_suffix("") for file in here.rglob("statistic.py")}
    assert folders == {".".join(file.parts) for file in files if len(file.parts) > 1}
