"""Is it true? The guarantee, checked on the code that ships.

`exact` walks every outcome, `sampled` bounds losses from runs, `controls` are programs that must be
caught, `suite` has the products, `attacks` plays the intruder.
"""

from panprivacy.audit.crashes import Restarted
from panprivacy.audit.exact import EnumeratedCoins, LeakError, Loss, exact_loss, worst_loss
from panprivacy.audit.sampled import (
    SampledLoss,
    Sampler,
    read_bits,
    read_words,
    sampled_loss,
    users_apart,
)
from panprivacy.audit.streams import ANNOUNCE, CRASH, RELEASE, SAVE
from panprivacy.audit.subject import Subject

__all__ = [
    "ANNOUNCE",
    "CRASH",
    "RELEASE",
    "SAVE",
    "EnumeratedCoins",
    "LeakError",
    "Loss",
    "Restarted",
    "SampledLoss",
    "Sampler",
    "Subject",
    "exact_loss",
    "read_bits",
    "read_words",
    "sampled_loss",
    "users_apart",
    "worst_loss",
]
