"""View of an intruder: a synthetic state of a plan, beside that of an ordinary table.

It contains nothing of the state of the service. Both are filled with a synthetic population, of the
size of the newest answer, so their distribution is a function of the released answers.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from panprivacy.intake.programs.pictures import draw_states
from panprivacy.service.outgoing.records import Published
from panprivacy.statistics.abilities import unit_of_answers
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.release import Answers, Lost, Name, Release


def answers_of(rows: Sequence[Published], plan: Plan) -> Answers:
    """Return the answers of a release, from its rows.

    Args:
        rows: rows of one statistic, and of one group if there are any.
        plan: the plan of the statistic.
    """
    return Answers(_answer(row, plan) for row in rows)


def pictures(rows: Sequence[Published], plan: Plan) -> tuple[bytes, bytes]:
    """Return an ordinary table and a state of the plan as pictures in PNG, with fresh coins.

    Args:
        rows: the newest answers of one statistic, and of one group if there are any.
        plan: the plan of the statistic.
    """
    figures = [Figure(figsize=(4, 4.3), layout="constrained", dpi=150) for _ in range(2)]
    ordinary, private = (one.subplots() for one in figures)
    draw_states(ordinary, private, plan, answers_of(rows, plan))
    return _png(figures[0]), _png(figures[1])


def _answer(row: Published, plan: Plan) -> Release | Lost:
    parts = (part.partition("=") for part in row.arguments.split(",") if part)
    arguments = tuple((name, _number(number)) for name, _, number in parts)
    name = Name(row.statistic, row.question, arguments, row.group)
    if row.value is None or row.low is None or row.high is None:
        return Lost((name,))
    numbers = row.value, row.low, row.high, row.confidence, row.epsilon
    measured = (
        math.nan if number is None else number
        for number in (row.estimate, row.standard_error, row.bias)
    )
    unit = unit_of_answers(plan, row.question)
    return Release(*numbers, (), name, unit, row.note, *measured)


def _number(text: str) -> int | float:
    """Return a number of a question: a state is whole, and a share is not."""
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def _png(figure: Figure) -> bytes:
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    return drawn.getvalue()
