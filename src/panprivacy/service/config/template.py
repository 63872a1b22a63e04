"""Template of the configuration that `panprivacy init` writes: every key, with its meaning.

An optional key is a comment that begins with `#` and no space.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from string import Template
from typing import Final

from panprivacy.service.config.recipes import RECIPES
from panprivacy.service.config.tokens import Role
from panprivacy.statistics.catalogue import StatisticType, kinds
from panprivacy.statistics.records import Field

_PUBLIC_EXAMPLE: Final = "age1..."
_WIDTH: Final = 100

_STREAMS: Final = "# One table for each stream."
"""Beginning of the part of the template that a recipe replaces."""

_TEMPLATE: Final = Template("""\
# What `panprivacy serve` counts, and who may send and read. A line such as
#     #key = value
# is a comment until its first # is removed; the value is the one that holds without it, or an
# example.

[server]
#listen = "127.0.0.1:8642"  # or "[::1]:8642", or "unix:/run/panprivacy/http.sock"
#directory = "."  # of the files below; relative to this file
#max_body_bytes = 16_777_216  # a longer body is refused
#max_waiting_bytes = 268_435_456  # of all bodies that are not counted yet; a third for a token
#timeout = "30s"  # for a whole request to arrive

# What was released and what was spent. It is public, and must survive: without it budget could be
# spent twice.
[releases]
#store = "sqlite:///releases.sqlite"  # or "postgresql+psycopg://user:password@host/database"

# The counts of the current windows, sealed to a key whose private half is on another machine, so
# that they outlive a crash. Without this table they are in memory only.
$mark[checkpoint]
$mark$recipient  # the public half of the key pair
#path = "panprivacy.sealed"
#every = "1s"  # how much a crash can lose

# Several machines that count together: for `panprivacy cluster` alone, which needs [checkpoint].
[cluster]
#nats = ["nats://127.0.0.1:4222"]  # servers of NATS, with JetStream in memory
#name = "panprivacy"  # of this cluster among those that share these servers
#credentials = "nats.creds"  # file of NATS that says who we are
#queue_bytes = 268_435_456  # that a queue of the broker may hold: one for each stream and shard
#identity = "PANPRIVACY_IDENTITY"  # variable that holds the private key, on each node
#identity_command = ["vault", "read", "panprivacy"]  # prints it, in place of the variable
#patience = "1d"  # for how long a release waits for a shard; a window, if left out
#start_patience = "2m"  # for how long the start waits for Ray, and for the shards

# Who may do what. The tokens themselves are not here.
[[tokens]]
name = "ingest"
may = ["ingest"]  # any of "ingest", "read", "release", "announce"
sha256 = "$ingest"
#streams = ["$stream"]  # only these; all if left out

[[tokens]]
name = "read"
may = ["read"]
sha256 = "$read"

[[tokens]]
name = "release"
may = ["release"]
sha256 = "$release"

[[tokens]]
name = "announce"
may = ["announce"]
sha256 = "$announce"

# One table for each stream. `panprivacy plan` tells what a choice gives.
[streams.$stream]
epsilon = 1  # privacy loss of one window: a number, or a text such as "1/3"
window = "1d"  # a fresh count for each: 30s, 15m, 12h, 1d, 1w
#zone = "UTC"  # whose clock cuts windows, as "Europe/Paris": days of 23 to 25 hours

# When answers are made.
#releases = 1  # answers of a window that epsilon covers; the last is made at its end
#every = "1h"  # make the others on a clock; on request if left out
#moves = 5_000  # look so often, and make one only where the number has moved by so much
#confidence = 0.95  # how often an interval is right

# How often the memory may be seen besides once, if each time is announced: panprivacy announce. All
# these looks share epsilon, and each makes answers worse: see panprivacy plan --intrusions.
#intrusions = 0

# What is read of each event.
#user = "user"  # the column of user ids; left out where only events are counted, none is read
#value = "value"  # the column of numbers, in place of users, where a histogram counts events
#ids = "text"  # or "integers", or "addresses": IP addresses, however they are written
#prefix = "24:56"  # of addresses: count prefixes of so many bits of IPv4:IPv6
#nulls = "error"  # an event without a user id; "skip" leaves it out
#delta = "change"  # the column of whole-number deltas; each event is 1 if left out
#side = "stream"  # the column that says which of two streams an event is of, where two are counted

# Groups that are counted apart.
#by = "page"  # the column of the groups
#groups = ["home", "help"]  # all there are
#per_user = 1  # in how many of them one user may appear
#ignore_others = false  # leave out events of other groups; else they are refused

# Several machines, one answer: seal each window to a key whose private half is elsewhere, in place
# of its answer. Who has that half merges the files: panprivacy merge.
#contribute = "age1..."

# The statistic overlap publishes a table at the end of each window, which is compared with others.
#key = "drawn once, the same for good"  # public; that of the release store if left out
#keep_tables = "52w"  # how long they are kept after their window; for ever if left out

