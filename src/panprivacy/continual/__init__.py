"""Continual release: the running answer at every step, private inside and out.

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
