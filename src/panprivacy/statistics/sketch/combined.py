"""The slices of one table, each published by the shard that has it, as one sketch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec
import numpy as np

from panprivacy.errors import InputError
from panprivacy.statistics.overlaps.joining import joined
from panprivacy.statistics.overlaps.sets import tables_of
from panprivacy.statistics.overlaps.sketch import Sketch
from panprivacy.statistics.reading import Reading
from panprivacy.statistics.release import Release
from panprivacy.statistics.sketch.plan import OverlapPlan
from panprivacy.statistics.sketch.released import SketchRelease
from panprivacy.tables.slices import Slice


def read_slices(
    plan: OverlapPlan, slices: Sequence[Slice], bodies: Sequence[bytes]
) -> list[Sketch]:
    """Return the sketches of the slices of a table.

    Args:
        plan: of the table.
        slices: the slices.
        bodies: the bytes of the sketch of each.

    Raises:
        InputError: one is none of its slice, or they have different keys.
    """
    sketches = [Sketch.read(body) for body in bodies]
    for slice_, one in zip(slices, sketches, strict=True):
        table = np.frombuffer(one.table, np.uint8)
        expected = Sketch.of(plan, bytes.fromhex(one.key), table, plan.slice_layout(slice_))
        if msgspec.structs.replace(one.front, made_by=expected.front.made_by) != expected.front:
            message = "a contribution is damaged: its table is none of its slice"
            raise InputError(message)
    if len({one.key for one in sketches}) > 1:
        message = "the slices have different addressing keys: make all with the same key="
        raise InputError(message)
    return sketches


def joined_slices(
    reading: Reading, slices: Sequence[Slice], sketches: Sequence[Sketch], confidence: float
) -> SketchRelease:
    """Return the release of a table of which each slice was published by itself.

    Guarantee: a function of published tables. [docs/guarantees/sketches.md]

    Args:
        reading: of the release of the table.
        slices: the slices of the table, each once.
        sketches: that of each slice.
        confidence: probability that the interval covers the truth.
    """
    digits = len(str(slices[0].shards - 1))
    named = sorted(
        (f"{slice_.shard:0{digits}d}", one) for slice_, one in zip(slices, sketches, strict=True)
    )
    sketch = joined(named, routing=slices[0].key)
    ones = [one.patterns().counts[:, 1] for one in tables_of([sketch])]
    release = cast("Release", reading.answer(np.sum(ones, axis=0), confidence))
    return SketchRelease.of(release, sketch)
