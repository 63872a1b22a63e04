"""`panprivacy overlap`: who came back, from published tables."""

from __future__ import annotations

import json as json_format
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from panprivacy.cli.options import check_output
from panprivacy.cli.output import answer_table, json_rows, remarks_on
from panprivacy.errors import InputError, PlanError
from panprivacy.ground.validation import proportion
from panprivacy.statistics.overlaps.price import SketchPrice
from panprivacy.statistics.overlaps.sets import overlap as compare
from panprivacy.statistics.overlaps.sketch import Sketch
from panprivacy.statistics.release import Answers

_PLACE = re.compile(r"\bsketch (\d+)\b")


def overlap(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Two or more sketches of one key, as run --sketch writes them, in the order of "
            "time.",
        ),
    ],
    at_least: Annotated[
        list[int] | None,
        typer.Option(metavar="N", help="Count the users of N windows or more too; repeatable."),
    ] = None,
    exactly: Annotated[
        list[int] | None,
        typer.Option(metavar="N", help="Count the users of just N windows too; repeatable."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="How often the interval is right.")] = 0.95,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say who came back: union, intersection and return rate of published tables."""
    check_output()
    level = proportion(confidence=confidence)
    sketches = read_sketches(files)
    answers = _answers(files, sketches, at_least or [], exactly or [], level)
    if json:
        print(json_format.dumps(_document(files, sketches, answers)))
    else:
        _print_text(sketches, answers, level)


def read_sketches(files: Sequence[Path]) -> list[Sketch]:
    """Read sketches from files.

    Raises:
        PlanError: there are fewer than two.
        InputError: one is none, or damaged.
    """
    if len(files) < 2:
        message = "name two sketches or more, such as panprivacy overlap monday.sketch "
        message += "tuesday.sketch"
        raise PlanError(message)
    return [read_sketch(file) for file in files]


def read_sketch(file: Path) -> Sketch:
    """Read a sketch from a file, which an error names.

    Raises:
        InputError: it is none, or damaged.
    """
    try:
        return Sketch.read(file)
    except InputError as error:
        message = f"{file}: {error.reason}"
        raise InputError(message) from None


def _answers(
    files: Sequence[Path],
    sketches: Sequence[Sketch],
    at_least: Sequence[int],
    exactly: Sequence[int],
    confidence: float,
) -> Answers:
    """Compare the sketches; an error names their files."""
    try:
        compared = compare(*sketches)
        more = [compared.at_least(number, confidence=confidence) for number in at_least]
        more += [compared.exactly(number, confidence=confidence) for number in exactly]
        return Answers([compared.answers(confidence=confidence), *more])
    except InputError as error:
        reason = _PLACE.sub(lambda found: str(files[int(found[1]) - 1]), error.reason)
        raise InputError(reason.replace("key=", "--key")) from None
    except PlanError as error:
        reason = str(error).replace("tables must be", "--at-least and --exactly must be")
        raise PlanError(reason) from None


def _print_text(sketches: Sequence[Sketch], answers: Answers, confidence: float) -> None:
    """Print a table of answers, and what the sketches cost their users."""
    listed = answers.answers()
    console = Console(width=100, highlight=False, markup=False, emoji=False)
    console.print(answer_table(listed, confidence))
    for line in remarks_on(listed):
        console.print(line, soft_wrap=True)
    price = SketchPrice.of(sketches)
    console.print(f"Guarantee: {price}. These answers cost nothing more.", soft_wrap=True)


def _document(
    files: Sequence[Path], sketches: Sequence[Sketch], answers: Answers
) -> dict[str, object]:
    """Return the answers and the price as values of JSON."""
    return {
        "answers": json_rows(answers),
        "sketches": [
            {"file": str(file), **one.known()} for file, one in zip(files, sketches, strict=True)
        ],
        "loss": SketchPrice.of(sketches).document(),
    }
