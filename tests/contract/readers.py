"""Which statistics try every form of a batch: one for each way in which a batch is read.

Ids are read in one place, and the array that comes out of it meets one piece of compiled code: that
of the addressing, or, where the slot is the id, that of the cells. Deltas meet that of the cells.
So what a form of ids or deltas can break is seen with one statistic for each of these. All others
try a few forms, which no reader of its own would take.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable

import pytest

from panprivacy.tables.addressing import Direct

from .cases import CASES, Case


def reader_of_ids(case: Case) -> Hashable:
    """The code that takes the ids of a case."""
    addressing = type(case.plan.address(bytes(case.plan.key_bytes)))
    cells = type(case.plan.table) if addressing is Direct else None
    return addressing._piece, cells and cells.update


def reader_of_deltas(case: Case) -> Hashable:
    """The code that takes the deltas of a case, and what it has to tell apart."""
    code = getattr(type(case.plan.table), "update", None)
    return code, case.rounds, len({*case.deltas}) > 1


def each_form(
    forms: Collection[str],
    few: Collection[str],
    reader: Callable[[Case], Hashable],
    *,
    chosen: Callable[[Case], bool] = lambda case: True,
) -> Callable[[Callable[[Case, str], None]], pytest.MarkDecorator]:
    """Run a test with every form for one case of each reader, and with few for the others.

    Of a reader's cases, that is one with as many different deltas as any: rows that have changed
    places show there. A case is one test, and a failure says with which form: reporting a test
    takes longer than most of these.

    Args:
        forms: names of them.
        few: those that every statistic tries.
        reader: the code that a form may break.
        chosen: which cases there are.
    """
    first: dict[Hashable, Case] = {}
    pairs = [
        (case, forms if first.setdefault(reader(case), case) is case else few)
        for case in sorted(filter(chosen, CASES), key=lambda case: -len({*case.deltas}))
    ]

    def decorated(test):
        def tried(case, forms):
            for form in forms:
                try:
                    test(case, form)
                except BaseException as error:
                    error.add_note(f"of this form: {form}")
                    raise

        tried.__module__, tried.__doc__ = test.__module__, test.__doc__
        names = [case.name for case, _ in pairs]
        return pytest.mark.parametrize(("case", "forms"), pairs, ids=names)(tried)

    return decorated
