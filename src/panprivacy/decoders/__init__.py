"""From noised counts to estimates and intervals: pure functions, no randomness.

A model says what the noised counts are expected to be, and how far an estimate strays, when the
truth is given. Planning asks it before anything is collected, releases ask it after. Nothing here
sees the table: the inputs are released numbers and public parameters.

Notation: `c` is the contrast (for bits the mean of a present bit in units of ±1; `t` unless
intrusions were announced), `m` the number of cells, `n` the number of users, `q` a level's
probability.
"""

from panprivacy.decoders.constrained import most_likely
from panprivacy.decoders.cropped import CroppedModel, HashedCroppedModel
from panprivacy.decoders.cropped_levels import LevelledCroppedModel
from panprivacy.decoders.density import DensityModel
from panprivacy.decoders.heavy import CellsModel, HeavyModel
from panprivacy.decoders.intervals import Model, discrete_laplace_variance, noise_quantile
from panprivacy.decoders.levels import LevelModel
from panprivacy.decoders.modular import Estimates, SharedModel, StateModel
from panprivacy.decoders.questions import Name, Question, States
from panprivacy.decoders.threshold import ThresholdModel

__all__ = [
    "CellsModel",
    "CroppedModel",
    "DensityModel",
    "Estimates",
    "HashedCroppedModel",
    "HeavyModel",
    "LevelModel",
    "LevelledCroppedModel",
    "Model",
    "Name",
    "Question",
    "SharedModel",
    "StateModel",
    "States",
    "ThresholdModel",
    "discrete_laplace_variance",
    "most_likely",
    "noise_quantile",
]
