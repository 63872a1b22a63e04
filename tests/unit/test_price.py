"""What published tables cost a user of all of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import panprivacy as pp
from panprivacy.statistics.overlaps.price import SketchPrice


@pytest.fixture(scope="module")
def one():
    return pp.OverlapSketch(epsilon=2, expected=10_000, key=b"x" * 16).release().sketch


def days(one, *numbers, **named):
    return [
        one.named(start=datetime(2026, 1, day, tzinfo=UTC), end=datetime(2026, 1, day + 1,
                  tzinfo=UTC), **named)
        for day in numbers
    ]  # fmt: skip


def test_windows_of_one_guarantee_lose_what_it_says(one):
    for number in 1, 2, 7:
        price = SketchPrice.of([one] * number)
        assert price.loss == one.guarantee.over(number)
        assert price.document() == {"windows": number, "seen": 1, **price.loss.document()}


def test_groups_of_a_window_are_seen_by_one_look(one):
    left, right = days(one, 1, 2, group="left"), days(one, 1, 2, group="right")
    price = SketchPrice.of([*left, *right])
    assert len(price.windows) == 2
    unseen = one.guarantee.unseen_loss
    assert price.loss == one.guarantee.loss.times(2) + unseen.times(2)


def test_groups_without_a_window_are_taken_for_those_of_one(one):
    groups = [one.named(group=group) for group in ("a", "b", "c")]
    assert SketchPrice.of(groups).loss == one.guarantee.loss.times(3)


def test_statistics_without_a_window_are_taken_for_those_of_one(one):
    both = [one.named(statistic=name) for name in ("x", "y")]
    assert SketchPrice.of(both).loss == one.guarantee.loss.times(2)
    assert len(SketchPrice.of([*both, *both]).windows) == 2


def test_of_sketches_without_a_window_the_dearest_are_taken_for_one_state(one):
    dear = pp.OverlapSketch(epsilon=4, expected=10_000, key=b"x" * 16).release().sketch
    several = [one, dear, dear.named(statistic="y"), one.named(statistic="y")]
    looks = dear.guarantee.loss.times(2)
    unseen = one.guarantee.unseen_loss.times(2)
    assert SketchPrice.of(several).loss == looks + unseen


@pytest.mark.parametrize("covers", ["seizure", "publication"])
@pytest.mark.parametrize("number", [2, 5])
def test_all_windows_of_one_object_lose_its_epsilon_and_one_of_them_less(covers, number):
    windows = pp.OverlapSketch(epsilon=10, expected=10_000, releases=number, covers=covers)
    tables = [windows.release().sketch for _ in range(number)]
    assert SketchPrice.of(tables).loss.epsilon == windows.guarantee.epsilon == 10
    one = SketchPrice.of(tables[:1]).loss.epsilon
    assert 10 / number <= one < 10 - (number - 1)
    assert one + (number - 1) * tables[0].guarantee.unseen == 10


def test_a_window_whose_state_nobody_sees_is_said(one):
    told = {"epsilon": 1, "expected": 10_000, "key": b"x" * 16, "covers": "publication"}
    other = pp.OverlapSketch(**told).release().sketch
    price = SketchPrice.of([one, other])
    assert not price.looks
    assert str(price).startswith("a user of all 2 windows, where nobody sees the state, loses")
    assert price.loss.epsilon == one.guarantee.epsilon + other.guarantee.epsilon


def test_one_look_sees_the_windows_of_all_streams_at_a_moment(one):
    guarantee = one.guarantee
    site, app = days(one, 1, 2, stream="site"), days(one, 1, stream="app")
    price = SketchPrice.of([*site, *app])
    assert price.loss == guarantee.loss.times(2) + guarantee.unseen_loss
    assert price.document()["windows"] == 2
    alone = [one.named(stream=name) for name in ("site", "app")]
    assert SketchPrice.of(alone).loss == guarantee.loss.times(2)


def test_one_look_sees_windows_that_overlap(one):
    def window(first, last, stream):
        start, end = (datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (first, last))
        return one.named(start=start, end=end, stream=stream)

    guarantee = one.guarantee
    chain = [window(0, 4, "a"), window(3, 7, "b"), window(6, 10, "c")]
    price = SketchPrice.of(chain)
    assert price.loss == guarantee.loss.times(2) + guarantee.unseen_loss
    assert price.document()["seen"] == 2
    assert "3 windows, 2 of them seen by one look, loses" in str(price)
    after_another = SketchPrice.of([window(0, 3, "a"), window(3, 7, "b")])
    assert after_another.loss == guarantee.over(2)
    assert "one of them seen" in str(after_another)
    assert "all seen by one look" in str(SketchPrice.of(chain[:2]))
