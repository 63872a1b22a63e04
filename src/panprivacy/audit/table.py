"""The table of all audits: every product at one epsilon, and every control."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context

from panprivacy.audit.controls import CONTROLS
from panprivacy.audit.products import products
from panprivacy.audit.subjects import Losses, Row, Subject


def subjects(epsilon: Fraction) -> dict[str, Subject]:
    """Everything that is audited, by name.

    Args:
        epsilon: of the products; controls have the one for which their loss is known.
    """
    return {subject.name: subject for subject in (*products(epsilon), *CONTROLS)}


def rows(names: Sequence[str], epsilon: Fraction) -> Iterator[Row]:
    """The audits of those named, in order, on all processors.

    Raises:
        KeyError: there is no subject of a name.
    """
    found = subjects(epsilon)
    chosen = [found[name] for name in names]
    processes = min(len(chosen), os.cpu_count() or 1)
    if processes == 1:
        losses: Iterator[Losses] = (subject.losses() for subject in chosen)
        yield from map(Row, chosen, losses)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        losses = pool.map(_losses, names, [epsilon] * len(chosen))
        yield from map(Row, chosen, losses)


def _losses(name: str, epsilon: Fraction) -> Losses:
    """The losses of one subject; its functions cannot be sent from process to process."""
    return subjects(epsilon)[name].losses()
