"""All statistics there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from panprivacy import statistics
from panprivacy.statistics.catalogue import KINDS, kinds


@pytest.mark.parametrize("kind", kinds().values(), ids=lambda kind: kind.name)
def test_what_a_text_gives_for_an_example_may_be_given(kind):
    for record in (kind.sizes_type, kind.query_type):
        for field in record.fields().values():
            if field.example is not None:
                field.value(field.example)


def test_the_catalogue_has_each_statistic_of_the_package():
    """A statistic that can contribute has its folder there, and `merge` knows the catalogue."""
    folders = {kind.__module__.removeprefix("panprivacy.statistics.") for kind in KINDS}
    here = Path(statistics.__file__).parent
    assert folders == {f"{file.parent.name}.statistic" for file in here.glob("*/statistic.py")}
