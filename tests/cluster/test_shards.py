"""What a cluster asks of its shards, whatever runs them."""

from __future__ import annotations

from panprivacy.cluster import actors
from panprivacy.cluster.shards import Shards


def test_the_actors_have_all_that_a_cluster_asks_of_shards():
    asked = {name for name in vars(Shards) if not name.startswith("_")}
    assert asked == {"ask", "close", "report", "stop"}
    kinds = [one for one in vars(actors).values() if isinstance(one, type)]
    assert any(asked <= set(dir(kind)) for kind in kinds)
