"""What a cluster begins with: nothing of what belongs to another one."""

from __future__ import annotations

import pytest

from panprivacy.cluster.server import _Beginning
from panprivacy.errors import PlanError
from panprivacy.service.config.config import ClusterConfig, Config
from tests.cluster.shards import planned


def test_the_queues_of_another_cluster_are_not_taken_for_what_was_left(broker, tmp_path):
    def check(name):
        config = Config(streams={"visits": planned()}, cluster=ClusterConfig(name=name))
        _Beginning(config, None, tmp_path / "here.json", broker, None)._check_name()

    broker.tell("theirs", "visits", b"the directory of a cluster that keeps its states elsewhere")
    with pytest.raises(PlanError, match=r"the broker knows a cluster theirs .* --fresh"):
        check("theirs")
    check("ours")
