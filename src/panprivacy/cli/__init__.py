"""The command line, with one module for each command.

Errors in arguments or input end in one line on standard error and exit code 2, with nothing on
standard output.

It may import everything. No rule of privacy and no arithmetic of losses comes here.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from panprivacy._version import VERSION
from panprivacy.cli.extras import import_failed
from panprivacy.cli.sections import PLAIN, InSections, OnceEach
from panprivacy.errors import PanPrivacyError

_COMMANDS = {
    "run": "Count the users of files, or of standard input as it arrives.",
    "merge": "Join what several shards contributed, and answer once; the contributions are spent.",
    "overlap": "Say who came back: union, intersection and return rate of published tables.",
    "join": "Join published tables of shards of different users to one sketch of their window.",
    "stats": "List what can be counted, or say how one statistic is written.",
    "plan": "Show the error to expect by epsilon and memory, or the plan that reaches an error.",
    "advise": "Recommend what to count, from how many people come, how often and how exact.",
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
    "restore": "Resume a waiting service from its sealed checkpoint.",
    "task": "Write a signed task for devices and its secrets, and show its tokens once.",
    "collector": "Collect the reports of devices over HTTP, and answer once.",
    "aggregator": "Be one of two servers that add up reports of which neither can read one.",
    "federated": "Statistics over devices that hold ciphertexts only.",
}
"""The first line of the help of each command: no module is imported to show it."""

_ELSEWHERE = {"restore": "serve"}
"""The module of a command without its own module."""

_BEGIN = """\
panprivacy counts people in a stream of events, in a memory that tells little of any one.
Begin with what suits your numbers, then count a file:

    panprivacy advise --people 3000 --every 1d --error 10%
    panprivacy run visits.csv --user visitor_id --stat distinct,expected=3000 --epsilon 1

panprivacy --help lists all commands, and panprivacy stats what can be counted.
"""

_ARGUMENTS = [
    *("stat", "epsilon", "delta", "side", "releases", "confidence", "per_user", "windows"),
    "zone",
    *(
        "ignore_others",
        "nulls",
        "identity",
        "recipient",
        "shards",
        "user",
        "value",
        "intrusions",
        "moves",
    ),
    *("format", "groups", "delimiter", "comment", "pattern", "listen"),
]
"""Arguments that have their own option; sizes are written with `=` everywhere."""

UsageError: type[typer.BadParameter] = typer.BadParameter.__bases__[0]
"""Typer's exception for a wrong argument; it exports only one of its kinds."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"panprivacy {VERSION}")
        raise typer.Exit


_CLOSED_PIPE = 141
"""Exit code of a shell for a program whose output is no longer read."""


_CURES = {
    "Missing option '--epsilon'": "give the loss of all that is counted, such as --epsilon 1",
    "Missing option '--signer'": "name a file for your signing key; it is made if it is not there",
    "No such command": f"there are {', '.join(_COMMANDS)}",
}
"""Advice for errors of the parser, which only describe the problem."""

_EXTRA_FILE = re.compile(r"unexpected extra argument.*?\((\S+\.toml)\)")

_EXAMPLES = {
    "run": "run visits.csv --user visitor_id --stat distinct,expected=3000 --epsilon 1",
    "merge": "merge east.part west.part --identity key.txt",
    "overlap": "overlap monday.sketch tuesday.sketch",
    "join": "join eu=monday-eu.sketch us=monday-us.sketch --sketch monday.sketch",
    "explain": "explain seized.state",
    "attack": "attack dictionary",
    "token": "token beacons --may ingest",
    "serve": "serve panprivacy.toml",
    "cluster": "cluster panprivacy.toml --shards 2",
    "dashboard": "dashboard panprivacy.toml",
    "announce": "announce http://127.0.0.1:8642 visits --token token.txt",
    "restore": "restore panprivacy.toml --identity key.txt",
    "task": "task visits.json --kind count-nonzero --horizon 3 --epsilon 1 --signer signer.key",
    "collector": "collector visits.json",
    "aggregator": "aggregator --role helper --task visits.json",
    "federated": "federated simulate",
}
"""Example of each command, for a missing argument."""


