"""How many users are in each state, from how many cells hold each value.

A query is a vector `g`: what a user in state `j` counts, modulo M. Its answer is linear in the
numbers of users in each state. There are three ways to it:

* `named`: one count of cells, weighted by whole scores; one user a cell, and a law on a
  difference set. Nearly free of output noise.
* `from_histogram`: from the noised histogram of cell values, for any law; one user a cell.
* `shared`: from the noised histogram when several users share a cell (spectral decompounding).

Notation: `o` is the histogram, `f` the noise law, `h` its kernel (`E h(state + noise - j)` is 1 if
the state is j, else 0), `phi(x) = sum_j g_j h(x - j)` the vote of a cell of value x, `m` the number
of cells, `v` the variance of the output noise on a count.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.errors import LostReleaseError
from panprivacy.statistics.incidence.bias import logarithm_bias
from panprivacy.statistics.incidence.estimates import Estimates, added
from panprivacy.statistics.incidence.linear_queries import LinearQuery, Scores
from panprivacy.statistics.incidence.strain import (
    FULL,
    SharedSpectrum,
    observed_variance,
    wraps,
)
from panprivacy.tables.cells.law import Law
from panprivacy.tables.decoders.circular import convolve, correlate, variances
from panprivacy.tables.decoders.intervals import Floats

_PHASES = 3
"""By how many deviations of the spectrum a logarithm stays within its principal value."""

_MOST_LOAD = 2 * math.pi
"""Users per cell of which a variance is told: cells with half of them cannot be read."""

_LEAST_WEIGHT = 1e-18
"""A smaller part of a law or a vote is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class StateModel:
    """Reads counts of cells with one user each.

    Args:
        law: the noise of the cells.
        epoch: how many times it was added again.
        cells: number of cells.
        universe: number of users, of whom the cells are a sample or all.
        tables: how many such tables are counted together, each of other users: a user has a cell in
            each of them, but is in state 0 in all but one.
    """

    law: Law
    epoch: int
    cells: int
    universe: int
    tables: int = 1

    @property
    def all_cells(self) -> int:
        """The number of cells of all tables."""
        return self.tables * self.cells

    def scores(self, query: LinearQuery) -> Scores:
        """Return the score of a cell by its value, int64[M]: `g_j` for each set `A + j` it is in.

        A constant is taken off `g` first, because sums of many cells have to fit in 64 bits.
        """
        member = np.zeros(self.law.modulus)
        member[self.law.members] = 1
        chosen = np.flatnonzero(query.scores)
        if len(chosen) == 1:
            return np.roll(member, chosen[0]).astype(np.int64) * query.scores[chosen[0]]
        shifted = query.scores - self._middle(query)
        return np.rint(convolve(shifted.astype(float), member)).astype(np.int64)

    @staticmethod
    def _middle(query: LinearQuery) -> int:
        """The constant that is taken off the scores of a query about several states."""
        several = np.count_nonzero(query.scores) > 1
        return round(float(query.scores.mean())) if several else 0

    def named(self, query: LinearQuery, count: int, noise_variance: float) -> Estimates:
        """The answer to a query from the noised sum of its scores."""
        (hit, miss), middle = self.law.hit_and_miss(), self._middle(query)
        contrast = hit - miss
        offset = miss * self.all_cells * float((query.scores - middle).sum())
        estimate = (count - offset) / contrast + middle * self.all_cells
        constant, slope = self._named_variance(query)
        noise = self.named_noise(noise_variance)
        return self._of_users(query, estimate, constant, slope, noise, 0.5 / contrast)

    def named_noise(self, noise_variance: float) -> float:
        """The output variance of a named answer, in cells."""
        hit, miss = self.law.hit_and_miss()
        return noise_variance / (hit - miss) ** 2

    def histogram_noise(self, query: LinearQuery, noise_variance: float) -> float:
        """The output variance of an answer from the histogram, in cells."""
        votes = convolve(query.scores.astype(float), self.kernel())
        return noise_variance * float(((votes - votes.mean()) ** 2).sum())

    def _named_variance(self, query: LinearQuery) -> tuple[float, float]:
        """The variance of the state's noise: at a truth of 0, and by how much each user adds."""
        if np.count_nonzero(query.scores) == 1 and query.scores.max() == 1:
            elsewhere, more = self._entry_variance()
            return self.all_cells * elsewhere, more
        votes = convolve(query.scores.astype(float), self.kernel())
        return self.all_cells * float(self._cell_variances(query, votes).max()), 0.0

    def kernel(self) -> Floats:
        """The kernel of the noise of all epochs together."""
        return _kernel(self.law, self.epoch)

    def noise(self) -> Floats:
        """The law of the noise of all epochs together."""
        return _noise(self.law, self.epoch)

    def _cell_variances(self, query: LinearQuery, votes: Floats) -> Floats:
        """The variance of a cell's vote, for each state of its user."""
        return variances(votes, self.noise(), query.scores.astype(float))

    def entries(self, histogram: ArrayLike, noise_variance: float) -> Estimates:
        """The number of users in every state, from the noised histogram."""
        counts, kernel = np.asarray(histogram, float), self.kernel()
        values = self.all_cells / self.law.modulus + correlate(counts, kernel - kernel.mean())
        constant = np.clip(self._entry_variances(counts, kernel, values), 0, None)
        output = noise_variance * float(((kernel - kernel.mean()) ** 2).sum())
        single = np.zeros(self.law.modulus, np.int64)
        single[0] = 1
        asked = LinearQuery.of("exactly", single, state=0)
        return self._of_users(asked, values, constant, 0.0, output, 0.5, absent=single)

    def _entry_variances(self, counts: Floats, kernel: Floats, values: Floats) -> Floats:
        """The variance of the state's noise of each entry, from the noised histogram."""
        if self._flat:
            elsewhere, more = self._entry_variance()
            return self.all_cells * elsewhere + more * np.clip(values, 0, self.all_cells)
        spread = kernel**2 - kernel
        state = self.all_cells * spread.mean() + correlate(counts, spread - spread.mean())
        worst = correlate(kernel**2, self.noise())
        worst[0] -= 1
        return np.minimum(state, self.all_cells * max(float(worst.max()), 0))

    @property
    def _flat(self) -> bool:
        """Whether all states but the one that is asked for look the same."""
        return self.law.members is not None and self.epoch == 0

    def _entry_variance(self) -> tuple[float, float]:
        """Return the variance that a cell adds to an entry, and its excess if it has that state."""
        hit, miss = self.law.hit_and_miss()
        contrast = (hit - miss) ** 2
        elsewhere = miss * (1 - miss) / contrast
        return elsewhere, hit * (1 - hit) / contrast - elsewhere

    def from_histogram(
        self, query: LinearQuery, histogram: ArrayLike, noise_variance: float
    ) -> Estimates:
        """The answer to a query from the noised histogram."""
        counts, scores = np.asarray(histogram, float), query.scores.astype(float)
        kernel, cells = self.kernel(), self.all_cells
        votes = convolve(scores, kernel)
        centred = votes - votes.mean()
        value = cells * scores.mean() + float(counts @ centred)
        spread = votes**2 - convolve(scores**2, kernel)
        state = cells * spread.mean() + float(counts @ (spread - spread.mean()))
        each = self._cell_variances(query, votes)
        constant = np.clip(state, cells * each.min(), cells * each.max())
        output = noise_variance * float((centred**2).sum())
        return self._of_users(query, value, constant, 0.0, output, 0.5)

    def _of_users(
        self,
        query: LinearQuery,
        value: ArrayLike,
        constant: ArrayLike,
        slope: float,
        output: float,
        step: float,
        absent: NDArray[np.int64] | None = None,
    ) -> Estimates:
        """Estimates for the universe from those for the users that have a cell.

        `absent` is what a user counts in tables that they are not in: as in state 0, unless told.
        """
        scale, scores = self.universe / self.cells, query.scores
        left_out = (self.universe - self.cells) / max(self.universe - 1, 1)
        sampled = self.universe / self.cells * left_out
        values = scale * np.asarray(value, float)
        state = scale**2 * np.asarray(constant, float)
        slope, curve = scale * slope, 0.0
        if scores.min() >= 0:
            slope += sampled * float(scores.max())
            curve -= left_out / self.all_cells
        else:
            state = state + sampled * self.tables * self.universe * float(np.ptp(scores)) ** 2 / 4
        noise = np.broadcast_to(scale**2 * output, values.shape)
        whole = Estimates(values, state, noise, slope, curve, scale * step)
        if self.tables == 1:
            return whole
        elsewhere = np.asarray(scores[0] if absent is None else absent, float)
        return whole.less((self.tables - 1) * self.universe * elsewhere)


