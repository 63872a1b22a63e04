"""Results of long searches, stored below the user's cache folder for other processes.

Each is a small file with a question and its answer. A question has public sizes, epsilon, and the
error to reach: nothing of any data. A file that is broken or answers another question is ignored,
and so is a folder that cannot be read or written.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import numpy as np

from panprivacy.errors import InputError
from panprivacy.ground.caching import PACKAGE, folder_name, sources, user_folders, writable_folder
from panprivacy.ground.files import in_turn, read_at_most, replace_file

_PLANNING = "continual", "ground", "privacy", "statistics", "tables"
"""Folders of the package whose sources decide which plan is found."""

_SECONDS_UNSTORED = 1.0
_MOST_BYTES = 1 << 14


def stored_or_searched(
    question: Mapping[str, object],
    search: Callable[[], str | None],
    holds: Callable[[str], bool],
    unstored: float = _SECONDS_UNSTORED,
) -> str | None:
    """Return the stored result of a search, or else that of `search`.

    Args:
        question: texts and numbers that decide the result, beside the sources.
        search: searches for the result; None where there is none.
        holds: whether a stored result can be right.
        unstored: a search of fewer seconds is not stored.
    """
    asked, digest = json.dumps(question), planning_digest()
    name = hashlib.blake2b(asked.encode(), digest_size=16).hexdigest()
    for base in user_folders():
        with suppress(OSError, InputError, ValueError, LookupError, TypeError):
            path = base / folder_name("plans", digest) / name
            stored = json.loads(read_at_most(path, _MOST_BYTES))
            found: str | None = stored["found"]
            if stored["question"] == asked and (found is None or holds(found)):
                return found
    start = time.monotonic()
    found = search()
    if time.monotonic() - start >= unstored:
        folder = writable_folder(user_folders(), "plans", digest)
        if folder is not None:
            stored = json.dumps({"question": asked, "found": found})
            with suppress(OSError), in_turn(folder):  # without room for it there is none
                replace_file(folder / name, stored.encode())
    return found


@functools.cache
def planning_digest() -> str:
    """Return a digest of the sources that plan, of NumPy's version, and of the kind of machine."""
    digest = hashlib.blake2b(digest_size=8)
    digest.update(f"{np.__version__} {platform.machine()} {np.finfo(float).nmant}".encode())
    for folder in _PLANNING:
        for source in sources(PACKAGE / folder):
            digest.update(b"%d " % len(source) + source)
    return digest.hexdigest()
