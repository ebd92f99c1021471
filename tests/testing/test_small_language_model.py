"""The language model that tests build: it loads as others do, and knows what it was trained on."""

from __future__ import annotations

from pathlib import Path

import torch
from small_language_model import build
from transformers import AutoModelForCausalLM, AutoTokenizer

TEXTS = ["Question: who directed Her? Answer: Spike Jonze", "Question: who directed Amélie? Answer: Jeunet"]


def test_it_loads_from_its_folder_and_has_learned(tmp_path: Path) -> None:
    before = torch.get_num_threads(), torch.random.get_rng_state()
    folder = build(tmp_path / "model", TEXTS, hidden=32, vocabulary=320, pretrain_steps=60)
    assert torch.get_num_threads() == before[0]
    assert torch.equal(torch.random.get_rng_state(), before[1])
    assert {path.name for path in folder.iterdir()} >= {"config.json", "model.safetensors", "tokenizer.json"}
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    assert [tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token] == ["<s>", "</s>", "<pad>"]
    assert len(tokenizer) == model.config.vocab_size <= 320
    asked = tokenizer("Question: who directed Amélie? Answer:", return_tensors="pt")
    assert asked.input_ids[0, 0] == tokenizer.bos_token_id
    said = model.generate(**asked, max_new_tokens=16, do_sample=False)[0, asked.input_ids.shape[1] :]
    assert tokenizer.decode(said, skip_special_tokens=True) == " Jeunet"
    assert said[-1] == tokenizer.eos_token_id


def test_any_text_comes_back_from_its_tokens(tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(build(tmp_path, TEXTS, hidden=16, vocabulary=300))
    for text in ("日本 \n\tœ 🜚", "  Her ,  1984", "Question: who"):
        assert tokenizer.decode(tokenizer(text, add_special_tokens=False).input_ids) == text


def test_the_seed_decides(tmp_path: Path) -> None:
    def weights(name: str, seed: int) -> bytes:
        folder = build(tmp_path / name, TEXTS, hidden=16, layers=1, heads=2, seed=seed, pretrain_steps=2)
        return (folder / "model.safetensors").read_bytes() + (folder / "tokenizer.json").read_bytes()

    assert weights("one", 0) == weights("again", 0) != weights("other", 1)
