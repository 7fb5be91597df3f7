"""A query embedding that cannot be searched with costs the vector side, never the answer."""

from __future__ import annotations

import asyncio
import math

import pytest
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.schema import QueryBundle, TextNode

from easyrag_core import (
    AllChannelsFailedError,
    BM25Index,
    DimensionMismatchError,
    HybridIndex,
    InvalidParameterError,
)
from llamaindex_easyrag import HybridRetriever
from tests.llamaindex_adapter._parts import DIMENSIONS, WordEmbedding, facts, ids, listening

TEXTS = {"cat": "the cat sat", "moon": "床前明月光", "home": "低头思故乡"}
UNUSABLE = [
    pytest.param([math.nan] * DIMENSIONS, InvalidParameterError, id="nan"),
    pytest.param([math.inf] * DIMENSIONS, InvalidParameterError, id="infinite"),
    pytest.param([1.0] * 3, DimensionMismatchError, id="length"),
    pytest.param([], InvalidParameterError, id="empty"),
]
HOW = [
    pytest.param(lambda r, query: r.retrieve(query), id="sync"),
    pytest.param(lambda r, query: asyncio.run(r.aretrieve(query)), id="async"),
]


class Fixed(WordEmbedding):
    """Embeds every query as the same vector."""

    vector: list[float]

    def _get_query_embedding(self, query: str) -> list[float]:
        return list(self.vector)


def hybrid(vector, **settings):
    nodes = [TextNode(text=text, id_=name) for name, text in TEXTS.items()]
    return HybridRetriever(nodes, embed_model=Fixed(vector=vector), **settings)


@pytest.mark.parametrize("ask", HOW)
@pytest.mark.parametrize(("vector", "error"), UNUSABLE)
@pytest.mark.parametrize("query", ["cat", "故乡"])
def test_words_answer_where_the_query_vector_is_unusable(vector, error, query, ask, caplog):
    """With a warning and an event, and the nodes tell which side failed."""
    with listening() as events:
        found = ask(hybrid(vector), query)
    assert ids(found) == ["cat" if query == "cat" else "home"]
    assert set(facts(found[0])["channels"]) == {"bm25"}
    assert error.__name__ in facts(found[0])["failed"]["vector"]
    assert "'vector' failed" in caplog.text
    assert any(isinstance(e, ExceptionEvent) and isinstance(e.exception, error) for e in events)


@pytest.mark.parametrize("ask", HOW)
@pytest.mark.parametrize(("vector", "error"), UNUSABLE)
def test_strict_raises_what_the_vector_side_raised(vector, error, ask):
    """As the index says it."""
    with pytest.raises(error):
        ask(hybrid(vector, strict=True), "cat")


@pytest.mark.parametrize("ask", HOW)
def test_a_vector_that_comes_with_the_query_is_checked_too(ask):
    """It is no better than a model's."""
    bundle = QueryBundle("cat", embedding=[math.nan] * DIMENSIONS)
    assert ids(ask(hybrid([1.0] * DIMENSIONS), bundle)) == ["cat"]


@pytest.mark.parametrize("ask", HOW)
def test_meaning_answers_where_words_fail(ask):
    """Either side may fail alone; if both do, both errors are told."""

    def split(text):
        if text == "cat":
            raise RuntimeError("no words")
        return text.split()

    index = HybridIndex(bm25=BM25Index(analyzer=split))
    retriever = HybridRetriever(index=index, embed_model=WordEmbedding())
    retriever.add_nodes([TextNode(text=text, id_=name) for name, text in TEXTS.items()])
    found = ask(retriever, "cat")
    assert ids(found)[0] == "cat"
    assert "no words" in facts(found[0])["failed"]["bm25"]
    both = HybridRetriever(index=index, embed_model=Fixed(vector=[1.0]))
    with pytest.raises(AllChannelsFailedError) as told:
        ask(both, "cat")
    assert set(told.value.errors) == {"bm25", "vector"}
