"""Parquet and Arrow IPC: the named columns only, a bounded number of rows at a time.

Files are read, not mapped. An Arrow batch from outside is validated in full: a kernel that follows
wrong offsets reads foreign memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet

from panprivacy.errors import InputError
from panprivacy.intake.sources.columns import Column, StartError, check_columns, show
from panprivacy.intake.sources.reader import BATCH_ROWS, Feed
from panprivacy.tables.ids import decoded

_BUFFER_BYTES = 1 << 20
_ARROW_FILE = b"ARROW1"


def read_parquet(file: Feed, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """Parse a Parquet file, page by page; columns keep its types, with dictionaries decoded.

    Raises:
        InputError: it is a pipe, or not a sound Parquet file with such columns.
    """
    if file.size is None:
        message = (
            "Parquet cannot be read from a pipe, as its index comes last: "
            "save it to a file, or send Arrow IPC (format arrow)"
        )
        raise StartError(message)
    _check_seekable(file, "Parquet")
    with damage_refused("Parquet"):
        parquet = pa.parquet.ParquetFile(
            pa.PythonFile(file.raw, mode="r"), pre_buffer=False, buffer_size=_BUFFER_BYTES
        )
        fields = Fields(parquet.schema_arrow)
        columns = check_columns(columns, fields.names)
        names = [column.name for column in columns]
        rows = 0
        for batch in parquet.iter_batches(BATCH_ROWS, columns=names, use_threads=False):
            rows += batch.num_rows
            file.position = file.size * rows // parquet.metadata.num_rows
            yield _decoded(fields.picked(batch, names))


def read_arrow(file: Feed, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """Parse Arrow IPC: a stream, or a file, which begins with its own magic.

    Columns keep the types of the input, with dictionaries decoded. One batch of the input is in
    memory at a time.

    Raises:
        InputError: it is not sound Arrow IPC with such columns.
    """
    with damage_refused("Arrow IPC"):
        start = file.read(len(_ARROW_FILE))
        file.push_back(start)
        read = _file_batches if start == _ARROW_FILE else _stream_batches
        for batch in read(file, columns):
            fields = Fields(batch.schema)
            wanted = fields.picked(batch, [one.name for one in columns] or fields.names[:1])
            wanted.validate(full=True)
            yield from parts(wanted)
            del batch, wanted


def _stream_batches(file: Feed, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    reader = pa.ipc.open_stream(pa.PythonFile(file, mode="r"))
    fields = Fields(reader.schema)
    columns = check_columns(columns, fields.names)
    for column in columns:
        kind = fields.type_of(column.name)
        kind = kind.value_type if pa.types.is_run_end_encoded(kind) else kind
        if file.size is None and pa.types.is_dictionary(kind):
            message = (
                f"column {show(column.name)} is dictionary-encoded, and Arrow would keep the "
                "dictionary, which holds ids, as long as the pipe is open; send it decoded"
            )
            raise StartError(message)
    yield from reader


def _file_batches(file: Feed, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """Read with random access: buffers of other columns are not read."""
    if file.size is None:
        message = "this is an Arrow file; through a pipe send the Arrow stream format"
        raise StartError(message)
    _check_seekable(file, "an Arrow file")
    fields = Fields(pa.ipc.open_file(pa.PythonFile(file.raw, mode="r")).schema)
    columns = check_columns(columns, fields.names)
    places = sorted({fields.column_index(column.name) for column in columns})
    options = pa.ipc.IpcReadOptions(included_fields=places, use_threads=False)
    reader = pa.ipc.open_file(pa.PythonFile(file.raw, mode="r"), options=options)
    for index in range(reader.num_record_batches):
        yield reader.get_batch(index)
        file.position = file.size * (index + 1) // reader.num_record_batches


def _check_seekable(file: Feed, name: str) -> None:
    if file.packing is not None:
        message = f"this is {file.packing.name}, in which {name} cannot be read: unpack it first"
        raise StartError(message)


class Fields:
    """The columns of a schema, and the nested fields of structs: `a.b`, at any depth."""

    def __init__(self, schema: pa.Schema) -> None:
        top = {name: (name,) for name in schema.names}
        self._schema, self._paths = schema, {**dict(_paths_within(schema)), **top}
        self.names = [*schema.names, *(name for name in self._paths if name not in top)]

    def column_index(self, name: str) -> int:
        """Return the index of the column that contains a field."""
        return int(self._schema.get_field_index(self._paths[name][0]))

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a field."""
        first, *rest = self._paths[name]
        kind = self._schema.field(first).type
        for inner in rest:
            kind = kind.field(inner).type
        return kind

    def picked(self, batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """Return some fields of a batch as columns; null where a struct is null."""
        arrays = []
        for first, *rest in (self._paths[name] for name in names):
            column = batch.column(first)
            arrays.append(pc.struct_field(column, rest) if rest else column)
        return pa.RecordBatch.from_arrays(arrays, names=list(names))


def _paths_within(fields: Iterable[pa.Field]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the dotted names of all nested fields, and their paths."""
    for field in fields:
        if pa.types.is_struct(field.type):
            inner = [field.type.field(at) for at in range(field.type.num_fields)]
            below = [(one.name, (one.name,)) for one in inner] + list(_paths_within(inner))
            for name, path in below:
                yield f"{field.name}.{name}", (field.name, *path)


def parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a sound batch in parts of bounded length, each decoded: a run may have any length."""
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield _decoded(batch.slice(start, BATCH_ROWS))


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with plain columns in place of dictionaries and runs."""
    plain = [decoded(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(plain, names=batch.schema.names)


@contextmanager
def damage_refused(name: str) -> Iterator[None]:
    """Replace the errors of pyarrow by an error that the input is damaged."""
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, ValueError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        message = f"this cannot be read as {name}: it is truncated, damaged or something else"
        raise InputError(message) from None
