"""`panprivacy task`: what devices are asked, signed, and the secrets that belong to it."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from panprivacy._validate import positive_fraction
from panprivacy.cli.extras import Extra, installed
from panprivacy.errors import InputError, PlanError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_USES = {"ingest": "for devices, to send their report", "release": "to have the answer"}


def task(
    file: Annotated[Path, typer.Argument(metavar="TASK.json", help="A new file; it is public.")],
    kind: Annotated[str, typer.Option(help="What is counted: count-nonzero, histogram or mean.")],
    horizon: Annotated[int, typer.Option(help="How many ticks a device observes.")],
    epsilon: Annotated[str, typer.Option(help="What one device may lose, in nats.")],
    signer: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Your signing key; it is made if it is not there."),
    ],
    most: Annotated[
        int | None, typer.Option(help="Of a histogram or mean: so many events, or more.")
    ] = None,
    delta: Annotated[str | None, typer.Option(help="0 unless given; a mean needs one.")] = None,
    devices: Annotated[
        int, typer.Option(help="How many report at least; 1 protects each report by itself.")
    ] = 1,
    recipient: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Seal the secrets to this public key, age1..."),
    ] = None,
) -> None:
    """Write a signed task for devices and its secrets, and show its tokens once."""
    with installed(Extra.federated):
        from panprivacy.coins import SystemCoins  # noqa: PLC0415 - an extra
        from panprivacy.collector.secrets import Secrets  # noqa: PLC0415
        from panprivacy.federated.elgamal import DecryptionKey  # noqa: PLC0415
        from panprivacy.federated.promise import Promise  # noqa: PLC0415
        from panprivacy.federated.task import Task  # noqa: PLC0415
        from panprivacy.service.config.tokens import Role, new_token  # noqa: PLC0415
    if sys.stdout is None:
        message = "standard output is closed: the tokens would be lost"
        raise PlanError(message)
    promise = Promise(
        epsilon=positive_fraction(epsilon=epsilon),
        delta=Fraction(0) if delta in (None, "0") else positive_fraction(delta=delta),
        devices=devices,
    )
    key = DecryptionKey.generate(SystemCoins())
    planned = _planned(kind, promise, most)
    made = Task.new(planned, promise, horizon=horizon, key=bytes(key.public))
    tokens = {role: new_token() for role in (Role.ingest, Role.release)}
    beside = file.with_suffix(".secret")
    for path in (file, beside):
        if path.exists():
            message = f"{path} is there already: name another file, or remove it first"
            raise PlanError(message)
    kept = Secrets.of(key, tokens).to_bytes(recipient)
    with ExitStack() as undo:  # a task whose tokens nobody has seen is of no use
        signing = _signing_key(signer, undo)
        _write(beside, kept, 0o600, undo)
        _write(file, made.signed(signing), 0o644, undo)
        print(f"Wrote {file}, which is public, and {beside}, which is not.\n")
        print(f"It promises {promise}.\n")
        print("Devices take tasks that this key signed; build it into their program:\n")
        print(f"    {signing.public_key().public_bytes_raw().hex()}\n")
        print("The tokens, for Authorization: Bearer TOKEN. They are shown this once:\n")
        for role, token in tokens.items():
            print(f"    {role:<7}  {token}  {_USES[role]}")
        print(f"\nStart with: panprivacy collector {file}", flush=True)
        undo.pop_all()


def _planned(name: str, promise: Any, most: int | None) -> Any:
    """The kind of this name with the least noise that keeps a promise."""
    from panprivacy.federated.task import KINDS  # noqa: PLC0415

    if name not in KINDS:
        message = f"--kind must be one of {', '.join(KINDS)}"
        raise PlanError(message)
    kind: Any = KINDS[name]
    takes = "most" in kind.__struct_fields__
    if takes != (most is not None):
        message = f"a {name} needs --most" if takes else f"a {name} takes no --most"
        raise PlanError(message)
    return kind.planned(promise, **({"most": most} if takes else {}))


def _signing_key(path: Path, undo: ExitStack) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
        Ed25519PrivateKey,
    )

    if not path.exists():
        made = Ed25519PrivateKey.generate().private_bytes_raw().hex()
        _write(path, made.encode(), 0o600, undo)
    try:
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text()))
    except ValueError:
        message = f"{path} is no signing key: name another file, and it is made"
    raise InputError(message)


def _write(path: Path, data: bytes, mode: int, undo: ExitStack) -> None:
    """Write a new file, which is removed if the command fails."""
    try:
        with open(path, "xb", opener=partial(os.open, mode=mode)) as file:
            undo.callback(path.unlink, missing_ok=True)
            file.write(data)
    except FileExistsError:
        message = f"{path} is there already: name another file, or remove it first"
    except (OSError, ValueError) as error:
        message = f"cannot write {path}: {getattr(error, 'strerror', None) or error}"
    else:
        return
    raise PlanError(message)
