"""How likely a causal language model finds what may follow a text that it has read (PyTorch)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

from kg_retrievers.errors import MissingExtraError

try:
    import torch
except ImportError as cause:
    raise MissingExtraError("A tuned language model", "graph-prompt") from cause

#: The most tokens of continuations that go through a language model at once, which decides the memory.
TOKENS_AT_ONCE = 1024

#: The label of a token that does not count.
_IGNORED = -100


@dataclass(frozen=True)
class Reading:
    """A language model that has read some tokens.

    Attributes:
        model: The language model.
        end_token: The token that ends a text.
        cache: What it keeps of them; it is never changed.
        after: float32, shape (vocabulary): log p of each next token.
    """

    model: Any
    end_token: int
    cache: Any
    after: torch.Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, model: Any, end_token: int, tokens: Sequence[int], cache: Any) -> Self:
        """Read tokens, behind those of a cache."""
        ids = torch.tensor([tokens], device=model.device)
        found = model(input_ids=ids, past_key_values=deepcopy(cache), use_cache=True)
        return cls(model, end_token, found.past_key_values, found.logits[0, -1].float().log_softmax(-1))

    def then(self, tokens: Sequence[int]) -> Self:
        """Read further tokens."""
        return self.of(self.model, self.end_token, tokens, self.cache)

    @property
    def end(self) -> float:
        """Log p that the text ends here."""
        return float(self.after[self.end_token])

    def log_probabilities(self, continuations: Sequence[Sequence[int]]) -> list[float]:
        """Return log p of each continuation, of one token or more: the sum over its tokens."""
        found = [float(self.after[tokens[0]]) for tokens in continuations]
        longer = [row for row, tokens in enumerate(continuations) if len(tokens) > 1]
        for rows in _batches(continuations, longer):
            more = self._further([continuations[row] for row in rows])
            for row, total in zip(rows, more, strict=True):
                found[row] += total
        return found

    @torch.no_grad()
    def _further(self, continuations: Sequence[Sequence[int]]) -> list[float]:
        """Return log p of all tokens but the first."""
        longest = max(map(len, continuations)) - 1
        device = self.model.device
        ids = torch.full((len(continuations), longest), self.end_token)
        wanted = torch.full_like(ids, _IGNORED)
        for row, tokens in enumerate(continuations):
            ids[row, : len(tokens) - 1] = torch.tensor(tokens[:-1])
            wanted[row, : len(tokens) - 1] = torch.tensor(tokens[1:])
        cache = deepcopy(self.cache)
        cache.batch_repeat_interleave(len(continuations))
        logits = self.model(input_ids=ids.to(device), past_key_values=cache, use_cache=True).logits.float()
        lost = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), wanted.to(device).flatten(), ignore_index=_IGNORED, reduction="none"
        )
        totals: list[float] = (-lost.view(wanted.shape).sum(1)).tolist()
        return totals


def _batches(continuations: Sequence[Sequence[int]], rows: Sequence[int]) -> Iterator[list[int]]:
    """Yield rows of at most `TOKENS_AT_ONCE` tokens in all, of equal length as far as can be."""
    batch: list[int] = []
    for row in sorted(rows, key=lambda row: (len(continuations[row]), row)):
        if batch and (len(batch) + 1) * len(continuations[row]) > TOKENS_AT_ONCE:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
