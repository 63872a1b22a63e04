"""The audit: checks of the guarantee on the code that ships.

`exact` walks every outcome, `sampled` bounds losses from runs, `controls` are programs that must be
caught, `suite` has the products, `attacks` plays the intruder.

It may import everything but the command line; `exact` imports nothing of what it checks.
Nothing that counts comes here, and nothing but the command line and tests imports it.
"""

from panprivacy.audit.crashes import Restarted
from panprivacy.audit.exact import EnumeratedCoins, LeakError, Loss, exact_loss, worst_loss
from panprivacy.audit.sampled import (
    SampledLoss,
    Sampler,
    differing_users,
    read_bits,
    read_words,
    sampled_loss,
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
    "differing_users",
    "exact_loss",
    "read_bits",
    "read_words",
    "sampled_loss",
    "worst_loss",
]
