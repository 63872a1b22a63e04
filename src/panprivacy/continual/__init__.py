"""Continual release: the running answer at every step, private inside and out.

It imports `statistics` (for answers, states and `StepCounter`) and everything below; the mechanisms
are in `tables.counters`. No cell of a user comes here: what is hidden is one event.

>>> import panprivacy as pp
>>> visits = pp.continual.Counter(horizon=1_000, epsilon=1.0)
>>> answer = visits.step(1)
>>> visits.tick
1
"""

from panprivacy.continual.counter import Counter
from panprivacy.continual.methods import METHODS
from panprivacy.continual.synthetic import Synthetic

__all__ = ["METHODS", "Counter", "Synthetic"]
