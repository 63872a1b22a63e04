"""Answers are found by their names, or by a part of one."""

from __future__ import annotations

import dataclasses

import pytest

import panprivacy as pp
from panprivacy.statistics.release import Lost

SUM = pp.Name("visits", "cropped_sum", (("tau", 10),))
ANSWER = pp.Release(1234.5, 1100.25, 1400.0, 0.95, 0.1, (7, 8), SUM, "visits")
ANSWERS = pp.Answers([
    ANSWER.under("visits", "home"),
    Lost((SUM._replace(group="help"), pp.Name("visits", "distinct", (), "help"))),
    dataclasses.replace(ANSWER, counts=(9,), name=pp.Name("who", "distinct", (), "home")),
])  # fmt: skip


def test_an_answer_is_found_by_a_part_of_its_name():
    assert ANSWERS["who"].counts == (9,)
    assert list(ANSWERS["help"]) == list(ANSWERS.where(group="help"))
    assert list(ANSWERS["cropped sum 10"]) == list(ANSWERS[10])
    assert ANSWERS["home"]["visits"].value == 1234.5
    assert ANSWERS["home"].get("shop") is ANSWERS.get(None) is None
    assert ANSWERS.get("shop", 7) == 7
    assert ("who" in ANSWERS, "shop" in ANSWERS) == (True, False)
    lost = ANSWERS.where(question="distinct", group="help")
    assert lost["help"] is None
    assert "help" in lost


@pytest.mark.parametrize("wanted", ["shop", 3, None, SUM])
def test_a_name_that_nothing_has_is_refused_with_those_there_are(wanted):
    with pytest.raises(KeyError, match="groups there are: home, help") as refused:
        ANSWERS[wanted]
    assert "shop" not in str(refused.value)
    with pytest.raises(KeyError, match="answers there are: cropped sum 10"):
        pp.Answers([ANSWER])["no"]
    with pytest.raises(KeyError, match="statistics there are: visits, calls"):
        pp.Answers([ANSWER, ANSWER.under("calls")])["no"]
    with pytest.raises(KeyError, match="answers there are: none"):
        pp.Answers([])["no"]
