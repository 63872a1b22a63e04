"""Published tables of shards of different users, joined to one sketch of a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from panprivacy.errors import InputError
from panprivacy.statistics.overlaps.sets import KnownTables
from panprivacy.statistics.overlaps.sketch import (
    MOST_SHARDS,
    Sketch,
    SketchShard,
    is_shard_name,
)

_WINDOW: Final = "start", "end"
_DESIGN: Final = "key", "levels", "absent", "present", "epsilon", "unseen", "covers"
_SAID: Final = {
    "key": "another addressing key",
    "start": "another window",
    "end": "another window",
}


def join(shards: Mapping[str, Sketch]) -> Sketch:
    """Join the published tables of shards of different users to one sketch of their window.

    >>> import panprivacy as pp
    >>> key = b"public, but the same for all windows"
    >>> def shard(users):
    ...     visitors = pp.OverlapSketch(epsilon=4, expected=20_000, key=key)
    ...     visitors.update(users)
    ...     return visitors.release().sketch
    >>> monday = pp.join({"eu": shard(range(20_000)), "us": shard(range(20_000, 40_000))})
    >>> tuesday = pp.join({"eu": shard(range(10_000)), "us": shard(range(20_000, 40_000))})
    >>> rate = pp.overlap(monday, tuesday).return_rate(confidence=1 - 1e-9)  # 30,000 of 40,000
    >>> 0.5 < rate.low < 0.75 < rate.high < 1
    True

    Guarantee: a function of public tables; it costs nothing. A user whose rows are all in one shard
    loses what the sketch says; a user of g shards loses that in each of them.
    [tests/exact/test_sketches.py, docs/guarantees/sketches.md]

    Accuracy: the errors of shards are independent, so their variances add up. A user who is in two
    shards of a window counts twice.

    Args:
        shards: the sketch of each shard, by its name. Each window needs the same shards.

    Raises:
        InputError: they are of other windows or designs, or one of them is joined already.
    """
    named = sorted(shards.items())
    _check_names([name for name, _ in named])
    first = named[0][1]
    known = KnownTables()
    for place, (name, one) in enumerate(named):
        _check_alike(named[0][0], first, name, one)
        copied = known.add(place, one)
        if copied is not None:
            message = f"shard {name} is shard {named[copied][0]} once more: its users would count "
            message += "twice"
            raise InputError(message)
    return joined([(name, one) for name, one in named], routing=None)


def joined(shards: Sequence[tuple[str, Sketch]], *, routing: bytes | None) -> Sketch:
    """Return the sketch of shards that go together, sorted by their names.

    Args:
        shards: names and sketches.
        routing: key by which users were dealt to them; None if no cluster did.
    """
    fronts = [one.front for _, one in shards]
    first = fronts[0]
    several = tuple(
        SketchShard(name, front.cells_per_level, front.universe)
        for (name, _), front in zip(shards, fronts, strict=True)
    )
    users = [front.universe for front in fronts if front.universe is not None]
    front = msgspec.structs.replace(
        first,
        cells_per_level=sum(one.cells_per_level for one in several),
        universe=sum(users) if users else None,
        shards=several,
        routing=msgspec.UNSET if routing is None else routing.hex(),
        **{
            field: getattr(first, field)
            if all(getattr(one, field) == getattr(first, field) for one in fronts)
            else None
            for field in ("stream", "group")
        },
    )
    return Sketch(front, b"".join(one.table for _, one in shards))


def _check_names(names: Sequence[str]) -> None:
    if not 2 <= len(names) <= MOST_SHARDS:
        message = f"join 2 to {MOST_SHARDS} sketches, each of a shard with other users"
        raise InputError(message)
    if not all(is_shard_name(name) for name in names):
        message = "a shard needs a name of 1 to 64 bytes without line breaks"
        raise InputError(message)


def _check_alike(known: str, first: Sketch, name: str, one: Sketch) -> None:
    """Refuse a sketch that is not of the window and the design of the first one."""
    if one.shards:
        message = f"shard {name} is joined of shards already: join the sketches that it was made of"
        raise InputError(message)
    if (one.front.universe is None) != (first.front.universe is None):
        message = f"shard {name} has hashed cells, or a universe, and shard {known} has not"
        raise InputError(message)
    for field in (*_WINDOW, *_DESIGN):
        if getattr(one.front, field) != getattr(first.front, field):
            said = _SAID.get(field, f"another {field}, so its noise or its price is another one")
            message = f"shard {name} has {said} than shard {known}"
            if field == "key":
                message += ": make the sketches of all shards and windows with the same key="
            raise InputError(message)
