"""The page of the statistics is what the code says."""

from __future__ import annotations

import pytest

from panprivacy.statistics.catalogue import kinds
from tests.docs import statistics


@pytest.mark.long
def test_the_page_is_current():
    advice = "run `python -m tests.docs.statistics`"
    assert statistics.PAGE.read_text() == statistics.page(), advice


def test_every_statistic_has_an_example_that_can_be_planned():
    assert list(statistics.EXAMPLES) == list(kinds())
