"""`panprivacy task`: a signed task for devices, and its secrets."""

from __future__ import annotations

from contextlib import ExitStack
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from panprivacy.cli.extras import Extra, installed
from panprivacy.cli.options import check_output, write_new
from panprivacy.errors import InputError, PlanError
from panprivacy.ground.files import read_at_most
from panprivacy.ground.validation import positive_fraction

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from panprivacy.devices.collector.secrets import Secrets
    from panprivacy.service.config.tokens import Role

_MOST_KEY = 1 << 12
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
    servers: Annotated[
        int, typer.Option(help="1, or 2 for a leader and a helper; see aggregator.")
    ] = 1,
    collusion: Annotated[
        str | None,
        typer.Option(help="Of two servers: none, or one-server, which may help who sees devices."),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="Of two servers: so many reports are released at least.")
    ] = None,
    recipient: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AGE",
            help="Seal the secrets to this public key, age1...; two of them: the leader's, then "
            "the helper's.",
        ),
    ] = None,
) -> None:
    """Write a signed task for devices and its secrets, and show its tokens once."""
    with installed(Extra.federated):
        from panprivacy.devices.aggregator.messages import reports_path  # noqa: PLC0415 - an extra
        from panprivacy.devices.federated.promise import Promise  # noqa: PLC0415
        from panprivacy.devices.federated.task import Task  # noqa: PLC0415
    check_output("tokens")
    if servers not in (1, 2):
        message = "--servers must be 1 or 2"
        raise PlanError(message)
    promise = Promise(
        epsilon=positive_fraction(epsilon=epsilon),
        delta=Fraction(0) if delta in (None, "0") else positive_fraction(delta=delta),
        devices=devices,
    )
    planned = _planned(kind, promise, most)
    if servers == 1 and (collusion is not None or batch is not None):
        message = "--collusion and --batch are for two servers: add --servers 2"
        raise PlanError(message)
    asking = (
        _single_server(file)
        if servers == 1
        else _two_servers(file, collusion or "none", devices if batch is None else batch)
    )
    made = Task.new(planned, promise, horizon=horizon, key=asking.key)
    for path in (file, *asking.secrets):
        if path.exists():
            message = f"{path} is there already: name another file, or remove it first"
            raise PlanError(message)
    kept = _sealed(asking.secrets, recipient or [])
    with ExitStack() as undo:  # without its tokens a task is useless
        signing = _signing_key(signer, undo)
        for path, data in kept.items():
            write_new(path, data, undo=undo)
        write_new(file, made.signed(signing), mode=0o644, undo=undo)
        print(f"Wrote {file}, which is public. Not public: {' and '.join(map(str, kept))}.\n")
        print(f"It promises {promise}.\n")
        _print_keys(signing.public_key().public_bytes_raw(), asking.tokens)
        if servers > 1:
            print(f"\nDevices post to {reports_path(made.digest)} of the leader.")
        print(f"\nStart with: {asking.start}", flush=True)
        undo.pop_all()


class _Asking(NamedTuple):
    """Servers that query devices.

    Args:
        key: the key to which devices encrypt.
        secrets: the secrets, by file.
        tokens: the tokens to print.
        start: the command that starts the servers.
    """

    key: Any
    secrets: dict[Path, Secrets]
    tokens: dict[Role, str]
    start: str


def _print_keys(signing: bytes, tokens: dict[Role, str]) -> None:
    """Print the key by which devices recognise the task, and the tokens."""
    print("Devices take tasks that this key signed; build it into their program:\n")
    print(f"    {signing.hex()}\n")
    print("The tokens, for Authorization: Bearer TOKEN. They are shown this once:\n")
    for role, token in tokens.items():
        print(f"    {role:<7}  {token}  {_USES[role]}")


def _sealed(secrets: dict[Path, Secrets], recipients: list[str]) -> dict[Path, bytes]:
    """Return the files of secrets, each for its own recipient, or all for the only one."""
    if len(recipients) > len(secrets):
        message = "give --recipient once for each server: the leader's first, then the helper's"
        raise PlanError(message)
    each = recipients if len(recipients) == len(secrets) else len(secrets) * recipients
    return {path: one.to_bytes(to) for (path, one), to in zip_longest(secrets.items(), each)}


def _single_server(file: Path) -> _Asking:
    from panprivacy.devices.collector.secrets import Secrets  # noqa: PLC0415
    from panprivacy.devices.federated.elgamal import DecryptionKey  # noqa: PLC0415
    from panprivacy.privacy.coins import SystemCoins  # noqa: PLC0415

    key, tokens = DecryptionKey.generate(SystemCoins()), _tokens()
    secrets = {file.with_suffix(".secret"): Secrets.of(key, tokens)}
    return _Asking(bytes(key.public), secrets, tokens, f"panprivacy collector {file}")


def _two_servers(file: Path, collusion: str, batch: int) -> _Asking:
    from panprivacy.devices.aggregator.secrets import HelperSecrets, LeaderSecrets  # noqa: PLC0415
    from panprivacy.devices.federated.elgamal import DecryptionKey  # noqa: PLC0415
    from panprivacy.devices.federated.two_servers import TwoServers  # noqa: PLC0415
    from panprivacy.devices.vdaf import Prio3Count  # noqa: PLC0415
    from panprivacy.privacy.coins import SystemCoins  # noqa: PLC0415
    from panprivacy.service.config.tokens import new_token  # noqa: PLC0415

    coins, tokens, peer = SystemCoins(), _tokens(), new_token()
    leader, helper = (DecryptionKey.generate(coins) for _ in range(2))
    verify_key = coins.secret(Prio3Count.VERIFY_KEY_BYTES)
    named: Any = {"collusion": collusion, "batch": batch}
    key = TwoServers(leader=bytes(leader.public).hex(), helper=bytes(helper.public).hex(), **named)
    secrets = {
        file.with_suffix(".leader.secret"): LeaderSecrets.made(leader, tokens, verify_key, peer),
        file.with_suffix(".helper.secret"): HelperSecrets.made(helper, verify_key, peer),
    }
    start = f"panprivacy aggregator --role helper --task {file}, and --role leader"
    return _Asking(key, secrets, tokens, start)


def _tokens() -> dict[Role, str]:
    from panprivacy.service.config.tokens import Role, new_token  # noqa: PLC0415

    return {role: new_token() for role in (Role.ingest, Role.release)}


def _planned(name: str, promise: Any, most: int | None) -> Any:
    """Return the kind of this name with the least noise that keeps a promise."""
    from panprivacy.devices.federated.task import KINDS  # noqa: PLC0415

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
        write_new(path, made.encode(), undo=undo)
    try:
        return Ed25519PrivateKey.from_private_bytes(
            bytes.fromhex(read_at_most(path, _MOST_KEY).decode())
        )
    except ValueError:
        message = f"{path} is no signing key: name another file, and it is made"
    raise InputError(message)
