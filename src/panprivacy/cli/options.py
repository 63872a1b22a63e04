"""What several commands check of their arguments."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import available_timezones

from panprivacy.errors import PlanError


def check_png(plot: Path) -> None:
    """Refuse the name of a picture that is not PNG."""
    if plot.suffix.lower() != ".png":
        message = "--plot writes PNG: name a file that ends in .png"
        raise PlanError(message)


def zones_like(incomplete: str) -> list[str]:
    """The names of time zones that begin so, for the shell."""
    return sorted(name for name in available_timezones() if name.startswith(incomplete))
