"""`panprivacy doctor`: is this a machine that may be seized?"""

from __future__ import annotations

import dataclasses
import json as json_format
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from panprivacy.ground.hygiene.doctor import Measure, findings


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what protects the memory of this program here; exit 1 if something does not."""
    found = findings()
    if json:
        rows = [{**dataclasses.asdict(one), "fix": None if one.ok else one.fix} for one in found]
        print(json_format.dumps({"ok": all(one.ok for one in found), "findings": rows}))
    else:
        _print_text(found)
    raise typer.Exit(int(not all(one.ok for one in found)))


def _print_text(found: list[Measure]) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for one in found:
        table.add_row("ok" if one.ok else "NO", one.name, one.says)
    console = Console(width=100, highlight=False, markup=False, emoji=False)
    console.print(table)
    for one in found:
        if not one.ok:
            console.print(f"To mend {one.name}: {one.fix}.", soft_wrap=True)