#retries = 8_192  # how many batch ids are kept, so that a retry is not counted twice

# What is counted: a table for each statistic. They share epsilon equally.

$first
#as = "visitors"  # what its answers are called, in place of its name

# The other statistics. Several of one name need names of their own: as = "visits10". A key that is
# "needed" must be said. Where there are both universe and expected, one of them must be said, and
# not both: universe for users that are numbered (ids = "integers" above), expected for others. Of
# cells and memory say at most one.

$others

# Log lines from nginx or Apache, as datagrams of syslog; there may be several such tables.
#[[streams.$stream.syslog]]
#listen = "unix:/run/panprivacy/nginx.sock"  # or "udp://127.0.0.1:5514"
#mode = 0o660  # of the Unix socket: who may write to it may send
#format = "combined"  # or "lines", with a pattern
#pattern = '^(?P<user>\\S+)'  # of RE2; its named groups are the columns

# Visits of web pages, which load the script /v1/streams/$stream/beacon.js. Groups are by "page", a
# path such as "/help", or by "referrer", the host of the page before; "-" is none.
#[streams.$stream.beacon]
#origins = ["https://example.org"]  # needed: the sites whose pages are counted
#proxies = ["127.0.0.1"]  # who names the visitor in X-Forwarded-For; also "10.1.2.0/24", "unix"
#prefix = "32:64"  # of an address: count so many bits of IPv4:IPv6

# Standard input; at most one stream may have it.
#[streams.$stream.stdin]
#format = "ndjson"  # or "csv", "tsv", "arrow", "combined", or "lines" with a pattern
#pattern = '^(?P<user>\\S+)'
#delimiter = ";"  # of csv; else the header line tells it
#comment = "#"  # of csv and tsv: lines that begin so are left out
#skip_unreadable = true  # leave out rows that cannot be read; else the first one ends the input
""")


def configuration(stream: str, recipient: str | None, hashes: Mapping[Role, str]) -> str:
    """Return the text of a configuration that can be loaded.

    Args:
        stream: name of the stream.
        recipient: public key for checkpoints; None to keep everything in memory.
        hashes: hash of a token for each role.
    """
    first, *others = kinds().values()
    return _TEMPLATE.substitute(
        {role.value: digest for role, digest in hashes.items()},
        first="\n".join([*_head(first, stream, ""), *_keys(first)]),
        others="\n\n".join("\n".join([*_head(kind, stream, "#"), *_keys(kind)]) for kind in others),
        stream=stream,
        mark="#" if recipient is None else "",
        recipient=f'recipient = "{recipient or _PUBLIC_EXAMPLE}"',
    )


def recipe_configuration(recipe: str, recipient: str | None, hashes: Mapping[Role, str]) -> str:
    """Return the text of a configuration with the streams of a recipe.

    Args:
        recipe: name of one of `RECIPES`.
        recipient: public key for checkpoints; None to keep everything in memory.
        hashes: hash of a token for each role.
    """
    text = configuration("visits", recipient, hashes)
    return text[: text.index(_STREAMS)].rstrip() + "\n" + RECIPES[recipe]


def token_table(name: str, may: Sequence[str], digest: str, streams: Sequence[str]) -> str:
    """Return the table of an additional token."""
    lines = ["[[tokens]]", f"name = {json.dumps(name)}", f"may = {json.dumps(list(may))}"]
    lines.append(f'sha256 = "{digest}"')
    if streams:
        lines.append(f"streams = {json.dumps(list(streams))}")
    return "\n".join([*lines, ""])


def _head(kind: StatisticType, stream: str, mark: str) -> list[str]:
    """Return the beginning of the table of a statistic, with its summary."""
    says = textwrap.wrap(f"# {kind.entry.summary}.", _WIDTH, subsequent_indent="# ")
    return [*says, f"{mark}[[streams.{stream}.stat]]", f'{mark}name = "{kind.entry.name}"']


def _keys(kind: StatisticType) -> Iterator[str]:
    """Yield lines for each size and each question of a statistic, with its meaning."""
    for entry in (*kind.entry.sizes.fields().values(), *kind.entry.query.fields().values()):
        if entry.form != "LAW":  # laws are not written by hand
            says = f"needed: {entry.says}" if entry.required else entry.says
            yield from _wrapped(f"#{entry.name} = {_example(entry)}  # {says}")


def _wrapped(line: str) -> list[str]:
    """Return the lines of a key with its meaning, wrapped below itself."""
    key, _, says = line.partition("  # ")
    return textwrap.wrap(
        says, _WIDTH, initial_indent=f"{key}  # ", subsequent_indent=f"#{' ' * len(key)} # "
    )


def _example(entry: Field) -> str:
    """Return the default value, or an example."""
    default = entry.default
    shown = default if isinstance(default, bool | int) else entry.example
    return f"{shown:_}" if type(shown) is int else json.dumps(shown)
