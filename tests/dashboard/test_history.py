"""What the dashboard keeps of what was published."""

from __future__ import annotations

import contextlib

from panprivacy.service.dashboard import history
from panprivacy.service.dashboard.history import History
from panprivacy.service.outgoing.store import ReleaseStore
from tests.dashboard.rows import days, published


def test_it_follows_what_is_published(store):
    followed = History(store, "shop")
    assert not followed.follow()
    published(store, days(2))
    assert followed.follow()
    assert not followed.follow()
    published(store, days(1, first=2))
    assert followed.follow()
    (points,) = followed.known.points.values()
    assert points["value"].tolist() == [0, 1, 2]
    assert followed.known.newest[0].value == 2


def test_what_is_old_comes_page_by_page(store, monkeypatch):
    monkeypatch.setattr(history, "_PAGE", 3)
    monkeypatch.setattr(history, "MOST_ANSWERS", 9)
    published(store, days(20))
    followed = History(store, "shop")
    counts = []
    for _ in range(4):
        followed.follow()
        counts.append(followed.known.answers)
    assert counts == [3, 6, 9, 9]
    (points,) = followed.known.points.values()
    assert points["value"].tolist() == list(range(11, 20))


def test_it_begins_anew_where_more_came_than_a_page(store, monkeypatch):
    monkeypatch.setattr(history, "_PAGE", 3)
    published(store, days(2))
    followed = History(store, "shop")
    followed.follow()
    published(store, days(8, first=2))
    followed.follow()
    (points,) = followed.known.points.values()
    assert points["value"].tolist() == [7, 8, 9]


def test_another_store_in_the_place_of_the_first_is_read_from_its_beginning(tmp_path, store):
    other = tmp_path / "other"
    other.mkdir()
    published(store, days(3))
    followed = History(store, "shop")
    followed.follow()
    with contextlib.closing(ReleaseStore(f"sqlite:///{other}/releases.sqlite")) as second:
        published(second, days(1, first=9))
        followed._reader = second
        assert followed.follow()
        (points,) = followed.known.points.values()
        assert points["value"].tolist() == [9]
