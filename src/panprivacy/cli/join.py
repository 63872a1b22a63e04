"""`panprivacy join`: published tables of shards of different users, as one sketch of a window."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from panprivacy.cli.overlap import read_sketch
from panprivacy.errors import InputError, PlanError
from panprivacy.statistics.overlaps.joining import join as join_sketches


def join(
    shards: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=FILE...",
            help="The sketch of each shard, under a name that is the same in every window.",
        ),
    ],
    sketch: Annotated[
        Path, typer.Option(metavar="FILE", help="The new file; one that is there is kept.")
    ],
) -> None:
    """Join published tables of shards of different users to one sketch of their window."""
    named = _named(shards)
    joined = join_sketches({name: read_sketch(file) for name, file in named.items()})
    try:
        joined.write(sketch)
    except FileExistsError:
        message = f"--sketch: there is {sketch} already: name another, or remove it"
        raise PlanError(message) from None
    except OSError as error:
        message = f"--sketch cannot write {sketch}: {error.strerror}"
        raise PlanError(message) from None
    sys.stderr.write(
        f"panprivacy: joined {len(named)} shards to {sketch}; a user of one of them loses no more\n"
    )


def _named(shards: Sequence[str]) -> dict[str, Path]:
    """Return the file of each shard.

    Raises:
        InputError: one has no name, or two have the same.
    """
    found: dict[str, Path] = {}
    for one in shards:
        name, equals, file = one.partition("=")
        if not (name and equals and file):
            message = "name each shard, such as eu=monday-eu.sketch us=monday-us.sketch"
            raise InputError(message)
        if name in found:
            message = f"two shards are called {name}: each needs a name of its own"
            raise InputError(message)
        found[name] = Path(file)
    return found
