"""Errors: what they say, which row they name, and that nothing hangs on to them."""

from __future__ import annotations

import pytest

from panprivacy.errors import (
    BudgetError,
    InputError,
    LostReleaseError,
    PanPrivacyError,
    PlanError,
    without_frames,
)


def test_a_row_is_named_before_the_reason():
    error = InputError("it is none", row=1_234)
    assert str(error) == "row 1,234 (counting from 1): it is none"
    assert (error.reason, error.row) == ("it is none", 1_234)


def test_without_a_row_the_reason_is_all():
    error = InputError("it is none")
    assert str(error) == "it is none"
    assert error.row is None


def test_a_row_of_a_piece_is_told_as_that_of_the_whole():
    assert InputError("it is none", row=2).after(40).row == 42
    assert InputError("it is none", row=0).after(40).row == 40
    plain = InputError("it is none")
    assert plain.after(40) is plain


@pytest.mark.parametrize("kind", [InputError, PlanError, BudgetError, LostReleaseError])
def test_all_are_caught_by_one_name(kind):
    assert issubclass(kind, PanPrivacyError)
    assert issubclass(kind, ValueError) == (kind in {InputError, PlanError})


def test_nothing_hangs_on_to_an_error_without_frames():
    with pytest.raises(InputError) as raised:
        raise InputError("it is none") from KeyError("ada")
    error = raised.value
    assert without_frames(error) is error
    assert error.__traceback__ is error.__context__ is error.__cause__ is None
