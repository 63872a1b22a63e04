"""Decisions at every step, from counts that are private: many counters, experts, lists.

>>> import panprivacy as pp
>>> pages = pp.online.MultiCounter(100, horizon=10_000, epsilon=1.0)
>>> pages.run([7] * 5_000)
>>> bool(pages.values[7] > 4_000)
True
"""

from panprivacy.papers.online.experts import UNITS, PrivateExperts
from panprivacy.papers.online.list_update import ListUpdate
from panprivacy.papers.online.multi_counter import MultiCounter

__all__ = ["UNITS", "ListUpdate", "MultiCounter", "PrivateExperts"]