@dataclass(frozen=True, slots=True)
class SharedModel:
    """Reads the histogram of cells that several users share.

    A cell's value is noise plus the states of a random number of users, so the spectrum of the
    values is `F f * exp(load * (F s - 1))`, `s` the law of one user's state: a logarithm undoes it.
    Its principal value is right while the load is below pi, less what noise turns it by. States of
    0 leave no trace.

    Args:
        law: the noise of the cells.
        epoch: how many times it was added again.
        cells: number of cells.
    """

    law: Law
    epoch: int
    cells: int

    @property
    def spectrum(self) -> SharedSpectrum:
        """What users leave of the spectrum of the values, where they are all in one state."""
        law = self.law
        return SharedSpectrum.of(law.modulus, law.spectrum_sizes(), self.epoch, self.cells)

    def crowd_variances(
        self, query: LinearQuery, crowds: Iterable[tuple[float, int]], noise_variance: float
    ) -> Iterator[tuple[float, float]]:
        """Yield the variances of the counters and of the output where all users are in one state.

        They follow from sums of shifted laws and votes, without a transform of M points.

        Args:
            query: asks for what a user counts.
            crowds: how many users there are, and their state; with no more users than can be read.
            noise_variance: of the output noise on each count.
        """
        scores = _counted(query)
        noise, votes = _noise(self.law, self.epoch), convolve(scores, _kernel(self.law, self.epoch))
        votes -= votes.mean()
        for users, state in crowds:
            load = min(users / self.cells, _MOST_LOAD)
            counts = self.cells * _with_crowd(noise, state, load)
            moved, fixed = _with_crowd(votes, -state, -load), users * float(scores[state]) ** 2
            yield self._variances(counts, scores, moved, fixed, noise_variance)

    def check_readable(self, histogram: ArrayLike, noise_variance: float) -> None:
        """Refuse to read cells that are too full.

        Raises:
            LostReleaseError: the answer would be noise.
        """
        if self.is_full(histogram, noise_variance):
            message = (
                f"the {self.cells:,} hashed counters are too full to be read: this release is "
                "lost; plan for more users with expected=, or cells="
            )
            raise LostReleaseError(message)

    def is_full(self, histogram: ArrayLike, noise_variance: float) -> bool:
        """Whether a noised histogram has too little left of its spectrum to be read."""
        left = np.maximum(np.abs(self._observed(histogram)[1:]) ** 2, 1e-300)
        observed = observed_variance(self.law.modulus, self.cells, noise_variance)
        strain = observed * float(np.mean(1 / left))
        return strain > FULL or wraps(self.load(histogram), strain, _PHASES)

    def load(self, histogram: ArrayLike) -> float:
        """Return the mean number of users per cell, from the spectrum's sizes: they do not wrap."""
        sizes = np.abs(self._observed(histogram) / _noise_spectrum(self.law, self.epoch))
        return -float(np.log(np.maximum(sizes[1:], 1e-300)).sum()) / self.law.modulus

    def _observed(self, histogram: ArrayLike) -> NDArray[np.complex128]:
        """The spectrum of the law of the cells' values, without zeros."""
        observed = np.fft.fft(np.asarray(histogram, float)) / self.cells
        return np.where(observed == 0, 1e-300, observed)

    def _logarithms(self, observed: NDArray[np.complex128]) -> Floats:
        """The number of users in every state but 0, from the spectrum of the cells' values."""
        logs = np.log(observed / _noise_spectrum(self.law, self.epoch))
        logs[0] = 0
        return self.cells * np.fft.ifft(logs).real

    def _kernel(self, observed: NDArray[np.complex128]) -> Floats:
        """The kernel of the observed law of values, centred: how an estimate moves with a cell."""
        inverse = 1 / np.conj(observed)
        inverse[0] = 0
        return np.fft.ifft(inverse).real

    def entries(self, histogram: ArrayLike, noise_variance: float) -> Estimates:
        """The number of users in every state but 0."""
        counts, observed = np.asarray(histogram, float), self._observed(histogram)
        kernel, values = self._kernel(observed), self._logarithms(observed)
        values[0] = 0
        votes = correlate(counts, kernel**2) - self.cells / self.law.modulus**2
        constant = np.maximum(votes - np.maximum(values, 0), 0)
        output = noise_variance * float((kernel**2).sum())
        bias = self._bias(observed, noise_variance, np.ones(len(values)))
        return Estimates(values, constant, np.full(len(values), output), 0.0, 0.0, 0.5, bias)

    def from_histogram(
        self, query: LinearQuery, histogram: ArrayLike, noise_variance: float
    ) -> Estimates:
        """The answer to a query from the noised histogram."""
        scores = _counted(query)
        counts, observed = np.asarray(histogram, float), self._observed(histogram)
        users, votes = self._logarithms(observed), convolve(scores, self._kernel(observed))
        fixed = float(scores**2 @ users)
        constant, output = self._variances(counts, scores, votes, fixed, noise_variance)
        value = np.asarray(float(scores @ users))
        bias = self._bias(observed, noise_variance, np.abs(np.fft.fft(scores)))
        return Estimates(value, np.asarray(constant), np.asarray(output), 0.0, 0.0, 0.5, bias)

    def _variances(
        self, counts: Floats, scores: Floats, votes: Floats, fixed: float, noise_variance: float
    ) -> tuple[float, float]:
        """Return the variances of the counters and of the output.

        Args:
            counts: the histogram.
            scores: what each state counts.
            votes: how the answer moves with a cell of each value.
            fixed: the sum of the squares of what users count, which the state decides.
            noise_variance: of the output noise on each count.
        """
        squares = votes**2
        poisson = float(counts @ squares) - self.cells * float(scores.mean()) ** 2
        return max(poisson - max(fixed, 0.0), 0.0), noise_variance * float(squares.sum())

    def _bias(
        self, observed: NDArray[np.complex128], noise_variance: float, weights: Floats
    ) -> float:
        """Return the bound on the bias of an answer by logarithms."""
        return self.cells * logarithm_bias(observed, self.cells, noise_variance, weights)


