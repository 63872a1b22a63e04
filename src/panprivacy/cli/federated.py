"""`panprivacy federated`: statistics over devices that hold ciphertexts only."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from panprivacy.cli.extras import Extra, installed
from panprivacy.cli.sections import PLAIN, InSections, OnceEach
from panprivacy.errors import PlanError
from panprivacy.ground.parsing import parse_integer
from panprivacy.ground.validation import positive_fraction
from panprivacy.privacy.guarantee import float_above, format_rounded_up
from panprivacy.statistics.notes import format_number

if TYPE_CHECKING:
    from panprivacy.devices.federated.kind import Decryption
    from panprivacy.devices.federated.promise import Promise
    from panprivacy.devices.federated.simulation import DevicePopulation, Simulated
    from panprivacy.devices.federated.task import AnyKind


def _integer(text: object) -> int:
    return parse_integer(str(text))  # a default is a number already


federated = typer.Typer(
    help="Statistics over devices that hold ciphertexts only.",
    add_completion=False,
    cls=OnceEach,
    **PLAIN,
)


@federated.callback()
def _commands() -> None:
    pass


@federated.command(cls=InSections)
def simulate(
    kind: Annotated[str, typer.Option(help="count-nonzero, histogram or mean.")] = "histogram",
    devices: Annotated[int, typer.Option(parser=_integer, metavar="N")] = 100_000,
    ticks: Annotated[int, typer.Option(parser=_integer, metavar="N")] = 100,
    encrypted: Annotated[
        int | None,
        typer.Option(
            parser=_integer,
            metavar="N",
            help="So many devices hold real ciphertexts: 1,000 unless told.",
        ),
    ] = None,
    most: Annotated[int, typer.Option(help="So many events of a device and more count alike.")] = 4,
    events: Annotated[
        str, typer.Option(help="That a device of the quieter half has on average.")
    ] = "0.25",
    epsilon: Annotated[str, typer.Option(help="What is promised to a device.")] = "1",
    delta: Annotated[str, typer.Option(help="The same; a mean needs one above 0.")] = "0",
    among: Annotated[
        int,
        typer.Option(
            parser=_integer,
            metavar="N",
            help="The promise is for the sum over so many devices; 1 for each report by itself.",
        ),
    ] = 1,
    collusion: Annotated[
        str | None,
        typer.Option(
            metavar="none|one-server",
            help="Ask two servers; with so many of them may collude who sees devices.",
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="How often an interval holds.")] = 0.95,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Let made-up devices observe, report and be counted, and say how far off the answers are.

    Half of the devices have --events on average, a quarter twice as many, an eighth four times,
    and so on, at ticks that are drawn.
    """
    with installed(Extra.federated):
        from panprivacy.devices.federated import simulation  # noqa: PLC0415 - an extra, and slow to import
        from panprivacy.devices.federated.promise import Promise  # noqa: PLC0415
    fraction = Fraction(0) if delta == "0" else positive_fraction(delta=delta)
    promise = Promise(epsilon=positive_fraction(epsilon=epsilon), delta=fraction, devices=among)
    population = simulation.DevicePopulation(
        devices=devices, ticks=ticks, events=positive_fraction(events=events)
    )
    if among > devices:
        message = f"--among must be at most --devices, {devices:,}: fewer get no answer"
        raise PlanError(message)
    planned = _planned(kind, promise, most)
    key = _key(planned, promise, collusion)
    with _progress(ticks) as advance:
        found = simulation.simulate(
            planned,
            promise,
            population,
            key,
            encrypted=min(1_000, devices) if encrypted is None else encrypted,
            confidence=confidence,
            advance=advance,
        )
    (_print_json if json else _print_text)(found, promise, population)


def _planned(kind: str, promise: Promise, most: int) -> AnyKind:
    from panprivacy.devices.federated.count_nonzero import CountNonZero  # noqa: PLC0415
    from panprivacy.devices.federated.histogram import DeviceHistogram  # noqa: PLC0415
    from panprivacy.devices.federated.mean import Mean  # noqa: PLC0415

    if kind == "count-nonzero":
        return CountNonZero.planned(promise)
    if kind in {"histogram", "mean"}:
        return (DeviceHistogram if kind == "histogram" else Mean).planned(promise, most=most)
    message = "--kind is one of count-nonzero, histogram, mean"
    raise PlanError(message)


def _key(kind: AnyKind, promise: Promise, collusion: Any) -> Decryption:
    """Return the secret key of one server, or those of two together."""
    with installed(Extra.federated):
        from panprivacy.devices.federated.elgamal import DecryptionKey  # noqa: PLC0415
        from panprivacy.devices.federated.shares import BothServers  # noqa: PLC0415
        from panprivacy.devices.federated.two_servers import TwoServers  # noqa: PLC0415
        from panprivacy.privacy.coins import SystemCoins  # noqa: PLC0415 - an extra, and slow to import
    key = DecryptionKey.generate(SystemCoins())
    if collusion is None:
        return key
    other = DecryptionKey.generate(SystemCoins())
    names = {"leader": bytes(key.public).hex(), "helper": bytes(other.public).hex()}
    servers = TwoServers(**names, collusion=collusion, batch=promise.devices)
    servers.check(kind, promise)
    return BothServers(b"panprivacy federated simulate", servers, key, other)


def _error_without_ciphertexts(population: DevicePopulation, promise: Promise) -> float:
    from panprivacy.devices.federated.every_tick import error_bound  # noqa: PLC0415

    return error_bound(population.devices, population.ticks, float_above(promise.epsilon))


def _print_json(found: Simulated, promise: Promise, population: DevicePopulation) -> None:
    rows = zip(found.answers.rows(), found.truths, found.deviations, strict=True)
    document: dict[str, Any] = {
        "answers": [{**row, "truth": true, "standard_error": error} for row, true, error in rows],
        "promise": str(promise),
        "least_error_without_ciphertexts": _error_without_ciphertexts(population, promise),
    }
    print(json_format.dumps(document))


def _print_text(found: Simulated, promise: Promise, population: DevicePopulation) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("events")
    for heading in ("estimate", "interval", "truth", "error", "standard error"):
        table.add_column(heading, justify="right")
    pairs = zip(found.answers.items(), found.truths, found.deviations, strict=True)
    for (name, one), true, typical in pairs:
        if one is not None:
            value, low, high = one.formatted()
            numbers = (format_number(each, one.unit) for each in (true, one.value - true, typical))
            table.add_row(str(name), value, f"{low} to {high}", *numbers)
    console = Console(width=100, highlight=False, markup=False, emoji=False)
    console.print(table)
    for line in _summary(promise, population):
        console.print(line, soft_wrap=True)


def _summary(promise: Promise, population: DevicePopulation) -> Iterator[str]:
    yield f"Promise: {promise}."
    yield (
        "The standard error is that of the plain local model, where a device knows its events and "
        "adds the noise at the end: ciphertexts lose nothing."
    )
    least = _error_without_ciphertexts(population, promise)
    yield (
        f"Devices without ciphertexts, whose memory hides each event at epsilon "
        f"{format_rounded_up(promise.epsilon)} after each of {population.ticks:,} ticks: "
        f"no unbiased count of those with an event errs by less than {least:,.0f}, "
        f"even if none has two."
    )


@contextmanager
def _progress(ticks: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar in ticks, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=ticks)
        yield lambda: progress.advance(task)
