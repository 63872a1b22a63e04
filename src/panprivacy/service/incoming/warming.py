"""Warm-up: operations that are slow the first time run before anybody waits for them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.intake.programs.intake import Intake
from panprivacy.intake.sources import BodyReader, Column
from panprivacy.service.config.stream import StreamConfig


def warm_up(config: StreamConfig) -> None:
    """Read a synthetic body of each format, and count it in a temporary statistic.

    One group is enough: all of them count alike.
    """
    config = config.of_first_group()
    counting = config.make_counting()
    columns = config.columns(counting)
    intake, reader = Intake(columns, config.nulls), BodyReader(columns.wanted())
    for kind, body in _samples(columns.wanted(), config):
        with suppress(InputError):  # such as a user outside the universe
            batches = reader.read(kind, bytearray(body))
            counting.internals.memory.apply(
                *[intake.prepare(counting, batch, 0) for batch in batches]
            )
    counting.forget()


def _samples(columns: Sequence[Column], config: StreamConfig) -> Iterator[tuple[str, bytes]]:
    """Yield one row in each format, of the first group."""
    row = {one.name: 1 if one.integers or one.numbers else "::1" for one in columns}
    if config.by is not None and config.groups:
        row[config.by] = config.groups[0]
    line = json.dumps(row).encode()
    yield "int64", bytes(8)
    yield "ndjson", line
    yield "json", line
    for kind, separator in (("csv", ","), ("tsv", "\t")):
        yield (
            kind,
            "\n".join((separator.join(row), separator.join(map(str, row.values())))).encode(),
        )
    table = pa.table({name: [value] for name, value in row.items()})
    with io.BytesIO() as stream:
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
        yield "arrow", stream.getvalue()
