"""The command line: one module a command.

Whatever is wrong with arguments or input ends in one line on standard error and exit code 2, with
nothing on standard output.
"""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer

from panprivacy._version import VERSION
from panprivacy.cli.attack import attack
from panprivacy.cli.audit import audit
from panprivacy.cli.doctor import doctor
from panprivacy.cli.explain import explain
from panprivacy.cli.init import init
from panprivacy.cli.plan import plan
from panprivacy.cli.run import run
from panprivacy.cli.serve import restore, serve
from panprivacy.errors import PanPrivacyError

_ARGUMENTS = [
    *("stat", "epsilon", "universe", "expected", "memory", "bound", "signed", "delta", "deletions"),
    *("releases", "exactly", "at_least", "cropped_sum", "confidence", "per_user", "windows"),
    *("ignore_others", "nulls", "identity", "tau", "least", "k", "total"),
]

UsageError: type[typer.BadParameter] = typer.BadParameter.__bases__[0]
"""What Typer raises for a wrong argument; it exports only one of its kinds."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"panprivacy {VERSION}")
        raise typer.Exit


_CLOSED_PIPE = 141
"""What a shell gives for a program that nobody reads any more."""

app = typer.Typer(
    name="panprivacy",
    help="Statistics over a stream of sensitive events, from memory that can be seized.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(run)
app.command()(plan)
app.command()(doctor)
app.command()(explain)
app.command()(audit)
app.command()(attack)
app.command()(init)
app.command()(serve)
app.command()(restore)


@app.callback()
def _commands(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line and exit: 0 when it worked, 2 for bad arguments or input."""
    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        _fail(error.format_message().replace("Value error, ", ""))
    except PanPrivacyError as error:
        _fail(_in_options(str(error)))
    except (OSError, MemoryError) as error:
        _fail(_told(error))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except SystemExit:  # click's, with a code that means something here, for a pipe that is closed
        sys.exit(_CLOSED_PIPE)
    sys.exit(code or 0)


def _told(error: OSError | MemoryError) -> str:
    """What the system says, and of which file."""
    if not isinstance(error, OSError):
        return "this needs more memory than there is"
    says = error.strerror or type(error).__name__
    return f"{error.filename}: {says}" if isinstance(error.filename, str) else says


def _in_options(message: str) -> str:
    """The library names arguments as Python has them; here they are options."""
    for name in _ARGUMENTS:
        option = "--" + name.replace("_", "-")
        message = re.sub(rf"\b{name}=(True)?|^{name}(?= must)", option, message)
    return message


def _fail(message: str) -> None:
    sys.stderr.write(f"panprivacy: {' '.join(message.split())}\n")
    sys.exit(2)
