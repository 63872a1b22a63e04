"""Makes up the visits of a site, in the files of which the pages speak.

    python examples/make_visits.py [FOLDER]

Nobody is in them: `visits.parquet` and `visits.csv` have a row a visit, `orders.parquet` a row an
order, and `access.log` a line a request, as nginx writes it. They are the same each time.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

CLIENTS, CUSTOMERS, FIRMS = 30_000, 100_000, 8_000
PAGES = ("/", "/help", "/shop")
LINE = '{} - - [21/Nov/2026:08:00:00 +0000] "GET {}?from=mail HTTP/1.1" 200 512 "-" "Mozilla/5.0"\n'


def visits(coins: np.random.Generator) -> pa.Table:
    """The ids are numbers below 50,000; four in five of them came, most of them a few times."""
    times = np.minimum(coins.zipf(1.8, 40_000), 90)
    return pa.table({"visitor_id": coins.permutation(np.repeat(np.arange(40_000), times))})


def orders(coins: np.random.Generator) -> pa.Table:
    """Of about ten million in all, of which 8,000 firms have 1,050 to 1,350 each."""
    firms = coins.integers(105_000, 135_000, FIRMS)
    others = coins.integers(1, 870, CUSTOMERS - FIRMS)
    names = pa.array([f"customer {number}" for number in range(CUSTOMERS)])
    return pa.table({"customer": names, "cents": np.concatenate([firms, others])})


def log(coins: np.random.Generator) -> str:
    """Each client asks for one page or two, and some for a picture."""
    lines = []
    for client, pages in enumerate(coins.choice(len(PAGES), (CLIENTS, 2), p=(0.6, 0.1, 0.3))):
        address = f"10.{client >> 9}.{client >> 1 & 255}.{1 + client % 2}"
        wanted = [PAGES[page] for page in pages] + ["/logo.png"] * (client % 3 == 0)
        lines += [LINE.format(address, page) for page in wanted]
    return "".join(lines)


def main(folder: Path) -> None:
    """Write the four files, and say so."""
    coins = np.random.default_rng(2026)
    came = visits(coins)
    pa.parquet.write_table(came, folder / "visits.parquet")
    pa.csv.write_csv(came, folder / "visits.csv")
    pa.parquet.write_table(orders(coins), folder / "orders.parquet")
    (folder / "access.log").write_text(log(coins))
    *first, last = (
        str(folder / name)
        for name in ("visits.parquet", "visits.csv", "orders.parquet", "access.log")
    )
    print(f"Wrote {', '.join(first)} and {last}: nobody is in them.")


if __name__ == "__main__":
    main(Path(*sys.argv[1:]))
