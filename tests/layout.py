"""Which test files have the name of a module."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "panprivacy"
SITTING = 1_200
"""As many lines are read in one sitting."""

_ABOUT_PAGES = "docs"
"""Its tests have the names of pages."""


@functools.cache
def modules():
    """All of them, each as a tuple of its folders and its name, without `__init__`."""
    return [
        (*path.parent.relative_to(PACKAGE).parts, path.stem.strip("_"))
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.stem != "__init__"
    ]


@functools.cache
def names():
    """How many modules and folders have a name."""
    folders = (path.parent.name for path in PACKAGE.rglob("__init__.py"))
    return Counter([*(module[-1] for module in modules()), *folders])


@functools.cache
def named_files():
    """The folder of each test file and what it is named after, and where it is."""
    paths = sorted(path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))
    return {
        (path.parts[0], path.stem.removeprefix("test_")): f"tests/{path}"
        for path in paths
        if path.parts[0] != _ABOUT_PAGES
    }


def length(folder):
    """Of all modules in a folder of the package, in lines."""
    return sum(
        len(path.read_text().splitlines()) for path in PACKAGE.joinpath(*folder).glob("*.py")
    )


def nearest(folder, name):
    """The module of this name in a folder of this name: the least deep one; None if none is."""
    found = (one for one in modules() if one[-1] == name and folder in one[:-1])
    return min(found, key=len, default=None)


def is_named_after(module, file):
    """Whether a test file has the name of a module, and of no other one."""
    (folder, said), (*folders, name) = file, module
    if said == name:
        return names()[name] == 1 or nearest(folder, name) == (module if folders else None)
    before = said.removesuffix(f"_{name}")
    return before != said and before in folders and nearest(before, name) == module


def files_of(module):
    """The test files that have the name of a module; else, of its folder if that is small."""
    own = [path for file, path in named_files().items() if is_named_after(module, file)]
    *folders, _ = module
    if own or not folders or length(folders) > SITTING:
        return own
    name = folders[-1] if folders == _least_deep(folders[-1]) else "_".join(folders[-2:])
    return [path for (_, said), path in named_files().items() if said == name]


def _least_deep(name):
    """The folders that lead to the least deep one of this name."""
    return list(min((one[: one.index(name) + 1] for one in modules() if name in one[:-1]), key=len))


@functools.cache
def sizes():
    """How many methods each class has, and how many lines each function without its docstring."""
    methods, lines = {}, {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        _measure(ast.parse(path.read_text()), module, methods, lines)
    return methods, lines


def _measure(node, name, methods, lines):
    """Add the sizes of what is defined in a class, a function or a module."""
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.ClassDef):
            functions = (ast.FunctionDef, ast.AsyncFunctionDef)
            methods[f"{name}.{one.name}"] = sum(isinstance(each, functions) for each in one.body)
            _measure(one, f"{name}.{one.name}", methods, lines)
        elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            body = one.body[1:] if ast.get_docstring(one) is not None else one.body
            first = body[0].lineno if body else one.end_lineno + 1
            lines[f"{name}.{one.name}"] = one.end_lineno - first + 1
            _measure(one, f"{name}.{one.name}", methods, lines)
        else:
            _measure(one, name, methods, lines)
