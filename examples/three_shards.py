"""Three machines count different flights; one answer leaves, with one noise.

    python examples/three_shards.py

A "user" is an aircraft on a day. The last digits of its CRC say which machine counts it, so nobody
is on two of them.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import panprivacy as pp

FLIGHTS = Path(__file__).with_name("flights.parquet")
SHARDS = 3

users = pq.read_table(FLIGHTS)["aircraft_day"].drop_null()
places = np.array([zlib.crc32(user.encode()) % SHARDS for user in users.to_pylist()])

contributions = []
for shard in range(SHARDS):  # each on a machine of its own
    count = pp.DistinctCount(expected=(10_000, 1_000_000), epsilon=1)
    count.update(users.filter(places == shard))
    contributions.append(count.contribute())  # it has counted to its end, and knows nothing more

answer = pp.merge(contributions)
print(f"{answer.value:.0f} ({answer.low:.0f} to {answer.high:.0f}), in truth {len(users.unique())}")
