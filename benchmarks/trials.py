"""Runs statistics many times, with production coins, and keeps how they did."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

import panprivacy as pp

ROOT = Path(__file__).resolve().parents[1]
FLIGHTS = ROOT / "examples" / "flights.parquet"
HIGGS = ROOT / "../shared/data/higgs_activity.parquet"
EDGE_DEVIATIONS = 2
CHUNKS = 8


@dataclass(frozen=True)
class Trial:
    """A statistic, what it is fed, the true answer, and how often it is run.

    Args:
        make: makes the statistic, with coins of the operating system.
        feed: name of the ids.
        size: number of ids, where they are made up.
        truth: what the statistic should answer.
        runs: number of independent runs.
        parts: number of batches.
        announced: whether an intrusion is announced before the second batch.
        confidence: of the intervals.
    """

    make: functools.partial[Any]
    feed: str
    size: int
    truth: float
    runs: int
    parts: int = 1
    announced: bool = False
    confidence: float = 0.95


@dataclass(frozen=True)
class Outcome:
    """What the runs of a trial gave.

    Args:
        trial: what was run.
        values: the answer of each run.
        ends: lower and upper end of each run's interval.
        plan: the statistic's plan.
    """

    trial: Trial
    values: NDArray[np.float64]
    ends: NDArray[np.float64]
    plan: Any

    @property
    def deviation(self) -> float:
        """The predicted standard deviation."""
        return float(self.plan.model(int(self.trial.announced)).deviation(self.trial.truth))

    @property
    def error(self) -> float:
        """The root-mean-square error."""
        return float(np.sqrt(np.mean((self.values - self.trial.truth) ** 2)))

    @property
    def bias(self) -> float:
        """The mean error over its standard error."""
        errors = self.values - self.trial.truth
        return float(errors.mean() / errors.std() * np.sqrt(len(errors)))

    @property
    def near_edge(self) -> bool:
        """Whether the truth is so near to the smallest or largest that answers are cut off."""
        truth, share = self.trial.truth, self.trial.make.func is pp.Density
        room = min(truth, 1 - truth) if share else truth
        return room <= EDGE_DEVIATIONS * self.deviation

    @property
    def coverage(self) -> float:
        """The share of runs whose interval holds the truth."""
        low, high = self.ends.T
        return float(np.mean((low <= self.trial.truth) & (self.trial.truth <= high)))


@functools.cache
def ids_of(feed: str, size: int) -> Any:
    """The ids of a feed; "numbers" are 0, 1, 2, ..."""
    if feed == "numbers":
        return np.arange(size)
    if feed == "flights":
        column = pq.read_table(FLIGHTS, columns=["aircraft_day"]).column(0)
        return pc.unique(column.drop_null())
    rows = pq.read_table(HIGGS, columns=["user"]).column(0).to_numpy()
    return np.unique(rows) if feed == "higgs users" else rows


def run(trial: Trial, runs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The answers of some runs, and the ends of their intervals."""
    ids = ids_of(trial.feed, trial.size)
    cuts = [len(ids) * part // trial.parts for part in range(trial.parts + 1)]
    values, ends = np.empty(runs), np.empty((runs, 2))
    for at in range(runs):
        statistic = trial.make()
        for part, (start, stop) in enumerate(itertools.pairwise(cuts)):
            if part and trial.announced:
                statistic.announce_intrusion()
            statistic.update(ids[start:stop])
        answer = statistic.release(confidence=trial.confidence)
        values[at], ends[at] = answer.value, (answer.low, answer.high)
    return values, ends


def measure(trials: Iterable[Trial]) -> dict[Trial, Outcome]:
    """Run all trials, on all processors."""
    largest_first = sorted(dict.fromkeys(trials), key=lambda one: -one.size * one.runs)
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        chunks = {
            trial: [pool.submit(run, trial, trial.runs // CHUNKS) for _ in range(CHUNKS)]
            for trial in largest_first
        }
        return {trial: _outcome(trial, parts) for trial, parts in chunks.items()}


def _outcome(trial: Trial, chunks: Sequence[Future[Any]]) -> Outcome:
    values, ends = zip(*(chunk.result() for chunk in chunks), strict=True)
    return Outcome(trial, np.concatenate(values), np.concatenate(ends), trial.make().plan)
