"""Ways to read a source in tests, and to see that an error quotes nothing."""

import os
import sys
import threading
import traceback
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, settings

from panprivacy.errors import InputError
from panprivacy.intake.sources import Column, open_source

USER = Column("user")
DELTA = Column("delta", integers=True)
SECRET = "8412345"
UNCLOSED = 'a quoted field is still open at the end of the input: a closing " is missing'
LONE_CR = "lines must end in a newline (LF or CRLF), not in a lone carriage return"
NOT_WHOLE = "column 'delta' must hold whole numbers of at most 64 bits"
ONE_TYPE = "here; ids must be strings or whole numbers of at most 64 bits"
FRACTION = f"column 'user' holds a fraction, or a number beyond 64 bits {ONE_TYPE}"
PROPERTY = settings(
    max_examples=75,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@contextmanager
def pipe(data=b""):
    """A pipe into which a thread writes; yields its path."""
    reading, writing = os.pipe()
    writer = threading.Thread(target=_write_and_close, args=(writing, data))
    writer.start()
    try:
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)
        writer.join()


def _write_and_close(descriptor, data):
    try:
        with os.fdopen(descriptor, "wb") as sink:
            sink.write(data)
    except BrokenPipeError:
        pass


def batches(path, *columns, kind):
    with open_source(str(path), columns=columns, format=kind) as source:
        return list(source.batches())


def rows(path, *columns, kind="csv"):
    """All rows, as tuples of the wanted columns."""
    return [
        tuple(row.values())
        for batch in batches(path, *columns, kind=kind)
        for row in batch.to_pylist()
    ]


def from_file(tmp_path, data, *columns, kind="csv"):
    path = tmp_path / "input"
    path.write_bytes(data)
    return rows(path, *columns, kind=kind)


def from_pipe(data, *columns, kind="csv"):
    with pipe(data) as path:
        return rows(path, *columns, kind=kind)


def refusal(read, *arguments, **keywords):
    """The InputError that reading raises; one line, which holds no id, as does its traceback."""
    with pytest.raises(InputError) as raised:
        read(*arguments, **keywords)
    error = raised.value
    shown = "".join(traceback.format_exception(error)) + repr((vars(error), error.__context__))
    assert SECRET not in shown
    assert "\n" not in str(error)
    assert error.__cause__ is None
    return error


def table(rows=10_000):
    users = pa.array([f"user{i % 977}-{SECRET}" if i % 10 else None for i in range(rows)])
    return pa.table(
        {
            "x": np.arange(rows),
            "user": users,
            "kind": users.dictionary_encode(),
            "delta": np.arange(rows) % 5,
        }
    )


def parquet_bytes(data):
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(data, sink, row_group_size=3_000)
    return sink.getvalue().to_pybytes()


def arrow_bytes(data, new=pa.ipc.new_file, **options):
    sink = pa.BufferOutputStream()
    with new(sink, data.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(data, max_chunksize=3_000)
    return sink.getvalue().to_pybytes()


def stream_bytes(data, **options):
    return arrow_bytes(data, pa.ipc.new_stream, **options)


WRITERS = {"parquet": parquet_bytes, "file": arrow_bytes, "stream": stream_bytes}


def locals_of_thread(thread):
    """Every local variable of a thread that waits."""
    frame = sys._current_frames()[thread.ident]
    while frame:
        yield from frame.f_locals.values()
        frame = frame.f_back
