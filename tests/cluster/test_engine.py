"""Which configurations a cluster counts in shards, and in which queues."""

from __future__ import annotations

import pyrage
import pytest

from panprivacy.cluster.engine import check, queues_of
from panprivacy.errors import PlanError
from panprivacy.service.config.loading import load

SEALED = f'[checkpoint]\nrecipient = "{pyrage.x25519.Identity.generate().to_public()}"\n'
STREAM = '[streams.{}]\nepsilon = 1\nwindow = "1d"\n{}[[streams.{}.stat]]\nname = "distinct"\n'


@pytest.fixture
def loaded(tmp_path):
    def made(text):
        file = tmp_path / "service.toml"
        file.write_text(text)
        return load(file)

    return made


def stream(name, more=""):
    return STREAM.format(name, more, name)


def test_what_can_be_counted_has_a_checkpoint(loaded):
    config = loaded(SEALED + stream("visits"))
    for shards in (1, 1_000):
        assert check(config, shards) == config.checkpoint
    with pytest.raises(PlanError, match=r"a cluster needs \[checkpoint\]"):
        check(loaded(stream("visits")), 2)


@pytest.mark.parametrize("shards", [0, -1, 1_001])
def test_there_are_so_many_shards(loaded, shards):
    with pytest.raises(PlanError, match="--shards must be 1 to 1,000"):
        check(loaded(SEALED + stream("visits")), shards)


def test_a_cluster_answers_by_itself(loaded):
    recipient = SEALED.split('"')[1]
    text = SEALED + stream("pages") + stream("visits", f'contribute = "{recipient}"\n')
    with pytest.raises(PlanError, match=r"streams.visits: a cluster answers by itself: leave out"):
        check(loaded(text), 2)


def test_each_stream_has_a_queue_for_each_shard(loaded):
    config = loaded(SEALED + stream("visits") + stream("pages"))
    queues = queues_of(config, 3)
    assert list(queues) == ["visits", "pages"]
    assert [one.shard for one in queues["pages"]] == [0, 1, 2]
    subjects = {one.subject for each in queues.values() for one in each}
    assert len(subjects) == 6
    assert {one.shards for each in queues.values() for one in each} == {3}
