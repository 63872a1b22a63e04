"""Aircraft that come back week after week: the cohort triangle of docs/overlaps.md.

`python -m benchmarks.cohorts` publishes a table for each of eight weeks of flights from New York,
compares them, draws docs/cohorts.png and writes its numbers into docs/overlaps.md. It prints the
triangle beside the truth, and what an outsider reads off a published file: ours, and a Theta sketch
of the same aircraft.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import datasketches
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from matplotlib.figure import Figure

import panprivacy as pp
from benchmarks.cohort_page import PAGE, USERS, Measured
from benchmarks.trials import ROOT

FLIGHTS = ROOT / "../shared/data/nycflights13.parquet"
PICTURE = ROOT / "docs" / "cohorts.png"
WEEK = 7 * 86_400
FIRST, WEEKS = 17, 8
EPSILON, EXPECTED = 4, 2_500
KEY = b"public, but the same for all weeks"
RUNS = 20


@dataclass(frozen=True)
class Returned:
    """Aircraft of a week that fly in a later week too.

    Args:
        week: number of the first week.
        after: weeks between both.
        rate: the answer of two published tables.
        truth: the true share.
    """

    week: int
    after: int
    rate: pp.Release
    truth: float

    @property
    def known(self) -> bool:
        """Whether the answer is more than noise."""
        return self.rate.note is None


def weeks() -> list[pa.Array]:
    """Return the aircraft of each week, one entry a flight."""
    flights = pq.read_table(FLIGHTS)
    flights = flights.filter(pc.is_valid(flights["tailnum"]))
    number = flights["ts"].to_numpy() // WEEK
    first = number.min() + FIRST
    chosen = range(first, first + WEEKS)
    return [flights["tailnum"].filter(pa.array(number == one)) for one in chosen]


def publish(users: pa.Array, epsilon: float, expected: int) -> pp.Sketch:
    """Count a week, and return its published table."""
    window = pp.OverlapSketch(epsilon=epsilon, expected=expected, key=KEY)
    window.update(users)
    return window.release().sketch


def triangle() -> list[Returned]:
    """Compare each week with all later ones."""
    flown = weeks()
    aircraft = [set(one.to_pylist()) for one in flown]
    sketches = [publish(one, EPSILON, EXPECTED) for one in flown]
    return [
        Returned(
            week,
            later - week,
            pp.overlap(sketches[week], sketches[later]).return_rate(),
            len(aircraft[week] & aircraft[later]) / len(aircraft[week]),
        )
        for week, later in itertools.combinations(range(WEEKS), 2)
    ]


def draw(found: list[Returned]) -> None:
    """Draw the triangle, and the truth beside it; cells that are noise stay blank."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    panels = figure.subplots(1, 2)
    read = {(one.week, one.after): one.rate.value for one in found if one.known}
    true = {(one.week, one.after): one.truth for one in found}
    titles = f"From published tables, epsilon {EPSILON} a week", "The truth"
    for panel, title, values in zip(panels, titles, (read, true), strict=True):
        grid = np.full((WEEKS - 1, WEEKS - 1), np.nan)
        for (week, after), value in values.items():
            grid[week, after - 1] = 100 * value
        image = panel.imshow(grid, cmap="YlGnBu", vmin=60, vmax=80, aspect="auto")
        panel.set_title(title, fontsize=11)
        panel.set_xticks(range(WEEKS - 1), [f"{after}" for after in range(1, WEEKS)])
        panel.set_yticks(range(WEEKS - 1), [f"week {FIRST + week}" for week in range(WEEKS - 1)])
        panel.set_xlabel("weeks later")
    for one in found:
        if not one.known:
            continue
        half = 50 * (one.rate.high - one.rate.low)
        text = f"{100 * one.rate.value:.0f}\n±{half:.0f}"
        shade = "white" if one.rate.value > 0.71 else "black"
        panels[0].text(one.after - 1, one.week, text, ha="center", va="center",
                       fontsize=8, color=shade)  # fmt: skip
    for one in found:
        shade = "white" if one.truth > 0.71 else "black"
        panels[1].text(one.after - 1, one.week, f"{100 * one.truth:.0f}", ha="center", va="center",
                       fontsize=8, color=shade)  # fmt: skip
    figure.colorbar(image, ax=panels, label="% of aircraft that fly again")
    figure.savefig(PICTURE, dpi=110)


def theta(users: np.ndarray, log_entries: int) -> datasketches.compact_theta_sketch:
    """Return a Theta sketch of so many entries."""
    made = datasketches.update_theta_sketch(log_entries)
    for one in users.tolist():
        made.update(one)
    return made.compact()


def theta_return_rate(
    one: datasketches.compact_theta_sketch, other: datasketches.compact_theta_sketch
) -> float:
    """Return the estimate of a return rate of two Theta sketches."""
    both = datasketches.theta_intersection()
    both.update(one)
    both.update(other)
    return float(both.get_result().get_estimate() / one.get_estimate())


def compared(epsilon: float, log_entries: int) -> tuple[float, float, int, int]:
    """Return the errors of a return rate in points, ours and of Theta, and the bytes of both."""
    random = np.random.default_rng(7)
    ours, theirs, sizes = [], [], (0, 0)
    for _ in range(RUNS):
        ids = random.integers(0, 1 << 62, 3 * USERS // 2)
        windows = ids[:USERS], ids[USERS // 2 :]
        published = [publish(one, epsilon, USERS) for one in windows]
        plain = [theta(one, log_entries) for one in windows]
        ours.append(pp.overlap(*published).return_rate().value - 0.5)
        theirs.append(theta_return_rate(*plain) - 0.5)
        sizes = len(published[0].to_bytes()), len(plain[0].serialize())
    errors = [100 * 1.96 * float(np.sqrt(np.mean(np.square(one)))) for one in (ours, theirs)]
    return errors[0], errors[1], *sizes


def dictionary_attack(log_entries: int) -> tuple[int, int]:
    """Return how many users of a Theta sketch a list of candidates finds, and how many falsely."""
    ids = np.arange(2 * USERS)
    kept = set(theta(ids[:USERS], log_entries))
    found = [one for one in ids.tolist() if next(iter(theta(np.array([one]), 5))) in kept]
    return sum(one < USERS for one in found), sum(one >= USERS for one in found)


def main() -> None:
    """Print the numbers of the page, and draw its picture."""
    found = triangle()
    draw(found)
    held = [one.rate.low <= one.truth <= one.rate.high for _ in range(RUNS) for one in triangle()]
    widths = [50 * (one.rate.high - one.rate.low) for one in found]
    print(f"{sum(held)} of {len(held)} intervals hold the truth, ±{np.mean(widths):.1f} points")
    measured: dict[int, tuple[int, float]] = {}
    plain = 0, 0.0
    for one in found:
        print(one.week + FIRST, one.after, f"{one.rate}", f"truth {one.truth:.3f}")
    for epsilon in 1, 2, 4:
        ours, theirs, size, other = compared(epsilon, 12)
        measured[epsilon], plain = (size, ours), (other, theirs)
        print(f"epsilon {epsilon}: ±{ours:.1f} points in {size:,} bytes; Theta ±{theirs:.1f} "
              f"points in {other:,} bytes")  # fmt: skip
    hits, false = dictionary_attack(12)
    print(f"Theta: {hits:,} users found in the file, {false:,} falsely")
    written = Measured(RUNS, sum(held), len(held), (*plain, hits, false), measured)
    PAGE.write_text(written.written(PAGE.read_text()))


if __name__ == "__main__":
    main()
