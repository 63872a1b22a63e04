"""Line numbers of the tables and keys of a TOML document, which `tomllib` does not report."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Final

from panprivacy.service.config.values import KeyPath

# Every repetition that could match in several ways is possessive.
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


def lines_of(text: str) -> dict[KeyPath, int]:
    """Find every table and every key of a document that `tomllib` accepts.

    Args:
        text: the document.

    Returns:
        Line numbers, from 1, by keys and positions in arrays of tables. The value of a key is not
        searched.
    """
    found: dict[KeyPath, int] = {}
    sizes: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for keys, brackets, line in _statements(text):
        place = () if brackets else (*table, *keys)
        if brackets:
            for left, key in zip(reversed(range(len(keys))), keys, strict=True):
                place = (*place, key)
                if brackets == 2 and not left:
                    sizes[place] = sizes.get(place, 0) + 1
                if place in sizes:
                    place = (*place, sizes[place] - 1)
            table = place
        for length in range(len(place)):
            found.setdefault(place[:length], line)
        found[place] = line
    return found


def line_of(place: KeyPath, lines: dict[KeyPath, int]) -> int:
    """Return the line of a place, or of the closest table around it that has one."""
    while place and place not in lines:
        place = place[:-1]
    return lines[place] if place else 1


def _statements(text: str) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Yield the keys of each header and of each value, the number of brackets, and the line."""
    at, line, counted = 0, 1, 0
    while (space := _SPACE.match(text, at)) and (at := space.end()) < len(text):
        line, counted = line + text.count("\n", counted, at), at
        brackets = 2 if text.startswith("[[", at) else int(text[at] == "[")
        keys, at = _keys(text, at + brackets)
        yield keys, brackets, line
        at = at + brackets if brackets else _after_value(text, at)


def _keys(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """Return a dotted key, and the position of its end."""
    keys: list[str] = []
    while part := _PART.match(text, at):
        keys += tomllib.loads(f"{part['part']} = 0")  # removes the quotes
        at = part.end()
        if not part["dot"]:
            break
    return tuple(keys), at


def _after_value(text: str, at: int) -> int:
    """Return the end of the line on which a value ends."""
    depth = 0
    while at < len(text) and (token := _TOKEN.match(text, at)):
        at = token.end()
        depth += bool(token["open"]) - bool(token["close"])
        if token["end"] and not depth:
            return at
    return len(text)
