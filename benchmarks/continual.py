"""Measures every number of docs/continual.md, with production coins: `make continual`.

    python -m benchmarks.continual

Every method of `Counter` over a stream of one event at each step: the root of the mean over all
steps of the squared error, as `predicted_error()` says it and as it was in some runs. Beside them
stand counters of others, whose memory must not be seen: those of dpcrpy and jax-privacy (the extra
`continual-peers`; rows of what is not installed are left out), the formula of a tree with signed
digits, and bounds below which no counter of a kind can come. Writes the tables and the picture of
the page, and exits with 1 when a measured error is outside of its limits.
"""

from __future__ import annotations

import importlib.util
import math
import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.counters import marked, table
from benchmarks.trials import ROOT
from panprivacy.continual import Counter
from panprivacy.tables.counters import shapes

Floats = NDArray[np.float64]

PAGE, PICTURE = ROOT / "docs" / "continual.md", ROOT / "docs" / "continual.png"
MILLION = 1 << 20
RUNS = {10**3: 400, 10**4: 200, 10**5: 40, MILLION: 12, 10**7: 3}
STANDARD_ERRORS, PROCESSES = 5, 2
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Way:
    """A way to count, as the page names it.

    Args:
        name: in tables.
        arguments: of `Counter`, beside the horizon.
        endless: whether the horizon is not told.
        most: steps up to which it is measured.
    """

    name: str
    arguments: tuple[tuple[str, Any], ...]
    endless: bool = False
    most: int = MILLION

    def make(self, steps: int) -> Counter:
        """A new counter."""
        return Counter(None if self.endless else steps, **dict(self.arguments))

    def predicted(self, steps: int) -> float:
        """The error that it states, with what it hides of a stream of events alone.

        NaN for a delayed count, which states no more than how far it may stray.
        """
        if ("method", "delayed") in self.arguments:
            return math.nan
        error = self.make(steps).predicted_error(steps)
        if ("method", "segments") not in self.arguments:
            return error
        length = shapes.segments(steps, Fraction(1), 1).radices[0]
        return math.hypot(error, math.sqrt(np.mean((np.arange(1, steps + 1) % length) ** 2.0)))


def way(name: str, *, endless: bool = False, most: int = MILLION, **arguments: object) -> Way:
    """A way for epsilon 1, unless it is told otherwise."""
    asked = arguments if "rho" in arguments else {"epsilon": 1, **arguments}
    return Way(name, tuple(asked.items()), endless, most)


CLOSED = way("`mixed_radix`", most=10**7)
OPEN = way("`mixed_radix`, open steps", open_steps=True, most=10**7)
ENDLESS = way("`mixed_radix`, no horizon", endless=True, most=10**7)
FACTORISED = way("`factorised`, rho 1/2", rho="1/2")
PRINTED = way("`pan_private_tree`", method="pan_private_tree")
EXPOSED = way("`mixed_radix`, `pan_private=False`", pan_private=False)
WAYS = [
    CLOSED,
    OPEN,
    ENDLESS,
    FACTORISED,
    PRINTED,
    *(
        way(f"`{name}`", method=name)
        for name in (
            "twice_noised_tree",
            "segments",
            "delayed",
            "response",
            "noisy_steps",
            "fresh_noise",
        )
    ),
    EXPOSED,
    way("`tree`, `pan_private=False`", method="tree", pan_private=False),
]


def squares(one: Way, steps: int, runs: int) -> list[float]:
    """The mean over all steps of the squared error, of each of some runs."""
    truth = np.arange(1, steps + 1)
    ones = np.ones(steps, np.int64)
    return [float(np.mean((one.make(steps).run(ones) - truth) ** 2)) for _ in range(runs)]


def measure(pool: ProcessPoolExecutor) -> dict[tuple[str, int], list[float]]:
    """The squared errors of all runs, by way and number of steps."""
    wanted = [(one, n) for n in sorted(RUNS, reverse=True) for one in WAYS if n <= one.most]
    parts = {
        (one.name, steps): [
            pool.submit(squares, one, steps, len(range(part, RUNS[steps], PROCESSES)))
            for part in range(PROCESSES)
        ]
        for one, steps in wanted
    }
    return {key: [x for part in chunks for x in part.result()] for key, chunks in parts.items()}


