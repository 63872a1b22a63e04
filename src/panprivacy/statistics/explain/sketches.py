"""Explanation of a published table: what it is, and what an outsider reads off it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from panprivacy.privacy.guarantee import (
    float_above,
    float_below,
    format_rounded_down,
    format_rounded_up,
)
from panprivacy.statistics.overlaps.sketch import Sketch

_EVEN = Fraction(1, 2)


def sketch_document(sketch: Sketch) -> dict[str, object]:
    """Return what is known of a sketch as values of JSON; every bound is rounded up."""
    outsider = sketch.guarantee.unseen_loss
    low, high = outsider.posterior(_EVEN)
    return {
        "sketch": {
            **sketch.known(),
            "bytes": len(sketch.to_bytes()),
            "levels": sketch.layout.levels,
            "universe": sketch.layout.universe,
            "key": sketch.key,
            "made_by": sketch.front.made_by,
        },
        "guarantee": sketch.guarantee.document(),
        "outsider": {
            **outsider.document(),
            "before": float(_EVEN),
            "low": float_below(low),
            "high": float_above(high),
        },
    }


def explain_sketch(sketch: Sketch) -> Iterator[tuple[str, str]]:
    """Yield headings and sentences about a sketch, for people."""
    front, layout, outsider = sketch.front, sketch.layout, sketch.guarantee.unseen_loss
    known = [front.stream, None if front.group is None else f"group {front.group}"]
    names = ", ".join([front.statistic, *(one for one in known if one is not None)])
    users = "hashed" if layout.universe is None else f"of {layout.universe:,} possible users"
    levels = f" in {layout.levels} levels" if layout.levels > 1 else ""
    shards = f", of {len(sketch.shards)} shards" if sketch.shards else ""
    yield "sketch", f"{names}: {layout.cells:,} noisy bits, {users}{levels}{shards}; it is public"
    if front.start is not None and front.end is not None:
        yield "window", f"{front.start:%Y-%m-%d %H:%M:%S} to {front.end:%Y-%m-%d %H:%M:%S} UTC"
    yield "guarantee", f"{sketch.guarantee}"
    low, high = outsider.posterior(_EVEN)
    lowest, highest = format_rounded_down(100 * low, 3), format_rounded_up(100 * high, 3)
    where = "the key is in the file" if sketch.key else "the cell of a user is their number"
    read = (
        f"{where}, so everybody can compute the cell of a person, and look at its bit: that "
        f"changes the odds of any fact about a user by at most {outsider.says_of_odds()}. Who gave "
        f"it 50 % before gives it {lowest} % to {highest} % then"
    )
    yield "outsider", read
    poisoning = (
        "who may send ids can choose ids of chosen cells, and so change numbers: that reveals "
        "nobody"
    )
    yield "poisoning", poisoning
