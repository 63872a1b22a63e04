"""Columns that a caller wants, and the errors if a file does not have them.

Column names may appear in a message; values never do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from panprivacy.errors import InputError, PlanError
from panprivacy.ground.validation import whole_number

_SHOWN_NAMES = 20
_SHOWN_CHARACTERS = 60


class StartError(InputError):
    """The input cannot be used from its start: no row of it was yielded."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Number of leading bits of an IP address that identify its user; the rest is dropped.

    Args:
        ipv4: from 1 to 32; also applies to IPv4-mapped IPv6 addresses.
        ipv6: from 1 to 128; a subscriber often has a whole /64 or /56.

    Raises:
        PlanError: a length is out of range.
    """

    ipv4: int = 32
    ipv6: int = 128

    def __post_init__(self) -> None:
        whole_number(1, 32, ipv4=self.ipv4)
        whole_number(1, 128, ipv6=self.ipv6)


def parse_prefixes(text: str) -> Prefixes:
    """Read `24:56`: the numbers of bits of IPv4 and of IPv6 addresses to keep.

    Raises:
        ValueError: the text has another form.
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
        name: the name as spelled in the file.
        integers: text here must be whole numbers, and is read as int64. Parquet and Arrow files
            have their own types, and are not converted.
        numbers: text here must be numbers, with digits after the point or not, and is read as
            float64; so are whole numbers. The same holds for Parquet and Arrow files.
        address: text here must be IP addresses, and is read as numbers of 16 bytes, truncated to
            these numbers of leading bits.
    """

    name: str
    integers: bool = False
    numbers: bool = False
    address: Prefixes | None = None


def check_wanted(columns: Sequence[Column]) -> None:
    """Check that the wanted columns are consistent.

    Raises:
        InputError: a column is wanted twice, or both as whole numbers and as IP addresses.
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
        wanted: the columns that the caller wants; empty for any one column, to count rows.
        names: names of the file's columns.
        known: description of these for the error; by default they are listed.

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


def not_numbers(name: str) -> InputError:
    """Return the error for a column that contains something other than numbers."""
    return InputError(f"column {show(name)} must hold numbers", row=1)


def not_integers(name: str) -> InputError:
    """Return the error for a column that contains something other than int64."""
    return InputError(f"column {show(name)} must hold whole numbers of at most 64 bits", row=1)


def show(name: str) -> str:
    """Return a column name on one line, cut if it is very long."""
    return repr(name if len(name) <= _SHOWN_CHARACTERS else name[:_SHOWN_CHARACTERS] + "…")


def show_all(names: Iterable[str]) -> str:
    """Return column names on one line, only the first few of very many."""
    listed = list(names)
    rest = len(listed) - _SHOWN_NAMES
    return ", ".join(map(show, listed[:_SHOWN_NAMES])) + (f" and {rest:,} more" if rest > 0 else "")
