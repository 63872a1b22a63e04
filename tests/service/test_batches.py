"""Names of batches."""

from __future__ import annotations

from panprivacy.service.batches import BatchIds


def test_a_batch_id_is_kept_as_a_hash_of_all_of_it():
    ids, start = BatchIds(5), b"the same sixty-four bytes at the start of two names, more or less "
    ids.add(start + b"1")
    assert start + b"1" in ids
    assert start + b"2" not in ids
    assert b"1" + start not in ids
    assert start[:8] not in ids.packed()
