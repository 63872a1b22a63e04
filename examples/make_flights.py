"""Make flights.parquet from the nycflights13 flights (CC0).

    python examples/make_flights.py nycflights13.parquet

The input has a row a flight: `ts`, the scheduled departure in seconds since 1970 (UTC), `tailnum`,
`origin`, `dest`, and `cancelled`, whether there is no departure time.
A user is an aircraft on a day (UTC): `aircraft_day`, null where the tail number is unknown.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

flights = pq.read_table(sys.argv[1])
scheduled = pc.cast(flights["ts"], pa.timestamp("s", tz="UTC"))
day = pc.strftime(scheduled, format="%Y-%m-%d")
aircraft_day = pc.binary_join_element_wise(flights["tailnum"].cast(pa.string()), day, " ")
table = pa.table(
    {
        "scheduled": scheduled,
        "aircraft_day": aircraft_day,
        "origin": flights["origin"].cast(pa.string()),
        "dest": flights["dest"].cast(pa.string()),
        "cancelled": flights["cancelled"],
    }
)
pq.write_table(table, Path(__file__).with_name("flights.parquet"), compression="zstd")
