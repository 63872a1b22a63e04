"""Is it true? The guarantee, checked on the code that ships."""

from panprivacy.audit.adapters import Sampler, users_apart
from panprivacy.audit.chain import ANNOUNCE, RELEASE
from panprivacy.audit.coins import EnumeratedCoins
from panprivacy.audit.exact import Loss, exact_loss, worst_loss
from panprivacy.audit.looks import read_bits, read_words
from panprivacy.audit.sampled import SampledLoss, sampled_loss

__all__ = [
    "ANNOUNCE",
    "RELEASE",
    "EnumeratedCoins",
    "Loss",
    "SampledLoss",
    "Sampler",
    "exact_loss",
    "read_bits",
    "read_words",
    "sampled_loss",
    "users_apart",
    "worst_loss",
]
