"""Tables that pyarrow reads: Parquet and Arrow IPC files, and columns of Arrow."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kg_retrievers.errors import GraphLoadError, MissingExtraError
from kg_retrievers.graph.readers.opening import Limits, check_regular, limit_error, packing_of, read_errors
from kg_retrievers.graph.readers.tables.cells import Encoded, encode
from kg_retrievers.graph.readers.text_files import repeated_name

try:
    import pyarrow
    from pyarrow import compute, ipc, parquet
except ImportError as cause:
    raise MissingExtraError("Reading Parquet and Arrow files", "arrow") from cause

#: How many rows are read at a time, and how many of them become Python objects at once.
BATCH_ROWS, ROWS_AT_ONCE = 1 << 18, 1 << 12

#: The most bytes that the rows of a batch of Parquet become, if there are several.
BATCH_BYTES = 1 << 24

#: The memory that a row takes at least, three ids, and a number or an element of a list.
ROW_BYTES, VALUE_BYTES = 12, 8

#: The first and the last bytes of the file format of Arrow IPC.
_MAGIC = b"ARROW1"

#: The errors that pyarrow raises for a damaged file.
_ERRORS = (pyarrow.ArrowException, ValueError, TypeError, LookupError, RecursionError)

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
        self._path, self._limits, self._most = path, limits, limits.bytes_of(path.stat().st_size)
        self._page_bytes = list[list[int]]()
        self.kind = {"parquet": "Parquet", "arrow": "Arrow IPC"}[format]
        with read_errors(path, *_ERRORS):
            if format == "parquet":
                about = parquet.read_metadata(path)
                self._check_pages(about)
                schema, columns = about.schema.to_arrow_schema(), about.num_columns
            else:
                with _ipc_stream(path) as stream:
                    self._check_size(sum(map(_message_bytes, ipc.MessageReader.open_stream(stream))))
                with _ipc_stream(path) as stream:
                    schema = ipc.open_stream(stream).schema
                columns = len(schema)
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

    def rows(self, at_once: int = ROWS_AT_ONCE) -> Iterator[dict[str, Any]]:
        """Yield each row by the names of the columns. Python objects are made of so many rows at a time."""
        with read_errors(self._path, *_ERRORS):
            for batch in self._read(None):
                for start in range(0, batch.num_rows, at_once):
                    yield from batch.slice(start, at_once).to_pylist()

    def _read(self, columns: Sequence[str] | None) -> Iterator[Any]:
        """Yield the rows in tables of up to `BATCH_ROWS` and `BATCH_BYTES`, as far as a batch allows it."""
        waiting, rows, size, before = list[Any](), 0, 0, 0
        for batch in self._parquet(columns) if self.kind == "Parquet" else self._ipc():
            read = batch.columns if columns is None else map(batch.column, columns)
            self._limits.check_time(self._path)
            size += ROW_BYTES * batch.num_rows + sum(map(_decoded_bytes, read))
            self._check_size(size)
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= BATCH_ROWS or size - before >= BATCH_BYTES:
                yield pyarrow.Table.from_batches(waiting)
                waiting, rows, before = [], 0, size
        if waiting:
            yield pyarrow.Table.from_batches(waiting)

    def _parquet(self, columns: Sequence[str] | None) -> Iterator[Any]:
        """Yield so many rows at a time that wide ones fit into the memory.

        The texts of lists stay numbers of a dictionary, since one row may have any number of them.
        """
        about = parquet.read_metadata(self._path)
        paths = [about.schema.column(at).path for at in range(about.num_columns)]
        lists = [paths[at] for at in _lists(about)]
        options: dict[str, Any] = {"columns": columns, "use_threads": False}
        with self._open(about, lists) as file:
            for group, sizes in enumerate(self._page_bytes):
                chunks = [about.row_group(group).column(at) for at in range(about.num_columns)]
                encodings = [" ".join(one.encodings) for one in chunks]
                growing = [size for size, used in zip(sizes, encodings, strict=True) if "DELTA_BYTE_ARRAY" in used]
                plain = [path for path, used in zip(paths, encodings, strict=True) if "DELTA" not in used]
                with self._open(about, [*plain, *lists]) as probed:
                    first = next(probed.iter_batches(1, row_groups=[group], **options), None)
                width = sum(growing) + (sum(map(_widest, first.columns)) if first else 0)
                rows = min(BATCH_ROWS, max(1, BATCH_BYTES // max(1, width)))
                yield from file.iter_batches(rows, row_groups=[group], **options)

    def _open(self, about: Any, as_dictionaries: list[str]) -> Any:
        return parquet.ParquetFile(self._path, metadata=about, memory_map=True, read_dictionary=as_dictionaries)

    def _ipc(self) -> Iterator[Any]:
        with _ipc_stream(self._path) as stream:
            for batch in ipc.open_stream(stream):
                batch.validate(full=True)  # what is read from the file may point anywhere
                yield batch

    def _check_pages(self, about: Any) -> None:
        """Count the bytes that the pages of Parquet become, by their own headers: the metadata may say less."""
        self._check_size(ROW_BYTES * about.num_rows)
        total, source, lists = 0, pyarrow.memory_map(str(self._path)), set(_lists(about))
        for group in range(about.num_row_groups):
            sizes = [0] * about.num_columns
            for column in range(about.num_columns):
                chunk = about.row_group(group).column(column)
                source.seek(min(filter(None, (chunk.data_page_offset, chunk.dictionary_page_offset))))
                pages, at = memoryview(source.read_buffer(chunk.total_compressed_size)).cast("B"), 0
                while at < len(pages):
                    head, at = _thrift(pages, at)
                    values = max((one.get(1, 0) for one in head.values() if isinstance(one, dict)), default=0)
                    size = max(head[2], VALUE_BYTES * values if column in lists or 7 in head else 0)
                    sizes[column] += size
                    total += size
                    at += max(0, head[3])
                    self._check_size(total)
                    self._limits.check_time(self._path)
            self._page_bytes.append(sizes)

    def _check_size(self, size: int) -> None:
        if size > self._most:
            exceeded = f"the compressed file becomes more than {self._most:,} bytes"
            raise limit_error(self._path, None, exceeded, "unpacked_bytes")


def _lists(about: Any) -> list[int]:
    """Return which columns of Parquet may have several values in a row."""
    return [at for at in range(about.num_columns) if about.schema.column(at).max_repetition_level]


def _thrift(flat: memoryview, at: int) -> tuple[dict[int, Any], int]:
    """Read the header of a page of Parquet, in Thrift's compact protocol.

    Returns:
        Its fields by number, and the place behind it.

    Raises:
        ValueError: If it holds a type that no such header has.
    """
    fields, name = dict[int, Any](), 0
    while kind := flat[at] & 15:
        step, at = flat[at] >> 4, at + 1
        name, at = (name + step, at) if step else _signed(flat, at)
        if name in fields or not 0 < name < 1 << 15:
            raise ValueError("the header of a page is damaged")
        if kind == 12:
            fields[name], at = _thrift(flat, at)
        elif kind in (5, 6):
            fields[name], at = _signed(flat, at)
        elif kind == 8:
            length, at = _number(flat, at)
            at += length
        elif kind == 3:
            at += 1
        elif kind > 2:
            raise ValueError("the header of a page is damaged")
    return fields, at + 1


def _number(flat: memoryview, at: int) -> tuple[int, int]:
    """Read a number of seven bits in each byte; return it and the place behind it."""
    found = shift = 0
    while flat[at] > 127 and shift < 64:
        found, shift, at = found | (flat[at] & 127) << shift, shift + 7, at + 1
    return found | flat[at] << shift, at + 1


def _signed(flat: memoryview, at: int) -> tuple[int, int]:
    found, at = _number(flat, at)
    found &= 0xFFFFFFFF  # as Arrow reads them
    return found >> 1 ^ -(found & 1), at


def _ipc_stream(path: Path) -> Any:
    """Open the stream of Arrow IPC, which the file format (Feather version 2) holds behind its first eight bytes.

    Raises:
        ValueError: If the file ends before its end.
    """
    source = pyarrow.memory_map(str(path))
    is_file = source.read(len(_MAGIC)) == _MAGIC
    if is_file and source.read_at(len(_MAGIC), max(0, source.size() - len(_MAGIC))) != _MAGIC:
        raise ValueError(f"the last bytes are not {_MAGIC.decode()}")
    source.seek(8 if is_file else 0)
    return source


def _message_bytes(message: Any) -> int:
    """Return how many bytes a message of IPC becomes, which the beginning of each compressed part says."""
    flat = memoryview(message.metadata)

    def number(form: str, at: int) -> int:
        return int(struct.unpack_from(f"<{form}", flat, at)[0])

    def field(table: int, position: int) -> int:
        """Return where a field of a table of FlatBuffers is, or 0 if it is not there."""
        about = table - number("i", table)
        offset = number("H", about + 4 + 2 * position) if 4 + 2 * position < number("H", about) else 0
        return table + offset if offset else 0

    def target(at: int) -> int:
        return at + number("I", at)

    if message.type not in ("record batch", "dictionary"):
        return 0
    batch = target(field(target(0), 2))
    if message.type == "dictionary":
        batch = target(field(batch, 1))
    buffers = target(field(batch, 2))
    places = [struct.unpack_from("<qq", flat, buffers + 4 + 16 * at) for at in range(number("I", buffers))]
    if not field(batch, 3):
        return sum(length for _, length in places)
    body = memoryview(message.body)
    return sum(max(length, *struct.unpack_from("<q", body, start)) for start, length in places if length)


def _decoded_bytes(array: Any) -> int:
    """Return how many bytes the values of an array take if each is written out.

    Raises:
        ValueError: If the type of the array lets one value stand for many.
    """
    kind = array.type
    if isinstance(kind, pyarrow.BaseExtensionType):
        return _decoded_bytes(array.storage)
    if pyarrow.types.is_dictionary(kind) and not pyarrow.types.is_nested(kind.value_type):
        lengths = _lengths(array.dictionary)
        return (
            compute.sum(lengths.take(array.indices)).as_py() or 0 if lengths is not None else VALUE_BYTES * len(array)
        )
    if pyarrow.types.is_struct(kind):
        return sum(map(_decoded_bytes, array.flatten()))
    if pyarrow.types.is_map(kind):
        return _decoded_bytes(array.keys) + _decoded_bytes(array.items)
    if isinstance(kind, pyarrow.ListType | pyarrow.LargeListType | pyarrow.FixedSizeListType):
        return _decoded_bytes(array.flatten()) + VALUE_BYTES * len(array)
    if pyarrow.types.is_nested(kind):
        raise ValueError(f"a column has the type {kind}. Write it as texts, numbers or lists")
    lengths = _lengths(array)
    return VALUE_BYTES * len(array) if lengths is None else compute.sum(lengths).as_py() or 0


def _lengths(array: Any) -> Any:
    """Return the length of each text or run of bytes, or None if the array holds others."""
    name = str(array.type)
    if name in _VIEWS:  # each view of 16 bytes begins with the length
        lengths = np.frombuffer(array.buffers()[1] or b"", np.int32)[::4]
        return pyarrow.array(lengths[array.offset : array.offset + len(array)])
    return compute.binary_length(array) if "string" in name or "binary" in name else None


def _widest(array: Any) -> int:
    """Return the most bytes that a value of an array can take, by its dictionary."""
    if pyarrow.types.is_struct(array.type):
        return sum(map(_widest, array.flatten()))
    texts = array.dictionary if pyarrow.types.is_dictionary(array.type) else array
    lengths = None if pyarrow.types.is_nested(array.type) else _lengths(texts)
    return VALUE_BYTES if lengths is None else max(VALUE_BYTES, compute.max(lengths).as_py() or 0)


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
