"""Columns of a sketch map: how they are told, and whose they are."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.errors import InputError
from panprivacy.papers.published import CalibratedNorm
from panprivacy.papers.published.mir_columns import OneColumn, Repeated
from panprivacy.tables.ids import read_ids


@pytest.mark.parametrize(
    "columns",
    [[], [[]], [[1], [1, 2]], [[1.5]], [[1 << 17]], 3, "1,x", "", "1,0;0", [[1]] * 4_097],
)
def test_what_is_no_list_of_equally_long_columns_is_refused(columns):
    with pytest.raises(pp.PlanError, match="columns must be 1 to 4,096 lists of whole numbers"):
        CalibratedNorm(columns=columns, modulus=5, epsilon=1)


def test_columns_may_be_a_text():
    text, lists = (
        CalibratedNorm(columns=columns, modulus=5, epsilon=1).internals.memory.sizes
        for columns in ("1,0;0,-1", [[1, 0], [0, -1]])
    )
    assert text == lists


def slots_of(addressing, users):
    batch = read_ids(users)
    addressing.check(batch)
    return np.concatenate(list(addressing.slots(batch))).tolist()


def test_users_beyond_the_last_column_have_them_again_from_the_first():
    assert slots_of(Repeated(7, 3), [0, 1, 2, 3, 4, 5, 6]) == [0, 1, 2, 0, 1, 2, 0]
    assert Repeated(7, 3).cells == 3


def test_the_ids_of_a_caller_are_left_as_they_are():
    users = np.array([4, 5])
    assert slots_of(Repeated(7, 3), users) == [1, 2]
    assert users.tolist() == [4, 5]
    assert not Repeated(7, 3).slots_are_ids


@pytest.mark.parametrize("user", [-1, 7])
def test_who_is_not_of_the_universe_has_no_column(user):
    with pytest.raises(InputError, match="outside the declared universe 0 to 6"):
        slots_of(Repeated(7, 3), [user])


@pytest.mark.parametrize("users", [[5, -1, 2**62], ["ada", "grace"], [b"ada"]])
def test_whoever_comes_has_the_one_column(users):
    assert slots_of(OneColumn(), users) == [0] * len(users)
    assert OneColumn().cells == 1
