"""Pictures of states that a program throws away."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from matplotlib.image import imread

from panprivacy.service.config.loading import load
from panprivacy.service.dashboard.promise import StreamPromise
from panprivacy.service.dashboard.seized import answers_of, pictures
from tests.dashboard.rows import ROW


@pytest.mark.long
def test_throw_away_states_are_drawn_with_fresh_coins(file):
    plans = StreamPromise("shop", load(file).streams["shop"]).pictured
    rows = [
        replace(ROW, argument=n, arguments=f"state={n}", value=90.0, low=80.0) for n in (1, 2, 3)
    ]
    names = [str(name) for name in answers_of(rows, plans["visits"])]
    assert names == ["exactly 1", "exactly 2", "exactly 3"]
    one, other = (pictures(rows, plans["visits"])[1] for _ in range(2))
    assert one != other
    assert imread(io.BytesIO(one)).shape[0] > 300


def test_lost_answers_and_none_are_drawn_as_nobody(file):
    plan = StreamPromise("shop", load(file).streams["shop"]).pictured["distinct"]
    lost = replace(ROW, statistic="distinct", question="distinct", argument=None, arguments="",
                   value=None, low=None, high=None)  # fmt: skip
    assert all(pictures([lost], plan))
    assert all(pictures([], plan))


def test_a_share_is_read_as_a_number_and_a_state_as_a_whole_one(file):
    plan = StreamPromise("shop", load(file).streams["shop"]).pictured["visits"]
    row = replace(ROW, question="quantile", argument=None, arguments="share=0.5", value=3.0)
    range_ = replace(ROW, question="between", argument=1, arguments="first=1,last=4", value=3.0)
    median, few = answers_of([row, range_], plan).values()
    assert median.name.arguments == (("share", 0.5),)
    assert few.name.arguments == (("first", 1), ("last", 4))
    assert (median.unit, few.unit) == ("visits", plan.unit)
