"""Counting devices with an event: by ciphertexts, in the clear, and by a response at every tick.

    python -m reproductions.devices

Feldman et al., Theorems 8 and 9, with constants. Each device has one event, at a tick that nobody
knows, or none, by the toss of a fair coin. A device of this package keeps a ciphertext, and adds
noise once, at the end; the plain local model does the same with a bit in the clear. A device
without ciphertexts, whose memory has to hide each event by itself at every tick, adds noise to
every tick. `panprivacy.devices.federated.every_tick` derives the lines.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure

from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.every_tick import error_bound, response_error, total_variation
from panprivacy.devices.federated.simulation import local_deviations
from reproductions import COINS, FOLDER, GENERATOR

DEVICES, RUNS, EPSILON = 1_000, 400, 1
TICKS = [4**power for power in range(6)]
KIND = CountNonZero(epsilon_0=Fraction(EPSILON))
FLIP = Fraction(1 / (1 + math.exp(EPSILON)))


def errors(ticks: int) -> tuple[float, float]:
    """Root-mean-square errors of runs: of our devices, and of responses at every tick.

    The law of ours is `noised`, which is that of ciphertexts
    [tests/statistical/test_simulation.py]; all responses together are two binomials.
    """
    ours, responses = [], []
    for _ in range(RUNS):
        events = GENERATOR.integers(0, 2, DEVICES)
        true, flip = int(events.sum()), float(FLIP)
        ones = int(KIND.noised(events, COINS).sum())
        ours.append(KIND.release([ones], DEVICES, 0.95, EPSILON).only().value - true)
        said = GENERATOR.binomial(true, 1 - flip) + GENERATOR.binomial(DEVICES * ticks - true, flip)
        responses.append((said - DEVICES * ticks * flip) / (1 - 2 * flip) - true)
    return tuple(float(np.sqrt(np.mean(np.square(one)))) for one in (ours, responses))


def rows() -> Iterator[dict[str, float]]:
    """A row for each number of ticks."""
    (local,) = local_deviations(KIND, np.array([DEVICES / 2]), DEVICES)
    for ticks in TICKS:
        ciphertexts, responses = errors(ticks)
        flip = float(FLIP)
        yield {
            "ticks": ticks,
            "ciphertexts": ciphertexts,
            "local_model": float(local),
            "every_tick": responses,
            "every_tick_predicted": response_error(DEVICES, ticks, EPSILON),
            "least": error_bound(DEVICES, ticks, EPSILON),
            "total_variation": float(total_variation(ticks, FLIP)),
            "bound": (1 - 2 * flip) / math.sqrt(4 * flip * (1 - flip) * ticks),
        }


def main() -> None:
    """Measure, print and draw."""
    found = list(rows())
    with (FOLDER / "devices.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, found[0], lineterminator="\n")
        table.writeheader()
        for row in found:
            table.writerow({name: f"{value:.6g}" for name, value in row.items()})
    print((FOLDER / "devices.csv").read_text(), end="")
    columns = {name: [row[name] for row in found] for name in found[0]}
    figure = Figure(figsize=(9.6, 4.2), layout="constrained", dpi=90)
    left, right = figure.subplots(1, 2)
    ticks = columns["ticks"]
    left.plot(
        ticks,
        columns["every_tick"],
        "o",
        color="C3",
        label="no ciphertexts: a response at every tick",
    )
    left.plot(ticks, columns["least"], "k-", label="no ciphertexts: no unbiased count errs less")
    left.plot(ticks, columns["ciphertexts"], "o", color="C0", label="devices with ciphertexts")
    left.plot(ticks, columns["local_model"], "-", color="C0", label="the plain local model")
    left.set(xscale="log", yscale="log", xlabel="ticks", ylabel="root-mean-square error, devices")
    left.set_title(f"{DEVICES:,} devices at epsilon {EPSILON}")
    left.set_ylim(20, 4_000)
    left.legend(frameon=False, fontsize=8, loc="upper left")
    exact = columns["total_variation"]
    right.plot(ticks, columns["bound"], "k--", label="bound of appendix A")
    right.plot(ticks, exact, "o-", color="C3", label="exact")
    right.plot(ticks, [2 * one for one in exact], "x", color="0.5", label="as printed: twice that")
    right.set(xscale="log", yscale="log", xlabel="ticks", ylabel="total variation")
    right.set_title("What one device without ciphertexts can tell")
    right.legend(frameon=False, fontsize=8)
    figure.savefig(FOLDER / "devices.png", metadata={"Software": None})


if __name__ == "__main__":
    main()
