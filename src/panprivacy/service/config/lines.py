"""On which line of a TOML document each table and key stands, which `tomllib` does not tell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Final

from panprivacy.service.config.values import Place

# Every repetition that could be tried in several ways is possessive.
_SPACE: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*+")
_PART: Final = re.compile(
    r"""[ \t]*+(?P<part>[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+(?P<dot>\.)?"""
)
_TOKEN: Final = re.compile(
    r"""
    \"{3} (?: [^"\\] | \\. | "{1,2}(?!") )*+ "{3,5}
    | '{3} (?: [^'] | '{1,2}(?!') )*+ '{3,5}
    | " (?: [^"\\\n] | \\. )*+ "
    | ' [^'\n]*+ '
    | \#[^\n]*+
    | (?P<open> [\[{] )
    | (?P<close> [\]}] )
    | (?P<end> \n )
    | [^"'\#\[\]{}\n]++
    """,
    re.VERBOSE | re.DOTALL,
)


def lines_of(text: str) -> dict[Place, int]:
    """Find every table and every key of a document that `tomllib` accepts.

    Args:
        text: the document.

    Returns:
        Lines, counting from 1, by keys and positions in arrays of tables. What is within the value
        of a key is not looked for.
    """
    found: dict[Place, int] = {}
    sizes: dict[Place, int] = {}
    table: Place = ()
    for keys, brackets, line in _statements(text):
        if brackets:
            table = _entered(keys, sizes, is_new=brackets == 2)
            place = table
        else:
            place = (*table, *keys)
        for length in range(len(place)):
            found.setdefault(place[:length], line)
        found[place] = line
    return found


def line_of(place: Place, lines: dict[Place, int]) -> int:
    """The line of a place, or of the closest table around it that has one."""
    while place and place not in lines:
        place = place[:-1]
    return lines[place] if place else 1


def _entered(keys: tuple[str, ...], sizes: dict[Place, int], *, is_new: bool) -> Place:
    """The table that a header names, in the last element of every array around it."""
    place: Place = ()
    for position, key in enumerate(keys):
        place = (*place, key)
        if is_new and position == len(keys) - 1:
            sizes[place] = sizes.get(place, 0) + 1
        if place in sizes:
            place = (*place, sizes[place] - 1)
    return place


def _statements(text: str) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """The keys of each header and of each value, the brackets around them, and the line."""
    at, line, counted = 0, 1, 0
    while (at := _end(_SPACE, text, at)) < len(text):
        line, counted = line + text.count("\n", counted, at), at
        brackets = 2 if text.startswith("[[", at) else int(text[at] == "[")
        keys, at = _keys(text, at + brackets)
        yield keys, brackets, line
        at = at + brackets if brackets else _after_value(text, at)


def _keys(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """A dotted key, and where it ends."""
    keys: list[str] = []
    while part := _PART.match(text, at):
        keys.append(_unquoted(part["part"]))
        at = part.end()
        if not part["dot"]:
            break
    return tuple(keys), at


def _unquoted(part: str) -> str:
    return next(iter(tomllib.loads(f"{part} = 0")))


def _after_value(text: str, at: int) -> int:
    """Where the line ends on which a value ends."""
    depth = 0
    while at < len(text) and (token := _TOKEN.match(text, at)):
        at = token.end()
        depth += bool(token["open"]) - bool(token["close"])
        if token["end"] and not depth:
            return at
    return len(text)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
