"""To which shard users belong: one each, the same whatever their ids are written as, and evenly.

False-alarm rate 1e-6 an assertion; shares that are off by 30 % are rejected.
"""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.cluster.routing import Router
from panprivacy.tables.slices import MOST_SHARDS, Slice, deal
from tests.statistical.checks import accepted, fits, rejected

KEY = b"sixteen letters!"
SECRET = 4_711


def hashed(shards=4, key=KEY):
    return Router(shards, key, numbered=False)


def dealt(shards=4, key=KEY):
    return Router(shards, key, numbered=True)


class TestRouter:
    def test_a_user_is_one_whatever_his_id_is_written_as(self):
        numbers = np.arange(-3, 500)
        texts = [str(one) for one in numbers]
        forms = [
            numbers,
            numbers.astype(np.int16),
            texts,
            [one.encode() for one in texts],
            pa.array(texts, pa.string_view()),
            pa.array(texts).dictionary_encode(),
            pa.DictionaryArray.from_arrays(np.arange(len(texts))[::-1], pa.array(texts[::-1])),
            pa.chunked_array([texts[:7], texts[7:]]),
        ]
        first, *others = (hashed().shards_of(form).tolist() for form in forms)
        assert set(first) == {0, 1, 2, 3}
        assert all(other == first for other in others)

    def test_the_key_decides(self):
        users = np.arange(10_000)
        for make in (hashed, dealt):
            one, other = make().shards_of(users), make(key=bytes(16)).shards_of(users)
            assert make().shards_of(users).tolist() == one.tolist()
            assert 0.2 < np.mean(one == other) < 0.3

    @pytest.mark.parametrize("step", [1, 2, 3, 4, 8, 1_000])
    @pytest.mark.parametrize("make", [hashed, dealt])
    def test_shards_get_equal_shares_of_ids_that_come_in_steps(self, make, step):
        shards = make().shards_of(np.arange(0, 20_000 * step, step))
        shares = np.bincount(shards, minlength=4)
        assert rejected(fits(shares, np.array([1.3, 1, 1, 1])))
        # Those of a round are one in each shard: shares are closer than chance makes them.
        assert accepted(fits(shares, np.ones(4)))

    def test_a_split_has_each_row_once_and_in_order(self):
        users, places = np.random.default_rng(1).integers(0, 900, 5_000), np.arange(5_000)
        batch = pa.record_batch(
            {"user": users, "text": pa.array([str(one) for one in users], pa.string_view()),
             "place": places}
        )  # fmt: skip
        for column, router in itertools.product((0, 1), (hashed(), hashed(1))):
            sent = router.hashed(batch, column)
            parts = router.split(sent, column)
            assert len(parts) == router.shards
            found = np.sort(np.concatenate([part["place"] for part in parts]))
            assert found.tolist() == places.tolist()
            for shard, part in enumerate(parts):
                router.check(part, column, shard)
                assert np.all(np.diff(part["place"]) > 0)
                assert part[column].equals(sent[column].take(part["place"]))
                other = batch[1 - column].to_pylist()
                assert part[1 - column].to_pylist() == [
                    other[at] for at in part["place"].to_pylist()
                ]

    def test_shards_without_rows_get_none(self):
        batch = hashed().hashed(pa.record_batch({"user": [SECRET, SECRET]}), 0)
        parts = hashed().split(batch, 0)
        assert [part for part in parts if part is not None] == [batch]
        assert hashed().split(batch.slice(0, 0), 0) == [None] * 4

    @pytest.mark.parametrize("make", [hashed, dealt])
    def test_a_row_of_another_shard_is_refused_by_its_place(self, make):
        router, users = make(), np.arange(SECRET, SECRET + 50)
        shards = router.shards_of(users)
        own = users[shards == 2]
        stranger = users[shards != 2][0]

        def sent(users):
            return router.hashed(pa.record_batch({"user": users}), 0)

        router.check(sent(own), 0, 2)
        for place in range(len(own) + 1):
            with pytest.raises(pp.InputError, match="another shard") as refused:
                router.check(sent(np.insert(own, place, stranger)), 0, 2)
            assert refused.value.row == place + 1
            assert str(SECRET)[:2] not in str(refused.value)

    def test_ids_that_are_sent_as_they_are_are_refused(self):
        routers, columns = (hashed(), hashed(1), dealt()), ([str(SECRET)], np.uint64([SECRET]))
        for router, act, ids in itertools.product(routers, ("split", "check"), columns):
            given = (0,) if act == "split" else (0, 0)
            with pytest.raises(pp.InputError, match="Publisher"):
                getattr(router, act)(pa.record_batch({"user": ids}), *given)

    def test_a_user_of_a_universe_keeps_his_number(self):
        batch = pa.record_batch({"user": pa.array([3, 1, 2], pa.int16())})
        assert dealt().hashed(batch, 0).column(0).to_pylist() == [3, 1, 2]

    def test_nulls_and_texts_for_numbers_are_refused(self):
        with pytest.raises(pp.InputError, match="null") as refused:
            hashed().shards_of(["ada", None])
        assert refused.value.row == 2
        with pytest.raises(pp.InputError, match="whole-number ids"):
            dealt().shards_of(["7"])

    @pytest.mark.parametrize(
        ("shards", "key"),
        [(0, KEY), (MOST_SHARDS + 1, KEY), (2, b"short"), (2, "sixteen letters!")],
    )
    def test_what_is_no_router_is_refused(self, shards, key):
        with pytest.raises(pp.PlanError, match=r"shards|16 bytes"):
            hashed(shards, key)


class TestSlice:
    @pytest.mark.parametrize("shards", [1, 2, 3, 7])
    @pytest.mark.parametrize("number", [0, 1, 6, 7, 8, 1_000])
    def test_a_share_is_what_is_dealt(self, shards, number):
        of = deal(np.arange(number), shards, KEY)
        slices = [Slice(shard, shards, KEY) for shard in range(shards)]
        assert [one.share(number) for one in slices] == [(of == one.shard).sum() for one in slices]
        for one in slices:
            within = np.flatnonzero(of == one.shard) // shards
            assert within.tolist() == list(range(one.share(number)))

    def test_there_is_no_other_shard(self):
        with pytest.raises(pp.PlanError, match="shard"):
            Slice(2, 2, KEY)
