"""Sets of residues shaped to one question: how many users are in state `threshold` or higher.

A law that is larger on a set answers a question with a variance that is smaller the more of the
set's spectrum lies where the question has its own. Such a set is looked for from waves whose
spectrum is the root of the question's, then residues are exchanged while that lowers the variance.
docs/laws.md has the derivation, and a bound below which no law comes.

Everything is rounded before it is compared, so that the last digits of a Fourier transform, which
differ from one machine to another, decide nothing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from panprivacy.ground.searches import stored_or_searched
from panprivacy.tables.cells.difference_sets import SetMembers

Floats = NDArray[np.float64]
Spectrum = NDArray[np.complex128]

MOST_SHAPED = 4_608
"""The largest modulus: the time of a search grows faster than its square."""

_CHIRPS = range(1, 12)
"""Rates at which the pitch of a first wave rises."""

_ROUNDS = 100
_POLISHED = 3
_EXCHANGES = 400
_AT_ONCE = (1, 2, 4, 8, 16, 32, 64)
_LEAST_GAIN = 2e-4
_TRIED = 6
"""Number of residues to add, and to remove, that are tried in all pairs."""

_LEAST_STORED = 256
"""The sets of smaller moduli are found in no time."""

_SECONDS_UNSTORED = 0.1

_DIGITS = 9
_LEAST_POWER = 1e-12


@dataclass(frozen=True, slots=True)
class Shape:
    """A set that is shaped to one question, to be made a law of.

    Args:
        threshold: states from this one on count.
        bound: the largest state; residues above it count as is best.
        modulus: M, more than the bound and the states below 0 together.
        size: size of the set.
        below: the number of states below 0 that count 0, as all below the threshold.
        rise: the number of states up to the threshold over which the value rises from 0 to 1.
    """

    threshold: int
    bound: int
    modulus: int
    size: int
    below: int = 0
    rise: int = 1

    def question(self) -> Floats:
        """Return the value of a user in each state, float64[M]: 0 to 1, decreasing above the bound.

        A linear decrease from 1 at the bound to 0 at the lowest state below 0 needs little of a
        law.
        """
        counted, lowest = np.zeros(self.modulus), self.modulus - self.below
        start = self.threshold - self.rise
        counted[start : self.threshold + 1] = np.linspace(0, 1, self.rise + 1)
        counted[self.threshold : self.bound + 1] = 1
        counted[self.bound : lowest] = np.linspace(1, 0, lowest - self.bound + 1)[:-1]
        return counted

    def countable_states(self) -> NDArray[np.bool_]:
        """Return which states count right: up to the bound, and those below 0 that have room."""
        states = np.arange(self.modulus)
        return (states <= self.bound) | (states >= self.modulus - self.below)

    def members(self) -> SetMembers:
        """Return the residues of the set, in order."""
        return _search(self)

    def price(self, epsilon: float) -> float:
        """Return the variance that each cell adds to an answer, on average over all states."""
        marks = np.zeros(self.modulus)
        marks[self.members()] = 1
        more = math.expm1(epsilon)
        scale = (self.modulus + more * self.size) / (more * self.modulus)
        return scale**2 * _Cost.of(self).of_marks(marks)

    def price_bound(self, epsilon: float) -> float:
        """Return a lower bound on the price for any law of this loss, with the same residues."""
        sizes = np.abs(np.fft.fft(self.question()))[1:]
        return (float(sizes.sum()) / (self.modulus * math.sinh(epsilon / 2))) ** 2


@dataclass(frozen=True, slots=True, eq=False)
class _Cost:
    """The sum of squared question spectrum over squared set spectrum.

    Args:
        modulus: M.
        sizes: sizes of the question's spectrum, float64[M//2 + 1].
        squares: their squares, as often as they occur in the complete spectrum; 0 first.
    """

    modulus: int
    sizes: Floats
    squares: Floats

    @classmethod
    def of(cls, shape: Shape) -> _Cost:
        """Return the cost for the question of a shape."""
        sizes = np.abs(np.fft.rfft(shape.question()))
        # No frequency may be lost entirely: a law without it could not be read.
        sizes = np.maximum(sizes, 1e-6 * sizes[1:].max())
        sizes[0] = 0
        twice = np.full(len(sizes), 2.0)
        if shape.modulus % 2 == 0:
            twice[-1] = 1
        return cls(shape.modulus, sizes, twice * sizes**2)

    def of_marks(self, marks: Floats) -> float:
        """Return the cost of the set of the marked residues."""
        return float(self.of_spectra(np.fft.rfft(marks)))

    def of_spectra(self, spectra: Spectrum) -> Floats:
        """Return the costs of some sets, from their spectra: complex128[..., M//2 + 1]."""
        costs: Floats = (self.squares / _power(spectra)).sum(axis=-1)
        return costs

    def slopes(self, spectrum: Spectrum) -> Floats:
        """Return the derivative of the cost by each residue, up to a factor; float64[M]."""
        pull = self.squares / _power(spectrum) ** 2 * spectrum
        return -np.fft.irfft(pull, self.modulus)


def _power(spectra: Spectrum) -> Floats:
    power: Floats = np.maximum(spectra.real**2 + spectra.imag**2, _LEAST_POWER)
    return power


@functools.lru_cache(maxsize=512)
def _search(shape: Shape) -> SetMembers:
    """Return the set that a search finds; a long one is made once for all processes."""
    if shape.modulus < _LEAST_STORED:
        return _best_set(shape)
    question = {"set shaped to": [str(number) for number in astuple(shape)]}
    found = stored_or_searched(
        question,
        lambda: _packed(_best_set(shape), shape.modulus),
        lambda packed: len(_unpacked(packed, shape.modulus)) == shape.size,
        _SECONDS_UNSTORED,
    )
    return _unpacked(found or "", shape.modulus)


def _packed(members: SetMembers, modulus: int) -> str:
    """Return a set as hexadecimal digits: a bit for each residue."""
    marks = np.zeros(modulus, bool)
    marks[members] = True
    return np.packbits(marks).tobytes().hex()


def _unpacked(packed: str, modulus: int) -> SetMembers:
    """Return the residues of such a set, in order."""
    marks = np.frombuffer(bytes.fromhex(packed), np.uint8)
    return np.flatnonzero(np.unpackbits(marks, count=modulus))


def _best_set(shape: Shape) -> SetMembers:
    """Return the set of the smallest cost of those that the best of the first waves lead to."""
    cost = _Cost.of(shape)
    found = [_settled(cost, shape.size, wave) for wave in _waves(cost)]
    found.sort(key=lambda marks: _rounded(cost.of_marks(marks)))
    polished = [_exchanged(cost, marks) for marks in found[:_POLISHED]]
    best = min(polished, key=lambda marks: _rounded(cost.of_marks(marks)))
    return np.flatnonzero(best)


def _rounded(cost: float) -> float:
    return float(f"{cost:.{_DIGITS}g}")


def _waves(cost: _Cost) -> Iterator[Spectrum]:
    """Yield the first phases: chirps, and one that stays at each pitch as long as it is wanted."""
    pitch = np.arange(len(cost.sizes))
    for speed in _CHIRPS:
        turns = pitch * pitch * speed % (2 * cost.modulus)
        yield np.exp(1j * math.pi / cost.modulus * turns)
    delays = np.cumsum(cost.sizes) / cost.sizes.sum()
    yield np.exp(-2j * math.pi * np.cumsum(delays))


def _settled(cost: _Cost, size: int, phases: Spectrum) -> Floats:
    """Return the best set that a wave leads to: its spectrum has the wanted sizes, own phases.

    The set of the highest values of the wave gives the next phases, until it stays the same.
    """
    wanted = np.sqrt(cost.sizes)
    best, least, last = np.zeros(cost.modulus), math.inf, None
    for _ in range(_ROUNDS):
        wave = np.round(np.fft.irfft(wanted * phases, cost.modulus), _DIGITS)
        marks = np.zeros(cost.modulus)
        marks[_lowest(-wave, size)] = 1
        if last is not None and np.array_equal(marks, last):
            break
        last, spectrum = marks, np.fft.rfft(marks)
        if (now := _rounded(float(cost.of_spectra(spectrum)))) < least:
            best, least = marks, now
        phases = spectrum / np.sqrt(_power(spectrum))
    return best


def _exchanged(cost: _Cost, marks: Floats) -> Floats:
    """Return the set after residues were exchanged for others, while that lowers the cost.

    Many at once while that helps; at the end single ones, the best of some pairs.
    """
    circle = np.exp(-2j * math.pi / cost.modulus * np.arange(cost.modulus))
    spectrum = np.fft.rfft(marks)
    least = _rounded(float(cost.of_spectra(spectrum)))
    for _ in range(_EXCHANGES):
        enough = least * (1 - _LEAST_GAIN)
        put, take = _candidates(cost, marks, spectrum)
        tried = _many(marks, put, take)
        spectra = np.fft.rfft(tried)
        costs = cost.of_spectra(spectra)
        if _rounded(costs.min()) > enough:
            tried, spectra = _pairs(circle, marks, spectrum, put[:_TRIED], take[:_TRIED])
            costs = cost.of_spectra(spectra)
        if _rounded(costs.min()) > enough:
            break
        least = _rounded(costs.min())
        best = np.argmax(costs <= costs.min() * (1 + 10.0**-_DIGITS))
        marks, spectrum = tried[best], spectra[best]
    return marks


def _candidates(cost: _Cost, marks: Floats, spectrum: Spectrum) -> tuple[SetMembers, SetMembers]:
    """Return the residues to put in and those to take out, by how much their slopes promise."""
    slopes = cost.slopes(spectrum)
    slopes = np.round(slopes / np.abs(slopes).max(), _DIGITS)
    outside, inside = np.flatnonzero(marks == 0), np.flatnonzero(marks)[::-1]
    put, take = _lowest(slopes[outside], _AT_ONCE[-1]), _lowest(-slopes[inside], _AT_ONCE[-1])
    return outside[put], inside[take]


def _lowest(values: Floats, count: int) -> SetMembers:
    """Return where the smallest values are, in their order; of equal ones the first come first."""
    if count < len(values):
        near = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    else:
        near = np.arange(len(values))
    return near[np.argsort(values[near], kind="stable")][:count]


def _many(marks: Floats, put: SetMembers, take: SetMembers) -> Floats:
    """Return the sets after several of the best exchanges at once."""
    sizes = [size for size in _AT_ONCE if size <= min(len(put), len(take))]
    tried = np.tile(marks, (len(sizes), 1))
    for row, size in zip(tried, sizes, strict=True):
        row[put[:size]], row[take[:size]] = 1, 0
    return tried


def _pairs(
    circle: Spectrum, marks: Floats, spectrum: Spectrum, put: SetMembers, take: SetMembers
) -> tuple[Floats, Spectrum]:
    """Return the sets after one exchange, of each residue with each, and their spectra.

    A residue more is a wave more in the spectrum, one of steps round the circle of M points.
    """
    pairs = np.array([(one, other) for one in put for other in take])
    rows = np.arange(len(pairs))
    tried = np.tile(marks, (len(pairs), 1))
    tried[rows, pairs[:, 0]], tried[rows, pairs[:, 1]] = 1, 0
    turns = np.arange(len(spectrum)) * np.concatenate([put, take])[:, None] % len(marks)
    more, less = circle[turns[: len(put), None]], circle[turns[None, len(put) :]]
    return tried, (spectrum + more - less).reshape(len(pairs), -1)
