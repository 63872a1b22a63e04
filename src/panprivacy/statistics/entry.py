"""The declaration of a statistic: its name, its records, and the cases that check it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from panprivacy.statistics.cases import Trial, Walk
from panprivacy.statistics.records import Query, Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """The cases of a class, which are no part of what its objects remember.

    The exact audit walks the variables of a class at every outcome. It looks past descriptors, as
    this is one, and so spares itself most of its work.

    Args:
        trials: the lives that the contract suite leads it through.
        walks: the sizes and streams that the exact audit walks.
    """

    trials: Sequence[Trial] = ()
    walks: Sequence[Walk] = ()

    def __get__(self, instance: object, owner: type) -> Self:
        """Return the cases themselves."""
        return self


@dataclass(frozen=True, slots=True)
class CatalogueEntry(Cases):
    """The declaration of a statistic, which its class holds as `entry`.

    Args:
        sizes: the record of its sizes, whose tag is the name of the statistic.
        query: the record of what a release may be asked.
        trials: the lives that the contract suite leads it through.
        walks: the sizes and streams that the exact audit walks.
    """

    sizes: type[Sizes]
    query: type[Query] = Query

    @property
    def name(self) -> str:
        """The name in the command line, configurations and states: the tag of the sizes."""
        return str(self.sizes.__struct_config__.tag)

    @property
    def summary(self) -> str:
        """The question of the statistic, in one sentence: that of its sizes."""
        return " ".join((self.sizes.__doc__ or "").split()).removesuffix(".")
