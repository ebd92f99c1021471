"""The identity of a part of a run, a few letters that change with it: the examples, the language model, the prompts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from kg_retrievers.graph.cache import Cache


def digest(texts: Sequence[str]) -> str:
    """Return 32 hexadecimal digits that change with any of the texts."""
    return blake2b(json.dumps(texts).encode(), digest_size=16).hexdigest()


def identity(part: object) -> str:
    """Return 32 hexadecimal digits that change with the contents of a part of a run.

    Looks at the attributes of any object, and at theirs in turn, so it needs to know no method. A language model counts
    by its class and the parameters that it names as its own, which hold no key. An object with a fingerprint, such as
    an index, counts by its fingerprint. The same construction gives the same digits in every process, unless an object
    holds something random.

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
        case BaseLanguageModel():
            yield from _model_texts(part)
        case BasePromptTemplate():
            yield dumps(part)
        case set() | frozenset():
            yield from sorted(identity(item) for item in part)
        case _:
            for held in _held(part, kind):
                yield from _texts(held, (*inside, id(part)))


def _held(part: Any, kind: type) -> Iterable[object]:
    """Return what a part holds."""
    match part:
        case Cache() | type() | DatabaseExecutor():  # made of the rest; or where facts are, which changes no result
            return ()
        case np.ndarray():
            return str(part.dtype), part.shape, part.tobytes()
        case Mapping():
            return part.items()
        case list() | tuple():
            return part
        case partial():
            return part.func, part.args, part.keywords
        case MethodType():
            return part.__func__, part.__self__
        case FunctionType():
            return part.__qualname__, *(cell.cell_contents for cell in part.__closure__ or ())
    if isinstance(getattr(part, "fingerprint", None), str):  # such as an index, or a model that answers
        return [part.fingerprint]
    attributes = sorted(getattr(part, "__dict__", {}).items())
    return [one for one in attributes if not isinstance(getattr_static(kind, one[0], None), cached_property)]


def _model_texts(model: BaseLanguageModel[Any]) -> list[str]:
    """Return the parameters that a language model names as its own; none holds a key."""
    named = {name: getattr(model, name, None) for name in ("model_name", "model", "model_id")}
    parameters = sorted({**named, **model._identifying_params}.items())
    return [f"{name}={value!r}" for name, value in parameters if isinstance(value, bool | int | float | str)]
