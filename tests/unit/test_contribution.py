"""What a shard hands out: parts that are read back, or refused whole."""

from __future__ import annotations

import pytest

import panprivacy as pp
from panprivacy.errors import InputError
from panprivacy.statistics.contribution import ID_BYTES, read_parts


@pytest.fixture(scope="module")
def contribution():
    statistic = pp.CroppedSum(tau=3, bound=9, universe=5_000, epsilon=1)
    statistic.update([1, 2, 3])
    return statistic.contribute()


def test_parts_are_the_same_again(contribution):
    parts = read_parts(contribution * 2)
    assert len(parts) == 2
    assert b"".join(part.packed() for part in parts) == contribution * 2


def test_a_part_says_what_it_is_and_is_named_only_once_asked(contribution):
    (part,) = read_parts(contribution)
    assert len(bytes.fromhex(part.told.id)) == ID_BYTES == 16
    assert (part.told.form, part.told.label, part.told.complete) == ("sums", "", True)
    named = part.under(label="visits", complete=False)
    assert (named.told.label, named.told.complete) == ("visits", False)
    assert (named.told.id, named.body) == (part.told.id, part.body)
    assert read_parts(named.packed()) == [named]
    assert part.told.label == ""


def test_no_contribution_is_cut_off(contribution):
    for cut in range(1, len(contribution)):
        with pytest.raises(InputError):
            read_parts(contribution[:cut])
    with pytest.raises(InputError, match="the contribution is empty"):
        read_parts(b"")


@pytest.mark.parametrize("content", [b"x", b"panpart2" + bytes(40), b"p" * 40])
def test_what_is_none_is_refused(content):
    with pytest.raises(InputError, match="there is no contribution of panprivacy here"):
        read_parts(content)


def test_lengths_beyond_the_file_are_refused_before_anything_is_read(contribution):
    damaged = bytearray(contribution)
    damaged[12:20] = (2**62).to_bytes(8, "little")
    with pytest.raises(InputError, match="the contribution is damaged, or cut off"):
        read_parts(bytes(damaged))


def test_what_is_said_of_it_is_checked(contribution):
    damaged = contribution.replace(b'"form":"sums"', b'"form":"both"')
    assert damaged != contribution
    with pytest.raises(InputError, match="the contribution is damaged, or cut off"):
        read_parts(damaged)
