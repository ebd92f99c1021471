"""What an argument may be: each function returns the value of a text, or says what was wanted."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from kg_retrievers.cli.built_methods import MethodChoice
from kg_retrievers.cli.compare import ALL
from kg_retrievers.cli.database import SCHEMES
from kg_retrievers.database.neo4j_login import address_in
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import SEPARATOR
from kg_retrievers.serving.loading import HASHED, SPARQL_SCHEMES, STATIC, is_database_file, is_public, is_uri

#: An example of a union.
UNION_EXAMPLE = SEPARATOR.join(("simgrag", "g-retriever"))

#: The highest port there is.
LAST_PORT = 65_535


def positive_integer(text: str) -> int:
    """Take an integer of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"wanted an integer of 1 or more, but got {text!r}")
    return int(text)


def named_folder(text: str) -> tuple[str, str]:
    """Take a name and a folder, as in subgraph-rag.webqsp=models/scorer."""
    name, equals, folder = text.partition("=")
    if not (name and equals and folder):
        raise argparse.ArgumentTypeError(f"wanted NAME=FOLDER, but got {text!r}")
    return name, folder


def share(text: str) -> float:
    """Take a number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"wanted a number from 0 to 1, but got {text!r}")
    return value


def natural_number(text: str) -> int:
    """Take an integer of 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"wanted an integer of 0 or more, but got {text!r}")
    return int(text)


def port(text: str) -> int:
    """Take the number of a port, 0 for a free one."""
    if not text.isdecimal() or int(text) > LAST_PORT:
        raise argparse.ArgumentTypeError(f"wanted a port from 0 to {LAST_PORT:,}, but got {text!r}")
    return int(text)


def hops(text: str) -> list[int]:
    """Take numbers of hops between commas, and return each once, ascending."""
    if not all(part.isdecimal() and int(part) for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"wanted integers with commas between them, as 1,2,3, but got {text!r}")
    return sorted({int(part) for part in text.split(",")})


def method(text: str) -> str:
    """Take a method, or several as a union, and what it gets behind a colon."""
    try:
        return MethodChoice.of(text).name
    except InvalidArgumentError as error:
        raise _argument_error(error) from None


def methods(text: str) -> str:
    """Take a method, or several as a union."""
    if ":" in text:
        raise argparse.ArgumentTypeError(f"wanted a method, or several as in {UNION_EXAMPLE}, but got {text!r}")
    try:
        return registry.joined_names(registry.find_methods(text))
    except InvalidArgumentError as error:
        raise _argument_error(error) from None


def _argument_error(error: InvalidArgumentError) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(error.on_shell.rstrip("."))


def method_or_all(text: str) -> str:
    """Take what `method` takes, or the word for all methods."""
    return text if text == ALL else method(text)


def place(text: str) -> str:
    """Take a file, a folder, or the URI of a graph database."""
    if is_uri(text):  # which is not shown, since it may hold a password
        scheme, _, rest = text.partition("://")
        if scheme.lower() not in (*SCHEMES, *SPARQL_SCHEMES):
            raise argparse.ArgumentTypeError(
                "wanted a file, or a URI as bolt://localhost:7687 that begins with one of "
                f"{', '.join((*SCHEMES, *SPARQL_SCHEMES))}"
            )
        try:
            if scheme.lower() in SCHEMES:
                address_in(text)
            else:
                _check_endpoint(f"{scheme.lower().removeprefix('sparql+')}://{rest}")
        except InvalidArgumentError as error:
            raise argparse.ArgumentTypeError(str(error).rstrip(".")) from error
    return text


def _check_endpoint(url: str) -> None:
    from kg_retrievers.database.sparql.endpoint import checked_url  # loads httpx, which the help does not need

    checked_url(url)


def vectors(text: str) -> str:
    """Take the address of a vector store."""
    from kg_retrievers.index.stores import read_address  # loads numpy, which the help does not need

    try:
        read_address(text)
    except InvalidArgumentError as error:
        raise _argument_error(error) from None
    return text


def database_place(text: str) -> str:
    """Take a URI, the file of a LadybugDB database, or a new file."""
    path = Path(place(text))
    if not is_uri(text) and not is_public(text) and not is_database_file(text) and (path.exists() or ":" in path.name):
        shown = f", but got {text!r}" if path.exists() else ""  # else it may be an address with a password
        raise argparse.ArgumentTypeError(f"wanted a URI as bolt://localhost:7687, a LadybugDB file or a new one{shown}")
    return text


def key(text: str) -> tuple[str, str]:
    """Take a property, or a label and its property, and return the label and the property."""
    label, equals, name = text.rpartition("=")
    if not name or (equals and not label):
        raise argparse.ArgumentTypeError(f"wanted PROPERTY or LABEL=PROPERTY, as Person=name, but got {text!r}")
    return label, name


def file(text: str) -> str:
    """Take the name of a file that is also read."""
    if text == "-":
        raise argparse.ArgumentTypeError("wanted a name, since records are also read, but got '-'")
    return text


def assignment(text: str, example: str, named_elsewhere: Collection[str]) -> tuple[str, Any]:
    """Take the name of a field and its value, as JSON or else a text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"wanted NAME=VALUE, as {example}, but got {text!r}")
    if name in named_elsewhere:
        option = ": give --k" if name == "k" else ""
        raise argparse.ArgumentTypeError(f"{name} comes from other options{option}, but got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def embeddings_name(text: str) -> str:
    """Take the name of embeddings; the folder of a local model becomes absolute."""
    kind, _, model = text.partition(":")
    if text not in (STATIC, HASHED) and not (kind and model):
        raise argparse.ArgumentTypeError(
            f"wanted {STATIC}, {HASHED}, local:MODEL_OR_FOLDER or PROVIDER:MODEL, but got {text!r}"
        )
    if kind == "local" and Path(model).is_dir():
        return f"local:{Path(model).resolve()}"
    return text
