"""The release of an `OverlapSketch`: the number of users, and the table that was published."""

from __future__ import annotations

from dataclasses import dataclass, fields

from panprivacy.statistics.overlaps.sketch import Sketch
from panprivacy.statistics.release import Release


@dataclass(frozen=True, slots=True, repr=False)
class SketchRelease(Release):
    """The number of users of a published table, with the table.

    Args:
        sketch: the published table; `value`, `low` and `high` are functions of it, and `counts` are
            its bytes.
    """

    sketch: Sketch | None = None

    @classmethod
    def of(cls, release: Release, sketch: Sketch) -> SketchRelease:
        """Return a release with the table that it was read from."""
        given = {one.name: getattr(release, one.name) for one in fields(Release)}
        return cls(**{**given, "counts": tuple(sketch.table)}, sketch=sketch)

    def __repr__(self) -> str:
        """Return the answer, and what the table is known by."""
        return f"{Release.__repr__(self)[:-1]}, {self.sketch!r}>"
