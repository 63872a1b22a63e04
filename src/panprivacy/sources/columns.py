"""Which columns a caller wants, and what to say when a file does not have them.

Column names may appear in a message; values never do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from panprivacy._validate import whole_number
from panprivacy.errors import InputError, PlanError

_SHOWN_NAMES = 20
_SHOWN_CHARACTERS = 60


class StartError(InputError):
    """The input cannot be used from its start on: no row of it was handed out."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """How many leading bits of an IP address stand for its user; the rest is dropped.

    Args:
        ipv4: from 1 to 32, also of IPv4-mapped IPv6 addresses, which are IPv4 addresses.
        ipv6: from 1 to 128; one subscriber often has all of a /64 or a /56.

    Raises:
        PlanError: a length is out of range.
    """

    ipv4: int = 32
    ipv6: int = 128

    def __post_init__(self) -> None:
        whole_number(1, 32, ipv4=self.ipv4)
        whole_number(1, 128, ipv6=self.ipv6)


def parse_prefixes(text: str) -> Prefixes:
    """Read `24:56`: how many bits of an IPv4 and of an IPv6 address to keep.

    Raises:
        ValueError: it is something else.
    """
    try:
        ipv4, ipv6 = map(int, text.split(":"))
        return Prefixes(ipv4, ipv6)
    except (ValueError, PlanError):
        message = f"{text!r} is not how many bits to keep of IPv4:IPv6, such as 24:56"
        raise ValueError(message) from None


@dataclass(frozen=True, slots=True)
class Column:
    """A column that the caller wants.

    Args:
        name: as the file spells it.
        integers: text must hold whole numbers here, and is read as int64. Parquet and Arrow files
            say their own types, and are not converted.
        address: text must hold IP addresses here, and is read as numbers of 16 bytes, of which so
            many leading bits are kept.
    """

    name: str
    integers: bool = False
    address: Prefixes | None = None


def check_wanted(columns: Sequence[Column]) -> None:
    """Refuse to look for a column in a way that cannot be.

    Raises:
        InputError: one is wanted twice, or as whole numbers and as IP addresses.
    """
    names = [column.name for column in columns]
    for name in names:
        if names.count(name) > 1:
            message = f"column {show(name)} is asked for twice"
            raise InputError(message)
    for column in columns:
        if column.integers and column.address is not None:
            message = f"column {show(column.name)} cannot hold both whole numbers and IP addresses"
            raise InputError(message)


def check_columns(
    wanted: Sequence[Column], names: Sequence[str], *, known: str | None = None
) -> Sequence[Column]:
    """Find each wanted column exactly once among the names of the file's columns.

    Args:
        wanted: by the caller; none for whichever there is, by which rows can be counted.
        names: of the file's columns.
        known: what to say of these; by default they are listed.

    Returns:
        The wanted columns, or the first of the file.

    Raises:
        StartError: one is missing, or the file has several of that name.
    """
    found = [*wanted] or [Column(name) for name in names[:1]]
    for column in found:
        shown = show(column.name)
        if column.name not in names:
            listed = f"the columns are {show_all(names)}" if known is None else known
            message = f"there is no column {shown}; {listed}"
            raise StartError(message)
        if names.count(column.name) > 1:
            message = f"there are several columns {shown}: rename all but one"
            raise StartError(message)
    return found


def not_integers(name: str) -> InputError:
    """A column that holds something else than int64."""
    return InputError(f"column {show(name)} must hold whole numbers of at most 64 bits", row=1)


def show(name: str) -> str:
    """A column name on one line, cut when it is very long."""
    return repr(name if len(name) <= _SHOWN_CHARACTERS else name[:_SHOWN_CHARACTERS] + "…")


def show_all(names: Iterable[str]) -> str:
    """Column names on one line, the first few of very many."""
    listed = list(names)
    rest = len(listed) - _SHOWN_NAMES
    return ", ".join(map(show, listed[:_SHOWN_NAMES])) + (f" and {rest:,} more" if rest > 0 else "")
