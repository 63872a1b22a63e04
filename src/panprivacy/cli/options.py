"""Checks of arguments that several commands share."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from zoneinfo import available_timezones

from panprivacy.errors import InputError, PlanError
from panprivacy.ground.files import read_at_most, write_new_file
from panprivacy.statistics.plots import check_matplotlib

_MOST_KEY = 1 << 12


def check_output(lost: str = "answers") -> None:
    """Check that there is standard output: answers that are printed once would be lost."""
    if sys.stdout is None:
        message = f"standard output is closed: the {lost} would be lost"
        raise PlanError(message)


def write_new(path: Path, data: bytes, *, mode: int = 0o600, undo: ExitStack | None = None) -> None:
    """Write a new file.

    Args:
        path: path of the file.
        data: the complete content.
        mode: its permissions; by default only its owner may read and write it.
        undo: removes the file if the command fails later.

    Raises:
        PlanError: it exists, or cannot be written.
    """
    try:
        write_new_file(path, data, mode)
    except FileExistsError:
        message = f"{path} is there already: name another file, or remove it first"
    except FileNotFoundError:
        message = f"cannot write {path}: there is no folder {path.parent}; make it first"
    except (OSError, ValueError) as error:
        message = f"cannot write {path}: {getattr(error, 'strerror', None) or error}"
    else:
        if undo is not None:
            undo.callback(path.unlink, missing_ok=True)
        return
    raise PlanError(message)


def read_key(path: Path) -> bytes:
    """Read the addressing key of `--key`.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return read_at_most(path, _MOST_KEY)
    except OSError as error:
        message = f"--key: {path}: {error.strerror}"
        raise InputError(message) from None


def check_picture(plot: Path | None) -> None:
    """Check that a picture can be written, before anything is counted."""
    if plot is None:
        return
    if plot.suffix.lower() != ".png":
        message = "--plot writes PNG: name a file that ends in .png"
        raise PlanError(message)
    check_matplotlib("--plot")
    try:
        if not plot.parent.is_dir():
            message = f"--plot cannot write {plot}: there is no folder {plot.parent}; make it first"
            raise PlanError(message)
        was_there = plot.exists()
        plot.open("ab").close()
        if not was_there:  # an error later leaves no empty file
            plot.unlink()
    except OSError as error:
        message = f"--plot cannot write {plot}: {error.strerror}"
        raise PlanError(message) from None


def zones_like(incomplete: str) -> list[str]:
    """Return the names of time zones with this prefix, for shell completion."""
    return sorted(name for name in available_timezones() if name.startswith(incomplete))
