"""Audits many subjects: every product at one epsilon, and every control."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
from collections.abc import Iterator, Sequence
from fractions import Fraction
from multiprocessing import get_context
from typing import Final

from panprivacy.audit.suite.controls import CONTROLS
from panprivacy.audit.suite.products import products
from panprivacy.audit.suite.subject import Losses, Row, Subject

_CONTROLS: Final = {control.name: control for control in CONTROLS}
_PR_SET_PDEATHSIG: Final = 1


def known_names() -> list[str]:
    """The names of everything that can be audited."""
    return [*_products(Fraction(1)), *_CONTROLS]


def rows(names: Sequence[str], epsilon: Fraction) -> Iterator[Row]:
    """The audits of one or more `known_names`, in order, on all processors.

    The epsilon is that of products; controls have the one for which their loss is known.

    Raises:
        KeyError: there is no subject of a name.
        PlanError: no product can be planned with this epsilon.
    """
    chosen = [_subject(name, epsilon) for name in names]
    processes = min(len(chosen), os.cpu_count() or 1)
    if processes == 1:
        yield from map(Row, chosen, (subject.losses() for subject in chosen))
        return
    with get_context("spawn").Pool(processes, _begin) as pool:  # leaving it ends the processes
        losses = pool.imap(_losses, [(name, epsilon) for name in names])
        yield from map(Row, chosen, losses)


def _subject(name: str, epsilon: Fraction) -> Subject:
    return _CONTROLS[name] if name in _CONTROLS else _products(epsilon)[name]


@functools.cache
def _products(epsilon: Fraction) -> dict[str, Subject]:
    return {product.name: product for product in products(epsilon)}


def _losses(named: tuple[str, Fraction]) -> Losses:
    """The losses of one subject; its functions cannot be sent from process to process."""
    return _subject(*named).losses()


def _begin() -> None:
    """Leave interrupts to the first process, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
