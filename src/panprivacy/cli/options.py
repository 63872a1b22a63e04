"""What several commands check of their arguments."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import available_timezones

from panprivacy.errors import PlanError


def check_output() -> None:
    """Refuse to count for nobody."""
    if sys.stdout is None:
        message = "standard output is closed: the answers would be lost"
        raise PlanError(message)


def check_picture(plot: Path | None) -> None:
    """Refuse a picture that could not be written, before anything is counted."""
    if plot is None:
        return
    if plot.suffix.lower() != ".png":
        message = "--plot writes PNG: name a file that ends in .png"
        raise PlanError(message)
    if find_spec("matplotlib") is None:  # it is slow to import, and needed at the end only
        message = "--plot needs Matplotlib: pip install 'panprivacy[plot]'"
        raise PlanError(message)
    try:
        plot.parent.mkdir(parents=True, exist_ok=True)
        plot.open("ab").close()
    except OSError as error:
        message = f"--plot cannot write {plot}: {error.strerror}"
        raise PlanError(message) from None


def zones_like(incomplete: str) -> list[str]:
    """The names of time zones that begin so, for the shell."""
    return sorted(name for name in available_timezones() if name.startswith(incomplete))
