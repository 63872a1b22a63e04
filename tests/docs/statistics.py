"""The page of the statistics, made from the records that say what they take.

python -m tests.docs.statistics    writes docs/statistics.md anew
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from panprivacy.service.outgoing.records import FIELDS
from panprivacy.statistics.catalogue import kinds
from panprivacy.statistics.frames import COLUMNS
from panprivacy.statistics.specification import Specification
from panprivacy.tables.planning.request import Request

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"

EXAMPLES = {
    "distinct": "distinct,expected=1000:1e6",
    "density": "density,universe=50_000",
    "overlap": "overlap,expected=100_000,share=0.3",
    "both": "both,expected=100_000,left=shoes,right=checkout",
    "incidence": "incidence,bound=30,universe=50_000,exactly=0:3,at_least=10",
    "cropped-sum": "cropped-sum,tau=10,universe=50_000",
    "threshold": "threshold,threshold=20,universe=50_000",
    "heavy-hitters": "heavy-hitters,k=10_000,total=1e9",
    "moment": "moment,order=2,bound=20",
    "inner-product": "inner-product,bound=20,left=sale,right=return",
    "running-count": "running-count,horizon=1e6",
    "running-distinct": "running-distinct,horizon=1_000,expected=100_000",
    "running-cropped-sum": "running-cropped-sum,tau=10,horizon=1_000,universe=50_000",
    "running-heavy-hitters": "running-heavy-hitters,k=1_000,total=1e7,horizon=1_000",
    "histogram": "histogram,low=1,high=60_000,resolution=0.02,quantile=0.5,0.95,0.99",
}
"""How each is written: its page says what this one answers."""

HEAD = """# The statistics

For whoever writes `--stat`, a `[[streams.NAME.stat]]` table, or a constructor: what can be counted,
and what each statistic takes. `python -m tests.docs.statistics` makes this page from the code.

The same names are used everywhere. On the command line the sizes stand behind the name, as in
`cropped-sum,tau=10,universe=50_000`. In a configuration they are the keys of a table with a `name`.
In Python they are the arguments of the class. A size that is true or not is written as its bare
name. `as=LABEL` gives the answers another name, on the command line and in a configuration.

Every class also takes `epsilon`, `releases`, `intrusions`, `budget`, `ledger` and `coins`.
The proofs of [addressing](guarantees/addressing.md) and [composition](guarantees/composition.md)
are about all that count users.
"""

ANSWERS = """## Tables of answers

`to_arrow()` and `to_pandas()` of a release, and the rows of `run --json`, have these columns. A
table of windows has `start`, `end` and `complete` before them.

{columns}

To sum or average answers, take `estimate` or `total()`; `value` is for reading.
[Why](python.md#sums-and-averages).

The [service](service.md) stores and exports these columns:

{fields}
"""


def page():
    """The whole page."""
    each = [section(kind) for kind in kinds().values()]
    answers = ANSWERS.format(columns=columns(COLUMNS), fields=columns(FIELDS))
    return "\n".join([HEAD, *each, answers])


def section(kind):
    """What a statistic answers, and what it takes."""
    example = EXAMPLES[kind.entry.name]
    plan = Specification.from_text(example).sizes.plan(Request(Fraction(1)))
    proofs = ", ".join(f"[{name}](guarantees/{name}.md)" for name in plan.proofs)
    parts = [
        f"## `{kind.entry.name}`",
        f"{kind.entry.summary}. In Python `pp.{kind.__name__}`.",
        f"`{example}` asks: {plan.question}",
        "\n".join(
            [
                f"* Unit of answers: {plan.unit}",
                f"* `plan` tells errors as a share of: {plan.measure}",
                f"* Proofs: {proofs}",
                *(f"* Of the guarantee: {condition}" for condition in plan.conditions),
            ]
        ),
        table(("size", "form", "meaning", "default"), map(row, kind.entry.sizes.fields().values())),
    ]
    asked = list(kind.entry.query.fields().values())
    if asked:
        names = ("question", "form", "meaning")
        parts += [
            "A release may be asked this; everything that there is unless told:",
            table(names, (row(one)[:3] for one in asked)) + "\n",
        ]
    else:
        parts.append("A release has one question.\n")
    return "\n\n".join(parts)


def row(field):
    """One size, as people meet it."""
    return f"`{field.name}`", code(field.form) or "true or not", field.says, default(field)


def default(field):
    """What holds where nothing is given."""
    if field.required:
        return "needed"
    if field.default is None:
        return ""
    if isinstance(field.default, tuple):
        return code(":".join(f"{end:_}" for end in field.default))
    if isinstance(field.default, bool | str):
        return code(str(field.default).lower())
    return code(f"{field.default:_}")


def columns(named):
    """Columns with their types and meanings."""
    return table(
        ("column", "type", "meaning"),
        ((f"`{name}`", str(kind), says) for name, (kind, says) in named.items()),
    )


def code(text):
    return f"`{text}`" if text else ""


def table(head, rows):
    """A table of Markdown."""
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(one)} |" for one in cells)


if __name__ == "__main__":
    PAGE.write_text(page())
