"""Several threads for one step, of which nothing stays once it is over."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from threading import Thread

from panprivacy.ground.kernels import wipe_stack


def cores() -> int:
    """Return the number of processor cores of this process; `taskset` can reduce it."""
    return len(os.sched_getaffinity(0))


def side_by_side(works: Sequence[Callable[[], None]]) -> None:
    """Run several functions at once, the first of them in this thread, and wait for all.

    Each other thread overwrites its stack before it ends. All have the same name, because Python
    would number them, and the number of the last one tells how many there have been.

    Raises:
        BaseException: what one of them raised.
    """
    raised: list[BaseException] = []

    def done(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is raised where the caller sees it
            raised.append(error)
        finally:
            wipe_stack()

    started = []
    try:
        for work in works[1:]:
            thread = Thread(target=done, args=(work,), name="panprivacy")
            try:
                thread.start()
            except RuntimeError:  # the system may allow no more
                work()
            else:
                started.append(thread)
        works[0]()
    finally:
        for thread in started:
            thread.join()
    if raised:
        raise raised[0]
