"""Events that distinguish two streams, chosen on separate runs.

Words of the states that tell the streams apart are found first, then what releases tell beyond
them, by their counts, by the ends and widths of their intervals, or by both; an event is a sum of
log-likelihood ratios beyond a threshold.

Reference: Z. Ding et al., "Detecting violations of differential privacy" (2018), for events that
are chosen on runs of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.audit.sampled.looks import Seen, read_words

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Runs = Callable[[int], Iterator[Seen]]
"""Function that makes a number of runs of one stream."""

Summary = Callable[[bytes], ArrayLike]
"""Numbers of a state on which what is released depends linearly, but for noise."""

_PILOT: Final = 50
_MOST_VALUES: Final = 4096
_MOST_ENTRIES: Final = 1 << 24
_MOST_PARTS: Final = 8
_CHANCE: Final = 3.0
_STEPS: Final = 4
_BINS: Final = 6
_CANDIDATES: Final = 64


@dataclass(frozen=True, slots=True)
class CellCounts:
    """The words of the states that distinguish the streams, taken as independent.

    Args:
        width: bytes of a word, which is taken modulo `values`.
        ratios: log-likelihood ratio of each value, one row a word.
    """

    width: int
    values: int
    places: Places
    ratios: Floats

    def score(self, seen: Seen) -> float:
        """Return the log-likelihood ratio of all states."""
        words = _words(seen, self.width)[self.places] % self.values
        return float(self.ratios[np.arange(len(words)), words].sum())

    def summarise(self, state: bytes) -> ArrayLike:
        """Return the number of ones, or how many words have each value."""
        if self.width == 1:
            return [np.bitwise_count(np.frombuffer(state, np.uint8)).sum()]
        words = read_words(state, self.width) % self.values
        return np.bincount(words.astype(np.int64), minlength=self.values)


def _words(seen: Seen, width: int) -> NDArray[np.uint64]:
    return np.concatenate([read_words(state, width) for state in seen.states])


def screen(pair: Sequence[Runs], runs: int, width: int) -> CellCounts:
    """Find the words from histograms of every one; no state is stored."""
    pilot = np.array([_words(seen, width) for run in pair for seen in run(_PILOT)])
    varying = (pilot != pilot[0]).any(axis=0)
    words, largest = len(varying), int(pilot[:, varying].max(initial=1))
    values = min(largest + 1, _MOST_VALUES, max(_MOST_ENTRIES // words, 2))
    tables = np.zeros((2, words, values), np.uint32)
    for table, run in zip(tables, pair, strict=True):
        for seen in run(runs):
            table[np.arange(words), _words(seen, width) % values] += 1
    places = telling([surprise(*one) for one in zip(*tables, strict=True)])
    found, usual = tables[:, places].astype(np.int64), tables[:, varying].sum((0, 1))
    for place in np.ndindex(*found.shape[:-1]):
        if surprise(found[place], usual) < _CHANCE:  # the law of all words is known better
            found[place] = usual
    return CellCounts(width, values, places, _log_ratios(*found))


class Sample(NamedTuple):
    """Runs of one stream: the score of the states, a summary of the last one, what is released."""

    states: Floats
    summaries: Floats
    released: Floats

    def missed(self, weights: Floats, places: Places) -> Floats:
        """Return the released numbers minus a rounded prediction from the summaries: ties stay."""
        return self.released[:, places] - np.rint(self.summaries @ weights)


def summed_up(seen: Iterable[Seen], cells: CellCounts, summarise: Summary) -> Sample:
    """Return the data that scores need from runs of one stream."""
    rows = []
    for one in seen:
        released = [*one.counts, *_with_widths(one.bars)]
        summary = summarise(one.states[-1]) if released else ()
        rows.append((cells.score(one), summary, released))
    states, summaries, numbers = (
        np.array(column, np.float64) for column in zip(*rows, strict=True)
    )
    return Sample(states, np.insert(summaries, 0, 1, axis=1), numbers)


def _with_widths(bars: Sequence[float]) -> Iterator[float]:
    """Yield the value and both ends of each interval, and how wide it is, which may leak alone."""
    for value, low, high in zip(bars[::3], bars[1::3], bars[2::3], strict=True):
        yield from (value, low, high, high - low)


@dataclass(frozen=True, slots=True)
class Score:
    """Log-likelihood ratio of a view: that of its states, and of released numbers given that.

    Args:
        places: of the numbers.
        weights: weights of the summary, to predict each number.
        steps: between scores of states that count as one.
        edges: between bins of what the prediction misses, one row a number.
        ratios: log-likelihood ratios, by number, step and bin.
    """

    cells: CellCounts
    summarise: Summary
    places: Places
    weights: Floats
    steps: Floats
    edges: Floats
    ratios: Floats

    def __call__(self, sample: Sample) -> Floats:
        """Return the score of each run."""
        missed = sample.missed(self.weights, self.places)
        step, total = np.searchsorted(self.steps, sample.states), sample.states.copy()
        for ratios, edges, column in zip(self.ratios, self.edges, missed.T, strict=True):
            total += ratios[step, np.searchsorted(edges, column)]
        return total


def fit(samples: Sequence[Sample], among: Places, cells: CellCounts, summarise: Summary) -> Score:
    """Learn the information of some released numbers beyond the state, by ridge regression."""
    both = Sample(*(np.concatenate(column) for column in zip(*samples, strict=True)))
    square = both.summaries.T @ both.summaries
    ridge = np.diag(1e-9 * np.diag(square) + 1e-6)
    seen = both.summaries.T @ both.released[:, among]
    weights = np.linalg.solve(square + ridge, seen).astype(np.float64)
    missed = both.missed(weights, among)
    steps = _cuts(both.states, _STEPS)
    edges = np.array([_cuts(column, _BINS) for column in missed.T]).reshape(-1, _BINS - 1)
    tables = np.zeros((2, len(edges), _STEPS, _BINS))
    label = np.repeat((0, 1), len(missed) // 2)
    for number, column in enumerate(missed.T):
        bins = np.searchsorted(edges[number], column)
        np.add.at(tables[:, number], (label, np.searchsorted(steps, both.states), bins), 1)
    places = telling([surprise(*one) for one in zip(*tables, strict=True)])
    ratios = _log_ratios(*tables[:, places])
    return Score(cells, summarise, among[places], weights[:, places], steps, edges[places], ratios)


def _cuts(values: Floats, parts: int) -> Floats:
    """Return the cuts for parts of about equal size."""
    return np.quantile(values, np.arange(1, parts) / parts)


class Events(NamedTuple):
    """Two events: a score of at least `above`, and one of at most `below`.

    `worth` is the larger bound that they are likely to show.
    """

    score: Score
    above: float
    below: float
    worth: float


def events_by(score: Score, samples: Sequence[Sample], runs: int, deviations: float) -> Events:
    """Return the events of a score for which the bound is likely to be largest.

    Args:
        score: score of a view.
        samples: runs of the stream, and of its neighbour.
        runs: that will be counted.
        deviations: by which both proportions will be corrected.
    """
    scores = [score(sample) for sample in samples]
    first, second = (np.sort(one) for one in scores)
    candidates = np.unique(_cuts(np.concatenate(scores), _CANDIDATES))

    def best(above: Floats, below: Floats) -> tuple[float, float]:
        """Return the cut where the share of `above` most exceeds that of `below`, and its value."""
        worth = np.log(above / below)
        for share in (above, below):
            worth -= deviations * np.sqrt((1 - share) / share / runs)
        return float(candidates[np.argmax(worth)]), float(worth.max())

    up, low = (1 - _share_below(one, candidates, "left") for one in (first, second))
    high, down = (_share_below(one, candidates, "right") for one in (second, first))
    (above, one), (below, other) = best(up, low), best(high, down)
    return Events(score, above, below, max(one, other))


def _share_below(ordered: Floats, candidates: Floats, side: Any) -> Floats:
    """Return the share of values below each candidate, never quite 0 or 1."""
    below = np.searchsorted(ordered, candidates, side)
    return (below + 0.5) / (len(ordered) + 1)


def telling(surprises: Sequence[float]) -> Places:
    """Return the places of the few largest that chance does not explain."""
    found, chance = np.array(surprises), math.sqrt(2 * math.log(max(len(surprises), 1))) + 2
    largest = np.argsort(-found)[:_MOST_PARTS]
    return largest[found[largest] > chance]


def surprise(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return Pearson's statistic of two tables of outcomes, in deviations from chance."""
    one, two = np.atleast_2d(first).astype(float), np.atleast_2d(second).astype(float)
    total = one + two
    share = one.sum(1, keepdims=True) / np.maximum(total.sum(1, keepdims=True), 1)
    expected = np.maximum(total * share * (1 - share), 1e-300)
    squares = ((one - total * share) ** 2 / expected)[total > 0].sum()
    degrees = int(((total > 0).sum(1) - 1).clip(0).sum())
    part = 2 / (9 * max(degrees, 1))  # Wilson and Hilferty's cube root
    return float(((squares / max(degrees, 1)) ** (1 / 3) - (1 - part)) / math.sqrt(part))


def _log_ratios(first: NDArray[Any], second: NDArray[Any]) -> Floats:
    """Return log-likelihood ratios of outcomes, the last axis, from their counts."""
    one, two = ((table + 0.5) / (table + 0.5).sum(-1, keepdims=True) for table in (first, second))
    return np.log(one / two)
