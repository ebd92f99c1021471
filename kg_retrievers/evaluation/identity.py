"""What a part of a run is, as a few letters that change with it: the examples, the language model, the prompts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from hashlib import blake2b
from inspect import getattr_static
from types import FunctionType, MethodType
from typing import Any

import numpy as np
from langchain_core.language_models import BaseLanguageModel
from langchain_core.load import dumps
from langchain_core.prompts import BasePromptTemplate

from kg_retrievers.database.executor import DatabaseExecutor
from kg_retrievers.index import EntityLinker


def digest(texts: Sequence[str]) -> str:
    """Return 32 hexadecimal digits that change with any of the texts."""
    return blake2b(json.dumps(texts).encode(), digest_size=16).hexdigest()


def identity(part: object) -> str:
    """Return 32 hexadecimal digits that change with what a part of a run holds.

    Looked at are the attributes, and theirs in turn, of any object: so it needs to know no method. Of a language model
    count the class and the parameters that it names as its own, which hold no key; of what has a fingerprint, such as
    an index, this. The same construction gives the same digits in every process, unless an object holds something
    random.

    Example:
        >>> identity({"examples": ["a"]}) == identity({"examples": ["a"]}) != identity({"examples": ["b"]})
        True
    """
    return digest([*_texts(part, ())])


def _texts(part: Any, inside: tuple[int, ...]) -> Iterator[str]:
    if id(part) in inside:
        return
    inside = (*inside, id(part))
    kind = part if isinstance(part, type) else type(part)
    yield f"{kind.__module__}.{kind.__qualname__}"
    match part:
        case None | bool() | int() | float() | str() | bytes():
            yield repr(part)
        case np.ndarray():
            yield f"{part.dtype} {part.shape} {blake2b(part.tobytes()).hexdigest()}"
        case EntityLinker():  # the rest is made of the index when it is first needed
            yield f"{part.index.fingerprint} {part.max_candidates} {part.no_entity}"
        case BaseLanguageModel():
            named = {name: getattr(part, name, None) for name in ("model_name", "model", "model_id")}
            for name, value in sorted({**named, **part._identifying_params}.items()):
                if isinstance(value, bool | int | float | str):
                    yield f"{name}={value!r}"
        case BasePromptTemplate():
            yield dumps(part)
        case Mapping():
            for key, value in part.items():
                yield from _texts(key, inside)
                yield from _texts(value, inside)
        case set() | frozenset():
            yield from sorted(identity(item) for item in part)
        case list() | tuple():
            for item in part:
                yield from _texts(item, inside)
        case partial():
            yield from _texts((part.func, part.args, part.keywords), inside)
        case MethodType():
            yield from _texts((part.__func__, part.__self__), inside)
        case FunctionType():
            yield part.__qualname__
            yield from _texts([cell.cell_contents for cell in part.__closure__ or ()], inside)
        case type() | DatabaseExecutor():  # a database is where facts are, and another place changes no result
            pass
        case _ if isinstance(getattr(part, "fingerprint", None), str):  # such as an index, or a model that answers
            yield part.fingerprint
        case _:
            for name, value in sorted(getattr(part, "__dict__", {}).items()):
                if not isinstance(getattr_static(kind, name, None), cached_property):
                    yield name
                    yield from _texts(value, inside)
