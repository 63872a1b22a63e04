"""`panprivacy attack`: play the intruder, against ordinary programs and against this one."""

from __future__ import annotations

import dataclasses
import json as json_format
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from panprivacy.audit.attacks import ATTACKS, AttackResult
from panprivacy.cli.options import check_picture
from panprivacy.errors import PlanError
from panprivacy.ground.validation import positive_fraction

_NAMES = ", ".join(ATTACKS)
_STATED = {"ordinary": "fell", "product": "held", "outside the guarantee": "not promised"}


def attack(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {_NAMES}.")],
    epsilon: Annotated[str, typer.Option(help="Total privacy loss of the programs.")] = "1",
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw what the intruder gets, as PNG.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Attack made-up people's states; exit 1 if an ordinary program holds, or ours does not."""
    if name not in ATTACKS:
        message = f"there is no attack of this name; the attacks are {_NAMES}"
        raise PlanError(message)
    check_picture(plot)  # before the attack takes its time
    outcome = ATTACKS[name](positive_fraction(epsilon=epsilon))
    if plot is not None:
        from panprivacy.audit.attacks.picture import draw  # noqa: PLC0415 - Matplotlib is slow

        draw(outcome, plot)
    if json:
        document = {
            "attack": outcome.name,
            "epsilon": outcome.epsilon,
            "ok": outcome.ok,
            "verdict": outcome.verdict,
            "findings": [dataclasses.asdict(one) for one in outcome.findings],
        }
        print(json_format.dumps(document))
    else:
        _print_text(outcome)
    raise typer.Exit(int(not outcome.ok))


def _print_text(outcome: AttackResult) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("program")
    table.add_column("figure")
    for heading in ("measured", "at most", "with slack"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for one in outcome.findings:
        bound = "-" if one.bound is None else f"{one.bound:.4f}"
        limit = "-" if one.limit is None else f"{one.limit:.4f}"
        stated = _STATED[one.kind] if one.as_stated else "NOT AS STATED"
        table.add_row(one.target, one.figure, f"{one.measured:.4f}", bound, limit, stated)
    console = Console(width=110, highlight=False, markup=False, emoji=False)
    console.print(table)
    for sentence in dict.fromkeys(f"{one.target}: {one.sentence}." for one in outcome.findings):
        console.print(sentence, soft_wrap=True)
    console.print(outcome.verdict, soft_wrap=True)
