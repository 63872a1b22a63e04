"""Is it true? The guarantee, checked on the code that ships."""

from panprivacy.audit.exact import ANNOUNCE, RELEASE, EnumeratedCoins, Loss, exact_loss

__all__ = ["ANNOUNCE", "RELEASE", "EnumeratedCoins", "Loss", "exact_loss"]
