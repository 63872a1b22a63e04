"""`panprivacy init`: a configuration to begin with, its keys and its tokens."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import pyrage
import typer

from panprivacy.cli.extras import Extra, installed
from panprivacy.cli.options import check_output, write_new
from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import PrivacyLoss

if TYPE_CHECKING:
    from panprivacy.service.config.stream import StreamConfig


class SiteRecipe(StrEnum):
    """Name of a recipe."""

    website = "website"
    app = "app"
    hotline = "hotline"
    shop = "shop"


_STREAM: Final = "visits"
"""Name of the stream, unless another one is given."""
_WHOSE: Final = {"user": "a person", "event": "one event"}
"""What a guarantee hides, by its adjacency."""
_USES = {
    "ingest": "sends events",
    "read": "reads what was released",
    "release": "asks for an answer",
    "announce": "tells of a look at the memory",
}


def init(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG.toml", help="The file to write.")
    ] = Path("panprivacy.toml"),
    stream: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What the first stream is called: visits unless given."),
    ] = None,
    memory_only: Annotated[
        bool, typer.Option("--memory-only", help="No checkpoint: a crash loses the open windows.")
    ] = False,
    recipe: Annotated[
        SiteRecipe | None,
        typer.Option(help="Streams that are ready to use, in place of a first one with all keys."),
    ] = None,
) -> None:
    """Write a configuration for serve, and show its new key and tokens once."""
    with installed(Extra.service):
        from panprivacy.service.config.config import check_name  # noqa: PLC0415 - an extra
        from panprivacy.service.config.loading import load  # noqa: PLC0415
        from panprivacy.service.config.template import configuration, recipe_configuration  # noqa: PLC0415
        from panprivacy.service.config.tokens import Role, hash_of, new_token  # noqa: PLC0415
    check_output("key and the tokens")
    if stream is not None and recipe is not None:
        message = "--stream names the only stream where there is no --recipe: leave one out; "
        message += f"the streams of a recipe are renamed in {config}"
        raise PlanError(message)
    name = _STREAM if stream is None else stream
    check_name(name)
    identity = None if memory_only else pyrage.x25519.Identity.generate()
    tokens = {str(role): new_token() for role in Role}
    recipient = None if identity is None else str(identity.to_public())
    hashes = {role: hash_of(tokens[role]) for role in Role}
    if recipe is None:
        text = configuration(name, recipient, hashes)
    else:
        text = recipe_configuration(recipe.value, recipient, hashes)
    write_new(config, text.encode())
    print(f"Wrote {config}, which only you can read.\n")
    if identity is not None:
        _print_identity(str(identity))
    print("The tokens, for Authorization: Bearer TOKEN. They are shown this once:\n")
    for role, token in tokens.items():
        print(f"    {role:<8}  {token}  {_USES[role]}")
    print()
    streams = load(config).streams
    if recipe is None:
        written = streams[name]
        windows, year = written.guarantee.year(written.window_seconds)
        print(f"As it stands, a user of one window loses {written.guarantee.loss} at most.")
        print(f"In a year of {windows:,} windows, {written.guarantee.says_of_look}, it is {year}.")
    else:
        _print_total(streams.values())
    first = f"Say in {config} what to count"
    if recipe is not None:
        first = f"Compare the names and numbers in {config} with yours"
    print(f"{first}, then start: panprivacy serve {config}")


def _print_total(streams: Iterable[StreamConfig]) -> None:
    """Print the total loss of all streams, by what their guarantees hide."""
    each = [(one.guarantee, one.window_seconds) for one in streams]
    for hidden, whose in _WHOSE.items():
        found = [(one, seconds) for one, seconds in each if one.adjacency == hidden]
        if found:
            window = PrivacyLoss.total(one.loss for one, _ in found)
            year = PrivacyLoss.total(one.year(seconds)[1] for one, seconds in found)
            print(f"In one window of each stream {whose} loses {window} at most.")
            seen = "one window of each stream seen"
            if not all(one.looks for one, _ in found):
                seen += " where a look is covered"
            print(f"In a year, {seen}, it is {year}.")


def _print_identity(identity: str) -> None:
    print("The private half of the key of the checkpoints:\n")
    print(f"    {identity}\n")
    print("It is shown this once. Keep it on another machine or in a password manager, never on")
    print("this one: whoever has both it and a checkpoint can read the counts. You need it only to")
    print("go on from one, after a stop or a crash; without it the checkpoints are lost.\n")
