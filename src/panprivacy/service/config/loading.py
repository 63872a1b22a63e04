"""Loading of a configuration; errors are one line that names the line of the file."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from panprivacy.errors import PlanError
from panprivacy.ground.validation import positive_fraction
from panprivacy.intake.programs.intake import Nulls
from panprivacy.service.config.beacon import BeaconConfig
from panprivacy.service.config.config import (
    SQLITE,
    CheckpointConfig,
    ClusterConfig,
    Config,
    ReleasesConfig,
    ServerConfig,
)
from panprivacy.service.config.lines import line_of, lines_of
from panprivacy.service.config.stream import IdKind, StdinConfig, StreamConfig, SyslogConfig
from panprivacy.service.config.tokens import Role, Token
from panprivacy.service.config.values import ConfigError, KeyPath, in_toml
from panprivacy.statistics.catalogue import kinds

_TomlTable = dict[str, Any]

_LARGEST_FILE: Final = 1 << 24
_MOST_DIGITS: Final = 18
_PRIVATE: Final = b"AGE-SECRET-KEY-"
_PRIVATE_FOUND: Final = (
    "this looks like the private half of a key, which must not be on this machine: remove it, and "
    "take a new key pair, as whoever has read this file could open the checkpoints"
)
_NO_RECIPIENT: Final = (
    "recipient is missing: `panprivacy init` makes a key pair, or leave out [checkpoint] to keep "
    "everything in memory"
)
_STEP: Final = re.compile(r"\.(\w+)|\[(\d+)\]")
_AT_LINE: Final = re.compile(r"(?P<says>.*) \(at (?:line (?P<line>\d+), .*|end of document)\)")
_NO_TABLES: Final = (
    "stat must be tables, one for each statistic: write [[{}]] with name = {}, and below it the "
    "sizes of that statistic"
)
_NAMED: Final = re.compile(r"(?:^|(?<=^the ))\w+|\b\w+(?==)")
_KINDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number with a decimal point",
    "str": "a text in quotes",
    "bool": "true or false",
    "array": "a list [...]",
    "object": "a table",
    "date": "a date",
    "time": "a time",
    "datetime": "a date and time",
}

_CHOICES: Final = {"may": Role, "ids": IdKind, "nulls": Nulls}
_INNER: Final[Mapping[type, Mapping[str, type]]] = {
    Config: {
        "server": ServerConfig,
        "releases": ReleasesConfig,
        "checkpoint": CheckpointConfig,
        "tokens": Token,
        "cluster": ClusterConfig,
    },
    StreamConfig: {"syslog": SyslogConfig, "stdin": StdinConfig, "beacon": BeaconConfig},
}
"""The tables in each table, and in each entry of its arrays of tables."""
_EXAMPLES: Final = {
    "streams": "[streams.visits]",
    "stat": '[[streams.visits.stat]] with name = "distinct"',
    "epsilon": "epsilon = 1",
    "window": 'window = "1d"',
    "listen": 'listen = "unix:/run/panprivacy/nginx.sock"',
    "format": 'format = "ndjson"',
    "name": 'name = "web"',
    "may": 'may = ["ingest"]',
    "origins": 'origins = ["https://example.org"]',
    "sha256": "the one that `panprivacy init` writes",
}

T = TypeVar("T")


def load(path: Path | str) -> Config:
    """Read a configuration, check all of it, and make its paths absolute.

    Args:
        path: of a TOML file.

    Returns:
        A configuration that can be run: every stream has been planned once.

    Raises:
        PlanError: the file cannot be read, or a value is invalid; on one line, which names the line
            of the file. No value that may be secret is shown.
    """
    file = Path(path)
    name = _single_line(file.name)
    text = _text(file, name)
    try:
        tree = tomllib.loads(text, parse_float=_number)
    except (ValueError, RecursionError) as error:
        message = f"{name}{_syntax(error, text)}"
        raise PlanError(message) from None
    try:
        config = _converted(tree)
        config.check()
        return _absolute(config, file)
    except ConfigError as error:
        message = f"{name}, {_located(error, tree, text)}"
    raise PlanError(message)


def _text(file: Path, name: str) -> str:
    """Return the content of the file, if it is a valid file on this machine."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST_FILE + 1)
    except OSError as error:
        message = f"cannot read {name}: {error.strerror}; `panprivacy init` writes a configuration"
        raise PlanError(message) from None
    except ValueError:
        message = f"cannot read {name}: a path has no null character"
        raise PlanError(message) from None
    if len(data) > _LARGEST_FILE:
        message = f"{name} is no configuration: it is longer than {_LARGEST_FILE >> 20} MiB"
        raise PlanError(message)
    at = data.upper().find(_PRIVATE)
    if at >= 0:
        message = f"{name}, line {_line_at(data, at)}: {_PRIVATE_FOUND}"
        raise PlanError(message)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        message = f"{name}, line {_line_at(data, error.start)}: this is not UTF-8"
    raise PlanError(message)


