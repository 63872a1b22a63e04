"""Writes how many people a count needs into the pages: `python -m benchmarks.people`."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import panprivacy as pp
from panprivacy.cli.people import PEOPLE, errors_by_people
from panprivacy.statistics.alternatives import Alternatives
from panprivacy.statistics.notes import percent
from panprivacy.statistics.specification import Specification

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / name for name in ("README.md", "docs/tutorial.md", "docs/faq.md")]
BETWEEN = re.compile(r"(<!-- people -->\n\n).*?(\n\n<!-- end of people -->)", re.DOTALL)
CALLS = 60
"""Events of a day in the sentence below the table."""


def table() -> str:
    """The table of four rows, and the sentence below it."""
    search = Alternatives(Specification.from_text("distinct,expected=100").sizes, 1, 0)
    columns = [dict(errors_by_people(search, Fraction(epsilon))) for epsilon in (1, 2)]
    rows = ["| people in a window | epsilon 1 | epsilon 2 |", "|---|---|---|"]
    rows += [
        f"| {people:,} | {' | '.join(percent(column[people]) for column in columns)} |"
        for people in PEOPLE
    ]
    return "\n".join(rows) + "\n\n" + events()


def events() -> str:
    """What counting events gives in place of counting people."""
    plan = pp.plan("running-count", horizon=1, epsilon=1)
    loss = plan.guarantee.over(365)
    margin = plan.absolute_margin(0.95)
    return (
        f"Count events in place of people, and {CALLS} calls a day are known within "
        f"±{margin:.1f}, which is {percent(margin / CALLS)}.\nThat hides one call, not all "
        f"calls of a person: it loses {loss} in a whole year."
    )


def main() -> None:
    """Write the table into every page that shows it."""
    for page in PAGES:
        page.write_text(BETWEEN.sub(lambda found: found[1] + table() + found[2], page.read_text()))


if __name__ == "__main__":
    main()