def number(value: float) -> str:
    """Three digits, or all that come before the point; a dash for NaN."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def said(predicted: float, found: list[float] | None, missed: list[str]) -> str:
    """An error as predicted, and as measured if it was, with the standard error."""
    if not found:
        return f"{number(predicted)} / -"
    spread = float(np.std(found, ddof=1)) / math.sqrt(len(found))
    mean = float(np.mean(found))
    ok = math.isnan(predicted) or abs(mean - predicted**2) < STANDARD_ERRORS * max(
        spread, 0.02 * predicted**2
    )
    return f"{number(predicted)} / {marked(number(math.sqrt(mean)), ok, missed)}"


def errors_table(found: dict[tuple[str, int], list[float]], missed: list[str]) -> str:
    """Predicted and measured, for each way and number of steps."""
    headings = ["", *(f"{steps:,}" for steps in RUNS)]
    rows = []
    for one in WAYS:
        cells = [said(one.predicted(n), found.get((one.name, n)), missed) for n in RUNS]
        rows.append([one.name, *cells])
    return table(headings, rows)


# Others, and bounds


def least_gaussian(steps: int) -> float:
    """No factorisation with Gaussian noise errs less, for rho 1/2: the nuclear norm over T.

    The error is at least the Frobenius norm of the left factor times the longest column of the
    right one, over the root of T; that is at least the sum of the singular values over T. Those of
    partial sums are `1/(2 sin((2j-1) pi/(4T+2)))`.
    """
    odd = 2 * np.arange(1, steps + 1) - 1
    return float(np.sum(0.5 / np.sin(odd * np.pi / (4 * steps + 2))) / steps)


def least_laplace(steps: int) -> float:
    """The same with Laplace noise at epsilon 1: a column is no longer in L2 than in L1."""
    return math.sqrt(2) * least_gaussian(steps)


def signed_digits(steps: int) -> float:
    """The tree with signed digits and Laplace noise at epsilon 1, of the best odd radix.

    An answer has `h (k - 1/k)/4` numbers on average, each of variance `2 h**2`. Andersson, Pagh,
    Steiner, Torkamani, "Count on your elders: Laplace vs Gaussian noise", 2025.
    """
    found = []
    for radix in range(3, 201, 2):
        height = math.ceil(math.log(2 * steps + 1) / math.log(radix) - 1e-9)
        found.append(math.sqrt(height**3 * (radix - 1 / radix) / 2))
    return min(found)


@dataclass(frozen=True)
class Peer:
    """A counter of dpcrpy.

    Args:
        name: in tables.
        kind: which of its classes.
        sizes: of the class.
        steps: how many there are; 2**20, or as many as it has.
        losses: for which of "epsilon" and "rho" it is scaled.
        shares: whether its numbers have shares of their own; else equal ones, of which it does
            not tell what they are in L1.
    """

    name: str
    kind: str
    sizes: tuple[int, ...]
    steps: int = MILLION
    losses: tuple[str, ...] = ("epsilon", "rho")
    shares: bool = True


PEERS = [
    Peer("dpcrpy `AuBCR`", "AuBCR", (20,)),
    Peer("dpcrpy `KTCR`, binary", "KTCR", (20, 0, 2), losses=("rho",)),
    Peer("dpcrpy `KTCR`, ternary, of 3^13 steps", "KTCR", (13, 0, 3), losses=("rho",)),
    Peer(
        "dpcrpy `KTCR`, 16-ary, equal shares", "KTCR", (5, 0, 16), losses=("epsilon",), shares=False
    ),
    Peer("dpcrpy `Honaker`", "Honaker", (20,)),
    Peer("dpcrpy `FDA`", "FDA", (20,), MILLION - 1, losses=("epsilon",)),
]


def of_peer(peer: Peer) -> tuple[dict[str, float], float]:
    """The root of the mean of the squared errors that it states, and its microseconds a step."""
    import dpcrpy  # noqa: PLC0415 - an extra

    more = {} if peer.shares else {"withPrivateBudget": False}
    noise = dpcrpy.noiMech.GaussNoiMech(sigma0=1.0)
    made = getattr(dpcrpy, peer.kind)(*peer.sizes, noiMech=noise, **more)
    noise.setSens(1.0)
    start, total = time.process_time(), 0.0
    for _ in range(peer.steps):
        total += made.dpRelease(1)[1]
    spent = time.process_time() - start
    factors = {}
    if "rho" in peer.losses:
        factors["rho"] = made.getL2Sens()
    if "epsilon" in peer.losses:
        longest = made.getL1Sens() if peer.shares else math.sqrt(peer.sizes[0] + 1)
        factors["epsilon"] = math.sqrt(2) * longest
    root = math.sqrt(total / peer.steps)
    return {loss: factor * root for loss, factor in factors.items()}, spent / peer.steps * 1e6


def of_jax() -> float:
    """The error of the best matrix of jax-privacy for the largest error, at rho 1/2."""
    import jax  # noqa: PLC0415 - an extra
    import jax.numpy as jnp  # noqa: PLC0415
    from jax_privacy.matrix_factorization import toeplitz  # noqa: PLC0415

    jax.config.update("jax_enable_x64", True)  # noqa: FBT003 - its own way
    coefficients = toeplitz.optimal_max_error_strategy_coefs(MILLION)
    noising = toeplitz.optimal_max_error_noising_coefs(MILLION)
    errors = toeplitz.per_query_error(noising_coef=noising)
    return math.sqrt(float(jnp.mean(errors) * toeplitz.sensitivity_squared(coefficients)))


def installed(package: str) -> bool:
    """Whether it is there; said if it is not."""
    there = importlib.util.find_spec(package) is not None
    if not there:
        print(f"{package} is not installed, so its rows are left out")
    return there


def peers_table(pool: ProcessPoolExecutor) -> tuple[str, dict[str, float]]:
    """Errors at 2**20 steps, ours and theirs; and microseconds a step of theirs."""
    pure = [(one.name, one.predicted(MILLION), "yes") for one in (CLOSED, OPEN, PRINTED)]
    pure += [(EXPOSED.name, EXPOSED.predicted(MILLION), "no")]
    pure += [("tree with signed digits (formula)", signed_digits(MILLION), "no")]
    pure += [("no factorisation with Laplace noise errs less", least_laplace(MILLION), "bound")]
    noisy = [(FACTORISED.name, FACTORISED.predicted(MILLION), "yes")]
    noisy += [("no factorisation with Gaussian noise errs less", least_gaussian(MILLION), "bound")]
    costs = {}
    if installed("dpcrpy"):
        for peer, (errors, cost) in zip(PEERS, pool.map(of_peer, PEERS), strict=True):
            pure += [(peer.name, errors["epsilon"], "no")] if "epsilon" in errors else []
            noisy += [(peer.name, errors["rho"], "no")] if "rho" in errors else []
            costs[peer.name] = cost
    if installed("jax_privacy"):
        noisy.append(("jax-privacy, square root", of_jax(), "no"))
    headings = ["at 2^20 steps", "loss", "error", "memory may be seen"]
    rows = [
        [name, loss, f"{error:.3g}", seen]
        for loss, found in (("epsilon 1", pure), ("rho 1/2", noisy))
        for name, error, seen in sorted(found, key=lambda row: -row[1])
    ]
    return table(headings, rows), costs


# Speed


def seconds(act: Callable[[], object]) -> float:
    """Processor seconds, the least of three times."""
    found = []
    for _ in range(3):
        start = time.process_time()
        act()
        found.append(time.process_time() - start)
    return min(found)


def speed_table(costs: dict[str, float]) -> str:
    """What `run` and `step` cost."""
    ones = np.ones(10**6, np.int64)
    peer = min(costs.values(), default=math.nan)
    rows = []
    for one in WAYS:
        counters = [one.make(MILLION) for _ in range(4)]
        running = iter(counters)
        whole = seconds(lambda running=running: next(running).run(ones))
        few = 3 if one is FACTORISED else 300
        stepping = counters[3]
        single = seconds(lambda stepping=stepping, few=few: [stepping.step(1) for _ in range(few)])
        micro = single / few * 1e6
        row = [
            one.name,
            f"{whole:.2f}",
            f"{whole / peer:.3f}",
            number(micro),
            f"{micro / peer:.1f}",
        ]
        rows.append([cell.replace("nan", "-") for cell in row])
    headings = [
        "", "seconds for 10^6 steps by `run`", "a step of it, over dpcrpy's",
        "microseconds for a `step`", "over dpcrpy's",
    ]  # fmt: skip
    return table(headings, rows)


# Picture


def lemma(counter_scale: float, noises: int, delta: float) -> float:
    """Corollary 12.3: within this of 0 with probability 1 - delta."""
    root = counter_scale * math.sqrt(max(noises, math.log(2 / delta)))
    return root * math.sqrt(8 * math.log(2 / delta))


def printed_bounds(steps: int) -> tuple[float, float]:
    """Of figure 12.2 at epsilon 1: one answer by Lemma 12.2, and all as Theorem 12.5 has it."""
    noises = 1 + math.ceil(math.log2(steps))
    delta = 1 - CONFIDENCE
    return lemma(noises, noises, delta), lemma(noises, noises, delta / steps)


def reach(one: Way, steps: int) -> float:
    """Half of the interval around the last but one answer."""
    counter = one.make(steps)
    counter.run(np.full(steps - 1, 1))
    low, high = counter.interval(CONFIDENCE)
    return (high - low) / 2


def smooth(variances: Floats) -> tuple[Floats, Floats]:
    """Roots of means of variances over stretches of time that grow."""
    ends = np.unique(np.geomspace(1, variances.size, 60).astype(int))
    sums = np.concatenate([[0.0], np.cumsum(variances)])
    starts = np.concatenate([[0], ends[:-1]])
    return (starts + ends + 1) / 2, np.sqrt((sums[ends] - sums[starts]) / (ends - starts))


def draw(found: dict[tuple[str, int], list[float]]) -> None:
    """Error over the number of steps, error over time, and intervals beside what theory says."""
    figure = Figure(figsize=(11, 4.6), layout="constrained", dpi=90)
    left, middle, right = figure.subplots(1, 3)
    shown = {CLOSED: "C0", ENDLESS: "C1", PRINTED: "C3", FACTORISED: "C2"}
    shown |= {one: "C4" for one in WAYS if one.name == "`noisy_steps`"}
    grid = [10**3, 10**4, 10**5, MILLION]
    for one, color in shown.items():
        label = one.name.replace("`", "")
        left.plot(grid, [one.predicted(n) for n in grid], color=color, label=label)
        points = [(n, found.get((one.name, n))) for n in grid]
        at = [(n, math.sqrt(np.mean(x))) for n, x in points if x]
        left.plot(*zip(*at, strict=True), "o", color=color)
        times, roots = smooth(one.make(MILLION).predicted_variances(MILLION))
        middle.plot(times, roots, color=color, label=label)
    left.plot(grid, [least_laplace(n) for n in grid], "k:", label="bound, Laplace noise")
    left.plot(grid, [least_gaussian(n) for n in grid], "k--", label="bound, Gaussian noise")
    for axis, label in ((left, "steps in all"), (middle, "step of 2^20")):
        axis.set(xscale="log", yscale="log", xlabel=label, ylabel="root-mean-square error")
    left.set_title("Lines: predicted; points: measured")
    middle.set_title("As time goes by")
    for one in (CLOSED, PRINTED):
        half = [reach(one, n) for n in grid]
        right.plot(
            grid, half, "o-", color=shown[one], label=f"{one.name.replace('`', '')}: interval()"
        )
    single, every = zip(*(printed_bounds(n) for n in grid), strict=True)
    right.plot(grid, single, ":", color="C3", label="pan_private_tree: Lemma 12.2")
    right.plot(grid, every, "--", color="C3", label="pan_private_tree: Theorem 12.5, all steps")
    right.set(xscale="log", yscale="log", xlabel="steps in all", ylabel="within, 95 %")
    right.set_title("Intervals and the book's bounds")
    left.set_ylim(2, 2e4)
    right.set_ylim(30, 8e3)
    for axis in (left, right):
        axis.legend(frameon=False, fontsize=7.5, loc="upper left")
    figure.savefig(PICTURE)


def bounds_table() -> str:
    """Half of a 95 % interval beside the book's bounds, at 2**20 steps."""
    single, every = printed_bounds(MILLION)
    rows = [[f"{one.name}, `interval()`", number(reach(one, MILLION))] for one in (CLOSED, PRINTED)]
    rows += [
        ["`pan_private_tree`, one step by Lemma 12.2", number(single)],
        ["`pan_private_tree`, all steps at once, as Theorem 12.5 has it", number(every)],
    ]
    return table(["95 % of the time within, at 2^20 steps", "events"], rows)


def fill(text: str, name: str, body: str) -> str:
    """A page with the table of a name in place of what stands between its marks."""
    first, last = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = text.partition(first)
    _, _, after = rest.partition(last)
    return f"{before}{first}\n{body}\n{last}{after}"


def main() -> int:
    """Measure, write the tables and the picture, and say what is outside of its limits."""
    missed: list[str] = []
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        peers, costs = peers_table(pool)
        print(peers, flush=True)
        found = measure(pool)
    tables = {
        "errors": errors_table(found, missed),
        "others": peers,
        "bounds": bounds_table(),
        "speed": speed_table(costs),
    }
    draw(found)
    page = PAGE.read_text()
    for name, body in tables.items():
        print(body, flush=True)
        page = fill(page, name, body)
    PAGE.write_text(page)
    print("missed:", missed or "none")
    return min(len(missed), 1)


if __name__ == "__main__":
    sys.exit(main())
