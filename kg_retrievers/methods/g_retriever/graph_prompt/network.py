"""Graph, words and question as one sequence of a causal language model (extra `graph-prompt`)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.graph import Triple, verbalize
from kg_retrievers.methods.g_retriever.graph_prompt.config import GraphPromptConfig
from kg_retrievers.methods.g_retriever.graph_prompt.encoders import GraphTokens, LearnedTokens, PromptGraph, TextVectors
from kg_retrievers.methods.g_retriever.graph_prompt.language_model import CausalLM
from kg_retrievers.methods.g_retriever.graph_prompt.prompts import ANSWER_SEPARATOR, write_question

try:
    import torch

    from kg_retrievers.methods.g_retriever.graph_prompt.language_model import (
        adapter_weights,
        add_adapters,
        switch_dropout,
    )
except ModuleNotFoundError as cause:
    raise MissingExtraError("A graph prompt", "graph-prompt") from cause

#: The type of the language model's weights, in which it computes.
Precision = Literal["float32", "bfloat16"]

#: How many characters for each token of a budget are looked at first, to see whether a text is over it.
LONG = 16

#: The label of a token that is not learned.
_IGNORED = -100


@dataclass(frozen=True)
class Prompt:
    """What a language model reads of one question.

    Attributes:
        before: Tokens before the soft ones.
        after: Tokens after them.
        label: Tokens of the answer, with its end; none where it is asked for.
        graph: What the soft tokens are made of; None where there is no graph, or no encoder.
        text: The graph in words, as far as it has room; empty where it is not shown.
        shown: How many triples this text shows.
        triples: How many triples there are.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    label: tuple[int, ...]
    graph: PromptGraph | None
    text: str
    shown: int
    triples: int

    def __len__(self) -> int:
        """How many tokens there are, the soft ones not counted."""
        return len(self.before) + len(self.after) + len(self.label)


