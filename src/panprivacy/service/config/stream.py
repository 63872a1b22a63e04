"""Configuration of one stream; its keys correspond to options of `panprivacy run`."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from fractions import Fraction
from typing import Any, Final, Self

import msgspec

from panprivacy.errors import PlanError
from panprivacy.ground.sealing import check_recipient
from panprivacy.ground.validation import (
    positive_fraction,
    positive_integer,
    proportion,
    whole_number,
)
from panprivacy.intake.programs.counting import (
    Counting,
    Grouping,
    check_needed,
    make_counting,
    numbered,
    reads_amounts,
)
from panprivacy.intake.programs.intake import Columns, Nulls
from panprivacy.intake.sources import FORMATS, Prefixes, dialect_of
from panprivacy.intake.sources.columns import check_columns, check_wanted, parse_prefixes, show_all
from panprivacy.intake.sources.log_lines import FIELDS, only_wanted_groups
from panprivacy.privacy.guarantee import Guarantee
from panprivacy.service.config.beacon import BeaconConfig
from panprivacy.service.config.values import DAY, ConfigError, in_table, seconds
from panprivacy.service.sockets import Address, datagram_address
from panprivacy.statistics.arguments import request
from panprivacy.statistics.composites.windowed import LONGEST
from panprivacy.statistics.grid import time_zone
from panprivacy.statistics.specification import Specification, SpecificationError
from panprivacy.tables.slices import Slice

STDIN_FORMATS: Final = tuple(name for name in FORMATS if name != "parquet")
SYSLOG_FORMATS: Final = "combined", "lines"

_MOST_RETRIES: Final = 1_000_000
_LEAST_KEY: Final = 16
_LONGEST_KEPT: Final = 36_525 * DAY


class SyslogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `[[streams.NAME.syslog]]` table.

    Args:
        listen: where datagrams are taken.
        mode: of the Unix socket.
        format: one of `SYSLOG_FORMATS`.
        pattern: for the format lines.
    """

    listen: str
    mode: int = 0o660
    format: str = "combined"
    pattern: str | None = None

    @property
    def address(self) -> Address:
        """Parsed `listen`."""
        return datagram_address(self.listen)

    def check(self, columns: Columns) -> None:
        """Raise `PlanError` or `InputError` if lines cannot be received, or lack these columns."""
        _ = self.address
        whole_number(0, 0o777, mode=self.mode)
        _check_format(self.format, self.pattern, SYSLOG_FORMATS, columns)


class StdinConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `[streams.NAME.stdin]` table.

    Args:
        format: one of `STDIN_FORMATS`.
        pattern: for the format lines.
        delimiter: of the format csv; None for what the header line tells.
        comment: of the formats csv and tsv: how lines begin that are left out.
        skip_unreadable: leave out rows that cannot be read or counted; else the first one ends it.
    """

    format: str
    pattern: str | None = None
    delimiter: str | None = None
    comment: str | None = None
    skip_unreadable: bool = False

    def check(self, columns: Columns) -> None:
        """Raise `PlanError` or `InputError` if it cannot be read, or lacks these columns."""
        _check_format(self.format, self.pattern, STDIN_FORMATS, columns)
        dialect_of(self.format, self.delimiter, self.comment)


class IdKind(StrEnum):
    """Kind of user ids."""

    text = "text"
    integers = "integers"
    addresses = "addresses"


class StreamConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `[streams.NAME]` table: what is counted, and how its answers are published.

    Args:
        stat: what to count: a table for each statistic, with its name and sizes.
        epsilon: privacy loss of one window.
        window: length of a clock window.
        zone: name of the time zone whose clock cuts windows.
        releases: how many answers of a window epsilon covers.
        every: how often those before the last are made; None to make them on request.
        moves: by how much the number has to move before one of those is made; None for any.
        intrusions: how many announced intrusions into a window epsilon covers.
        confidence: of the intervals.
        user: column of the user ids; None for "user", or for none where only events are counted.
        value: column of the values, where events are counted by them, or of the amounts that users
            add, where a statistic has a unit; None for "value".
        ids: what they are.
        prefix: how much of an address counts.
        nulls: what to do with a row without a user id.
        delta: column of the deltas.
        side: column that says which of two streams an event is of.
        by: column of the groups.
        groups: all of them.
        per_user: in how many of them one user may appear.
        ignore_others: leave out rows of other groups.
        contribute: public key of age to which each window is sealed, for `panprivacy merge`, in
            place of its answer; None to answer.
        key: public text that decides which cells of published tables users have: streams of one key
            can be compared; None for a key of the release store.
        keep_tables: how long published tables are kept; None for ever.
        retries: how many batch ids are kept, so that no batch is counted twice.
        syslog: where log lines come from.
        stdin: how standard input is read.
        beacon: how visits of web pages are taken.
    """

    stat: tuple[dict[str, Any], ...]
    epsilon: Fraction
    window: str
    zone: str = "UTC"
    releases: int = 1
    every: str | None = None
    moves: float | None = None
    intrusions: int = 0
    confidence: float = 0.95
    user: str | None = None
    value: str | None = None
    ids: IdKind = IdKind.text
    prefix: str | None = None
    nulls: Nulls = Nulls.error
    delta: str | None = None
    side: str | None = None
    by: str | None = None
    groups: tuple[str, ...] | None = None
    per_user: int = 1
    ignore_others: bool = False
    contribute: str | None = None
    key: str | None = None
    keep_tables: str | None = None
    retries: int = 8_192
    syslog: tuple[SyslogConfig, ...] = ()
    stdin: StdinConfig | None = None
    beacon: BeaconConfig | None = None

    @property
    def window_seconds(self) -> int:
        """`window` in seconds."""
        return seconds(LONGEST, window=self.window)

    @property
    def every_seconds(self) -> int | None:
        """`every` in seconds."""
        return None if self.every is None else seconds(LONGEST, every=self.every)

    @property
    def kept_for(self) -> timedelta | None:
        """How long published tables are kept, after the end of their window; None for ever."""
        kept = self.keep_tables
        return None if kept is None else timedelta(seconds=seconds(_LONGEST_KEPT, keep_tables=kept))

    def table_key(self, identity: bytes) -> bytes:
        """Return the addressing key of published tables: that of the stream, or of the store.

        Args:
            identity: identifier of the release store.
        """
        return identity if self.key is None else self.key.encode()

    def columns(self, counting: Counting) -> Columns:
        """Return the columns to read; if only events are counted, a user column must be named."""
        reads_ids = any(one.plan.reads_ids for one in counting.statistics.values())
        user = self.user or ("user" if reads_ids else None)
        return Columns.of(
            counting,
            user=user,
            value=self._value(counting),
            delta=self.delta,
            group=self.by,
            side=self.side,
            integers=self.ids is IdKind.integers,
            address=self._prefixes(),
        )

    def specifications(self) -> list[Specification]:
        """Return the specifications of the statistics.

        Raises:
            ConfigError: a table of `stat` is no statistic.
        """
        found = []
        for position, table in enumerate(self.stat):
            with in_table("stat", position):
                one = Specification.from_table(table)
            found.append(one.without_deltas() if self.delta is None else one)
        return found

    def make_counting(
        self, slice_: Slice | None = None, table_key: bytes | None = None
    ) -> Counting:
        """Return the statistics of one window, new on each call, with their own ledger.

        Args:
            slice_: the slice of their tables, for a shard of a cluster; None for the complete
                tables.
            table_key: addressing key of tables that are published; None for one of its own.

        Raises:
            ConfigError: a table of `stat` cannot be counted.
        """
        try:
            return make_counting(
                self.specifications(),
                epsilon=self.epsilon,
                releases=self.releases,
                intrusions=self.intrusions,
                grouping=self._grouping(),
                moves=None if self.moves is None else positive_fraction(moves=self.moves),
                table_key=table_key,
                slice_=slice_,
            )
        except SpecificationError as error:
            raise ConfigError(("stat", error.position), error.reason) from None

    def of_first_group(self) -> Self:
        """Return the stream with only the first group, which counts like each of them."""
        if not self.groups:
            return self
        share = self.epsilon / self.per_user
        return msgspec.structs.replace(self, groups=self.groups[:1], per_user=1, epsilon=share)

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee for the users of a window."""
        return self.promised(self.make_counting().guarantee)

    def promised(self, guarantee: Guarantee) -> Guarantee:
        """Return the guarantee for the users of a window, from that of its statistics."""
        return guarantee if self.contribute is None else guarantee.contributed()

    def check(self) -> None:
        """Raise `ConfigError`, `PlanError` or `InputError` if the stream cannot be counted so."""
        time_zone(self.zone)
        self._check_clock()
        proportion(confidence=self.confidence)
        whole_number(0, _MOST_RETRIES, retries=self.retries)
        # reported for the stream, not for a statistic
        request(self.epsilon, self.releases, self.intrusions)
        counting = self.make_counting()
        self._check_questions(counting)
        if counting.internals.windows.lasting and (self.every is not None or self.releases > 1):
            message = "what counts on from window to window releases at the end of each: leave out "
            message += "every and releases"
            raise PlanError(message)
        self._check_tables()
        self._check_contribution(counting)
        self._check_columns(counting)
        columns = self.columns(counting)
        check_wanted(columns.wanted())
        for position, syslog in enumerate(self.syslog):
            with in_table("syslog", position):
                syslog.check(columns)
        if self.stdin is not None:
            with in_table("stdin"):
                self.stdin.check(columns)
        if self.beacon is not None:
            with in_table("beacon"):
                self.beacon.check(columns, counting, self.groups or ())
            if self.syslog or self.stdin is not None:
                message = "a visitor has another id in log lines than in a beacon, and would count "
                message += "twice: take syslog and stdin into another stream"
                raise PlanError(message)

    def _check_clock(self) -> None:
        """Check that all answers before the last one are due within the window."""
        window, every = self.window_seconds, self.every_seconds
        others = positive_integer(releases=self.releases) - 1
        if every is None and self.moves is not None:
            message = "moves needs every: how often to look whether the number has moved"
            raise PlanError(message)
        if every is None:
            return
        if not others:
            message = "every needs releases of at least 2: the last answer comes at the end"
            raise PlanError(message)
        if every >= window:
            message = "every must be shorter than the window"
            raise PlanError(message)
        if self.moves is None and others * every >= window:
            message = f"every and releases do not fit: {others:,} times every must be less than "
            message += "the window, at whose end the last answer is made"
            raise PlanError(message)

    def _check_questions(self, counting: Counting) -> None:
        """Check that every question can be answered by a release."""
        each = zip(self.specifications(), counting.statistics.values(), strict=True)
        for position, (specification, statistic) in enumerate(each):
            with in_table("stat", position):
                releasing = statistic.internals.releasing
                releasing.check_release(confidence=self.confidence, **specification.asked())

    def _check_tables(self) -> None:
        """Check the settings of published tables."""
        _ = self.kept_for
        if self.key is not None and len(self.key.encode()) < _LEAST_KEY:
            message = f"key must be {_LEAST_KEY} characters or more, drawn once: it is public"
            raise PlanError(message)
        publishes = any(one.sizes.published for one in self.specifications())
        if not publishes and (self.key is not None or self.keep_tables is not None):
            message = "key and keep_tables are for overlap, which publishes a table: leave them out"
            raise PlanError(message)
        if publishes and (self.releases > 1 or self.every is not None):
            message = "overlap publishes one table at the end of each window: leave out releases "
            message += "and every, or count the rest in another stream"
            raise PlanError(message)
        if publishes and self.contribute is not None:
            message = "overlap publishes its table as it is, which anybody can combine with others "
            message += "of its key: leave out contribute"
            raise PlanError(message)

    def _check_contribution(self, counting: Counting) -> None:
        """Check that a contribution can be merged, and that nothing is answered as well."""
        if self.contribute is None:
            return
        if self.releases > 1 or self.every is not None:
            message = "contribute hands out each window, and answers nothing: leave out releases "
            message += "and every"
            raise PlanError(message)
        for name in (
            name
            for one in counting.statistics.values()
            for name in one.internals.memory.sizes.learned
        ):
            message = f'{name} = "learn" learns from answers, and contribute has none: say a number'
            raise ConfigError((), message, "contribute")
        try:
            check_recipient(self.contribute)
            counting.internals.contributions.check_parts("sums")
        except PlanError as error:
            reason = str(error).replace("recipient must", "contribute must")
            raise ConfigError((), reason, "contribute") from None

    def _check_columns(self, counting: Counting) -> None:
        """Check that the statistics can be counted from the columns."""
        try:
            value = self._value(counting)
            values = value and not reads_amounts(counting)
            user = self.user if values else self.user or "user"
            others = {"delta": self.delta, "side": self.side}
            check_needed(counting, user=user, value=value, **others)
        except PlanError as error:
            raise ConfigError((), str(error), "stat") from None
        if self.prefix is not None and self.ids is not IdKind.addresses:
            message = 'prefix is for ids = "addresses"'
            raise PlanError(message)
        if numbered(counting) and self.ids is not IdKind.integers:
            message = 'ids must be "integers": with a universe of N, they are 0 to N-1'
            raise PlanError(message)

    def _value(self, counting: Counting) -> str | None:
        """Return the name of the column of values; None if nothing reads it."""
        reads = any(one.plan.reads_values for one in counting.statistics.values())
        reads = reads or reads_amounts(counting)
        return self.value or ("value" if reads else None)

    def _prefixes(self) -> Prefixes | None:
        """Return the prefix lengths of addresses; None if ids are no addresses."""
        if self.prefix is None:
            return Prefixes() if self.ids is IdKind.addresses else None
        try:
            return parse_prefixes(self.prefix)
        except ValueError:
            message = "prefix must be how many bits to keep of IPv4:IPv6, such as 24:56"
            raise PlanError(message) from None

    def _grouping(self) -> Grouping | None:
        """Return the groups that are counted separately, if any."""
        if (self.by is None) != (self.groups is None):
            message = "by and groups go together: which column, and which groups it has"
            raise PlanError(message)
        if self.groups is None:
            if self.per_user != 1 or self.ignore_others:
                message = "per_user and ignore_others are for by and groups"
                raise PlanError(message)
            return None
        if not all(self.groups):
            message = "groups must not be empty texts"
            raise PlanError(message)
        return Grouping(list(self.groups), self.per_user, self.ignore_others)


def _check_format(
    name: str, pattern: str | None, formats: tuple[str, ...], columns: Columns
) -> None:
    """Raise `PlanError` or `InputError` if a format cannot be read, or has no such columns."""
    if name not in formats:
        message = f"format must be one of {', '.join(formats)}"
        raise PlanError(message)
    if (name == "lines") != (pattern is not None):
        message = 'pattern goes with format = "lines", such as ^(?P<user>\\S+)'
        raise PlanError(message)
    if pattern is not None:
        only_wanted_groups(pattern, columns.wanted())
    if name == "combined":
        known = f"the fields of a line are {show_all(FIELDS)}"
        check_columns(columns.wanted(), FIELDS, known=known)
