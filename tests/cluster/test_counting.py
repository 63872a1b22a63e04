"""What a shard counts: slices of several statistics, of groups, with releases before the last."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.cluster.routing import Router
from panprivacy.intake.programs.counting import (
    Grouping,
    intrusions_of_slices,
    make_counting,
    numbered,
)
from panprivacy.service.config.loading import load
from panprivacy.statistics.merging import Merger
from panprivacy.statistics.specification import Specification, SpecificationError
from panprivacy.testing import SeededCoins
from tests import refusals
from tests.commands import run_command

KEY = b"sixteen letters!"
LEVEL = 1 - 1e-6


def cluster(texts, shards=2, **given):
    """A router, and what each shard counts."""
    specifications = [Specification.from_text(text) for text in texts]
    covers = {"epsilon": Fraction(12), **given}
    whole = make_counting(specifications, **covers)
    router = Router(shards, KEY, numbered=numbered(whole))
    slices = [router.slice(shard) for shard in range(shards)]
    return router, [make_counting(specifications, **covers, slice_=one) for one in slices]


@pytest.mark.long
def test_several_statistics_of_groups_are_each_read_as_one_table():
    texts = ["distinct,expected=100:10000", "cropped-sum,tau=5,bound=9,expected=100:9000,as=visits"]
    router, made = cluster(texts, grouping=Grouping(["a", "b"], per_user=2))
    users = np.arange(1_500)
    shards = router.shards_of(users)
    for shard, one in enumerate(made):
        own = users[shards == shard]
        one.update(own, np.where(own % 3, "a", "b"), np.full(len(own), 5))
    merger = Merger([one.contribute() for one in made])
    assert merger.guarantee.epsilon == 12
    assert "distinct: 2 slices of one table are read as that table" in merger.remarks
    answers = merger.release(LEVEL, SeededCoins(1))
    for group, number in (("a", 1_000), ("b", 500)):
        found = answers.where(group=group)
        for label, truth in (("distinct", number), ("visits", 5 * number)):
            answer = found.where(statistic=label).only()
            assert answer.low <= truth <= answer.high


def test_a_release_before_the_last_is_an_announced_look_and_the_slices_go_on():
    router, made = cluster(["density,universe=2_000"], 3, releases=2, intrusions=1)
    assert {one.guarantee.intrusions for one in made} == {intrusions_of_slices(2, 1)} == {2}
    for users, truth in ((np.arange(0, 500), 0.25), (np.arange(500, 1_000), 0.5)):
        shards = router.shards_of(users)
        for shard, one in enumerate(made):
            one.update(users[shards == shard])
            if truth == 0.5:
                one.announce_intrusion()
        answer = pp.merge([one.contribute() for one in made], confidence=LEVEL).only()
        assert answer.low <= truth <= answer.high
    for one in made:
        with refusals.wiped():
            one.state()


def test_a_shard_to_which_nobody_came_can_stand_in_for_one_that_is_lost():
    router, (one, _) = cluster(["density,universe=4_000"])
    _, (_, newborn) = cluster(["density,universe=4_000"])
    users = np.arange(3_000)
    one.update(users[router.shards_of(users) == 0])
    answer = pp.merge([one.contribute(), newborn.contribute()], confidence=LEVEL).only()
    assert answer.low <= 1_500 / 4_000 <= answer.high < 0.5


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("running-count,horizon=10", {}, "count it on one machine"),
        ("distinct,expected=learn", {}, "a shard of a cluster has none: say a number"),
        ("density,universe=1", {}, "2 shards are too many for 1 cells"),
        ("density,universe=4_000", {"moves": Fraction(1), "releases": 2}, "no shard of a cluster"),
    ],
)
def test_what_shards_cannot_count_is_refused_with_the_reason(text, given, said):
    slice_ = Router(2, KEY, numbered=False).slice(0)
    with pytest.raises(pp.PlanError, match=said) as refused:
        make_counting([Specification.from_text(text)], epsilon=Fraction(4), **given, slice_=slice_)
    assert isinstance(refused.value, SpecificationError) == ("moves" not in given)
    assert "\n" not in str(refused.value)


def test_a_slice_has_a_key_of_its_own():
    slice_ = Router(2, KEY, numbered=False).slice(0)
    with pytest.raises(pp.PlanError, match="leave out key="):
        pp.DistinctCount(epsilon=1, key=bytes(16), slice_=slice_)
    with pytest.raises(pp.PlanError, match="must be a Slice"):
        pp.DistinctCount(epsilon=1, slice_=(0, 2))


@pytest.mark.long
def test_a_stream_of_a_service_is_counted_by_shards(tmp_path):
    text = """
        [streams.visits]
        epsilon = 6
        window = "1d"
        releases = 3
        stat = [{name = "distinct"}, {name = "distinct", expected = "10:1e6", as = "again"}]
    """
    (tmp_path / "config.toml").write_text(text)
    stream = load(tmp_path / "config.toml").streams["visits"]
    router = Router(2, KEY, numbered=False)
    one = stream.make_counting(router.slice(1))
    assert one.guarantee.epsilon == 6
    assert one.guarantee.intrusions == 2
    assert {str(part.internals.memory.slice) for part in one.statistics.values()} == {"2 of 2"}
    assert (
        one.internals.memory.state_bytes < 0.6 * stream.make_counting().internals.memory.state_bytes
    )


def test_the_state_of_a_slice_is_explained_as_one(tmp_path):
    slice_ = Router(3, KEY, numbered=False).slice(1)
    (tmp_path / "seized").write_bytes(pp.DistinctCount(epsilon=1, slice_=slice_).state())
    page = " ".join(run_command("explain", tmp_path / "seized").stdout.split())
    assert "this is slice 2 of 3, for the users of one shard" in page
