"""Deltas of batches: joined, and refused by their row."""

from __future__ import annotations

import numpy as np
import pytest

from panprivacy.errors import InputError
from panprivacy.statistics.deltas import (
    concatenated_deltas,
    refuse_beyond,
    refuse_deltas,
    refuse_moves,
)


def test_batches_without_deltas_have_1_each_beside_others():
    given = np.array([5, -2])
    assert concatenated_deltas([(3, None), (1, None)]) is None
    assert concatenated_deltas([]) is None
    assert concatenated_deltas([(2, given)]) is given
    found = concatenated_deltas([(1, None), (2, given), (2, None)])
    assert found.tolist() == [1, 5, -2, 1, 1]
    assert found.dtype == np.int64


def test_the_first_wrong_row_is_named():
    refuse_deltas(np.zeros(3, bool), "wrong")
    with pytest.raises(InputError, match="wrong") as raised:
        refuse_deltas(np.array([False, True, True]), "wrong")
    assert raised.value.row == 2


def test_who_moves_enters_or_leaves():
    refuse_moves(np.array([1, -1, 1]))
    for wrong in (0, 2, -2):
        with pytest.raises(
            InputError, match=r"delta must be 1 \(the user enters\) or -1"
        ) as raised:
            refuse_moves(np.array([1, wrong]))
        assert raised.value.row == 2


@pytest.mark.parametrize(("signed", "most"), [(False, 7), (True, 14)])
def test_no_delta_is_beyond_the_bound_or_from_end_to_end(signed, most):
    refuse_beyond(np.array([most, -most, 0]), 7, signed=signed)
    for wrong in (most + 1, -most - 1, 2**62, -(2**62)):
        with pytest.raises(InputError, match=f"delta must lie within ±{most}, as the tau says"):
            refuse_beyond(np.array([wrong]), 7, signed=signed, what="tau")
