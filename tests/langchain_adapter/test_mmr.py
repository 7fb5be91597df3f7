"""`MMRCompressor`: relevant, different, with vectors from anywhere."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance as langchain_mmr

from easyrag_core import EasyRAGError, VectorIndex
from langchain_easyrag import (
    BM25Retriever,
    MMRCompressor,
    MMRRetriever,
)
from langchain_easyrag._vectors import stored_vectors
from tests.langchain_adapter.samples import (
    BrokenEmbeddings,
    ListRetriever,
    LoopGate,
    WordEmbeddings,
    corpus,
    ids,
    snapshot,
    ticking,
)

QUERY = "ranking"


def with_vectors(*rows, scores=None):
    """Documents that carry their vector and, if given, a score."""
    documents = [
        Document(f"text {n}", id=str(n), metadata={"vector": row}) for n, row in enumerate(rows)
    ]
    for document, score in zip(documents, scores or (), strict=False):
        document.metadata["easyrag"] = {"score": score, "rank": 1, "channels": {}}
    return documents


TWINS = [[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]]
"""Two that are nearly the same, and one that is not."""


class Fixed(WordEmbeddings):
    """Gives the same vector for every query."""

    def __init__(self, query):
        super().__init__()
        self.fixed = query

    def embed_query(self, text):
        self.queries.append(text)
        return self.fixed


# What is picked


@given(st.integers(0, 10_000), st.integers(1, 8), st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]))
def test_picks_are_those_of_langchain(seed, k, lambda_mult):
    """D1: the same picks as langchain-core's function, for random vectors."""
    draw = np.random.default_rng(seed)
    rows, query = draw.normal(size=(12, 6)), draw.normal(size=6)
    wanted = langchain_mmr(query, list(rows), lambda_mult=lambda_mult, k=k)
    compressor = MMRCompressor(
        k=k, lambda_mult=lambda_mult, vector_key="vector", embeddings=Fixed(query.tolist())
    )
    found = compressor.compress_documents(with_vectors(*rows.tolist()), "q")
    assert ids(found) == [str(index) for index in wanted]


def test_a_near_twin_gives_way():
    """The second pick is the different one, unless relevance is all that counts."""
    documents = with_vectors(*TWINS, scores=[0.9, 0.8, 0.3])
    by_score = {"vector_key": "vector", "relevance": "score", "k": 2}
    diverse = MMRCompressor(lambda_mult=0.5, **by_score).compress_documents(documents, "q")
    relevant = MMRCompressor(lambda_mult=1.0, **by_score).compress_documents(documents, "q")
    assert ids(diverse) == ["0", "2"]
    assert ids(relevant) == ["0", "1"]


def test_d5_given_scores_are_used():
    """D5: scores of another scale are brought to [0, 1]; raw ones can be had."""
    documents = with_vectors(*TWINS, scores=[30.0, 29.0, 3.0])
    settings_ = {"vector_key": "vector", "relevance": "score", "k": 2, "lambda_mult": 0.4}
    scaled = MMRCompressor(**settings_).compress_documents(documents, "q")
    raw = MMRCompressor(normalize_relevance=False, **settings_).compress_documents(documents, "q")
    assert ids(scaled) == ["0", "2"]
    assert ids(raw) == ["0", "1"]


def test_facts_are_added_to_those_that_are_there():
    """Gain and relevance are told; the earlier score and channels stay."""
    bm25 = BM25Retriever.from_documents(corpus()).invoke(QUERY)
    (first, *_) = MMRCompressor(k=2).compress_documents(bm25, QUERY)
    facts = first.metadata["easyrag"]
    before = next(d for d in bm25 if d.id == first.id).metadata["easyrag"]
    assert json.loads(json.dumps(facts)) == facts
    assert set(facts["mmr"]) == {"gain", "relevance"}
    assert facts["rank"] == 1
    assert (facts["score"], facts["channels"]) == (before["score"], before["channels"])


# Where vectors come from


def test_vectors_of_the_documents_come_first():
    """A document's own vector is not embedded again."""
    model = Fixed([1.0, 0.0])
    compressor = MMRCompressor(vector_key="vector", embeddings=model, k=3)
    compressor.compress_documents(with_vectors(*TWINS), "q")
    assert model.batches == []
    assert model.queries == ["q"]


def test_vectors_of_the_store_come_second():
    """What the store holds is looked up by id; only the rest is embedded, in one batch."""
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(corpus()[:5])
    model = WordEmbeddings()
    compressor = MMRCompressor(vector_store=store, embeddings=model, k=3)
    compressor.compress_documents(corpus(), QUERY)
    assert model.batches == [[d.page_content for d in corpus()[5:]]]


