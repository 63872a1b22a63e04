"""Which mutants there are, as cosmic-ray lists them, and which of them are drawn."""

from __future__ import annotations

import ast
import difflib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import MutationSpec

_WITHOUT_EFFECT = {
    *("overload", "abstractmethod", "runtime_checkable"),  # for readers and type checkers
    *("cache", "lru_cache", "uncounted", "kernel"),  # for time alone
}
_GUARDS = {
    "slots",  # no field is added from outside; what a record holds is the same
    "strict",  # of `zip`: what is zipped has one length, as the code that makes it says
}
"""Arguments that change no result of right code, only how soon a fault elsewhere shows."""

_FOR_TIME = {
    "tables/addressing.py": {
        "THREAD_ROWS",
        "_LINE",
    },  # when a thread starts; how much is fetched ahead
    "tables/cells/modular.py": {"_PIECE"},  # counters are added up in pieces
    "devices/federated/mean.py": {"guess"},  # where a search begins, which ends at the same place
    "tables/ids.py": {"PIECE_ROWS"},  # ids are read in pieces
    "service/kept/keeper.py": {"_HURRY"},  # how soon what is due is looked for
    "service/stream_windows.py": {"_BREATH", "_STEP_SECONDS"},  # when other work has its turn
    "intake/sources/text.py": {"BLOCK_BYTES"},  # text is read in blocks
}
"""Numbers by which work is cut into parts, waits or begins: what comes of it is the same."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Args:
        module: the file, from `src/panprivacy` on.
        line: its number.
        within: the name of the function or class that it changes.
        before: the lines that are replaced, as one text.
        after: what stands there instead.
        code: of the whole file.
    """

    module: str
    line: int
    within: str
    before: str
    after: str
    code: str

    @property
    def key(self) -> str:
        """A name for it, as long as the module stays as it is."""
        return sha256(f"{self.module}\n{self.code}".encode()).hexdigest()

    @property
    def place(self) -> tuple[str, str, str]:
        """What `equivalent` names it by: the module, the function, and the line as it is here."""
        return self.module, self.within, self.after

    def __str__(self) -> str:
        """As in a diff."""
        return f"  {self.module}:{self.line} {self.within}\n  - {self.before}\n  + {self.after}"


def drawn(package: Path, modules: Iterable[str], seed: int) -> Iterator[Mutant]:
    """Mutants of different places, in the order in which they are drawn.

    Every place is as likely as any other: an operator has a dozen mutants, a condition one.
    """
    chance = random.Random(seed)
    places: dict[tuple[str, tuple[int, int]], list[MutationSpec]] = {}
    for spec in _listed(package, modules):
        name = Path(spec.module_path).relative_to(package).as_posix()
        places.setdefault((name, spec.start_pos), []).append(spec)
    order = sorted(places)
    chance.shuffle(order)
    sources = {module: (package / module).read_text() for module, _ in order}
    for place in order:
        mutant = _made(place[0], sources[place[0]], chance.choice(places[place]))
        if mutant is not None:
            yield mutant


def _listed(package: Path, modules: Iterable[str]) -> Iterator[MutationSpec]:
    with use_db(":memory:") as session:
        init([package / module for module in modules], session, {})
        for item in session.work_items:
            yield item.mutations[0]


def _made(module: str, source: str, spec: MutationSpec) -> Mutant | None:
    """The mutant, or None if it is none: it does not compile, or changes types, words or time."""
    operator = get_operator(spec.operator_name)(**spec.operator_args)
    try:
        code = mutate_code(source, operator, spec.occurrence)
        if code is None or _outline(module, code) == _outline(module, source):
            return None
    except (SyntaxError, AttributeError):  # cosmic-ray cannot change `except module.Error`
        return None
    old, new = source.splitlines(), code.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    _, start, stop, first, last = next(one for one in matcher.get_opcodes() if one[0] != "equal")
    if first == last:  # a decorator that is gone; several are alike, and stand before other lines
        stop, last = stop + 1, last + 1
    before, after = (" ".join(map(str.strip, part)) for part in (old[start:stop], new[first:last]))
    return Mutant(module, spec.start_pos[0], spec.definition_name or "", before, after, code)


@lru_cache(maxsize=128)
def _outline(module: str, code: str) -> str:
    """What the code does, without annotations, docstrings, and what changes no result."""
    return ast.dump(_Stripped(_FOR_TIME.get(module, set())).visit(ast.parse(code)))


class _Stripped(ast.NodeTransformer):
    def __init__(self, for_time: set[str]) -> None:
        self._for_time = for_time

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.annotation = ast.Constant(None)
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return self._defined(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef | None:
        node.returns = None
        self._defined(node)
        return node if node.body else None

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        self.generic_visit(node)
        return None if isinstance(node.value, ast.Constant) else node

    def visit_If(self, node: ast.If) -> ast.If | None:
        self.generic_visit(node)
        names = {one.id for one in ast.walk(node.test) if isinstance(one, ast.Name)}
        return None if "TYPE_CHECKING" in names else node

    def visit_keyword(self, node: ast.keyword) -> ast.keyword | None:
        self.generic_visit(node)
        return None if node.arg in _GUARDS else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AugAssign | None:
        self.generic_visit(node)
        named = isinstance(node.target, ast.Name) and node.target.id
        return None if named in self._for_time else node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | None:
        self.generic_visit(node)
        named = isinstance(node.targets[0], ast.Name) and node.targets[0].id
        return None if named in self._for_time else node

    def _defined(self, node):
        self.generic_visit(node)
        kept = [one for one in node.decorator_list if _name(one) not in _WITHOUT_EFFECT]
        node.decorator_list = kept
        return node


def _name(decorator: ast.expr) -> str:
    """The last part of a decorator's name."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
