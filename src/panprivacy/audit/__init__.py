"""Is it true? The guarantee, checked on the code that ships."""

from panprivacy.audit.chain import ANNOUNCE, RELEASE
from panprivacy.audit.coins import EnumeratedCoins
from panprivacy.audit.exact import Loss, exact_loss, worst_loss

__all__ = ["ANNOUNCE", "RELEASE", "EnumeratedCoins", "Loss", "exact_loss", "worst_loss"]
