"""Many linear queries of one table at once, whose noise is projected away.

>>> import numpy as np
>>> import panprivacy as pp
>>> ages = np.full(100, 50)  # users of each age
>>> ranges = np.tri(100)  # query i: how many are at most i years old
>>> asked = pp.queries.LinearQueries(ranges, users=5_000, epsilon=1, delta=1e-9)
>>> answer = asked.release(ages)
>>> bool(2_000 < answer.values[49] < 3_000)
True
"""

from panprivacy.papers.queries.linear import LinearAnswers, LinearQueries

__all__ = ["LinearAnswers", "LinearQueries"]