def _line_at(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1


def _number(text: str) -> int | Decimal:
    """Read a number exactly; 1e6 is a whole number."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        message = "a number is out of range"
        raise ValueError(message) from None
    if not number.is_finite() or number.adjusted() > _MOST_DIGITS:
        return number
    return int(number) if number == number.to_integral_value() else number


def _syntax(error: Exception, text: str) -> str:
    """Return the error in the TOML and its place, as far as `tomllib` reports it."""
    if isinstance(error, RecursionError):
        return ": the lists or tables in it are nested too deeply"
    found = _AT_LINE.fullmatch(str(error))
    if found is None:
        return f": this is not TOML: {_single_line(str(error))}"
    line = found["line"] or text.count("\n") + 1
    return f", line {line}: this is not TOML: {_single_line(found['says'])}"


def _converted(tree: dict[str, Any]) -> Config:
    for place, table, kind in _tables(tree, Config, ()):
        if kind is StreamConfig:
            _check_stat(place, table)
        _check_keys(place, table, kind)
    streams = tree["streams"]
    for name, table in streams.items() if isinstance(streams, dict) else ():
        # msgspec does not report the names of streams
        _convert(table, StreamConfig, ("streams", name))
    return _convert(tree, Config, ())


def _tables(tree: object, kind: type, place: KeyPath) -> Iterator[tuple[KeyPath, _TomlTable, type]]:
    """Yield all tables that have a struct; values that are no tables are refused later."""
    if not isinstance(tree, dict):
        return
    yield place, tree, kind
    for key, inner in _INNER.get(kind, {}).items():
        held = tree.get(key)
        if isinstance(held, list):
            for position, entry in enumerate(held):
                yield from _tables(entry, inner, (*place, key, position))
        else:
            yield from _tables(held, inner, (*place, key))
    streams = tree.get("streams") if kind is Config else None
    for name, stream in streams.items() if isinstance(streams, dict) else ():
        yield from _tables(stream, StreamConfig, ("streams", name))


def _check_stat(place: KeyPath, table: _TomlTable) -> None:
    """Raise `ConfigError` if a stream gives statistics, or their sizes, outside of tables."""
    stat = table.get("stat", {})
    tables = _header((*place, "stat"))
    are_tables = isinstance(stat, list) and all(isinstance(one, dict) for one in stat)
    if not isinstance(stat, dict) and not (stat and are_tables):
        first = next(iter(stat), None) if isinstance(stat, list) else stat
        name = first if isinstance(first, str) and first in kinds() else "distinct"
        raise ConfigError(place, _NO_TABLES.format(tables, json.dumps(name)), "stat")
    records = [one for kind in kinds().values() for one in (kind.entry.sizes, kind.entry.query)]
    for key in table:
        own = key in StreamConfig.__struct_fields__  # such as per_user, which both have
        if not own and any(key in record.fields() for record in records):
            message = f"{key} belongs to a statistic: say it in its table [[{tables}]]"
            raise ConfigError(place, message, key)


def _check_keys(place: KeyPath, table: _TomlTable, kind: type) -> None:
    """Raise `ConfigError` if a table has an unknown key, or lacks a required one."""
    fields = {field.name: field.required for field in msgspec.structs.fields(kind)}
    for key in table:
        if key not in fields:
            close = get_close_matches(key, fields, 1)
            hint = f'did you mean "{close[0]}"?' if close else f"the keys are {', '.join(fields)}"
            raise ConfigError(place, f'there is no key "{_single_line(key)}"; {hint}', key)
    for key, required in fields.items():
        if required and key not in table:
            message = f"{key} is missing; it is needed, such as {_EXAMPLES.get(key)}"
            raise ConfigError(place, _NO_RECIPIENT if key == "recipient" else message)


def _convert(tree: object, kind: type[T], place: KeyPath) -> T:
    """Convert a table, and those in it."""
    try:
        # epsilon is the only number that must be exact
        return msgspec.convert(
            tree, kind, dec_hook=lambda _, value: positive_fraction(epsilon=value)
        )
    except msgspec.ValidationError as error:
        says, _, path = str(error).partition(" - at `$")
    steps = [int(index) if index else key for key, index in _STEP.findall(path)]
    raise _misfit(says, (*place, *steps))


def _misfit(says: str, place: KeyPath) -> ConfigError:
    """Return the error of msgspec about a value, in plain words."""
    at = max(position for position, step in enumerate(place) if isinstance(step, str))
    table, key = place[:at], str(place[at])
    subject = key if at == len(place) - 1 else f"each entry of {key}"
    if says.startswith("Invalid enum value"):
        says = f"{subject} must be one of {', '.join(_CHOICES[key])}"
    elif says == "Expected `array`, got `object`":
        says = f"{key} may be there several times: write [[{_header((*table, key))}]]"
    elif says.startswith("Expected"):
        kinds = says.split("`")[1].split(" | ")
        says = f"{subject} must be {' or '.join(_KINDS[one] for one in kinds if one != 'null')}"
    return ConfigError(table, says, key)


def _absolute(config: Config, file: Path) -> Config:
    """Return the configuration with absolute paths."""
    directory = file.parent.absolute() / config.server.directory
    if not directory.is_dir():
        message = f"directory: there is no folder {directory}; make it first, or name another"
        raise ConfigError(("server",), message, "directory")
    store, checkpoint = config.releases.store, config.checkpoint
    if store.startswith(SQLITE):
        store = f"{SQLITE}{directory / store.removeprefix(SQLITE)}"
    if checkpoint is not None:
        checkpoint = replace(checkpoint, path=str(directory / checkpoint.path))
    cluster = config.cluster
    if cluster.credentials is not None:
        cluster = replace(cluster, credentials=str(directory / cluster.credentials))
    return replace(
        config,
        cluster=cluster,
        server=replace(config.server, directory=str(directory)),
        releases=ReleasesConfig(store=store),
        checkpoint=checkpoint,
    )


def _located(error: ConfigError, tree: _TomlTable, text: str) -> str:
    """Return the line, the table, and the error there."""
    table: Any = tree
    for step in error.table:
        table = table[step] if isinstance(step, int) else table.get(step, {})
    # the first key that the reason names as an argument, or begins with
    key = error.key or next((name for name in _NAMED.findall(error.reason) if name in table), None)
    place = error.table if key is None else (*error.table, key)
    where = f"{_header(error.table)}: " if error.table else ""
    return f"line {line_of(place, lines_of(text))}: {where}{_single_line(in_toml(error.reason))}"


def _header(place: KeyPath) -> str:
    """Return a table in the syntax of its header."""
    return ".".join(_single_line(step) for step in place if isinstance(step, str))


def _single_line(text: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())
