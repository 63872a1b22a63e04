"""Is it true? The guarantee, checked on the code that ships.

`exact` walks every outcome, `sampled` bounds losses from runs, `suite` has the products and the
controls, `attacks` plays the intruder.
"""

from panprivacy.audit.exact import EnumeratedCoins, Loss, exact_loss, worst_loss
from panprivacy.audit.sampled import (
    SampledLoss,
    Sampler,
    read_bits,
    read_words,
    sampled_loss,
    users_apart,
)
from panprivacy.audit.streams import ANNOUNCE, RELEASE

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
