"""Estimates of linear queries, their variances and the intervals that follow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from panprivacy.tables.decoders.intervals import Floats, noise_quantile

_SHARES = 64


@dataclass(frozen=True, slots=True)
class Estimates:
    """Unbiased estimates, and their variance as a function of the truth T.

    The variance is `constant + slope * T + curve * T**2 + output`; all are arrays of one shape, or
    numbers.

    Args:
        values: the estimates.
        constant: of the state's noise.
        output: of the output noise.
        slope: of noise and sampling.
        curve: of sampling.
        step: by how much the smallest step of a count moves the estimate.
        bias: by how much the mean of an estimate may differ from the truth, at most.
    """

    values: Floats
    constant: Floats
    output: Floats
    slope: float | Floats
    curve: float
    step: float
    bias: float = 0.0

    def less(self, known: Floats) -> Estimates:
        """The same of what is left of the truth without a known number."""
        constant = self.constant + self.slope * known + self.curve * known**2
        slope = self.slope + 2 * self.curve * known
        return replace(self, values=self.values - known, constant=constant, slope=slope)

    def deviations(self, limit: float = np.inf) -> Floats:
        """Standard deviations, where the truth is as estimated, within 0 .. limit."""
        truth = np.clip(self.values, 0, limit)
        variance = self.constant + self.slope * truth + self.curve * truth**2 + self.output
        return np.sqrt(np.maximum(variance, 0))

    def intervals(self, confidence: float, limit: float) -> tuple[Floats, Floats]:
        """Ends of the confidence intervals, within 0 .. limit.

        They are the truths from which the estimate, cut to that range, is not surprisingly far
        (Wilson); the ends are the roots of a square equation.
        """
        quantile, values = self._quantiles(confidence), np.clip(self.values, 0, limit)
        lead = 1 - quantile**2 * self.curve
        middle = values + quantile**2 * self.slope / 2
        rest = values**2 - quantile**2 * (self.constant + self.output)
        reach = np.sqrt(np.maximum(middle**2 - lead * rest, 0))
        low, high = (middle - reach) / lead - self.step, (middle + reach) / lead + self.step
        return np.clip(low, 0, limit), np.clip(high, 0, limit)

    def bound(self, confidence: float, sign: int) -> float:
        """The upper (sign 1) or lower (-1) end of an interval that nothing limits."""
        reach = self._quantiles(confidence) * self.deviations()
        return float(self.values + sign * reach)

    def _quantiles(self, confidence: float) -> Floats:
        """The quantile for the part of the variance that output noise causes, rounded up."""
        total = self.deviations() ** 2
        share = np.divide(self.output, total, out=np.ones(np.shape(total)), where=total > 0)
        steps = np.ceil(np.clip(share, 0, 1) * _SHARES).astype(int)
        quantiles = np.array([noise_quantile(confidence, k / _SHARES) for k in range(_SHARES + 1)])
        return quantiles[steps]


def added(several: Iterable[Estimates]) -> Estimates:
    """The sum of independent estimates whose variance does not depend on the truth."""
    each = list(several)
    values, constant, output = (
        np.sum([getattr(one, name) for one in each], axis=0)
        for name in ("values", "constant", "output")
    )
    step, bias = (sum(getattr(one, name) for one in each) for name in ("step", "bias"))
    return Estimates(values, constant, output, 0.0, 0.0, step, bias)
