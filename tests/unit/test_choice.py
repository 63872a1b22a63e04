"""Which encoding errs least."""

from __future__ import annotations

import math

import pytest

import panprivacy as pp
from panprivacy.papers import local


@pytest.mark.parametrize("epsilon", [0.1, 1, 2, 4])
@pytest.mark.parametrize("values", [2, 4, 10, 30, 100, 300])
def test_the_best_encoding_has_the_smallest_error(values, epsilon):
    kinds = (local.RandomisedResponse, local.UnaryEncoding, local.HadamardResponse)
    best = local.best_encoding(values, epsilon)
    assert best.variance == min(kind(values, epsilon).variance for kind in kinds)
    edge = 3 * math.exp(epsilon) + 2
    if values < edge * 0.9:
        assert isinstance(best, local.RandomisedResponse)
    if values > edge * 1.2:
        assert isinstance(best, local.UnaryEncoding)


def test_with_short_reports_hadamard_response_is_best():
    best = local.best_encoding(1_000, 1, most_bits=32)
    assert isinstance(best, local.HadamardResponse)
    assert best.variance < 1.3 * local.UnaryEncoding(1_000, 1).variance
    with pytest.raises(pp.PlanError, match="has 10 bits or more"):
        local.best_encoding(1_000, 1, most_bits=9)
