"""How many people a count of people needs: the error of `distinct` by the number that is expected.

The pages that show this table are written by `python -m benchmarks.people`.
"""

from __future__ import annotations

from fractions import Fraction

from msgspec.structs import replace

from panprivacy.statistics.alternatives import Alternatives

PEOPLE = (100, 300, 1_000, 10_000)
"""Expected numbers of people in a window, a row each."""


def errors_by_people(
    search: Alternatives, epsilon: Fraction, confidence: float = 0.95
) -> list[tuple[int, float]]:
    """Return each number of people with the relative margin of its plan.

    Args:
        search: plans of a `distinct`; the number that it expects is replaced.
        epsilon: total privacy loss of a window.
        confidence: how often an answer is within the margin.
    """
    rows = []
    for people in PEOPLE:
        sizes = replace(search.sizes, expected=(people, people))
        one = Alternatives(sizes, search.releases, search.intrusions)
        rows.append((people, one.plan(epsilon, None).relative_margin(confidence)))
    return rows
