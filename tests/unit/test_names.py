"""A name of a class means one thing in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


def classes_and_aliases():
    """The classes of all modules, and aliases of types, by name: where each is, and its value."""
    found = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append((path.relative_to(SOURCE), None))
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if name.lstrip("_")[:1].isupper() and not name.isupper():
                    value = ast.unparse(node.value).replace("npt.", "")
                    found[name].append((path.relative_to(SOURCE), value))
    return found


def test_no_two_classes_have_one_name():
    # Equal aliases of a library's type, such as arrays of floats, may repeat.
    found = classes_and_aliases()
    assert len(found) > 500
    twice = {
        name: [str(path) for path, _ in places]
        for name, places in found.items()
        if len(places) > 1 and (len({value for _, value in places}) > 1 or places[0][1] is None)
    }
    assert twice == {}
