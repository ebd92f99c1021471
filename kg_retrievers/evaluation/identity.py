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
    match part:
        case None | bool() | int() | float() | str() | bytes():
            yield repr(part)
        case np.ndarray():
            yield f"{part.dtype} {part.shape} {blake2b(part.tobytes()).hexdigest()}"
        case EntityLinker():  # the rest is made of the index when it is first needed
            yield f"{part.index.fingerprint} {part.max_candidates} {part.no_entity}"
        case BaseLanguageModel():
            yield from _model_texts(part)
        case BasePromptTemplate():
            yield dumps(part)
        case Cache() | type() | DatabaseExecutor():  # made of the rest; or where facts are, which changes no result
            return
        case set() | frozenset():
            yield from sorted(identity(item) for item in part)
        case _:
            yield from _texts_of_parts(part, kind, (*inside, id(part)))


def _texts_of_parts(part: Any, kind: type, within: tuple[int, ...]) -> Iterator[str]:
    """Yield the texts of what a part holds."""
    match part:
        case Mapping():
            yield from chain.from_iterable(_texts(one, within) for pair in part.items() for one in pair)
        case list() | tuple():
            yield from chain.from_iterable(_texts(one, within) for one in part)
        case partial():
            yield from _texts((part.func, part.args, part.keywords), within)
        case MethodType():
            yield from _texts((part.__func__, part.__self__), within)
        case FunctionType():
            yield part.__qualname__
            yield from _texts([cell.cell_contents for cell in part.__closure__ or ()], within)
        case _ if isinstance(getattr(part, "fingerprint", None), str):  # such as an index, or a model that answers
            yield part.fingerprint
        case _:
            for name, value in sorted(getattr(part, "__dict__", {}).items()):
                if not isinstance(getattr_static(kind, name, None), cached_property):
                    yield name
                    yield from _texts(value, within)


def _model_texts(model: BaseLanguageModel[Any]) -> list[str]:
    """Return the parameters that a language model names as its own; none holds a key."""
    named = {name: getattr(model, name, None) for name in ("model_name", "model", "model_id")}
    parameters = sorted({**named, **model._identifying_params}.items())
    return [f"{name}={value!r}" for name, value in parameters if isinstance(value, bool | int | float | str)]
