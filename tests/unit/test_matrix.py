"""A randomiser that is written out as a matrix."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.errors import PlanError
from panprivacy.papers.local.matrix import MatrixRandomiser
from panprivacy.testing import SeededCoins

LAWS = [["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"]]


def test_the_loss_is_that_of_the_worst_report():
    made = MatrixRandomiser(LAWS, 1)
    assert made.ratio == 2
    assert made.loss == math.log(2)
    assert made.values == 2
    assert made.bits == 2


def test_epsilon_has_to_allow_the_worst_report():
    MatrixRandomiser(LAWS, "0.694")
    with pytest.raises(
        PlanError, match="one report is 2 times as likely for one value as for another"
    ):
        MatrixRandomiser(LAWS, "0.693")


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        ([[0.5, 0.5], [0.5, 0.5]], "must have rows of fractions, whole numbers or texts"),
        ([["1/0", 1], [0, 1]], "must have rows of fractions"),
        (["ab", "cd"], "must have rows of fractions"),
        ([[1]], "must have 2 rows or more, of one length"),
        ([[1], ["1/2", "1/2"]], "must have 2 rows or more, of one length"),
        ([[], []], "must have 2 rows or more, of one length"),
        ([["1/2", "1/2"], ["1/2", "1/3"]], "row 1 of the matrix must be of probabilities"),
        ([["3/2", "-1/2"], ["1/2", "1/2"]], "row 0 of the matrix must be of probabilities"),
        ([[1, 0], ["1/2", "1/2"]], "report 1 is possible for some values only: no epsilon"),
    ],
)
def test_what_is_no_matrix_of_laws_is_refused(matrix, says):
    with pytest.raises(PlanError, match=says):
        MatrixRandomiser(matrix, 9)


def test_values_that_reports_do_not_tell_apart_have_no_estimate():
    alike = MatrixRandomiser([["1/2", "1/2"], ["1/2", "1/2"]], 1)
    with pytest.raises(PlanError, match="the reports cannot tell all values apart"):
        alike.estimate(np.zeros(3, np.uint32))


def test_each_value_has_its_own_law_in_any_order():
    made = MatrixRandomiser(LAWS, 1)
    values = np.tile([1, 0], 20_000)
    reports = made.randomise(values, SeededCoins(1))
    for value, law in enumerate(LAWS):
        shares = np.bincount(reports[values == value], minlength=3) / 20_000
        assert shares == pytest.approx([float(Fraction(one)) for one in law], abs=0.02)
    assert made.estimate(reports).estimates == pytest.approx([20_000, 20_000], abs=1_500)
