"""The exact loss: every outcome of every coin, by the public methods of a class alone."""

from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.exact.loss import Loss, exact_loss, worst_loss
from panprivacy.audit.exact.traces import LeakError

__all__ = ["EnumeratedCoins", "LeakError", "Loss", "exact_loss", "worst_loss"]
