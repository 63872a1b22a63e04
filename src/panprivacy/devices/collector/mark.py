"""A file beside the task that says which store belongs to it, and whether an answer was given.

Without it, a collector whose store was deleted would begin anew, and a store of which an older copy
was put back would answer again, from other reports.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from panprivacy.errors import PlanError
from panprivacy.ground.files import read_at_most, replace_file
from panprivacy.service.outgoing.records import StoreError

_MOST_BYTES: Final = 1 << 26
REMEDY: Final = (
    "put it back as it was, or mend --store; or, if no answer was given, begin anew with "
    "--fresh: a second answer tells more than was promised"
)
"""Remedy for a store that is not the one of the mark."""


class _Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    store: str
    answer: str | None


class Mark:
    """Knows the store of a collector by its random number, and its answer by a digest.

    Args:
        path: path of the file.
        fresh: begin without what is in it; it stays there until the next `note`.

    Raises:
        PlanError: the file is damaged.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path, *, fresh: bool) -> None:
        self._path = path
        self._known: _Known | None = None
        if path.exists() and not fresh:
            try:
                self._known = msgspec.json.decode(read_at_most(path, _MOST_BYTES), type=_Known)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                message = f"{path} is damaged, so it does not say which store is the right one: "
                raise PlanError(message + REMEDY) from None

    @property
    def is_there(self) -> bool:
        """Whether a store was noted."""
        return self._known is not None

    def fits(self, store: bytes, answer: bytes | None) -> bool:
        """Return whether this is the noted store, with the released answer if there was one."""
        known = self._known
        if known is None or known.store != store.hex():
            return known is None
        return known.answer is None or _Known(known.store, _digest(answer)) == known

    def note(self, store: bytes, answer: bytes | None) -> None:
        """Write down which store it is, and what it has answered; on the disk when this returns.

        Raises:
            StoreError: it cannot be written.
        """
        found = _Known(store.hex(), _digest(answer))
        if found == self._known:
            return
        try:
            replace_file(self._path, msgspec.json.encode(found))
        except OSError as error:
            message = f"{self._path.name} beside the task cannot be written: {error.strerror}"
            raise StoreError(message) from None
        self._known = found


def _digest(answer: bytes | None) -> str | None:
    return None if answer is None else sha256(answer).hexdigest()
