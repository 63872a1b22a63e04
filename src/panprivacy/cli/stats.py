"""`panprivacy stats`: the available statistics, and their syntax."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Annotated

import typer

from panprivacy.statistics.catalogue import StatisticType, kind_of, kinds
from panprivacy.statistics.records import Field

_WIDTH = 100


def stats(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Of one statistic.")] = None,
) -> None:
    """List what can be counted, or say how one statistic is written."""
    if name is not None:
        _print_statistic(kind_of(name))
        return
    longest = max(map(len, kinds()))
    for kind in kinds().values():
        typer.echo(f"{kind.entry.name:<{longest}}  {kind.entry.summary}.")
    typer.echo("\npanprivacy stats NAME says how one is written.")


def _print_statistic(kind: StatisticType) -> None:
    sizes = kind.entry.sizes.fields().values()
    needed = ",".join(f"{one.name}={one.form.split()[0]}" for one in sizes if one.required)
    typer.echo(f"{kind.entry.summary}.")
    typer.echo(f"\n  --stat {','.join(filter(None, [kind.entry.name, needed]))}\n\nSizes:")
    _print_entries(sizes)
    asked = kind.entry.query.fields().values()
    if asked:
        typer.echo("\nWhat a release is asked; everything that there is unless told:")
        _print_entries(asked)


def _print_entries(entries: Iterable[Field]) -> None:
    for one in entries:
        written = f"{one.name}={one.form}" if one.form else one.name
        says = f"{one.says} (needed)" if one.required else one.says
        indent = " " * 29
        typer.echo(textwrap.fill(says, _WIDTH, initial_indent=f"  {written:<26} ",
                                 subsequent_indent=indent))  # fmt: skip


def completed(incomplete: str) -> list[str]:
    """Return the completions of a specification, for the shell."""
    *written, last = incomplete.split(",")
    if not written:
        return [name for name in kinds() if name.startswith(last)]
    kind = kinds().get(written[0])
    if kind is None or "=" in last:
        return []
    fields = {**kind.entry.sizes.fields(), **kind.entry.query.fields()}
    begun = ",".join(written)
    return [
        f"{begun},{one.name}{'=' if one.form else ''}"
        for one in fields.values()
        if one.name.startswith(last) and one.name not in {part.split("=")[0] for part in written}
    ]
