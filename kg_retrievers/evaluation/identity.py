"""What a part of a run is, as a few letters that change with it: the examples, the language model, the prompts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from hashlib import blake2b
from inspect import getattr_static
from itertools import chain
from types import FunctionType, MethodType
from typing import Any

import numpy as np
from langchain_core.language_models import BaseLanguageModel
from langchain_core.load import dumps
from langchain_core.prompts import BasePromptTemplate

from kg_retrievers.database.executor import DatabaseExecutor
from kg_retrievers.graph.cache import Cache
from kg_retrievers.index import EntityLinker


def digest(texts: Sequence[str]) -> str:
    """Return 32 hexadecimal digits that change with any of the texts."""
    return blake2b(json.dumps(texts).encode(), digest_size=16).hexdigest()


def identity(part: object) -> str:
    """Return 32 hexadecimal digits that change with what a part of a run holds.

    Looks at the attributes of any object, and at theirs in turn, so it needs to know no method. A language model counts
    by its class and the parameters that it names as its own, which hold no key; an object with a fingerprint, such as
    an index, by its fingerprint. The same construction gives the same digits in every process, unless an object holds
    something random.

    Example:
        >>> identity({"examples": ["a"]}) == identity({"examples": ["a"]}) != identity({"examples": ["b"]})
        True
    """
    return digest([*_texts(part, ())])


def _texts(part: Any, inside: tuple[int, ...]) -> Iterator[str]:
    if id(part) in inside:
        return
    kind = part if isinstance(part, type) else type(part)
    yield f"{kind.__module__}.{kind.__qualname__}"
    own = _own_texts(part)
    yield from own if own is not None else _texts_of_parts(part, kind, (*inside, id(part)))


def _own_texts(part: Any) -> list[str] | None:
    """Return what a part is, where nothing in it is looked at; None where it is looked into."""
    match part:
        case None | bool() | int() | float() | str() | bytes():
            return [repr(part)]
        case np.ndarray():
            return [f"{part.dtype} {part.shape} {blake2b(part.tobytes()).hexdigest()}"]
        case EntityLinker():  # the rest is made of the index when it is first needed
            return [f"{part.index.fingerprint} {part.max_candidates} {part.no_entity}"]
        case BaseLanguageModel():
            return _model_texts(part)
        case BasePromptTemplate():
            return [dumps(part)]
        case set() | frozenset():
            return sorted(identity(item) for item in part)
        case Cache():  # made of the rest
            return []
        case type() | DatabaseExecutor():  # a database is where facts are, and another place changes no result
            return []
        case _:
            return None


def _model_texts(model: BaseLanguageModel[Any]) -> list[str]:
    """Return the parameters that a language model names as its own; none holds a key."""
    named = {name: getattr(model, name, None) for name in ("model_name", "model", "model_id")}
    parameters = sorted({**named, **model._identifying_params}.items())
    return [f"{name}={value!r}" for name, value in parameters if isinstance(value, bool | int | float | str)]


def _texts_of_parts(part: Any, kind: type, inside: tuple[int, ...]) -> Iterator[str]:
    """Yield the texts of what a part holds."""
    match part:
        case Mapping():
            yield from chain.from_iterable(_texts(one, inside) for pair in part.items() for one in pair)
        case list() | tuple():
            yield from chain.from_iterable(_texts(one, inside) for one in part)
        case partial():
            yield from _texts((part.func, part.args, part.keywords), inside)
        case MethodType():
            yield from _texts((part.__func__, part.__self__), inside)
        case FunctionType():
            yield part.__qualname__
            yield from _texts([cell.cell_contents for cell in part.__closure__ or ()], inside)
        case _ if isinstance(getattr(part, "fingerprint", None), str):  # such as an index, or a model that answers
            yield part.fingerprint
        case _:
            yield from _texts_of_attributes(part, kind, inside)


def _texts_of_attributes(part: Any, kind: type, inside: tuple[int, ...]) -> Iterator[str]:
    for name, value in sorted(getattr(part, "__dict__", {}).items()):
        if not isinstance(getattr_static(kind, name, None), cached_property):
            yield name
            yield from _texts(value, inside)
