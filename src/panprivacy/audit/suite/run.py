"""Audits many subjects: every product at one epsilon, and every control."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from panprivacy.audit.controls import CONTROLS
from panprivacy.audit.exact.children import end_with_parent
from panprivacy.audit.subject import Losses, Row, Subject
from panprivacy.audit.suite.products import products
from panprivacy.errors import PlanError

_CONTROLS: Final = {control.name: control for control in CONTROLS}


def known_names() -> list[str]:
    """The names of everything that can be audited."""
    return [*_products(Fraction(1)), *_CONTROLS]


def rows(names: Sequence[str], epsilon: Fraction) -> Iterator[Row]:
    """The audits of one or more `known_names` or `module:variable`, in order, on all processors.

    The epsilon is that of products; controls have the one for which their loss is known.

    Raises:
        KeyError: there is no subject of a name.
        PlanError: no product can be planned with this epsilon, or a variable is no subject.
    """
    return _rows(names, [_subject(name, epsilon) for name in names], epsilon)


def _rows(names: Sequence[str], chosen: Sequence[Subject], epsilon: Fraction) -> Iterator[Row]:
    processes = min(len(chosen), os.cpu_count() or 1)
    if processes == 1:
        yield from (subject.row() for subject in chosen)
        return
    with get_context("spawn").Pool(
        processes, _begin, [os.getpid()]
    ) as pool:  # leaving it ends the processes
        found = pool.imap(_found, [(name, epsilon) for name in names])
        yield from (Row(subject, *each) for subject, each in zip(chosen, found, strict=True))


def _subject(name: str, epsilon: Fraction) -> Subject:
    if ":" in name:
        return _own(name)
    return _CONTROLS[name] if name in _CONTROLS else _products(epsilon)[name]


def _own(name: str) -> Subject:
    """A subject in a module of the user's, as `module:name`."""
    module, _, variable = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(import_module(module), variable, None)
    except ImportError:
        found = None
    if not isinstance(found, Subject):
        message = f"there is no panprivacy.audit.Subject at {name}: write it as module:variable"
        raise PlanError(message)
    return found


@functools.cache
def _products(epsilon: Fraction) -> dict[str, Subject]:
    return {product.name: product for product in products(epsilon)}


def _found(named: tuple[str, Fraction]) -> tuple[Losses, str]:
    """Return the losses and the refusal of a subject; functions cannot cross processes."""
    row = _subject(*named).row()
    return row.losses, row.refused


def _begin(parent: int) -> None:
    """Leave interrupts to the first process, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)
