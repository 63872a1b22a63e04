"""What is slow the first time is done before anybody waits for it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.programs.intake import Intake
from panprivacy.service.config.stream import StreamConfig
from panprivacy.sources import Column, read_body


def warm_up(config: StreamConfig) -> None:
    """Read a made-up body of each format, and count it in a statistic that is thrown away."""
    counting = config.make_counting()
    columns = config.columns(counting)
    intake = Intake(columns, config.nulls)
    for kind, body in _samples(columns.wanted()):
        with suppress(InputError):  # of a group that is not declared, say
            batches = read_body(kind, bytearray(body), columns.wanted())
            counting.apply(*[intake.prepare(counting, batch, 0) for batch in batches])
    counting.forget()


def _samples(columns: Sequence[Column]) -> Iterator[tuple[str, bytes]]:
    """One row in each format."""
    row = {one.name: 1 if one.integers else "::1" for one in columns}
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