def _counted(query: LinearQuery) -> Floats:
    """Return what each state counts where a state of 0 leaves no trace; float64[M]."""
    scores = query.scores.astype(float)
    scores[0] = 0
    return scores


def _kernel(law: Law, epoch: int) -> Floats:
    """Return the kernel of the noise of all epochs together, float64[M]."""
    if epoch == 0:
        return law.kernel()
    return np.fft.ifft(1 / np.conj(_noise_spectrum(law, epoch))).real


def _noise(law: Law, epoch: int) -> Floats:
    """Return the law of the noise of all epochs together, float64[M]."""
    if epoch == 0:
        return law.probabilities()
    return np.fft.ifft(_noise_spectrum(law, epoch)).real


def _with_crowd(values: Floats, state: int, load: float) -> Floats:
    """Return `sum_n exp(-load) load**n/n! values[x - n state]`, modulo M; float64[M].

    Of a law it is that of cells to which so many users each add their state, on average. A negative
    load undoes what a load does.
    """
    total, weight, number = np.zeros(len(values)), math.exp(-load), 0
    while number <= abs(load) or abs(weight) > _LEAST_WEIGHT:
        total += weight * np.roll(values, number * state)
        number += 1
        weight *= load / number
    return total


@functools.lru_cache(maxsize=2)
def _noise_spectrum(law: Law, epoch: int) -> NDArray[np.complex128]:
    """Return the spectrum of the noise of a cell, complex128[M]; of few laws, as M may be large."""
    return law.spectrum() ** (epoch + 1)


@dataclass(frozen=True, slots=True, eq=False)
class SharedModels:
    """Reads the histograms of several tables of shared cells, each of other users, side by side.

    Args:
        each: reads one of them.
        tables: how many there are.
    """

    each: SharedModel
    tables: int

    def check_readable(self, histograms: ArrayLike, noise_variance: float) -> None:
        """Refuse to read tables of which one is too full.

        Raises:
            LostReleaseError: the answer would be noise.
        """
        for counts in self._parts(histograms):
            self.each.check_readable(counts, noise_variance)

    def entries(self, histograms: ArrayLike, noise_variance: float) -> Estimates:
        """The number of users in every state but 0."""
        return added(self.each.entries(one, noise_variance) for one in self._parts(histograms))

    def from_histogram(
        self, query: LinearQuery, histograms: ArrayLike, noise_variance: float
    ) -> Estimates:
        """The answer to a query from the noised histograms."""
        parts = self._parts(histograms)
        return added(self.each.from_histogram(query, one, noise_variance) for one in parts)

    def _parts(self, histograms: ArrayLike) -> list[Floats]:
        return np.split(np.asarray(histograms, float), self.tables)
