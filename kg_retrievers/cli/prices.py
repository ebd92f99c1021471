"""What the calls of a language model cost: estimated before a run, counted after it, in money by the user's prices."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from kg_retrievers.errors import FileFormatError, InvalidArgumentError, did_you_mean
from kg_retrievers.evaluation.records import Record
from kg_retrievers.graph.validation import reasons

#: How many tokens a price is of.
PER_TOKENS = 1_000_000


class Price(TypedDict):
    """What a million tokens cost.

    Attributes:
        input: Of prompts.
        output: Of replies.
    """

    input: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    output: Annotated[float, Field(ge=0, allow_inf_nan=False)]


_PRICES = TypeAdapter(dict[str, Price])


def read_price(path: str | Path, model: str) -> Price:
    """Read the price of a model.

    Args:
        path: A file of JSON, `{"gpt-4.1-mini": {"input": 0.4, "output": 1.6}}`, by the name of the model, with its
            provider or without; the prices are those of a million tokens, in any currency.
        model: The name of the model, as "openai:gpt-4.1-mini".

    Raises:
        FileFormatError: If the file cannot be read, or holds something else.
        InvalidArgumentError: If it does not name the model.
    """
    wanted = 'wanted {"MODEL": {"input": PRICE, "output": PRICE}}, the prices of a million tokens'
    try:
        prices = _PRICES.validate_python(json.loads(Path(path).read_bytes()))
    except OSError as error:
        raise FileFormatError(f"wanted a file of prices, but it cannot be read: {error.strerror}.", path) from error
    except ValidationError as error:
        raise FileFormatError(f"{wanted}, but {reasons(error)}", path) from error
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{wanted}, but it is no valid JSON.", path) from error
    for name in (model, model.partition(":")[2]):
        if name in prices:
            return prices[name]
    near = did_you_mean(model, prices) or f"it names {', '.join(prices) or 'none'}."
    raise InvalidArgumentError(f"{path} has no price of {model!r}; {near}")


@dataclass(frozen=True)
class Spent:
    """What calls cost.

    Attributes:
        calls: How many there are.
        input_tokens: The tokens of their prompts.
        output_tokens: The tokens of their replies.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @classmethod
    def of(cls, records: Iterable[Record]) -> Self:
        """Count those of records."""
        rows = [(one["llm_calls"], one["input_tokens"] or 0, one["output_tokens"] or 0) for one in records]
        return cls(*map(sum, zip(*rows, strict=True))) if rows else cls()

    def __add__(self, other: Spent) -> Spent:
        """Return the sum."""
        return Spent(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    def times(self, number: float) -> Spent:
        """Return a multiple, rounded."""
        return Spent(*(round(number * one) for one in (self.calls, self.input_tokens, self.output_tokens)))

    def told(self, price: Price | None) -> str:
        """Return it in words, with the money where there is a price."""
        text = (
            f"{self.calls:,} calls of a language model, {self.input_tokens:,} tokens of prompts, "
            f"{self.output_tokens:,} of replies"
        )
        return text if price is None else f"{text}, {self.money(price):,.2f} in the currency of the prices"

    def money(self, price: Price) -> float:
        """Return what it costs."""
        return (self.input_tokens * price["input"] + self.output_tokens * price["output"]) / PER_TOKENS
