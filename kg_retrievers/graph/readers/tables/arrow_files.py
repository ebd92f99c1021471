"""Tables that pyarrow reads: Parquet and Arrow IPC files, and columns of Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kg_retrievers.errors import GraphLoadError, MissingExtraError
from kg_retrievers.graph.readers.opening import Limits, check_regular, limit_error, packing_of, read_errors
from kg_retrievers.graph.readers.tables.cells import Encoded, encode
from kg_retrievers.graph.readers.text_files import repeated_name

try:
    import pyarrow
    from pyarrow import compute, ipc, parquet
except ImportError as cause:
    raise MissingExtraError("Reading Parquet and Arrow files", "arrow") from cause

#: How many rows are read at a time.
BATCH_ROWS = 1 << 18

#: The memory that a row takes at least: three ids.
ROW_BYTES = 12

#: The errors that pyarrow raises for a damaged file.
_ERRORS = (pyarrow.ArrowException, ValueError, TypeError)

_VIEWS = {"string_view": pyarrow.large_string(), "binary_view": pyarrow.large_binary()}  # which cannot be numbered


def arrow_columns(frame: Any) -> list[tuple[str, Any]]:
    """Return the names and columns of an object with `__arrow_c_stream__`."""
    table = pyarrow.table(frame)
    return [*zip(map(str, table.column_names), table.columns, strict=True)]


class ArrowFile:
    """A Parquet file, or an Arrow IPC file or stream, read in batches."""

    lines = None

    def __init__(self, path: Path, format: str, limits: Limits) -> None:
        """Open the file and read the names of its columns.

        Raises:
            GraphLoadError: If it is no such file, or says that it becomes larger than it may.
        """
        check_regular(path)
        if packing := packing_of(path):
            raise GraphLoadError(f"is packed ({packing}), but such a table is packed within. Unpack it first.", path)
        self._path, self._most = path, limits.bytes_of(path.stat().st_size)
        self.kind = {"parquet": "Parquet", "arrow": "Arrow IPC"}[format]
        with read_errors(path, *_ERRORS):
            if format == "parquet":
                about = parquet.read_metadata(path)
                size = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
                self._check_size(max(size, ROW_BYTES * about.num_rows))
                schema, columns = about.schema.to_arrow_schema(), about.num_columns
            else:
                with _open_ipc(path) as reader:
                    schema, columns = reader.schema, len(reader.schema)
            if columns > limits.columns:
                raise limit_error(path, None, f"a table of {columns:,} columns", "columns", columns)
            self.names = [str(name) for name in schema.names]
            if name := repeated_name(self.names):
                raise GraphLoadError(f"two columns have one name, {name!r}. Rename one.", path)

    def batches(self, columns: Sequence[str]) -> Iterator[list[Encoded]]:
        """Yield these columns, so many rows at a time."""
        with read_errors(self._path, *_ERRORS):
            for batch in self._read([*dict.fromkeys(columns)]):
                yield [encoded_column(batch.column(name)) for name in columns]
        pyarrow.default_memory_pool().release_unused()

    def rows(self, at_once: int = BATCH_ROWS) -> Iterator[dict[str, Any]]:
        """Yield each row by the names of the columns. Python objects are made of so many rows at a time."""
        with read_errors(self._path, *_ERRORS):
            for batch in self._read(None):
                for start in range(0, batch.num_rows, at_once):
                    yield from batch.slice(start, at_once).to_pylist()

    def _read(self, columns: Sequence[str] | None) -> Iterator[Any]:
        if self.kind == "Parquet":
            with parquet.ParquetFile(self._path, memory_map=True) as file:
                yield from file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False)
            return
        size = 0
        with _open_ipc(self._path) as reader:
            is_file = hasattr(reader, "num_record_batches")
            for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
                batch.validate(full=True)  # what is read from the file may point anywhere
                size += max(batch.get_total_buffer_size(), ROW_BYTES * batch.num_rows)
                self._check_size(size)
                yield batch

    def _check_size(self, size: int) -> None:
        if size > self._most:
            exceeded = f"the compressed file becomes more than {self._most:,} bytes"
            raise limit_error(self._path, None, exceeded, "unpacked_bytes")


def _open_ipc(path: Path) -> Any:
    """Open the file format of Arrow IPC (Feather version 2), or else its stream format."""
    source = pyarrow.memory_map(str(path))
    try:
        return ipc.open_file(source)
    except pyarrow.ArrowInvalid:
        source.seek(0)
        return ipc.open_stream(source)


def encoded_column(column: Any) -> Encoded:
    """Number the distinct values of an Arrow column."""
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pyarrow.ChunkedArray):  # as earlier versions return
            column = pyarrow.concat_arrays(column.chunks)
    kind = column.type
    if pyarrow.types.is_timestamp(kind) and kind.unit == "ns":  # Python's times hold no nanoseconds
        column = column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    if str(kind) in _VIEWS:
        column = column.cast(_VIEWS[str(kind)])
    if not pyarrow.types.is_dictionary(kind):
        try:
            column = column.dictionary_encode()
        except (pyarrow.ArrowNotImplementedError, pyarrow.ArrowTypeError):  # lists and structures
            return encode(column.to_pylist())
    codes = compute.fill_null(column.indices.cast(pyarrow.int64()), -1).to_numpy(zero_copy_only=False)
    return Encoded(codes, column.dictionary.to_pylist())
