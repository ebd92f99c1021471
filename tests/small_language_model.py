"""A causal language model with a few hundred thousand weights, made from a configuration: no download, seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

BOS, EOS, PAD, UNKNOWN = "<s>", "</s>", "<pad>", "<unk>"

#: The rows of a step of pre-training, and its learning rate.
ROWS, LEARNING_RATE = 16, 3e-3


def build(
    folder: str | Path,
    texts: Sequence[str],
    *,
    hidden: int = 64,
    layers: int = 2,
    heads: int = 4,
    vocabulary: int = 2000,
    seed: int = 0,
    pretrain_steps: int = 0,
    row: int = 64,
) -> Path:
    """Make a Llama and its tokenizer, so that `AutoModelForCausalLM` and `AutoTokenizer` load them from the folder.

    The same arguments give the same weights, on the same machine. Like Llama's, the tokenizer puts `<s>` before a text,
    unless `add_special_tokens=False`, and no `</s>` after it.

    Args:
        folder: The folder to write to; it is created.
        texts: The training texts of the tokenizer and of the model; each is read as `<s> text </s>`.
        hidden: The width, a multiple of twice `heads`.
        layers: The number of layers.
        heads: The number of attention heads.
        vocabulary: The most tokens; at least 260, the bytes and the four special ones.
        seed: The seed of the weights and of the order of the texts.
        pretrain_steps: The steps of next-token prediction; 0 leaves the weights random.
        row: The tokens of a row in pre-training.
    """
    tokenizer = _tokenizer(texts, vocabulary)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=4096,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small steps are slower on several
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = LlamaForCausalLM(config)
            _pretrain(model, tokenizer, texts, pretrain_steps, row)
    finally:
        torch.set_num_threads(threads)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return Path(folder)


def _tokenizer(texts: Sequence[str], vocabulary: int) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = [BOS, EOS, PAD, UNKNOWN]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    bos = (BOS, tokenizer.token_to_id(BOS))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[bos]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=BOS, eos_token=EOS, pad_token=PAD, unk_token=UNKNOWN
    )


def _pretrain(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], steps: int, row: int
) -> None:
    ids = [token for row in tokenizer(list(texts)).input_ids for token in (*row, tokenizer.eos_token_id)]
    stream = torch.tensor(ids * -(-(row + 1) // len(ids)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    model.train()
    for _ in range(steps):
        starts = torch.randint(len(stream) - row, (ROWS,))
        rows = stream[starts[:, None] + torch.arange(row)]
        model(input_ids=rows, labels=rows).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
