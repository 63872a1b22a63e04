"""Pins: which code a proof speaks of, which tests check it, and a hash that changes with the code.

A page of docs/guarantees, or a section of one, ends with a table of pins, one row for each piece
of code. The hash is that of the syntax tree without docstrings, so comments, blank lines and
formatting do not change it. Names are looked up in the source; nothing of the package is imported.

    python -m tests.docs.pins    writes the hashes of all pages anew
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "docs" / "guarantees"
INDEX = PROOFS / "README.md"

_ROW = re.compile(
    r"^\| `(?P<code>panprivacy[\w.]*)` \| (?P<tests>.+) \| `(?P<digest>\w*)` \|$", re.MULTILINE
)
_TEST = re.compile(r"`(tests/[\w/]+\.py(?:::\w+)+)`")
_NEW_FIELDS = {"type_params", "kind", "type_comment"}
"""Fields of a syntax tree that say nothing here, or that not all versions of Python have."""

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Pin:
    """One row of a page.

    Args:
        page: the page.
        code: the qualified name of what the proof speaks of.
        tests: what checks it.
        digest: the hash of the code when the proof was last read.
    """

    page: Path
    code: str
    tests: tuple[str, ...]
    digest: str


def pages():
    """All pages of proofs, without their index."""
    return sorted(set(PROOFS.glob("*.md")) - {INDEX})


def pins(page):
    """The pins of a page, in order."""
    return [
        Pin(page, row["code"], named_tests(row["tests"]), row["digest"])
        for row in _ROW.finditer(page.read_text())
    ]


def named_tests(text):
    """The tests that a text names."""
    return tuple(_TEST.findall(text))


def rewrite(text, source=ROOT / "src"):
    """A page with the hashes of the code as it is now."""

    def fresh(row):
        return row[0].removesuffix(f"`{row['digest']}` |") + f"`{digest(row['code'], source)}` |"

    return _ROW.sub(fresh, text)


# Code


def digest(name, source=ROOT / "src"):
    """A short hash of what a qualified name stands for.

    Raises:
        LookupError: there is no such code.
    """
    return hashed(find(name, source))


def hashed(node):
    """A short hash of code, the same in all versions of Python."""
    return hashlib.sha256(repr(_outline(node)).encode()).hexdigest()[:8]


def _outline(node):
    """A syntax tree as nested tuples: no positions, no docstrings, nothing that is empty."""
    if isinstance(node, list):
        return tuple(map(_outline, node))
    if not isinstance(node, ast.AST):
        return node
    filled = {
        name: _stripped(node, name, value)
        for name, value in ast.iter_fields(node)
        if name not in _NEW_FIELDS and value is not None and value != []
    }
    return type(node).__name__, *((name, _outline(value)) for name, value in filled.items())


def _stripped(node, name, value):
    """A field without docstrings, and without the empty pieces of f-strings in Python 3.12."""
    if isinstance(node, Definition) and name == "body":
        return [one for one in value if not (isinstance(one, ast.Expr) and _is_text(one.value))]
    if isinstance(node, ast.JoinedStr):
        return [piece for piece in value if not (_is_text(piece) and piece.value == "")]
    return value


def _is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def says_nothing(function):
    """Whether a function has no body but its docstring, as in a protocol."""
    return not _stripped(function, "body", function.body)


def find(name, source=ROOT / "src"):
    """The syntax tree of a class, a function, a method or a constant."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        path = source.joinpath(*parts[:length]).with_suffix(".py")
        if path.exists():
            return functools.reduce(_member, parts[length:], parse(path))
    message = f"there is no {name}"
    raise LookupError(message)


def _member(node, name):
    """What a name stands for within a module or a class."""
    for one in node.body:
        if name in _names(one):
            return one
    message = f"there is no {name}"
    raise LookupError(message)


def _names(node):
    """The names that a statement defines."""
    if isinstance(node, Definition):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {one.id for one in targets if isinstance(one, ast.Name)}


def classes(path):
    """The public classes of a module, by their qualified names."""
    module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    return {
        f"{module}.{one.name}": one
        for one in parse(path).body
        if isinstance(one, ast.ClassDef) and not one.name.startswith("_")
    }


def has_test(test):
    """Whether there is a test of this name."""
    path, *names = test.split("::")
    try:
        functools.reduce(_member, names, parse(ROOT / path))
    except (LookupError, FileNotFoundError):
        return False
    return True


@functools.cache
def parse(path):
    """The syntax tree of a file."""
    return ast.parse(path.read_text())


if __name__ == "__main__":
    for page in pages():
        page.write_text(rewrite(page.read_text()))
