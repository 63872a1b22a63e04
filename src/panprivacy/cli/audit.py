"""`panprivacy audit`: prove the guarantee by computation, on this machine, on this code."""

from __future__ import annotations

import json as json_format
import math
from fractions import Fraction
from typing import Annotated

import typer

from panprivacy.audit.exact.loss import Loss
from panprivacy.audit.subject import ADJACENCIES, Row
from panprivacy.audit.suite.run import known_names, rows
from panprivacy.errors import PlanError
from panprivacy.ground.validation import positive_fraction
from panprivacy.privacy.guarantee import float_above

_LINE = "{:<25}{:<9}{:>9}{:>12}{:>9}{:>9}{:>11}  {}"
_HEADINGS = "name", "kind", "claimed", "add/remove", "replace", "event", "set aside", ""


def audit(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="What to audit: names, or module:variable of your own; all unless given.",
        ),
    ] = None,
    epsilon: Annotated[str, typer.Option(help="Total privacy loss of the products.")] = "1",
    json: Annotated[bool, typer.Option("--json", help="Print a JSON array, one row each.")] = False,
) -> None:
    """Walk every outcome of every coin of the shipping classes, and of what has to be caught.

    Exit 1 if a product loses more than it claims, or a control is not caught. Losses are exact, in
    nats, the worst over all streams, intrusion times and outcomes.
    """
    total = positive_fraction(epsilon=epsilon)
    known = known_names()
    chosen = list(dict.fromkeys(names or known))
    if not {name for name in chosen if ":" not in name} <= {*known}:
        message = f"there is nothing of this name to audit; there are {', '.join(known)}"
        raise PlanError(message)
    audits, found = rows(chosen, total), list[Row]()
    if json:
        found += audits
        print(json_format.dumps([_document(row) for row in found]))
    else:
        print(_LINE.format(*_HEADINGS))
        for row in audits:
            found.append(row)
            print(line(row), flush=True)
            if names or not row.is_right:
                print(f"  {row.subject.says}\n  {row.says}", flush=True)
        _print_verdict(found)
    raise typer.Exit(int(not all(row.is_right for row in found)))


def line(row: Row) -> str:
    """Return a row of the table."""
    shown = (row.losses.get(adjacency) for adjacency in ADJACENCIES)
    losses = ("-" if loss is None else f"{float(loss):.4f}" for loss in shown)
    aside = f"{float(row.set_aside):.2%}" if row.set_aside else "-"
    subject, claimed = row.subject, f"{float(row.subject.claimed):.4f}"
    return _LINE.format(subject.name, subject.kind, claimed, *losses, aside, row.verdict)


def _print_verdict(found: list[Row]) -> None:
    for kind, verdict in (("product", "hold"), ("control", "caught")):
        of_kind = [row for row in found if row.subject.kind == kind]
        wrong = [row.subject.name for row in of_kind if not row.is_right]
        but = f": not {', '.join(wrong)}" if wrong else ""
        if of_kind:
            print(f"{len(of_kind) - len(wrong)} of {len(of_kind)} {kind}s {verdict}{but}.")


def _document(row: Row) -> dict[str, object]:
    losses = {adjacency: row.losses.get(adjacency) for adjacency in ADJACENCIES}
    return {
        "name": row.subject.name,
        "kind": row.subject.kind,
        "adjacency": row.subject.adjacency,
        "claimed": float_above(row.subject.claimed),
        "delta": float_above(row.subject.allowed),
        "limits": {name: _limit(row.subject.limit(name)) for name in ADJACENCIES},
        **{name: None if loss is None else _number(loss) for name, loss in losses.items()},
        "set_aside": float_above(row.set_aside),
        "verdict": row.verdict,
    }


def _number(loss: Loss) -> float | str:
    return "inf" if math.isinf(loss.epsilon) else loss.epsilon


def _limit(limit: Fraction | float) -> float | str:
    return "inf" if isinstance(limit, float) else float_above(limit)
