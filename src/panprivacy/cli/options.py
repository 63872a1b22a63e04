"""What several commands check of their arguments."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import available_timezones

from panprivacy.errors import PlanError


def check_output(lost: str = "answers") -> None:
    """Refuse to work for nobody: what is printed once would be lost."""
    if sys.stdout is None:
        message = f"standard output is closed: the {lost} would be lost"
        raise PlanError(message)


def write_new(path: Path, data: bytes, *, mode: int = 0o600, undo: ExitStack | None = None) -> None:
    """Write a new file.

    Args:
        path: of the file.
        data: all of it.
        mode: who may do what with it; its owner alone may read it unless told.
        undo: removes the file where the command fails later.

    Raises:
        PlanError: it is there already, or cannot be written.
    """
    try:
        with open(path, "xb", opener=partial(os.open, mode=mode)) as file:
            if undo is not None:
                undo.callback(path.unlink, missing_ok=True)
            file.write(data)
    except FileExistsError:
        message = f"{path} is there already: name another file, or remove it first"
    except (OSError, ValueError) as error:
        message = f"cannot write {path}: {getattr(error, 'strerror', None) or error}"
    else:
        return
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
