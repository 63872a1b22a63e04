"""The accounting of privacy: what is promised, what it costs, and who spends what.

A `PrivacyLoss` is a pair of epsilon and delta. A `Guarantee` says what loss is promised, to whom
and under which conditions, and what follows over windows, groups, crashes and contributions. A
`Ledger` is a budget that several statistics share. All numbers are exact. Printed bounds are
rounded up.
"""

from panprivacy.guarantee.exact import (
    LARGEST_EXPONENT,
    RANDOMISATION_BITS,
    exp_bounds,
    float_above,
    float_below,
    log_above,
    number_above,
    randomised_response,
    rounded_up,
    shown,
    shown_below,
)
from panprivacy.guarantee.ledger import Account, Budget, Epsilon, Ledger, warn_if_weak
from panprivacy.guarantee.loss import PrivacyLoss
from panprivacy.guarantee.losses import (
    joint_loss,
    joint_releases,
    unseen_bits,
    unseen_count,
    unseen_loss,
)
from panprivacy.guarantee.promise import Guarantee, windows_in_a_year

__all__ = [
    "LARGEST_EXPONENT",
    "RANDOMISATION_BITS",
    "Account",
    "Budget",
    "Epsilon",
    "Guarantee",
    "Ledger",
    "PrivacyLoss",
    "exp_bounds",
    "float_above",
    "float_below",
    "joint_loss",
    "joint_releases",
    "log_above",
    "number_above",
    "randomised_response",
    "rounded_up",
    "shown",
    "shown_below",
    "unseen_bits",
    "unseen_count",
    "unseen_loss",
    "warn_if_weak",
    "windows_in_a_year",
]
