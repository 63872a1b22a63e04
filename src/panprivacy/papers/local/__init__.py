"""The local model: every user adds the noise, and no other party has to be trusted.

>>> import panprivacy as pp
>>> browsers = pp.local.best_encoding(4, epsilon=1)
>>> reports = browsers.randomise([0, 2, 2, 3] * 5_000)  # on the devices
>>> answer = browsers.estimate(reports)  # anywhere
>>> 8_000 < answer.of(2).value < 12_000
True
"""

from panprivacy.papers.local.choice import best_encoding
from panprivacy.papers.local.frequencies import Frequencies
from panprivacy.papers.local.hadamard import HadamardResponse
from panprivacy.papers.local.matrix import MatrixRandomiser
from panprivacy.papers.local.oracle import LROracle
from panprivacy.papers.local.randomiser import Randomiser
from panprivacy.papers.local.response import RandomisedResponse
from panprivacy.papers.local.statistical import StatisticalQueries, users_needed
from panprivacy.papers.local.stump import Learned, Stump, learn_stump, users_to_learn
from panprivacy.papers.local.unary import UnaryEncoding

__all__ = [
    "Frequencies",
    "HadamardResponse",
    "LROracle",
    "Learned",
    "MatrixRandomiser",
    "RandomisedResponse",
    "Randomiser",
    "StatisticalQueries",
    "Stump",
    "UnaryEncoding",
    "best_encoding",
    "learn_stump",
    "users_needed",
    "users_to_learn",
]
