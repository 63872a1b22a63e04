"""How large is the join of two streams? Flights that were planned, and those that left on time.

    python examples/join_size.py

A "user" is an aircraft on a day. Each pair of a planned flight and one that left less than 15
minutes late, of one aircraft on one day, is a row of the join. The column `delta` says which of the
two streams a row of the file is of. The command line does the same:

    panprivacy run examples/departures.parquet --user aircraft_day --side delta --epsilon 4 \
        --stat inner-product,left=1,right=-1,bound=6,expected=100_000:1_000_000
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

import panprivacy as pp

DEPARTURES = Path(__file__).with_name("departures.parquet")

rows = pq.read_table(DEPARTURES).drop_null()
join = pp.InnerProduct(
    left="1", right="-1", bound=6, expected=(100_000, 1_000_000), epsilon=4
)  # no aircraft leaves more than 6 times a day
join.update(rows["aircraft_day"], sides=rows["delta"])
answer = join.release()

planned, on_time = (
    rows.filter(pc.field("delta") == sign).group_by("aircraft_day").aggregate([([], "count_all")])
    for sign in (1, -1)
)
both = planned.join(on_time, "aircraft_day", join_type="inner", right_suffix=" on time")
truth = pc.sum(pc.multiply(both["count_all"], both["count_all on time"])).as_py()
print(f"{answer.value:.0f} ({answer.low:.0f} to {answer.high:.0f}), in truth {truth:,}")
