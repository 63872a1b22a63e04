"""Log lines a second, beside DuckDB on the same file: `python -m benchmarks.log_lines`.

Contestants take turns, round after round; times are those of the processor, over all threads. The
script exits with 1 when the combined format is read slower than the target.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from panprivacy.intake.sources import Column, Prefixes, open_source

try:
    import duckdb
except ImportError:
    duckdb = None

LINES = 2_000_000
ROUNDS = 5
TARGET = 1_000_000
"""Lines a second of the combined format, with its addresses read."""

BROWSERS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/{}.0.0.0 Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64; rv:{0}.0) Gecko/20100101 Firefox/{0}.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_{} like Mac OS X) AppleWebKit/605.1.15 Safari/604.1",
    "curl/8.{}.0",
)
ADDRESS = r"^(?P<remote_addr>\S+) "
AGENT = r'"[^"]*" \d+ (?:\d+|-) "[^"]*" "(?P<http_user_agent>[^"]*)"'


@dataclass(frozen=True)
class Contest:
    """One column of the file, read here and by DuckDB.

    Args:
        name: what is printed.
        column: the column.
        options: of `open_source`.
        group: the regular expression of DuckDB, whose first group is counted.
    """

    name: str
    column: Column
    options: dict[str, str]
    group: str


CONTESTS = (
    Contest(
        "combined, remote_addr as address",
        Column("remote_addr", address=Prefixes()),
        {"format": "combined"},
        ADDRESS,
    ),
    Contest("combined, http_user_agent", Column("http_user_agent"), {"format": "combined"}, AGENT),
    Contest(
        "lines, pattern of remote_addr",
        Column("remote_addr"),
        {"format": "lines", "pattern": ADDRESS},
        ADDRESS,
    ),
    Contest(
        "lines, the same as address",
        Column("remote_addr", address=Prefixes()),
        {"format": "lines", "pattern": ADDRESS},
        ADDRESS,
    ),
    Contest(
        "lines, pattern of http_user_agent",
        Column("http_user_agent"),
        {"format": "lines", "pattern": AGENT},
        AGENT,
    ),
)


def made_lines(count: int) -> Iterator[str]:
    """Made-up lines as nginx writes them, a quarter of them from IPv6 addresses."""
    rng = np.random.default_rng(1)
    for numbers in rng.integers(0, 1 << 16, (count, 8)).tolist():
        a, b, c, d, e, f, g, h = numbers
        address = (
            f"2001:db8:{a:x}:{b:x}::{c:x}"
            if h % 4 == 0
            else f"{a % 223 + 1}.{a >> 8}.{b % 256}.{b >> 8}"
        )
        agent = BROWSERS[d % len(BROWSERS)].format(100 + e % 40)
        referer = f"https://www.example.org/search?q={f:x}&page={g % 9}" if f % 3 else "-"
        yield (
            f"{address} - - [{1 + c % 28:02}/Oct/2025:{d % 24:02}:{e % 60:02}:{f % 60:02} +0200] "
            f'"GET /articles/{g}/{h:x}.html?utm_source=mail HTTP/1.1" {200 + c % 3 * 2} {e} '
            f'"{referer}" "{agent}"\n'
        )


def ours(path: str, contest: Contest) -> int:
    """The rows that have a value."""
    with open_source(path, columns=[contest.column], **contest.options) as source:
        return sum(batch.num_rows - batch.column(0).null_count for batch in source.batches())


def theirs(path: str, contest: Contest) -> int:
    """The same of DuckDB, one thread; no delimiter or quote occurs in the lines."""
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        query = """
            SELECT count(*) FILTER (regexp_extract(line, ?, 1) <> '')
            FROM read_csv(?, columns = {'line': 'VARCHAR'}, auto_detect = false, header = false,
                          delim = '\x01', quote = '', escape = '')
        """
        return database.execute(query, [contest.group, path]).fetchone()[0]


def seconds(run: Callable[[str, Contest], int], path: str, contest: Contest, lines: int) -> float:
    """Processor time of a run, which must find a value in every line."""
    start = time.process_time()
    found = run(path, contest)
    spent = time.process_time() - start
    if found != lines:
        message = f"{contest.name}: {found:,} of {lines:,} lines"
        raise RuntimeError(message)
    return spent


def compete(path: str, contest: Contest, lines: int) -> float:
    """Print one contest, after one round that is not counted; our lines a second."""
    contestants = (ours, theirs) if duckdb else (ours,)
    rounds = [
        [seconds(run, path, contest, lines) for run in contestants] for _ in range(ROUNDS + 1)
    ][1:]
    speed = lines / statistics.median(times[0] for times in rounds)
    compared = ""
    if duckdb:
        ratio = statistics.median(times[0] / times[1] for times in rounds)
        duck = lines / statistics.median(times[1] for times in rounds)
        compared = f"{duck:13,.0f}   {ratio:.2f}"
    print(f"{contest.name:36}{speed:13,.0f}{compared}")
    return speed


def main() -> int:
    """Make the file, and measure."""
    parser = argparse.ArgumentParser(description="Speed of reading log lines.")
    parser.add_argument("--lines", type=int, default=LINES)
    lines = parser.parse_args().lines
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "access.log"
        with path.open("w", encoding="ascii") as sink:
            sink.writelines(made_lines(lines))
        size = path.stat().st_size / lines
        print(f"{lines:,} lines of {size:.0f} bytes, {ROUNDS} rounds in turn; lines a second")
        if duckdb is None:
            print("DuckDB is not installed, so that it is not compared: pip install duckdb")
        print(f"{'':36}{'ours':>13}{'DuckDB':>13}   our time to DuckDB's (medians)")
        speeds = [compete(str(path), contest, lines) for contest in CONTESTS]
    reached = speeds[0] >= TARGET
    print(f"target {TARGET:,}: {'reached' if reached else 'MISSED'}")
    return int(not reached)


if __name__ == "__main__":
    sys.exit(main())
