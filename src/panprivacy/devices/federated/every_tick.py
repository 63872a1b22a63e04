"""Limits of devices without ciphertexts, whose memory hides each event by itself.

Somebody may see a device after every tick. If its memory hides at epsilon whether there was an
event at a tick, all that it can ever say about one event, at a tick that nobody knows, is a count
of randomised responses: one a tick, each wrong with probability `p = 1/(1 + e**epsilon)` (Feldman
et al. 2025, Lemma 3.2). That m of T responses are 1 is by this factor more likely with an event:

    `L(m) = (m (1-p)/p + (T-m) p/(1-p)) / T`.

The bounds below follow from this ratio.

Reference: V. Feldman, A. McMillan, G. Rothblum, K. Talwar, "Local pan-privacy for federated
analytics", ICML 2025, Theorems 8 and 9, appendix A.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from panprivacy.devices.federated.distributions import binomial


def total_variation(ticks: int, flip: Fraction) -> Fraction:
    """Return the exact total variation distance of the two laws of a report.

    It is `E |L - 1| / 2`, a mean absolute deviation, for which de Moivre has a formula. Appendix A
    prints twice of this.

    Args:
        ticks: of one of which there may be an event, T.
        flip: the probability that a response is wrong, p; above 0 and at most 1/2.
    """
    mean = ticks * flip
    top = math.ceil(mean)
    ways = math.comb(ticks, top) * flip**top * (1 - flip) ** (ticks - top)
    return (1 - 2 * flip) * top / mean * ways


def error_bound(devices: int, ticks: int, epsilon: float) -> float:
    """Return a lower bound on the root-mean-square error of any unbiased count of devices.

    Let each device have one event or none, by the toss of a coin that is nearly fair. What it says
    knows about the coin `I = 2 E (L-1)**2/(L+1)` at most (Fisher), so that an answer from all
    devices varies by `devices/I`, of which the coins make `devices/4`.

    Args:
        devices: number of devices.
        ticks: at one of which there may be an event.
        epsilon: epsilon of each tick, in nats.
    """
    flip = 1 / (1 + math.exp(epsilon))
    law = binomial(ticks, Fraction(flip))
    ones = law.first + np.arange(len(law.weights))
    ratios = (ones * (1 - flip) / flip + (ticks - ones) * flip / (1 - flip)) / ticks
    known = 2 * float((law.weights * (ratios - 1) ** 2 / (ratios + 1)).sum())
    return math.sqrt(devices * max(1 / known - 1 / 4, 0))


def response_error(devices: int, ticks: int, epsilon: float) -> float:
    """Return the root-mean-square error of the sum of responses, a count of events, not devices.

    It is that of a count of devices where none has two events, and tends to the least error there.
    """
    return math.sqrt(devices * ticks) / (2 * math.sinh(epsilon / 2))