def test_the_stores_own_model_is_used():
    """Without `embeddings`, the store's model embeds the query and what the store lacks."""
    store = InMemoryVectorStore(WordEmbeddings())
    MMRCompressor(vector_store=store).compress_documents(corpus(), QUERY)
    assert store.embedding.queries == [QUERY]
    assert len(store.embedding.batches) == 1


def test_texts_are_embedded_once():
    """A cache keeps vectors between calls; 0 keeps none; equal texts are sent once."""
    model = WordEmbeddings()
    compressor = MMRCompressor(embeddings=model)
    compressor.compress_documents([*corpus(), *corpus()], QUERY)
    compressor.compress_documents(corpus(), "another query")
    assert [len(batch) for batch in model.batches] == [len(corpus())]
    none = MMRCompressor(embeddings=WordEmbeddings(), cache_size=0)
    for _ in range(2):
        none.compress_documents(corpus(), QUERY)
    assert len(none.embeddings.batches) == 2


def test_without_any_vector_the_words_are_compared():
    """BM25 results diversify too, also in Chinese."""
    texts = ["检索增强生成很有用。", "检索增强生成很有用！", "检索需要排序。"]
    found = BM25Retriever.from_texts(texts, ids=["a", "b", "c"]).invoke("检索增强")
    picked = MMRCompressor(k=2, lambda_mult=0.5).compress_documents(found, "检索增强")
    assert ids(picked)[1] == "c"


def test_without_a_model_for_the_query_scores_are_used():
    """Vectors alone cannot say what is relevant: the order of the input does."""
    compressor = MMRCompressor(vector_key="vector", k=1)
    assert ids(compressor.compress_documents(with_vectors(*TWINS), "q")) == ["0"]
    scored = with_vectors(*TWINS, scores=[0.1, 0.2, 0.9])
    assert ids(compressor.compress_documents(scored, "q")) == ["2"]


@pytest.mark.parametrize(
    ("missing_vectors", "expected"),
    [("drop", ["0", "2"]), ("append", ["0", "2", "1"]), ("keep", ["0", "1", "2"])],
)
def test_unusable_vectors(missing_vectors, expected, caplog):
    """peers-44: NaN and missing vectors are treated as asked, with a warning."""
    documents = with_vectors([1.0, 0.0], [float("nan"), 0.0], [0.0, 1.0])
    with caplog.at_level(logging.WARNING):
        found = MMRCompressor(
            vector_key="vector",
            missing_vectors=missing_vectors,
            relevance="score",
            lambda_mult=0.7,
        ).compress_documents(documents, "q")
    assert ids(found) == expected
    assert caplog.records


def test_vectors_of_two_lengths():
    """A vector of another length costs its own document the place, and nobody else."""
    compressor = MMRCompressor(vector_key="vector", embeddings=Fixed([1.0, 0.0]))
    documents = with_vectors([1.0, 0.0, 0.0], [1.0, 0.0])
    assert compressor.compress_documents(documents, "q")[0].id == documents[1].id


async def test_a_broken_model_does_not_cost_the_answer(caplog):
    """Words stand in, with a warning; `strict=True` raises."""
    with caplog.at_level(logging.WARNING):
        found = MMRCompressor(embeddings=BrokenEmbeddings(), k=3).compress_documents(
            corpus(), QUERY
        )
    assert len(found) == 3
    assert "service is down" in caplog.text
    strict = MMRCompressor(embeddings=BrokenEmbeddings(), strict=True)
    with pytest.raises(RuntimeError):
        strict.compress_documents(corpus(), QUERY)
    with pytest.raises(RuntimeError):
        await strict.acompress_documents(corpus(), QUERY)


def test_a_broken_model_leaves_the_vectors_that_are_there():
    """Only the query could not be embedded: vectors stay, scores say what is relevant."""
    documents = with_vectors(*TWINS, scores=[0.9, 0.8, 0.3])
    compressor = MMRCompressor(
        vector_key="vector", embeddings=BrokenEmbeddings(), k=2, lambda_mult=0.5
    )
    assert ids(compressor.compress_documents(documents, "q")) == ["0", "2"]


class _Faiss:
    def __init__(self, rows):
        self.index_to_docstore_id = dict(enumerate(rows))
        self.index = SimpleNamespace(reconstruct=lambda number: list(rows.values())[number])


class _Chroma:
    def __init__(self, rows):
        self._rows = rows

    def get(self, ids, include):
        assert include == ["embeddings"]
        present = [id_ for id_ in reversed(ids) if id_ in self._rows]
        return {"ids": present, "embeddings": np.array([self._rows[id_] for id_ in present])}


