"""`panprivacy explain`: one page on what a seized state can say about anybody."""

from __future__ import annotations

import json as json_format
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from panprivacy.statistics.explain.document import as_document
from panprivacy.statistics.explain.reading import StateRun, read_states
from panprivacy.statistics.explain.sentences import BELIEFS, TitledPart, explained, of_a_file
from panprivacy.statistics.explain.sketches import explain_sketch, sketch_document
from panprivacy.statistics.overlaps.sketch import MAGIC, Sketch

_WIDTH = 100


def explain(
    state: Annotated[
        Path,
        typer.Argument(
            help="A file with what state() returned, sealed with age or not; or a sketch."
        ),
    ],
    identity: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The age identity of a sealed file.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what a seized state is, and what it can tell about anybody."""
    if _is_sketch(state):
        _print_sketch(Sketch.read(state), as_json=json)
        return
    states = read_states(state, identity)
    if json:
        print(json_format.dumps(as_document(states)))
    else:
        _print_text(states)


def _is_sketch(file: Path) -> bool:
    """Return whether a file begins as a published table does; a pipe is none."""
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(MAGIC)) == MAGIC


def _print_sketch(sketch: Sketch, *, as_json: bool) -> None:
    """Print what a published table is, and what an outsider reads off it."""
    if as_json:
        print(json_format.dumps(sketch_document(sketch)))
        return
    console = Console(width=_WIDTH, highlight=False, markup=False)
    for name, says in explain_sketch(sketch):
        _print_filled(console, f"{says}.", f"{name:<12}")


def _print_text(states: Sequence[StateRun]) -> None:
    console = Console(width=_WIDTH, highlight=False, markup=False)
    for place, section in enumerate(explained(states, of_a_file(states))):
        if section.title and place:
            console.print()
        if section.title:
            console.print(section.title)
        for part in section.parts:
            _print_part(console, part)


def _print_part(console: Console, part: TitledPart) -> None:
    console.print()
    console.print(part.heading)
    for name, says in part.facts.items():
        _print_filled(console, says, f"{name:<17}")
    for sentence in part.sentences:
        _print_filled(console, sentence)
    if part.beliefs:
        table = Table(box=None, pad_edge=False)
        for heading in BELIEFS:
            table.add_column(heading, justify="right")
        for row in part.beliefs:
            table.add_row(*row)
        console.print(Padding(table, (0, 0, 0, 4), expand=False))
    for sentence in part.after:
        _print_filled(console, sentence)


def _print_filled(console: Console, text: str, name: str = "") -> None:
    """Print a paragraph, with a name before it and later lines indented."""
    first, later = "  " + name, " " * (2 + len(name))
    filled = textwrap.fill(
        text, _WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False
    )
    console.print(filled, soft_wrap=True)
