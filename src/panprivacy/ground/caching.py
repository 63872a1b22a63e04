"""Folders below which compiled kernels and the results of searches outlive a process."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from panprivacy._version import VERSION

PACKAGE = Path(__file__).parents[1]
_SECONDS_UNUSED = 24 * 60 * 60


def user_folders() -> Iterator[Path]:
    """Yield the cache folders of systemd, the desktop, and the home directory."""
    for base, *below in (
        (os.environ.get("CACHE_DIRECTORY", "").split(":")[0],),
        (os.environ.get("XDG_CACHE_HOME", ""), "panprivacy"),
        (os.path.expanduser("~"), ".cache", "panprivacy"),  # noqa: PTH111 - that one may raise
    ):
        if os.path.isabs(base) and os.path.isdir(base):  # noqa: PTH112, PTH117 - "" is no path
            yield Path(base, *below)


def folder_name(kind: str, digest: str) -> str:
    """Return the name of the folder of this version and digest."""
    return f"{kind}-{VERSION}-{digest}"


def writable_folder(bases: Iterable[Path], kind: str, digest: str) -> Path | None:
    """Return the folder of this version and digest, in the first base that can be written.

    Folders of the same kind that no process has used for a day are removed.
    """
    for base in bases:
        folder = base / folder_name(kind, digest)
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()  # this also dates the folder
            _remove_unused(base, kind, folder)
            return folder
    return None


def _remove_unused(base: Path, kind: str, used: Path) -> None:
    long_ago = time.time() - _SECONDS_UNUSED
    for folder in base.glob(f"{kind}-*"):
        with suppress(OSError):  # another process may remove it at the same time
            if folder != used and folder.stat().st_mtime < long_ago:
                shutil.rmtree(folder)


def sources(package: Path) -> Iterator[bytes]:
    """Yield the content of all source files below a folder, in order."""
    for folder, folders, names in os.walk(package):
        folders.sort()
        for name in sorted(one for one in names if one.endswith(".py")):
            path = os.path.join(folder, name)  # noqa: PTH118 - a third of the time of Path
            with open(path, "rb") as file:  # noqa: PTH123 - the same
                yield file.read()
