"""The command line: one module a command.

Whatever is wrong with arguments or input ends in one line on standard error and exit code 2, with
nothing on standard output.
"""

from __future__ import annotations

import re
import sys
import warnings
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from panprivacy._version import VERSION
from panprivacy.cli.sections import PLAIN, InSections
from panprivacy.errors import PanPrivacyError

_COMMANDS = {
    "run": "Count the users of a file, or of standard input as it arrives.",
    "merge": "Join what several shards contributed, and answer once; the contributions are spent.",
    "stats": "List what can be counted, or say how one statistic is written.",
    "plan": "Show the error to expect by epsilon and memory, or the plan that reaches an error.",
    "doctor": "Say what protects the memory of this program here; exit 1 if something does not.",
    "explain": "Say what a seized state is, and what it can tell about anybody.",
    "audit": "Walk every outcome of every coin of the shipping classes, and of what has to be "
    "caught.",
    "attack": "Attack made-up people's states; exit 1 if an ordinary program holds, or ours does "
    "not.",
    "init": "Write a configuration for serve, and show its new key and tokens once.",
    "token": "Add a token to a configuration, or change one; a service that runs takes it over.",
    "serve": "Count streams and serve what is released, until told to stop.",
    "cluster": "Count streams with several machines, each with a slice, until told to stop.",
    "dashboard": "Show what was released on pages, until told to stop; it can change nothing.",
    "announce": "Tell a service that somebody has seen its memory: it may be seen once more then.",
    "restore": "Have a service that waits go on from its sealed checkpoint.",
    "task": "Write a signed task for devices and its secrets, and show its tokens once.",
    "collector": "Collect the reports of devices over HTTP, and answer once.",
    "aggregator": "Be one of two servers that add up reports of which neither can read one.",
    "federated": "Statistics over devices that hold ciphertexts only.",
}
"""The first line of the help of each: no module is imported to show it."""

_ELSEWHERE = {"restore": "serve"}
"""The module of a command that has none of its own."""

_BEGIN = """\
panprivacy counts people in a stream of events, in a memory that tells little of any one.
Begin with what error to expect, then count a file:

    panprivacy plan distinct,expected=3000 --epsilon 1
    panprivacy run visits.csv --user visitor_id --stat distinct,expected=3000 --epsilon 1

panprivacy --help lists all commands, and panprivacy stats what can be counted.
"""

_ARGUMENTS = [
    *("stat", "epsilon", "delta", "side", "releases", "confidence", "per_user", "windows"),
    *("ignore_others", "nulls", "identity", "recipient", "shards", "user", "intrusions", "moves"),
]
"""What is an option of its own; sizes are written with `=` everywhere."""

UsageError: type[typer.BadParameter] = typer.BadParameter.__bases__[0]
"""What Typer raises for a wrong argument; it exports only one of its kinds."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"panprivacy {VERSION}")
        raise typer.Exit


_CLOSED_PIPE = 141
"""What a shell gives for a program that nobody reads any more."""


_CURES = {
    "Missing option '--epsilon'": "give the loss of all that is counted, such as --epsilon 1",
    "Missing option '--signer'": "name a file for your signing key; it is made if it is not there",
    "No such command": f"there are {', '.join(_COMMANDS)}",
}
"""What to do, where the parser says only what is wrong."""

_EXAMPLES = {
    "run": "run visits.csv --user visitor_id --stat distinct,expected=3000 --epsilon 1",
    "merge": "merge east.part west.part --identity key.txt",
    "explain": "explain seized.state",
    "attack": "attack dictionary",
    "token": "token beacons --may ingest",
    "dashboard": "dashboard panprivacy.toml",
    "announce": "announce http://127.0.0.1:8642 visits",
    "restore": "restore panprivacy.toml --identity key.txt",
    "task": "task visits.json --kind count-nonzero --horizon 3 --epsilon 1 --signer signer.key",
    "collector": "collector visits.json",
    "aggregator": "aggregator --role helper --task visits.json",
    "federated": "federated simulate",
}
"""What to type, by the command of which a part is missing."""


class _Commands(TyperGroup):
    """Commands whose modules are imported when they are chosen."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Their names, in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """The command of this name; None if there is none."""
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"panprivacy.cli.{_ELSEWHERE.get(cmd_name, cmd_name)}")
        found = getattr(module, cmd_name)
        if isinstance(found, typer.Typer):  # has commands of its own
            return get_command(found)
        single = typer.Typer(add_completion=False, **PLAIN)
        single.command(cmd_name, cls=InSections)(found)
        return get_command(single)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write their names and what they are for."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


app = typer.Typer(
    name="panprivacy",
    cls=_Commands,
    help="Statistics over a stream of sensitive events, from memory that can be seized.",
    **PLAIN,
)


@app.callback()
def _commands(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line and exit: 0 when it worked, 2 for bad arguments or input."""
    warnings.showwarning = _warn
    if len(sys.argv) < 2:
        sys.stderr.write(_BEGIN)
        sys.exit(2)
    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        _fail(_told(error))
    except PanPrivacyError as error:
        message = str(error)
        for name in _ARGUMENTS:  # the library names arguments as Python has them
            option = "--" + name.replace("_", "-")
            message = re.sub(rf"\b{name}=(True)?|^{name}(?= must)", option, message)
        _fail(message)
    except MemoryError:
        _fail("this needs more memory than there is")
    except OSError as error:
        where = f"{error.filename}: " if isinstance(error.filename, str) else ""
        _fail(where + (error.strerror or type(error).__name__))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except SystemExit:  # click's, with a code that means something here, for a pipe that is closed
        sys.exit(_CLOSED_PIPE)
    sys.exit(code or 0)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    sys.stderr.write(f"panprivacy: {' '.join(str(message).split())}\n")


def _told(error: Any) -> str:
    """What is wrong with the arguments, and what to do."""
    option = getattr(error, "option_name", None)  # there is none of that name
    message = error.format_message().removesuffix(".").replace("Value error, ", "")
    cures = [cure for start, cure in _CURES.items() if message.startswith(start)]
    example = _EXAMPLES.get(getattr(getattr(error, "ctx", None), "info_name", None) or "")
    if not cures and example and message.startswith("Missing"):
        cures = [f"type, for example, panprivacy {example}"]
    return (option and _respelled(option)) or ": ".join([message, *cures])


def _respelled(option: str) -> str | None:
    """How to write an option that is a part of `--stat`; None if it is none."""
    from panprivacy.statistics.catalogue import kinds  # noqa: PLC0415 - slow

    name = option.lstrip("-")
    if name in kinds():
        return f"{option} is written --stat {name}"
    for kind in kinds().values():
        field = {**kind.sizes_type.fields(), **kind.query_type.fields()}.get(name.replace("-", "_"))
        if field is not None:
            written = f"{field.name}={field.form.split()[0]}" if field.form else field.name
            return f"{option} is a part of --stat, such as --stat {kind.name},{written}"
    return None


def _fail(message: str) -> None:
    _warn(message)
    sys.exit(2)
