"""Noise of one's own: a law for counters, what it would err by, and its exact loss.

    python examples/custom_law.py

A counter modulo 7 is born with noise that is twice as likely to be 0, 1 or 3 as another value.
"""

from __future__ import annotations

from fractions import Fraction

import panprivacy as pp
from panprivacy.audit import EnumeratedCoins, exact_loss

SHARES = pp.Budget(state=Fraction("0.7"), release=Fraction("0.3"))  # ln(2) is below 0.7
LAW = pp.Law.of([2, 2, 1, 2, 1, 1, 1])


def visits(coins: EnumeratedCoins | None = None, universe: int = 2) -> pp.Incidence:
    """How many users came how often, at most three times each."""
    sizes = {"universe": universe, "bound": 3, "law": LAW}
    return pp.Incidence(**sizes, epsilon=1, budget=SHARES, coins=coins)


for law in (LAW, pp.Law.flat(7, SHARES.state)):  # what one entry of a histogram errs by
    print(f"{law.name}: loss {law.loss:.4f}, {law.entry_deviation():.2f} sqrt(cells)")

loss = exact_loss(visits, [[0, 1], [0]], [[1], []])  # with and without the rows of user 0
print(f"by a look at any time {loss.epsilon:.4f} is lost, exactly")

count = visits(universe=100_000)
count.update([7, 7, 8])
answer = count.release(exactly=(0,)).exactly(0)
print(f"{answer.low:.0f} to {answer.high:.0f} users never came, in truth 99,998")
