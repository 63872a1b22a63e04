"""Papers' figures beside ours, and what theory says cannot be done, as experiments with pictures.

Draws and coins repeat, so a script prints the same each time it starts.
"""

from pathlib import Path

import numpy as np

from panprivacy.testing import SeededCoins

FOLDER = Path(__file__).parent
GENERATOR = np.random.default_rng(10)
COINS = SeededCoins(10)
