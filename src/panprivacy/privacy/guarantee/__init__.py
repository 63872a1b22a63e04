"""Privacy accounting: guarantees, losses, budgets and the ledger.

A `PrivacyLoss` is a pair of epsilon and delta. A `Guarantee` states the promised loss, the
adjacency and the conditions, and what follows over windows, groups, crashes and contributions. A
`Ledger` is a budget that several statistics share. All numbers are exact. Printed bounds are
rounded up.
"""

from panprivacy.privacy.guarantee.exact import (
    LARGEST_EXPONENT,
    RANDOMISATION_BITS,
    exp_bounds,
    float_above,
    float_below,
    format_rounded_down,
    format_rounded_up,
    log_above,
    number_above,
    randomised_response,
    rounded_up,
)
from panprivacy.privacy.guarantee.ledger import Account, Budget, Epsilon, Ledger, warn_if_weak
from panprivacy.privacy.guarantee.loss import PrivacyLoss
from panprivacy.privacy.guarantee.losses import (
    joint_loss,
    joint_releases,
    unseen_bits,
    unseen_count,
    unseen_loss,
)
from panprivacy.privacy.guarantee.promise import (
    DAY_SECONDS,
    Guarantee,
    loss_over,
    windows_in_a_year,
)

__all__ = [
    "DAY_SECONDS",
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
    "format_rounded_down",
    "format_rounded_up",
    "joint_loss",
    "joint_releases",
    "log_above",
    "loss_over",
    "number_above",
    "randomised_response",
    "rounded_up",
    "unseen_bits",
    "unseen_count",
    "unseen_loss",
    "warn_if_weak",
    "windows_in_a_year",
]