class _Qdrant:
    def __init__(self, rows, name=""):
        self.collection_name, self.vector_name = "c", name
        self.client = SimpleNamespace(retrieve=self._retrieve)
        self._rows = rows

    def _retrieve(self, collection_name, ids, with_vectors):
        assert (collection_name, with_vectors) == ("c", True)
        vectors = {
            i: {self.vector_name: v} if self.vector_name else v for i, v in self._rows.items()
        }
        return [SimpleNamespace(id=i, vector=vectors[i]) for i in ids if i in vectors]


def _own(rows):
    index = VectorIndex(2)
    index.add(list(rows), list(rows.values()))
    return index


def _memory(rows):
    store = InMemoryVectorStore(WordEmbeddings())
    store.store = {id_: {"vector": row} for id_, row in rows.items()}
    return store


@pytest.mark.parametrize(
    "build",
    [_own, _memory, _Faiss, _Chroma, _Qdrant, lambda rows: _Qdrant(rows, "dense")],
    ids=["own", "memory", "faiss", "chroma", "qdrant", "qdrant-named"],
)
def test_stores_are_asked_in_their_own_way(build):
    """Each kind of store gives vectors by id, in the order asked for, `None` where it has none."""
    rows = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
    found = stored_vectors(build(rows), ["b", None, "missing", "a"])
    assert [None if v is None else list(map(float, v)) for v in found] == [
        [0.0, 1.0],
        None,
        None,
        [1.0, 0.0],
    ]


def test_a_failing_store_gives_no_vectors(caplog):
    """The look-up may fail; that is a warning and not an error."""

    class Broken:
        def get(self, ids, include):
            raise ConnectionError("gone")

    with caplog.at_level(logging.WARNING):
        assert stored_vectors(Broken(), ["a"]) == [None]
    assert "gone" in caplog.text
    assert stored_vectors(object(), ["a"]) == [None]


# As a compressor


@pytest.mark.parametrize(
    "wrong",
    [
        {"lambda_mult": 1.5},
        {"lambda_mult": -0.1},
        {"lambda_mult": float("nan")},
        {"k": -1},
        {"lambda": 0.5},
        {"k": True},
        {"relevance": "both"},
        {"missing_vectors": "ignore"},
        {"cache_size": -1},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [MMRCompressor, MMRRetriever])
def test_d3_wrong_settings_are_refused_at_construction(wrong, kind):
    """D3: lambda outside [0, 1] or NaN, and the rest: a typed ValueError."""
    needed = {"retriever": ListRetriever(documents=[])} if kind is MMRRetriever else {}
    with pytest.raises(EasyRAGError) as refused:
        kind(**needed, **wrong)
    assert isinstance(refused.value, ValueError)


def test_no_documents_and_no_picks():
    """Nothing in, nothing out; `k=0` gives nothing; `k` above n gives n."""
    assert MMRCompressor().compress_documents([], QUERY) == []
    assert MMRCompressor(k=0).compress_documents(corpus(), QUERY) == []
    assert len(MMRCompressor(k=100).compress_documents(corpus(), QUERY)) == len(corpus())


def test_in_langchains_own_retriever_and_pipeline():
    """It works where a document compressor is expected."""
    base = ListRetriever(documents=corpus())
    pipeline = DocumentCompressorPipeline(transformers=[MMRCompressor(k=3), MMRCompressor(k=2)])
    retriever = ContextualCompressionRetriever(base_compressor=pipeline, base_retriever=base)
    assert len(retriever.invoke(QUERY)) == 2


async def test_sync_equals_async_and_the_loop_goes_on():
    """DESIGN 1.9: the same picks; a slow sync model runs in a thread."""
    gate = LoopGate()

    class Slow(WordEmbeddings):
        def embed_documents(self, texts):
            gate()
            return super().embed_documents(texts)

    expected = MMRCompressor(embeddings=WordEmbeddings(), k=3).compress_documents(corpus(), QUERY)
    async with ticking() as ticks:
        found = await MMRCompressor(embeddings=Slow(), k=3).acompress_documents(corpus(), QUERY)
    assert found == expected
    assert gate.passed == 1
    assert ticks[0] > 0


@given(st.integers(0, 9), st.sampled_from(["query", "score"]))
def test_inputs_stay_as_they_are(k, relevance):
    """DESIGN 1.6: documents, and an earlier result, are deep-equal afterwards."""
    documents = corpus()
    before = snapshot(documents)
    compressor = MMRCompressor(k=k, relevance=relevance, embeddings=WordEmbeddings())
    first = compressor.compress_documents(documents, QUERY)
    kept = snapshot(first)
    for document in compressor.compress_documents(documents, QUERY):
        document.metadata["easyrag"]["mmr"]["gain"] = None
    assert snapshot(documents) == before
    assert snapshot(first) == kept
