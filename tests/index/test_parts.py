"""What the shell is told of an index that was built with other embeddings."""

from __future__ import annotations

import pytest

from kg_retrievers.errors import StaleIndexError
from kg_retrievers.index import HashedEmbeddings, default_embeddings, embedding_name
from kg_retrievers.index.parts import check_model

OPENAI = "langchain_openai.embeddings.base.OpenAIEmbeddings(model='text-embedding-3-small')"
HUGGING_FACE = "langchain_huggingface.embeddings.huggingface.HuggingFaceEmbeddings(model_name='my model')"
LOCAL = "kg_retrievers.index.embeddings.SentenceTransformerEmbeddings(model='all-MiniLM-L6-v2')"
EARLIER = "kg_retrievers.index.static_embeddings.StaticEmbeddings(model='an earlier table', dimension=512)"


@pytest.mark.parametrize(
    ("built_with", "recorded", "option"),
    [
        (embedding_name(default_embeddings()), None, "static"),
        (embedding_name(HashedEmbeddings()), "hashed", "hashed"),
        (embedding_name(HashedEmbeddings(64)), None, "..."),
        (OPENAI, None, "openai:text-embedding-3-small"),
        (OPENAI, "openai:the-name-of-then", "openai:the-name-of-then"),
        (HUGGING_FACE, None, "'huggingface:my model'"),
        (LOCAL, None, "local:all-MiniLM-L6-v2"),
        ("langchain_community.embeddings.x.XEmbeddings(model='y')", None, "..."),
        ("mine.Embeddings()", None, "..."),
        (EARLIER, "static", "..."),
    ],
)
def test_the_option_that_fits_is_named(built_with: str, recorded: str | None, option: str) -> None:
    meta = {"embeddings": built_with} | ({"embeddings_name": recorded} if recorded else {})
    with pytest.raises(StaleIndexError, match="films was built with") as error:
        check_model("films", meta, HashedEmbeddings(8))
    assert f"Open it with the first: --embeddings {option}, or build it again with" in error.value.on_shell
    assert error.value.on_shell.endswith("kg-retrievers index ... --output films --embeddings ...")
    assert "--embeddings" not in str(error.value)
