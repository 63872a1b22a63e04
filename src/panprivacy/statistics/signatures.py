"""What help, editors and `repr` show of a statistic, from its records."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from reprlib import Repr
from typing import Final

from panprivacy.statistics.records import Field, Query, Sizes

_TYPES: Final[Mapping[str, str]] = {
    "": "bool",
    "N": "int",
    "LAW": "Law",
    "WORD": "str",
    "N or learn": "int | Literal['learn']",
    "N or LOW:HIGH": "int | tuple[int, int]",
    "N, LOW:HIGH or learn": "int | tuple[int, int] | Literal['learn']",
    "true or strict": "bool | Literal['strict']",
    "X": "float",
    "X,Y,Z": "Sequence[float]",
    "0.5,0.95": "Sequence[float]",
    "linear or log": "Literal['linear', 'log']",
    "open or refuse": "Literal['open', 'refuse']",
    "A,B;C,D": "Sequence[Sequence[int]]",
}
"""The Python type of a field, by the form in which a text has it; others are lists of numbers."""

_COMMON: Final[Mapping[str, str]] = {
    "epsilon": "total privacy loss of state and releases, in nats",
    "releases": "how many releases epsilon covers",
    "intrusions": "how many announced intrusions epsilon covers",
    "budget": "how epsilon is split between state and releases; None for the best split",
    "ledger": "budget shared with other statistics of the same stream",
    "coins": "source of all randomness; None for the operating system's",
    "key": "16 bytes or more, which shards share whose cells are to be added up; None to draw one",
}
"""The arguments that all statistics take; `slice_` is for the shards of a cluster alone."""

_LONG: Final = 60
"""Characters of a size in a representation."""


def signature_of(sizes: type[Sizes], common: inspect.Signature) -> inspect.Signature:
    """Return the signature of a constructor: epsilon, the sizes, and what all statistics take."""
    told = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.required else one.default,
            annotation=_type_of(one),
        )
        for one in sizes.fields().values()
    ]
    shared = [common.parameters[name] for name in _COMMON]
    required = shared[0].replace(default=inspect.Parameter.empty, annotation="Epsilon")
    return inspect.Signature([required, *told, *shared[1:]])


def documented(text: str, sizes: type[Sizes], query: type[Query]) -> str:
    """Return the docstring of a statistic with its arguments, their types and their meaning."""
    lines = [text.rstrip(), "", "    Args:", f"        epsilon (Epsilon): {_COMMON['epsilon']}."]
    lines += _lines(sizes.fields().values())
    lines += [f"        {name}: {says}." for name, says in list(_COMMON.items())[1:]]
    if query.fields():
        lines += ["", "    A release may be asked:", *_lines(query.fields().values())]
    return "\n".join([*lines, "    "])


def format_sizes(sizes: Sizes) -> str:
    """Return the sizes as a constructor takes them, without those that are left out."""
    short = Repr()
    short.maxother = short.maxstring = _LONG
    told = {name: getattr(sizes, name) for name in sizes.fields()}
    given = (one for one in told.items() if one[1] is not None and one[1] is not False)
    return "".join(f"{name}={short.repr(value)} " for name, value in given)


def _lines(fields: Iterable[Field]) -> list[str]:
    return [f"        {one.name} ({_type_of(one)}): {one.says}." for one in fields]


def _type_of(field: Field) -> str:
    """The type of an argument, as people write it."""
    known = _TYPES.get(field.form, "Sequence[int]")
    return known if field.required or field.default is not None else f"{known} | None"
