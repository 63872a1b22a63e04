"""Lists in a private order: what no private list can do, and what ours costs.

    python -m reproductions.list_update

Naor, lecture 10, slide 32: a private list cannot act on an element before it is asked for about
`1/epsilon` times. With a constant: after k requests for one of n elements, its place has a law that
is within a factor of `e**(k epsilon)` of that before them. Of the n elements, the average one was
among the first p with the probability p/n. So the next request costs at least the sum over
p = 0 .. n-1 of `1 - e**(k epsilon) p/n`, where that is positive: about `n e**(-k epsilon)/2`. All
requests together cost about `n/(2 epsilon)` at least, where move-to-front pays for one walk.

On the right: requests of Zipf's law, and those for the airports that flights of 2013 went to,
beside the best order that never changes, and the bound that is proved in docs/guarantees/online.md.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from numpy.typing import NDArray

import panprivacy as pp
from panprivacy.papers.online import ListUpdate
from reproductions import COINS, FOLDER, GENERATOR

ELEMENTS, BURST = 100, 200
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
WITHOUT = 10**6
"""An epsilon that hides nothing: noise is 0."""
FLIGHTS = FOLDER.parent / "examples/flights.parquet"

Requests = NDArray[np.int64]


def least_cost(before: int, epsilon: float, elements: int = ELEMENTS) -> float:
    """What the request after so many for the same element costs at least, on average over all."""
    factor = np.exp(min(before * epsilon, 700.0))
    among = np.minimum(factor * np.arange(elements) / elements, 1)
    return float((1 - among).sum())


def burst(epsilon: float) -> NDArray[np.float64]:
    """What each of many requests for one element costs with our list, on average over elements."""
    costs = np.zeros(BURST)
    for element in range(ELEMENTS):
        shelf = ListUpdate(ELEMENTS, BURST, epsilon=epsilon, every=1, weights=1, coins=COINS)
        costs += shelf.serve(np.full(BURST, element)) / ELEMENTS
    return costs


def move_to_front(requests: Iterable[int], elements: int) -> int:
    """What a list costs that moves each element to its front."""
    order, cost = list(range(elements)), 0
    for one in requests:
        place = order.index(one)
        cost += place + 1
        order.insert(0, order.pop(place))
    return cost


def best_fixed(requests: Requests, elements: int) -> int:
    """What the best order costs that never changes: those that are asked for most in front."""
    counts = np.sort(np.bincount(requests, minlength=elements))[::-1]
    return int(counts @ np.arange(1, elements + 1))


def zipf(steps: int = 100_000) -> Requests:
    """Requests of Zipf's law with parameter 1."""
    weights = 1 / np.arange(1, ELEMENTS + 1)
    drawn = GENERATOR.choice(ELEMENTS, steps, p=weights / weights.sum())
    return GENERATOR.permutation(ELEMENTS)[drawn]


def airports() -> Requests:
    """Where flights went, in the order in which they were scheduled."""
    column = pq.read_table(FLIGHTS, columns=["dest"])["dest"].combine_chunks()
    return column.dictionary_encode().indices.to_numpy().astype(np.int64)


def over_best(requests: Requests, epsilon: float, runs: int = 2) -> tuple[float, float]:
    """The cost of our list over that of the best fixed order, and its bound."""
    elements, best, found = int(requests.max()) + 1, 0.0, []
    for _ in range(runs):
        shelf = ListUpdate(elements, len(requests), epsilon=epsilon, coins=COINS)
        best = best_fixed(requests, elements)
        found.append(int(shelf.serve(requests).sum()) / best)
    return float(np.mean(found)), 1 + shelf.bound() / best


def bursts() -> list[dict[str, float]]:
    """A row for each epsilon and number of requests before."""
    rows = []
    for epsilon in EPSILONS:
        for before, ours in enumerate(burst(epsilon)):
            least = least_cost(before, epsilon)
            rows.append({"epsilon": epsilon, "before": before, "ours": ours, "least": least})
    return rows


