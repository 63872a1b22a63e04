"""All statistics there are."""

from __future__ import annotations

import pytest

from panprivacy.statistics.catalogue import kinds


@pytest.mark.parametrize("kind", kinds().values(), ids=lambda kind: kind.name)
def test_what_a_text_gives_for_an_example_may_be_given(kind):
    for record in (kind.sizes_type, kind.query_type):
        for field in record.fields().values():
            if field.example is not None:
                field.value(field.example)
