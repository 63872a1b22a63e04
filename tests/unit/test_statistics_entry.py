"""The entry of a statistic: found by its class and its objects, with the words of its records."""

from __future__ import annotations

import pytest

import panprivacy as pp
from panprivacy.statistics.cases import Trial, Walk
from panprivacy.statistics.catalogue import KINDS
from panprivacy.statistics.entry import Cases, CatalogueEntry

TRIALS = (Trial("plain", {}, None),)
WALKS = (Walk("plain", "says", {}, []),)


@pytest.mark.parametrize(
    "entry",
    [
        Cases(trials=TRIALS, walks=WALKS),
        CatalogueEntry(pp.DistinctCount.entry.sizes, trials=TRIALS, walks=WALKS),
    ],
)
def test_an_object_finds_the_entry_of_its_class(entry):
    owner = type("Owner", (), {"entry": entry})
    assert owner.entry is owner().entry is entry
    assert (entry.trials, entry.walks) == (TRIALS, WALKS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.entry.name)
def test_the_words_are_those_of_the_sizes(kind):
    record = kind.entry.sizes
    assert kind.entry.name == record.__struct_config__.tag
    assert f"{kind.entry.summary}." == " ".join(record.__doc__.split())
