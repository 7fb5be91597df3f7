"""`MMRCompressor` with a model that answers, and gives nothing to compare with."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest
from langchain_core.documents import Document

from easyrag_core import EasyRAGError
from langchain_easyrag import MMRCompressor
from tests.langchain_adapter.samples import WordEmbeddings, corpus, ids

QUERY = "ranking of 深度学习"
NAN = math.nan


class Given(WordEmbeddings):
    """Gives fixed vectors for the texts and the query it has any for."""

    def __init__(self, documents, query=None, *, only=None):
        super().__init__()
        self._given, self._query, self._only = documents, query, only

    def embed_documents(self, texts):
        good = super().embed_documents(texts)
        return [
            row if self._only and self._only not in text else self._given
            for row, text in zip(good, texts, strict=True)
        ]

    def embed_query(self, text):
        good = super().embed_query(text)
        return good if self._query is None else self._query


def by_words(**settings):
    return ids(MMRCompressor(k=3, **settings).compress_documents(corpus(), QUERY))


USELESS = [
    pytest.param([NAN] * 64, id="nan"),
    pytest.param([math.inf, -math.inf] * 32, id="infinite"),
    pytest.param([], id="empty"),
    pytest.param(None, id="none"),
    pytest.param([None] * 64, id="nones"),
    pytest.param("abcd", id="text"),
    pytest.param(3.0, id="number"),
    pytest.param(np.full(64, NAN), id="nan-array"),
    pytest.param(np.zeros(0), id="empty-array"),
    pytest.param([1.0] * 3, id="another-length"),
]


@pytest.mark.parametrize("missing_vectors", ["drop", "append", "keep"])
@pytest.mark.parametrize("useless", USELESS)
async def test_vectors_that_say_nothing_leave_the_words(useless, missing_vectors, caplog):
    """As when the model raises: the words are compared, and the log says so."""
    compressor = MMRCompressor(k=3, embeddings=Given(useless), missing_vectors=missing_vectors)
    with caplog.at_level(logging.WARNING):
        found = compressor.compress_documents(corpus(), QUERY)
    assert ids(found) == by_words()
    assert "words stand in" in caplog.text
    assert await compressor.acompress_documents(corpus(), QUERY) == found


@pytest.mark.parametrize("useless", USELESS[:-1])
async def test_strict_raises_what_the_model_did_not(useless):
    """A typed error, in both twins."""
    compressor = MMRCompressor(embeddings=Given(useless), strict=True)
    with pytest.raises(EasyRAGError):
        compressor.compress_documents(corpus(), QUERY)
    with pytest.raises(EasyRAGError):
        await compressor.acompress_documents(corpus(), QUERY)


@pytest.mark.parametrize("useless", [[NAN] * 64, [], np.full(64, NAN)])
def test_a_query_that_says_nothing_leaves_the_order(useless, caplog):
    """The documents' vectors still tell what is alike; relevance is the order given."""
    model = Given([], useless, only="no such text")
    found = MMRCompressor(k=3, embeddings=model).compress_documents(corpus(), QUERY)
    scored = MMRCompressor(k=3, embeddings=WordEmbeddings(), relevance="score")
    assert found == scored.compress_documents(corpus(), QUERY)
    assert "query got no vector" in caplog.text


@pytest.mark.parametrize("useless", USELESS)
@pytest.mark.parametrize(("missing_vectors", "last"), [("drop", False), ("append", True)])
def test_only_the_broken_ones_degrade(useless, missing_vectors, last):
    """One vector that says nothing costs its own document the place, and nobody else."""
    settings = {"k": 7, "missing_vectors": missing_vectors}
    model = Given(useless, only="cat")
    found = ids(MMRCompressor(embeddings=model, **settings).compress_documents(corpus(), QUERY))
    whole = [document for document in corpus() if document.id != "cat"]
    rest = MMRCompressor(embeddings=WordEmbeddings(), **settings).compress_documents(whole, QUERY)
    assert found == ids(rest) + ["cat"] * last


def test_broken_vectors_are_not_remembered():
    """A text whose vector was useless is embedded again; the others are not."""
    model = Given([NAN] * 64, only="cat")
    compressor = MMRCompressor(embeddings=model)
    compressor.compress_documents(corpus(), QUERY)
    compressor.compress_documents(corpus(), QUERY)
    assert [len(batch) for batch in model.batches] == [len(corpus()), 1]


@pytest.mark.parametrize("useless", USELESS[:-1])
def test_a_useless_vector_of_a_document_is_as_good_as_none(useless):
    """The model is asked for what the metadata do not tell; without one, words stand in."""
    documents = [Document(d.page_content, id=d.id, metadata={"v": useless}) for d in corpus()]
    asked = MMRCompressor(k=3, vector_key="v", embeddings=WordEmbeddings())
    expected = MMRCompressor(k=3, embeddings=WordEmbeddings())
    assert ids(asked.compress_documents(documents, QUERY)) == ids(
        expected.compress_documents(corpus(), QUERY)
    )
    alone = MMRCompressor(k=3, vector_key="v", missing_vectors="drop")
    assert ids(alone.compress_documents(documents, QUERY)) == by_words()
