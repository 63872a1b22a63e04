"""The exact loss: every outcome of every coin, by the public methods of a class alone."""

from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.exact.loss import Loss, exact_loss, worst_loss

__all__ = ["EnumeratedCoins", "Loss", "exact_loss", "worst_loss"]