class GraphPromptNetwork:
    """A language model that reads soft tokens, with what makes these.

    Args:
        lm: The language model. Its weights stay frozen; with `lora_rank` it is given adapters.
        config: What is put in front of it.
        vectors: The vectors of names and relations.
        dimension: Their length.
        seed: Of the weights.

    Attributes:
        tokens: What makes the soft tokens; None without.

    Raises:
        InvalidArgumentError: If the language model has adapters already, or no linear layers of a name that gets some.
    """

    def __init__(
        self,
        lm: CausalLM,
        config: GraphPromptConfig,
        vectors: TextVectors,
        dimension: int,
        *,
        seed: int = 0,
    ) -> None:
        """Draw the weights."""
        lm.check_bare()
        self.lm, self.config, self.vectors = lm, config, vectors
        self.model: Any = lm.model
        self._takes = set(inspect.signature(lm.model.forward).parameters)
        self.tokens: GraphTokens | LearnedTokens | None = None
        with torch.random.fork_rng(devices=[lm.device] if lm.device.type == "cuda" else []):
            torch.manual_seed(seed)
            if config.encoder is not None:
                self.tokens = GraphTokens(config, dimension, lm.hidden_size)
            elif config.soft_tokens:
                scale = float(lm.model.get_input_embeddings().weight.float().std())
                self.tokens = LearnedTokens(config, lm.hidden_size, scale)
            if config.lora_rank:
                self.model = add_adapters(
                    lm,
                    rank=config.lora_rank,
                    alpha=config.lora_alpha,
                    dropout=config.lora_dropout,
                    targets=config.lora_targets,
                )
        if self.tokens is not None:
            self.tokens.to(lm.device)
        self.train(False)

    # --- what is trained ------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, torch.Tensor]:
        """Everything that is trained, by name; the tensors require gradients."""
        own = {} if self.tokens is None else dict(self.tokens.named_parameters())
        of_lm = {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}
        return {**{f"tokens.{name}": weight for name, weight in own.items()}, **of_lm}

    @property
    def buffers(self) -> dict[str, torch.Tensor]:
        """The tensors that training changes without gradients: the running means of batch normalisation."""
        return {} if self.tokens is None else {f"tokens.{name}": kept for name, kept in self.tokens.named_buffers()}

    @property
    def adapters(self) -> dict[str, torch.Tensor]:
        """The weights of the adapters in the language model; none without."""
        return adapter_weights(self.model) if self.config.lora_rank else {}

    def train(self, on: bool) -> None:
        """Switch what is trained to training, or back; the language model itself never drops anything out."""
        if self.tokens is not None:
            self.tokens.train(on)
        if self.config.lora_rank:
            switch_dropout(self.model, on)

    # --- what is read ---------------------------------------------------------------------------------------------

    def prompt(
        self,
        question: str,
        triples: Sequence[Triple],
        labels: Mapping[str, str],
        answers: Sequence[str] = (),
        *,
        entities: Sequence[str] = (),
        room: int | None = None,
    ) -> Prompt:
        """Return what is read of a question; the text of the graph is cut so that question and answer have room.

        Args:
            question: The question.
            triples: The graph, most important first. The encoder is given all, also those that the text leaves out.
            labels: What entities are called, by key.
            answers: In training, the answers to learn.
            entities: The entities of the graph that no triple holds.
            room: The most tokens of an answer; by default those of the configuration.

        Raises:
            InvalidArgumentError: If the language model has no room for the question.
        """
        config, lm = self.config, self.lm
        before = lm.encode(config.before or "", special=True)
        with_text = config.show_graph and bool(triples or entities)
        after = lm.encode(write_question(question, after_graph=with_text)) + lm.encode(config.after or "", special=True)
        label: list[int] = []
        if answers:
            label = [*lm.encode(ANSWER_SEPARATOR.join(answers))[: config.max_answer_tokens], lm.stops[0]]
        kept = 1 + (config.max_answer_tokens if room is None else room)
        left = lm.max_tokens - len(before) - config.soft_tokens - len(after) - kept
        if left < 0:
            raise InvalidArgumentError(
                f"GraphPromptModel: {lm!r} reads {lm.max_tokens:,} tokens in all, and the question {question!r:.100} "
                f"with an answer of {kept - 1:,} tokens needs {-left:,} more. Ask a shorter question, or allow a "
                "shorter answer."
            )
        text, shown = "", 0
        if with_text and (budget := min(left, config.max_context_tokens)):
            text, shown = self._write(triples, labels, entities, budget)
        graph = None
        if (triples or entities) and isinstance(self.tokens, GraphTokens):
            graph = PromptGraph.of(triples, labels, entities)
        return Prompt(tuple(before), (*lm.encode(text), *after), tuple(label), graph, text, shown, len(triples))

    def _write(
        self, triples: Sequence[Triple], labels: Mapping[str, str], entities: Sequence[str], budget: int
    ) -> tuple[str, int]:
        """Return the graph in words, and how many triples it shows; a text has `budget` tokens at most."""
        written = verbalize(
            triples,
            style="tables",
            label=lambda key: labels.get(key, key),
            max_tokens=budget,
            count_tokens=lambda words: self._count(words, budget),
            entities=entities,
        )
        return written.text, written.shown

    def _count(self, text: str, budget: int) -> int:
        """Return how many tokens a text has; of a long one that is over the budget, those of its beginning."""
        first = len(self.lm.encode(text[: LONG * budget]))
        return first if first > budget or len(text) <= LONG * budget else len(self.lm.encode(text))

    def soft(self, prompts: Sequence[Prompt]) -> torch.Tensor | None:
        """Return the soft tokens of the prompts that have some, in their order, shape (some, soft_tokens, hidden)."""
        if isinstance(self.tokens, LearnedTokens):
            return self.tokens(len(prompts))  # type: ignore[no-any-return]
        graphs = [prompt.graph for prompt in prompts if prompt.graph]
        if self.tokens is None or not graphs:
            return None
        return self.tokens(graphs, self.vectors)  # type: ignore[no-any-return]

    def has_soft(self, prompt: Prompt) -> bool:
        """Tell whether a prompt has soft tokens; without a graph, an encoder makes none."""
        return isinstance(self.tokens, LearnedTokens) or prompt.graph is not None

    def length(self, prompt: Prompt) -> int:
        """Return how many tokens are read, soft ones included."""
        return len(prompt) + self.config.soft_tokens * self.has_soft(prompt)

    def _inputs(self, prompts: Sequence[Prompt], soft: torch.Tensor | None) -> dict[str, Any]:
        """Return what the language model is given, padded on the left: labels, and what follows, are at the right."""
        if not self.config.lora_rank:
            self.lm.check_bare()  # adapters of a later training would answer, too
        lengths = [self.length(prompt) for prompt in prompts]
        longest = max(lengths)
        ids = torch.full((len(prompts), longest), self.lm.stops[0])
        mask, places = torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
        for row, (prompt, length) in enumerate(zip(prompts, lengths, strict=True)):
            start, count = longest - length, length - len(prompt)
            begins = start + len(prompt.before)
            ids[row, start:begins] = torch.tensor(prompt.before, dtype=ids.dtype)
            places[row, begins : begins + count] = True
            ids[row, begins + count :] = torch.tensor(prompt.after + prompt.label, dtype=ids.dtype)
            mask[row, start:] = 1
        device = self.lm.device
        vectors = self.lm.model.get_input_embeddings()(ids.to(device))
        if soft is not None:
            vectors = vectors.clone()
            vectors[places.to(device)] = soft.flatten(0, 1).to(vectors.dtype)
        return self._given(vectors, mask.to(device), (mask.cumsum(1) - 1).clamp(min=0).to(device))

    def _given(self, vectors: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor) -> dict[str, Any]:
        given = {"inputs_embeds": vectors, "attention_mask": mask}
        return given | {"position_ids": positions} if "position_ids" in self._takes else given

    # --- what is learned, and what is written -----------------------------------------------------------------------

    def losses(self, prompts: Sequence[Prompt], soft: torch.Tensor | None) -> torch.Tensor:
        """Return the loss of each prompt, shape (prompts): the mean of -log p over the tokens of its answer.

        Scores over the vocabulary are made for the answers alone, which is most of the memory of a step.
        """
        longest = max(len(prompt.label) for prompt in prompts)
        wanted = torch.full((len(prompts), longest), _IGNORED)
        for row, prompt in enumerate(prompts):
            wanted[row, longest - len(prompt.label) :] = torch.tensor(prompt.label)
        wanted = wanted.to(self.lm.device)
        only = {"logits_to_keep": longest + 1} if "logits_to_keep" in self._takes else {}
        logits = self.model(**self._inputs(prompts, soft), **only, use_cache=False).logits
        logits = logits[:, -longest - 1 : -1].flatten(0, 1).float()
        each = torch.nn.functional.cross_entropy(logits, wanted.flatten(), ignore_index=_IGNORED, reduction="none")
        return each.view(wanted.shape).sum(1) / (wanted != _IGNORED).sum(1)

    @torch.no_grad()
    def generate(self, prompt: Prompt, max_new_tokens: int) -> Iterator[int]:
        """Yield the tokens of an answer, each the most likely one, up to its end.

        Raises:
            InvalidArgumentError: If the language model keeps no keys and values.
        """
        only = {"logits_to_keep": 1} if "logits_to_keep" in self._takes else {}
        given = self._inputs([prompt], self.soft([prompt]))
        mask, cache = given["attention_mask"], None
        position = mask.sum(1, keepdim=True)
        for _ in range(max_new_tokens):
            found = self.model(**given, **only, past_key_values=cache, use_cache=True)
            cache = getattr(found, "past_key_values", None)
            if cache is None:
                raise InvalidArgumentError(
                    f"GraphPromptModel: wanted a decoder that keeps keys and values (past_key_values), but {self.lm!r} "
                    "gives none. Take one such as Llama, Qwen or Gemma."
                )
            token = int(found.logits[0, -1].argmax())
            if token in self.lm.stops:
                return
            yield token
            mask = torch.cat([mask, mask.new_ones(1, 1)], 1)
            vectors = self.lm.model.get_input_embeddings()(torch.tensor([[token]], device=mask.device))
            given = self._given(vectors, mask, position)
            position = position + 1
