"""Names of batches."""

from __future__ import annotations

import pytest

from panprivacy.service.batches import ID_BYTES, BatchIds


def test_a_batch_id_is_kept_as_a_hash_of_all_of_it():
    ids, start = BatchIds(5), b"the same sixty-four bytes at the start of two names, more or less "
    ids.add(start + b"1")
    assert start + b"1" in ids
    assert start + b"2" not in ids
    assert b"1" + start not in ids
    assert start[:8] not in ids.packed()


class TestBatchIds:
    def test_the_last_ones_are_kept(self):
        ids = BatchIds(3)
        for name in (b"a", b"b", b"c", b"d"):
            assert name not in ids
            ids.add(name)
        assert [name in ids for name in (b"a", b"b", b"c", b"d")] == [False, True, True, True]

    def test_none_are_kept_where_none_are_wanted(self):
        ids = BatchIds(0)
        ids.add(b"a")
        assert b"a" not in ids
        assert ids.packed() == b""
        ids.unpack(b"")

    @pytest.mark.parametrize("count", [0, 1, 3, 7])
    def test_they_come_back_in_order_and_their_size_tells_nothing(self, count):
        ids, after = BatchIds(3), BatchIds(3)
        for number in range(count):
            ids.add(bytes([number]))
        packed = ids.packed()
        assert len(packed) == ids.state_bytes == 3 * ID_BYTES
        after.add(b"other")
        after.unpack(packed)
        assert after.packed() == packed
        after.add(b"new")
        assert b"new" in after
        assert [bytes([number]) in after for number in range(count)][-2:] == [True] * min(2, count)
