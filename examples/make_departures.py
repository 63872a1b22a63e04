"""Make departures.parquet from the nycflights13 flights (CC0).

    python examples/make_departures.py nycflights13.parquet flights_airborne.parquet

The first input has a row a flight: `ts`, the scheduled departure in seconds since 1970 (UTC), `tailnum`,
and `cancelled`. The second has a row a take-off (`delta` 1) or landing, with its `ts` and `tailnum`. A
take-off belongs to the last flight of its aircraft that was scheduled before it, or up to 45 minutes
after it, because flights may leave early.

The output is a stream of inserts and deletes: every flight is inserted when it is scheduled (`delta` 1)
and deleted when it leaves less than 15 minutes late (`delta` -1; a flight that leaves early is scheduled
when it leaves). What stays are the late and the cancelled. `flight` is a number; `aircraft_day` is the
aircraft on the (UTC) day of the schedule. Flights of unknown aircraft or without a take-off are left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

EARLY, LATE = 45 * 60, 15 * 60

flights = pd.read_parquet(sys.argv[1]).dropna(subset=["tailnum"]).sort_values("ts")
moves = pd.read_parquet(sys.argv[2])
flown = flights.loc[~flights["cancelled"], ["ts", "tailnum"]].assign(scheduled=lambda f: f["ts"])
take_offs = moves.loc[moves["delta"] == 1, ["ts", "tailnum"]].assign(left=lambda m: m["ts"])
take_offs["ts"] += EARLY
matched = pd.merge_asof(take_offs.sort_values("ts"), flown, on="ts", by="tailnum")
matched = matched.dropna().drop_duplicates(["tailnum", "scheduled"]).astype({"scheduled": int})
print(f"{len(flown) - len(matched):,} flights without a take-off are left out")
late = matched["left"] - matched["scheduled"]
print(f"delays in minutes: {(late / 60).quantile([0, 0.01, 0.5, 0.99, 1]).to_dict()}")

cancelled = flights.loc[flights["cancelled"], ["ts", "tailnum"]]
cancelled = cancelled.rename(columns={"ts": "scheduled"})
inserts = pd.concat([matched, cancelled], ignore_index=True).sort_values("scheduled")
inserts = inserts.reset_index(drop=True).assign(delta=1)
inserts["flight"] = inserts.index
days = pd.to_datetime(inserts["scheduled"], unit="s").dt.strftime("%Y-%m-%d")
inserts["aircraft_day"] = inserts["tailnum"] + " " + days
inserts["time"] = inserts[["scheduled", "left"]].min(axis=1)
on_time = inserts["left"] - inserts["scheduled"] < LATE
deletes = inserts[on_time].assign(delta=-1, time=inserts["left"])
stream = pd.concat([inserts, deletes]).sort_values("time", kind="stable")
stream["time"] = pd.to_datetime(stream["time"], unit="s", utc=True).astype("datetime64[ms, UTC]")
stream = stream[["time", "flight", "aircraft_day", "delta"]]
stream = stream.astype({"delta": "int8", "flight": "int32"})
print(f"{len(stream):,} rows; {int(stream['delta'].sum()):,} flights stay, late or cancelled")
target = Path(__file__).with_name("departures.parquet")
# In this order, times and flight numbers hardly differ from those of the row before.
stream.to_parquet(
    target,
    index=False,
    compression="zstd",
    compression_level=19,
    use_dictionary=["aircraft_day", "delta"],
    column_encoding={"time": "DELTA_BINARY_PACKED", "flight": "DELTA_BINARY_PACKED"},
)