def streams() -> list[dict[str, object]]:
    """A row for each stream and epsilon."""
    rows: list[dict[str, object]] = []
    for name, requests in (("zipf", zipf()), ("airports", airports())):
        elements = int(requests.max()) + 1
        moved = move_to_front(requests.tolist(), elements) / best_fixed(requests, elements)
        plain, proved = over_best(requests, WITHOUT)
        for epsilon in (0.03, 0.1, 0.3, 1.0, 3.0):
            ours, bound = over_best(requests, epsilon)
            rows.append({
                "stream": name, "epsilon": epsilon, "ours": ours, "bound": bound,
                "without_privacy": plain, "bound_without": proved, "move_to_front": moved,
            })  # fmt: skip
    return rows


def save(name: str, rows: Sequence[dict[str, object]] | Sequence[dict[str, float]]) -> None:
    """Write a table, and print it."""
    with (FOLDER / name).open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0], lineterminator="\n")
        table.writeheader()
        for row in rows:
            table.writerow(
                {key: one if isinstance(one, str) else f"{one:.6g}" for key, one in row.items()}
            )
    print((FOLDER / name).read_text(), end="")


def main() -> None:
    """Measure, print and draw."""
    warnings.simplefilter("ignore", pp.WeakEpsilonWarning)
    first, second = bursts(), streams()
    save("list_update.csv", [row for row in first if row["before"] % 10 == 0 or row["before"] < 10])
    save("list_update_streams.csv", second)
    figure = Figure(figsize=(12.6, 4.2), layout="constrained", dpi=90)
    left, middle, right = figure.subplots(1, 3)
    for epsilon, color in ((0.25, "C0"), (1.0, "C1"), (4.0, "C3")):
        rows = [row for row in first if row["epsilon"] == epsilon]
        places = [row["before"] for row in rows]
        left.plot(
            places, [row["ours"] for row in rows], color=color, label=f"ours, epsilon {epsilon:g}"
        )
        left.plot(places, [row["least"] for row in rows], ":", color=color)
    left.plot([], [], "k:", label="no private list costs less")
    left.set(xlabel="requests before for the same element", ylabel="cost of the next one")
    left.set_title(f"{ELEMENTS} elements, one of them is asked for")
    left.legend(frameon=False, fontsize=8)
    walks = [
        [sum(row[name] - 1 for row in first if row["epsilon"] == one) for name in ("ours", "least")]
        for one in EPSILONS
    ]
    inverse = [1 / one for one in EPSILONS]
    middle.plot(inverse, [ours / ELEMENTS for ours, _ in walks], "o-", color="C0", label="ours")
    least = [least / ELEMENTS for _, least in walks]
    middle.plot(inverse, least, "k:", label="no private list walks less")
    middle.axhline(0.5, color="C1", label="move-to-front")
    middle.set(
        xscale="log", yscale="log", xlabel="1/epsilon", ylabel="walks through all of the list"
    )
    middle.set_xticks(inverse, [f"{one:g}" for one in inverse])
    middle.minorticks_off()
    middle.set_title(f"All {BURST} requests: the 1/epsilon barrier")
    middle.legend(frameon=False, fontsize=8)
    for name, color in (("zipf", "C0"), ("airports", "C2")):
        rows = [row for row in second if row["stream"] == name]
        epsilons = [row["epsilon"] for row in rows]
        right.plot(epsilons, [row["ours"] for row in rows], "o-", color=color, label=name)
        right.plot(epsilons, [row["bound"] for row in rows], "--", color=color)
        right.axhline(float(rows[0]["without_privacy"]), color=color, linestyle=":")
    right.plot([], [], "k--", label="bound")
    right.plot([], [], "k:", label="without privacy")
    right.set(xscale="log", xlabel="epsilon", ylabel="cost over the best fixed order")
    right.set_ylim(0.95, 2.6)
    right.set_title("Streams of requests")
    right.legend(frameon=False, fontsize=8)
    figure.savefig(FOLDER / "list_update.png", metadata={"Software": None})


if __name__ == "__main__":
    main()
