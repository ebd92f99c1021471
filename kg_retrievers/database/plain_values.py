"""Turns the values of database drivers into values that JSON holds."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import Any


def plain(value: Any) -> Any:
    """Return a value as JSON-safe values.

    Dates and durations become ISO 8601 texts, and all else that JSON lacks becomes a text.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in value]
    if isinstance(value, Decimal):  # the sum of integers in LadybugDB
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    iso_format = getattr(value, "iso_format", None)  # the temporal types of the Neo4j driver
    return str(iso_format() if callable(iso_format) else value)
