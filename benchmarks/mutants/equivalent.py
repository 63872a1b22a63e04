"""Mutants that no test can find, with the reason: they are set aside."""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str, str], str] = {}
"""By the module, the function or class, and the line as the mutant has it."""
