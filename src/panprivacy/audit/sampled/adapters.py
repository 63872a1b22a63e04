"""What an intruder sees, as the arrays that other tools for auditing privacy ask for.

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

      once = audit_spec("panprivacy", "stream", "users", users_apart)(sampler.once)
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

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.sampled.looks import FixedKeyCoins, look, read_bits
from panprivacy.audit.streams import Stream, user_and_delta
from panprivacy.coins import Coins


@dataclass(frozen=True, slots=True)
class Sampler:
    """What an intruder sees, as numbers: a mechanism for black-box tools.

    Args:
        make: makes the statistic with the coins it is given.
        after_step: how many steps the intruder waits; None for all of them.
        read: the numbers of a state.
        coins: of all runs; the addressing key must be the same in each.
    """

    make: Callable[[Coins], Any]
    after_step: int | None = None
    read: Callable[[bytes], NDArray[Any]] = read_bits
    coins: Coins = field(default_factory=FixedKeyCoins)

    def __call__(self, stream: Stream, size: int) -> NDArray[np.float64]:
        """Independent views of a stream, float64[size, features]: states, then counts."""
        return np.stack([self._view(stream) for _ in range(size)])

    def once(self, stream: Mapping[str, Stream], users: int = 1) -> NDArray[np.float64]:  # noqa: ARG002
        """One view, float64[features], of the stream under "steps".

        `users` says in how many users neighbours differ; a recorder reads it here.
        """
        return self._view(stream["steps"])

    def _view(self, stream: Stream) -> NDArray[np.float64]:
        looked = len(stream) if self.after_step is None else self.after_step
        seen = look(self.make(self.coins), stream, looked)
        return np.concatenate([*map(self.read, seen.states), seen.counts]).astype(np.float64)


def users_apart(first: Mapping[str, Stream], second: Mapping[str, Stream]) -> float:
    """In the rows of how many users two streams differ, given as for `Sampler.once`.

    >>> users_apart({"steps": [[1, 2], [(1, -1)]]}, {"steps": [[2], []]})
    1.0
    """
    rows = [
        Counter(
            (number, *user_and_delta(row))
            for number, step in enumerate(stream["steps"])
            if not isinstance(step, str)
            for row in step
        )
        for stream in (first, second)
    ]
    return float(len({user for _, user, _ in (rows[0] - rows[1]) + (rows[1] - rows[0])}))