class _Commands(OnceEach):
    """Group of commands whose modules are imported when they are chosen."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of the commands, in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return the command of this name; None if there is none."""
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
        """Write the names of the commands and their descriptions."""
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
        _fail(_usage_error(error))
    except PanPrivacyError as error:
        _fail(_as_options(str(error)))
    except ImportError as error:
        _fail(import_failed(error))
    except MemoryError:
        _fail("this needs more memory than there is")
    except OSError as error:
        _fail(_system_error(error))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except SystemExit:  # click's exit, with a code for a closed pipe that has a meaning here
        sys.exit(_CLOSED_PIPE)
    sys.exit(code or 0)


def _system_error(error: OSError) -> str:
    """Return the path and the reason, as far as they are known."""
    names = (error.filename, error.filename2)
    paths = [os.fsdecode(name) for name in names if isinstance(name, str | bytes | os.PathLike)]
    reason = error.strerror or " ".join(str(error).split())
    unknown = f"the system refused something, and did not say why ({type(error).__name__})"
    return ": ".join([*paths[:1], reason or unknown])


def _as_options(message: str) -> str:
    """Replace Python arguments of the library by options of the command line."""
    for name in _ARGUMENTS:
        option = "--" + name.replace("_", "-")
        message = re.sub(rf"(?<![\w,.]){name}=(?=\w)(?!True\b)", f"{option} ", message)
        message = re.sub(rf"(?<![\w,.]){name}=(True\b)?|^{name}(?= must)", option, message)
    message = re.sub(r"\b(\w+)=True\b", r"\1", message)  # in --stat its bare name says it
    return re.sub(r"\bname the format (?=\w)", "say --format ", message)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    sys.stderr.write(f"panprivacy: {' '.join(str(message).split())}\n")


def _usage_error(error: Any) -> str:
    """Return the error in the arguments, and what to do."""
    option = getattr(error, "option_name", None)  # there is no option of that name
    message = error.format_message().removesuffix(".").replace("Value error, ", "")
    cures = [cure for start, cure in _CURES.items() if message.startswith(start)]
    example = _EXAMPLES.get(getattr(getattr(error, "ctx", None), "info_name", None) or "")
    if not cures and example and message.startswith("Missing"):
        cures = [f"type, for example, panprivacy {example}"]
    extra = _EXTRA_FILE.search(message)
    if extra and "--config" in _options_of(getattr(error, "ctx", None)):
        cures = [f"name the configuration with --config {extra[1]}"]
    if option:
        return _respelled(option) or _unknown_option(option, getattr(error, "ctx", None))
    return ": ".join([message, *cures])


def _unknown_option(option: str, context: Any) -> str:
    """Return the error of an option that is not there, with the options that are spelt like it."""
    close = get_close_matches(option, sorted(_options_of(context) | {"--help"}), 2, 0.8)
    names: list[str] = []  # below the program, which may be started under another name
    while context and context.parent:
        names.insert(0, context.info_name)
        context = context.parent
    help_of = " ".join(["panprivacy", *names, "--help"])
    hint = f"did you mean {' or '.join(close)}?" if close else f"{help_of} lists them"
    return f"there is no option {option}: {hint}"


def _options_of(context: Any) -> set[str]:
    """Return the options of the command of an error."""
    parameters = context.command.params if context else []
    return {name for one in parameters for name in one.opts}


def _respelled(option: str) -> str | None:
    """Return the spelling of an option that is a part of `--stat`; None if it is none."""
    from panprivacy.statistics.catalogue import kinds  # noqa: PLC0415 - slow

    name = option.lstrip("-")
    if name in kinds():
        return f"{option} is written --stat {name}"
    for kind in kinds().values():
        field = {**kind.entry.sizes.fields(), **kind.entry.query.fields()}.get(
            name.replace("-", "_")
        )
        if field is not None:
            written = f"{field.name}={field.form.split()[0]}" if field.form else field.name
            return f"{option} is a part of --stat, such as --stat {kind.entry.name},{written}"
    return None


def _fail(message: str) -> None:
    _warn(message)
    sys.exit(2)
