"""Configuration of the daemon: one TOML file, as frozen structs whose fields are its keys.

`loading.load` reads a file and calls `Config.check`, so a `Config` from there needs no more checks.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from panprivacy.errors import PlanError
from panprivacy.ground.sealing import check_recipient
from panprivacy.ground.validation import positive_integer
from panprivacy.intake.sources.columns import show_all
from panprivacy.service.config.beacon import UNIX
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.config.tokens import Token
from panprivacy.service.config.values import DAY, ConfigError, in_table, seconds
from panprivacy.service.sockets import Address, http_address

SQLITE: Final = "sqlite:///"
"""Start of the URL of a file of SQLite."""

_LONGEST_BODY: Final = 1 << 30
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NATS: Final = "nats://", "tls://"
_SMALLEST_QUEUE: Final = 1 << 20


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[server]` table.

    Args:
        listen: where HTTP requests are taken.
        directory: of the files of the service; absolute once loaded.
        max_body_bytes: of one request.
        max_waiting_bytes: that have come of all bodies and are not counted yet.
        timeout: for a whole request to arrive.
    """

    listen: str = "127.0.0.1:8642"
    directory: str = "."
    max_body_bytes: int = 16_777_216
    max_waiting_bytes: int = 268_435_456
    timeout: str = "30s"

    @property
    def address(self) -> Address:
        """Parsed `listen`."""
        return http_address(self.listen)

    @property
    def timeout_seconds(self) -> int:
        """`timeout` in seconds."""
        return seconds(DAY, timeout=self.timeout)

    def check(self) -> None:
        """Raise `PlanError` if a value is invalid."""
        _ = self.address, self.timeout_seconds
        longest = positive_integer(_LONGEST_BODY, max_body_bytes=self.max_body_bytes)
        if positive_integer(max_waiting_bytes=self.max_waiting_bytes) < 3 * longest:
            message = "max_waiting_bytes must be at least three times max_body_bytes: a third of "
            message += "it is what one token may fill for one stream"
            raise PlanError(message)


class ReleasesConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[releases]` table.

    Args:
        store: URL of the database of what was released and spent; with an absolute path once
            loaded.
    """

    store: str = "sqlite:///releases.sqlite"

    def check(self) -> None:
        """Raise `PlanError` if a value is invalid; the message does not show the password."""
        path = self.store.removeprefix(SQLITE)
        is_file = path != self.store and path and not path.startswith((":", "file:"))
        if not is_file and not self.store.startswith(("postgresql://", "postgresql+psycopg://")):
            message = "store must be sqlite:///file or "
            message += "postgresql+psycopg://user:password@host/database"
            raise PlanError(message)


class CheckpointConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[checkpoint]` table.

    Args:
        recipient: the public key of age to which checkpoints are sealed.
        path: of the file; absolute once loaded.
        every: how often it is written.
    """

    recipient: str
    path: str = "panprivacy.sealed"
    every: str = "1s"

    @property
    def every_seconds(self) -> int:
        """`every` in seconds."""
        return seconds(DAY, every=self.every)

    def check(self) -> None:
        """Raise `PlanError` if a value is invalid."""
        check_recipient(self.recipient)
        _ = self.every_seconds
        if not self.path:
            message = "path must name a file"
            raise PlanError(message)


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[cluster]` table, which `panprivacy cluster` reads alone.

    Args:
        nats: where the servers of NATS are.
        name: of this cluster among those that share these servers.
        credentials: file of NATS that says who we are; absolute once loaded.
        queue_bytes: that a queue of the broker may hold.
        identity: variable of the environment, on each node, that holds the private key.
        identity_command: prints the private key, in place of the variable.
        patience: how long a release waits for a shard; by default, the length of the window.
        start_patience: how long the start waits for Ray, and for the shards.
    """

    nats: tuple[str, ...] = ("nats://127.0.0.1:4222",)
    name: str = "panprivacy"
    credentials: str | None = None
    queue_bytes: int = 268_435_456
    identity: str = "PANPRIVACY_IDENTITY"
    identity_command: tuple[str, ...] | None = None
    patience: str | None = None
    start_patience: str = "2m"

    @property
    def start_seconds(self) -> int:
        """`start_patience` in seconds."""
        return seconds(DAY, start_patience=self.start_patience)

    def patience_seconds(self, window_seconds: int) -> int:
        """Return `patience` in seconds, for a stream with windows of this length."""
        return window_seconds if self.patience is None else seconds(DAY, patience=self.patience)

    def check(self) -> None:
        """Raise `PlanError` if a value is invalid."""
        if not self.nats or not all(one.startswith(_NATS) for one in self.nats):
            message = "nats must name servers, such as nats://127.0.0.1:4222"
            raise PlanError(message)
        check_name(self.name, "cluster")
        if positive_integer(queue_bytes=self.queue_bytes) < _SMALLEST_QUEUE:
            message = f"queue_bytes must be at least {_SMALLEST_QUEUE:,}, or no body fits"
            raise PlanError(message)
        if not _VARIABLE.fullmatch(self.identity):
            message = "identity must be the name of a variable of the environment, such as "
            message += "PANPRIVACY_IDENTITY: the key itself must not be on this machine"
            raise PlanError(message)
        if self.identity_command is not None and not all(self.identity_command or [""]):
            message = 'identity_command must be words, such as ["vault", "read", "panprivacy"]'
            raise PlanError(message)
        _ = self.patience_seconds(1), self.start_seconds


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole configuration.

    Args:
        streams: by name.
        server: how requests are taken.
        releases: where answers are kept.
        checkpoint: where states are sealed to; None to keep them in memory only.
        tokens: who may do what.
        cluster: how several machines count together.
    """

    streams: dict[str, StreamConfig]
    server: ServerConfig = ServerConfig()
    releases: ReleasesConfig = ReleasesConfig()
    checkpoint: CheckpointConfig | None = None
    tokens: tuple[Token, ...] = ()
    cluster: ClusterConfig = ClusterConfig()

    def check(self) -> None:
        """Raise `ConfigError` if anything is invalid, or cannot be counted."""
        with in_table("server"):
            self.server.check()
        with in_table("releases"):
            self.releases.check()
        if self.checkpoint is not None:
            with in_table("checkpoint"):
                self.checkpoint.check()
        with in_table("cluster"):
            self.cluster.check()
        if not self.streams:
            raise ConfigError((), "name at least one stream: [streams.visits]")
        for name, stream in self.streams.items():
            with in_table("streams", name):
                check_name(name)
                stream.check()
                self._check_proxies(stream)
        reading = [name for name, stream in self.streams.items() if stream.stdin is not None]
        if len(reading) > 1:
            message = f"only one stream can read standard input, and {reading[0]} does"
            raise ConfigError(("streams", reading[1], "stdin"), message)
        self._check_tokens()
        self._check_listeners()

    def _check_proxies(self, stream: StreamConfig) -> None:
        """Check that the visitors of a beacon have addresses: a Unix socket shows none."""
        if stream.beacon is None:
            return
        address, named = self.server.address, stream.beacon.proxies
        message = ""
        if address.path and UNIX not in named:
            message = 'proxies must have "unix": a Unix socket shows no address of a visitor, and '
            message += "the proxy has to name it in X-Forwarded-For"
        elif not address.path and UNIX in named:
            message = 'proxies must not have "unix": the service listens at an IP address'
        if message:
            raise ConfigError(("beacon",), message)

    def _check_tokens(self) -> None:
        """Check that no two tokens are the same, and that each is for existing streams."""
        for position, token in enumerate(self.tokens):
            with in_table("tokens", position):
                token.check()
                for other in self.tokens[:position]:
                    if other.name == token.name:
                        message = "name must be another one: two tokens have it"
                        raise PlanError(message)
                    if other.sha256.lower() == token.sha256.lower():
                        message = f"sha256 must be another one: it is that of {other.name!r}"
                        raise PlanError(message)
                for name in token.streams or ():
                    if name not in self.streams:
                        message = f"streams names {name!r}, which is none; the streams are "
                        raise PlanError(message + show_all(self.streams))

    def _check_listeners(self) -> None:
        """Check that no two listeners share an address; ports of TCP and UDP are separate."""
        taken = {self.server.address} if self.server.address.path else set()
        for name, stream in self.streams.items():
            for position, syslog in enumerate(stream.syslog):
                if syslog.address in taken:
                    table = "streams", name, "syslog", position
                    message = "listen must be another address: this one is taken above"
                    raise ConfigError(table, message)
                taken.add(syslog.address)


def check_name(name: str, what: str = "stream") -> None:
    """Raise `PlanError` if the name of a stream is invalid: it is part of paths."""
    if not _NAME.fullmatch(name):
        message = f"the name of a {what} must be 1 to 64 of a-z, 0-9, _ and -, first a letter"
        raise PlanError(message)
