"""Mutants that no test is to find: they do the same, or as well. They are not counted."""

from __future__ import annotations

_RANGE = "no exponent comes near the end of the range"

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "cells/bits.py",
        "update",
        "touched = np.zeros(-(-self.cells // 63), np.uint64)",
    ): "there is room for a few cells more, which no slot names",
    (
        "cells/law.py",
        "",
        "_UNIT = 2 << 24",
    ): "weights of twice the size are as private, and no less accurate",
    (
        "guarantee.py",
        "",
        "_DIGITS = Context(prec=60, rounding=ROUND_HALF_EVEN, Emax=999_999, Emin=~999_999)",
    ): _RANGE,
    (
        "guarantee.py",
        "_rounded",
        "rounding = Context(prec=digits, rounding=direction, Emax= 1000000, Emin=-999_999)",
    ): _RANGE,
    (
        "statistics/grid.py",
        "_long",
        "while (end := self._reached(following)) < second:",
    ): "where a multiple is first shown, the clock shows no less",
    (
        "statistics/together.py",
        "_check_spending",
        "if len(found) is not sum(len(one.answers()) for one in lost.values()):",
    ): "whole numbers up to 256 are one object each, and there are never more names than answers",
}
"""The reasons, by the module, the function or class, and the line as the mutant has it."""
