"""The view of an intruder, as the arrays that other tools for auditing privacy use.

None of the tools is needed to import this; each is handed a `Sampler`:

* Google's DP Auditorium calls a mechanism as `mechanism(dataset, num_samples)`, by position, and
  expects an array whose first axis is the sample; a generator of datasets is called as
  `generator(divergence)` and gives a pair. Hand it the sampler itself, with streams as datasets:
  `PrivacyTestRunner(config, lambda divergence: (stream, neighbour), tester)
  .test_privacy(sampler, "distinct")`. `HistogramTester` takes one whole number a sample, so it
  needs `lambda stream, size: sampler(stream, size)[:, feature].astype(int)`.
  [google/differential-privacy, python/dp_auditorium/dp_auditorium/interfaces.py,
  privacy_test_runner.py, testers/histogram_tester.py]
* Delta-Siege makes the mechanism itself, by keywords from a `SimpleSampler`, from a subclass of its
  `Mechanism`, and calls it as `mechanism(input, n)`, by position, for an array `(n, features)`;
  `guarantee_(epsilon, delta)` must not increase in either. The subclass is::

      class Audited(LaplaceMechanism):  # whose guarantee_ is 1/epsilon, and delta 0
          def __call__(self, stream, size):
              return Sampler(lambda coins: make(self.epsilon, coins))(stream, size)

  with `SimpleSampler(Audited, input_pairs=[(stream, neighbour)], epsilon=(1.0, 1.0),
  sensitivity=(1.0, 1.0))`. Streams are told apart by `str`, so write them as lists.
  [eth-sri/Delta-Siege, deltasiege/mechanism/mechanism.py, laplace_mechanism.py,
  dataset/datahandler.py, ddsampler.py]
* dp-recorder wraps a function with `audit_spec(kind, input_arg, sensitivity_arg, metric_fn)`: it
  runs it on one input, replays its output on the other, compares `metric_fn(input, other)` with the
  sensitivity, and calls the function by keywords for samples, each of which it flattens. Inputs
  other than dictionaries become arrays, which streams cannot. So::

      once = audit_spec("panprivacy", "stream", "users", differing_users)(sampler.once)
      with auditor:
          once(stream={"steps": stream}, users=1)
      auditor.set_replay()
      with auditor:
          once(stream={"steps": neighbour}, users=1)
      auditor.validate_records()
      auditor.run_distributional_audit(n_samples=10_000)

  The generators that it rewinds are none of ours: `SystemCoins` has no seed, and every sample is
  fresh. [ObliviousAI/dp-recorder, src/dp_recorder/auditing/audit_primitives.py]
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.sampled.events import surprise
from panprivacy.audit.sampled.looks import FixedKeyCoins, look, read_bits
from panprivacy.audit.streams import EventStream, checked, user_and_rest
from panprivacy.privacy.coins import Coins

StateSummary = Literal["states", "counts", "bars"]

_MOST_BINS: Final = 16
_FIRST: Final = 8
"""Runs that show how long states are."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The features that a sampler returns, and their scale.

    Args:
        lengths: how many numbers each part has; a shorter one has zeros in front.
        places: of the features; None for all.
        centre: that is taken off each of them.
        spread: by which each is divided then.
    """

    lengths: tuple[int, ...]
    places: NDArray[np.intp] | None = None
    centre: NDArray[np.float64] | float = 0.0
    spread: NDArray[np.float64] | float = 1.0


@dataclass(frozen=True, slots=True)
class Sampler:
    """The view of an intruder as numbers: a mechanism for black-box tools.

    >>> import panprivacy as pp
    >>> def make(coins):
    ...     return pp.Density(universe=1_000, epsilon=3, coins=coins)
    >>> Sampler(make)([[5]], 20).shape[1] >= 1_000  # too many for most tools
    True
    >>> Sampler(make).screened([[5]], [[]], runs=200, most=2)([[5]], 20).shape
    (20, 2)

    Args:
        make: makes the statistic with the coins it is given. A `Windowed` needs a clock that stands
            still: its moment is in the state, and would tell the first runs from the later ones.
        after_step: number of steps before the intrusion; None for all of them.
        read: the numbers of a state.
        coins: coins of all runs; the addressing key must be the same in each.
        parts: what is given, in this order: the states, the noisy counts of all releases, and of
            each answer its value and the ends of its interval, its error bar.
        chosen: which of the features; see `screened` and `scaled`.
    """

    make: Callable[[Coins], Any]
    after_step: int | None = None
    read: Callable[[bytes], NDArray[Any]] = read_bits
    coins: Coins = field(default_factory=FixedKeyCoins)
    parts: Collection[StateSummary] = ("states", "counts", "bars")
    chosen: Chosen | None = None

    def __call__(self, stream: EventStream, size: int) -> NDArray[np.float64]:
        """Return independent views of a stream, float64[size, features].

        States of different lengths are aligned at their ends, where the cells are.
        """
        views = [self._view(stream) for _ in range(size)]
        lengths = tuple(max(map(len, part)) for part in zip(*views, strict=True))
        chosen = self.chosen or Chosen(lengths)
        found = np.stack([_aligned(view, chosen.lengths) for view in views])
        kept = found if chosen.places is None else found[:, chosen.places]
        return (kept - chosen.centre) / chosen.spread

    def screened(
        self, stream: EventStream, neighbour: EventStream, *, runs: int = 1_000, most: int = 8
    ) -> Sampler:
        """Return a copy with only the most distinguishing features, chosen on separate runs.

        Args:
            stream: as for a call.
            neighbour: the other one.
            runs: number of runs of each stream; their features are in memory at once, 4 bytes each.
            most: features, of which the most telling is the first.
        """
        pair, lengths = self._tried(stream, neighbour, runs)
        surprises = [
            _difference(one, other) for one, other in zip(*(each.T for each in pair), strict=True)
        ]
        places = np.argsort(-np.array(surprises), kind="stable")[:most]
        return replace(self, chosen=self._narrowed(lengths, places))

    def scaled(self, stream: EventStream, neighbour: EventStream, *, runs: int = 1_000) -> Sampler:
        """Return the same with features of mean 0 and deviation 1 over runs of both streams."""
        pair, lengths = self._tried(stream, neighbour, runs)
        both = np.concatenate(pair).astype(np.float64)
        spread = both.std(axis=0)
        chosen = self.chosen or Chosen(lengths)
        spread[spread == 0] = 1
        centre = both.mean(axis=0) * chosen.spread + chosen.centre
        return replace(self, chosen=replace(chosen, centre=centre, spread=spread * chosen.spread))

    def once(self, stream: Mapping[str, EventStream], users: int = 1) -> NDArray[np.float64]:  # noqa: ARG002
        """Return one view, float64[features], of the stream under "steps".

        `users` is the number of users in which neighbours differ; a recorder reads it here.
        """
        return self(stream["steps"], 1)[0]

    def _tried(
        self, stream: EventStream, neighbour: EventStream, runs: int
    ) -> tuple[list[NDArray[np.float32]], tuple[int, ...]]:
        """Return features of both streams, and the lengths of their parts."""
        one, other = checked(stream, neighbour)
        views = [[self._view(steps) for _ in range(_FIRST)] for steps in (one, other)]
        parts = zip(*views[0], *views[1], strict=True)
        lengths = tuple(max(map(len, part)) for part in parts)
        fixed = self if self.chosen else replace(self, chosen=Chosen(lengths))
        return [
            np.concatenate([fixed(steps, 1).astype(np.float32) for _ in range(runs)])
            for steps in (one, other)
        ], lengths

    def _narrowed(self, lengths: tuple[int, ...], places: NDArray[np.intp]) -> Chosen:
        """Return some of the features that are chosen already."""
        chosen = self.chosen or Chosen(lengths)
        before = np.arange(sum(chosen.lengths)) if chosen.places is None else chosen.places
        centre, spread = (
            each if isinstance(each, float) else each[places]
            for each in (chosen.centre, chosen.spread)
        )
        return Chosen(chosen.lengths, before[places], centre, spread)

    def _view(self, stream: EventStream) -> list[NDArray[np.float64]]:
        """Return the numbers of each part of a view."""
        looked = len(stream) if self.after_step is None else self.after_step
        seen = look(self.make(self.coins), stream, looked)
        read = {
            "states": [self.read(state) for state in seen.states],
            "counts": [np.array(seen.counts)],
            "bars": [np.array(seen.bars)],
        }
        return [
            part.astype(np.float64)
            for name, parts in read.items()
            if name in self.parts
            for part in parts
        ]


def _aligned(view: Sequence[NDArray[np.float64]], lengths: Sequence[int]) -> NDArray[np.float64]:
    """Return all parts in one array, each padded with zeros in front or cut at its start."""
    found = [np.zeros(length) for length in lengths]
    for whole, part in zip(found, view, strict=True):
        shared = min(len(whole), len(part))
        whole[len(whole) - shared :] = part[len(part) - shared :]
    return np.concatenate(found)


def _difference(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Return how surprising the feature would be if both streams had the same law."""
    both = np.concatenate([one, other])
    values = np.unique(both)
    if len(values) == 1:
        return -math.inf
    if len(values) > _MOST_BINS:
        values = np.unique(np.quantile(both, np.arange(_MOST_BINS) / _MOST_BINS))
    tables = [
        np.bincount(np.searchsorted(values, each, "right"), minlength=len(values) + 1)
        for each in (one, other)
    ]
    return surprise(*tables)


def differing_users(first: Mapping[str, EventStream], second: Mapping[str, EventStream]) -> float:
    """Return the number of users in whose rows two streams differ, given as for `Sampler.once`.

    >>> differing_users({"steps": [[1, 2], [(1, -1)]]}, {"steps": [[2], []]})
    1.0
    """
    rows = [
        Counter(
            (number, *user_and_rest(row))
            for number, step in enumerate(stream["steps"])
            if not isinstance(step, str)
            for row in step
        )
        for stream in (first, second)
    ]
    return float(len({user for _, user, _ in (rows[0] - rows[1]) + (rows[1] - rows[0])}))
