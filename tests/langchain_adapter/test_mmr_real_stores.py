"""MMR over the stores that people use: vectors by id, the query embedded once per request."""

from __future__ import annotations

import threading
import uuid

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from easyrag_core import maximal_marginal_relevance
from langchain_easyrag import (
    BM25Retriever,
    FusionRetriever,
    HybridRetriever,
    MMRCompressor,
    MMRRetriever,
    PipelineRetriever,
)
from langchain_easyrag._query_vectors import embedded_query, one_request
from langchain_easyrag._vectors import stored_vectors
from langchain_easyrag.retrievers._by_vector import by_vector
from tests.langchain_adapter.samples import (
    WAIT,
    WHOLE_GRAPH,
    ListRetriever,
    RunsSeen,
    WordEmbeddings,
    corpus,
    ids,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:`langchain-community` is being sunset:DeprecationWarning"),
    # faiss is made by SWIG, whose types say no module.
    pytest.mark.filterwarnings("ignore:builtin type [Ss]wig:DeprecationWarning"),
]


def documents():
    """The corpus with ids that every store takes; twice the same passage under two ids."""
    made = [*corpus(), Document(corpus()[0].page_content, metadata={"source": "twin"})]
    return [
        document.model_copy(update={"id": str(uuid.uuid5(uuid.NAMESPACE_URL, str(number)))})
        for number, document in enumerate(made)
    ]


def memory(model):
    return InMemoryVectorStore.from_documents(documents(), model)


def chroma(model):
    chromadb = pytest.importorskip("chromadb")
    from langchain_chroma import Chroma

    client = chromadb.EphemeralClient(chromadb.config.Settings(anonymized_telemetry=False))
    store = Chroma(
        client=client,
        collection_name=f"c{uuid.uuid4().hex}",
        embedding_function=model,
        collection_configuration=WHOLE_GRAPH,
    )
    store.add_documents(documents(), ids=ids(documents()))
    return store


def faiss(model):
    pytest.importorskip("faiss")
    from langchain_community.vectorstores import FAISS

    return FAISS.from_documents(documents(), model, ids=ids(documents()))


def qdrant(model):
    pytest.importorskip("qdrant_client")
    from langchain_qdrant import QdrantVectorStore

    return QdrantVectorStore.from_documents(
        documents(), model, location=":memory:", collection_name="c", ids=ids(documents())
    )


STORES = {"memory": memory, "chroma": chroma, "faiss": faiss, "qdrant": qdrant}


@pytest.fixture(params=STORES.values(), ids=STORES)
def stocked(request):
    """A store, and its model with nothing counted yet."""
    model = WordEmbeddings()
    store = request.param(model)
    model.batches.clear()
    model.queries.clear()
    yield store, model
    if request.param is qdrant:
        store.client.close()


def texts(found):
    return [document.page_content for document in found]


def test_vectors_are_looked_up_by_id(stocked):
    """One or `None` per id, in the order of the ids; the model is not asked."""
    store, model = stocked
    known = ids(documents())
    found = stored_vectors(store, [known[2], None, str(uuid.uuid4()), known[0]])
    assert [vector is not None for vector in found] == [True, False, False, True]
    assert len(found[0]) == model.dimensions
    assert model.batches == []


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_the_query_is_embedded_once(stocked, how):
    """Search and MMR together: one embedding of the query, and none of a document."""
    store, model = stocked
    retriever = MMRRetriever(retriever=store.as_retriever(), k=3, fetch_k=8, lambda_mult=0.4)
    if how == "invoke":
        found = retriever.invoke("ranking of one query")
    else:
        found = await retriever.ainvoke("ranking of one query")
    assert len(found) == 3
    assert model.queries == ["ranking of one query"]
    assert model.batches == []


def test_the_picks_are_the_kernels(stocked):
    """The same picks as from the model's own vectors, whatever the store hands out."""
    store, model = stocked
    query = "Reciprocal rank fusion of rankings"
    found = MMRRetriever(retriever=store.as_retriever(), k=4, fetch_k=8).invoke(query)
    candidates = store.similarity_search(query, k=8)
    rows = [model.vector(document.page_content) for document in candidates]
    asked = model.vector(query)
    norm = sum(x * x for x in asked) ** 0.5
    cosines = [
        sum(a * b for a, b in zip(row, asked, strict=True)) / norm / sum(x * x for x in row) ** 0.5
        for row in rows
    ]
    picks = maximal_marginal_relevance(rows, cosines, k=4, lambda_mult=0.7).indices
    assert texts(found) == [candidates[number].page_content for number in picks]


def test_twins_give_way(stocked):
    """Of two equal passages one is enough: the second comes after all others."""
    store, _ = stocked
    twin = corpus()[0].page_content
    found = MMRRetriever(retriever=store.as_retriever(), k=8, fetch_k=8, lambda_mult=0.3).invoke(
        twin
    )
    assert texts(found)[0] == texts(found)[-1] == twin


def test_the_search_is_the_stores_own(stocked):
    """Asked by the vector, a store finds what it finds by the text, in the same order."""
    store, _ = stocked
    for settings in ({"k": 3}, {"k": 8}):
        child = store.as_retriever(search_kwargs=settings)
        twin = by_vector(child, "ranking of one query")
        assert twin is not child
        assert twin.invoke("ranking of one query") == child.invoke("ranking of one query")
        assert twin.get_name() == child.get_name()


def test_other_searches_are_left_to_the_store(stocked):
    """With a threshold, MMR of its own, or settings around it: it embeds the query itself."""
    store, _ = stocked
    mmr = store.as_retriever(search_type="mmr")
    wrapped = store.as_retriever().with_config(tags=["x"])
    assert by_vector(mmr, "q") is mmr
    assert by_vector(wrapped, "q") is wrapped


def test_callbacks_see_the_same_retriever(stocked):
    """Its run has the same name, below the run of ours."""
    store, _ = stocked
    runs = RunsSeen()
    retriever = MMRRetriever(retriever=store.as_retriever())
    retriever.invoke("ranking", {"callbacks": [runs]})
    child = runs.named("VectorStoreRetriever")
    assert child["parent_run_id"] == runs.named("MMRRetriever")["run_id"]


def test_one_embedding_for_a_whole_line(stocked):
    """Two searches of one store, one of an index of our own, and MMR: one embedding."""
    store, model = stocked
    own = HybridRetriever.from_documents(documents(), model)
    model.batches.clear()
    retriever = PipelineRetriever(
        retrievers={
            "meaning": store.as_retriever(),
            "again": store.as_retriever(search_kwargs={"k": 2}),
            "own": own,
        },
        postprocessors=[MMRCompressor(k=3, vector_store=store)],
        strict=True,
    )
    assert len(retriever.invoke("ranking of one query")) == 3
    assert model.queries == ["ranking of one query"]
    assert len(retriever.run("another ranking").hits) == 3
    assert model.queries == ["ranking of one query", "another ranking"]


async def test_one_embedding_for_a_whole_line_async(stocked):
    """The same for tasks."""
    store, model = stocked
    fusion = FusionRetriever(retrievers=[store.as_retriever(), store.as_retriever()])
    retriever = MMRRetriever(retriever=fusion, vector_store=store, embeddings=model, k=3)
    assert len(await retriever.ainvoke("ranking of one query")) == 3
    assert model.queries == ["ranking of one query"]


def test_requests_do_not_share_vectors(stocked):
    """The next request asks the model again: it may be another user's, or a model that changed."""
    store, model = stocked
    retriever = MMRRetriever(retriever=store.as_retriever())
    retriever.invoke("ranking")
    retriever.invoke("ranking")
    assert model.queries == ["ranking", "ranking"]


# Without a store


def test_a_retriever_that_gives_no_vectors():
    """The model embeds the candidates in one batch, the query once."""
    model = WordEmbeddings()
    retriever = MMRRetriever(retriever=ListRetriever(documents=documents()), embeddings=model, k=3)
    assert len(retriever.invoke("ranking")) == 3
    assert [len(batch) for batch in model.batches] == [len({*texts(documents())})]
    assert model.queries == ["ranking"]


def test_bm25_alone_is_made_diverse():
    """Without any model words are compared: the twin comes last."""
    bm25 = BM25Retriever.from_documents(documents(), k=8)
    query = "Reciprocal rank fusion joins several rankings, novelty of a ranking"
    found = MMRRetriever(retriever=bm25, k=4, lambda_mult=0.5).invoke(query)
    assert texts(bm25.invoke(query))[:2] == [corpus()[0].page_content] * 2
    assert texts(found).count(corpus()[0].page_content) < 2 or (
        texts(found)[-1] == corpus()[0].page_content
    )


# One embedding, however many want it


def test_threads_wait_for_one_embedding():
    """Two that ask at the same time get one vector, made once."""

    class Slow(WordEmbeddings):
        def embed_query(self, text):
            begun.set()
            assert go.wait(WAIT)
            return super().embed_query(text)

    begun, go, model, found = threading.Event(), threading.Event(), Slow(), []
    from contextvars import copy_context

    with one_request():
        threads = [
            threading.Thread(
                target=copy_context().run,
                args=(lambda: found.append(embedded_query(model, "q")),),
            )
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        assert begun.wait(WAIT)
        go.set()
        for thread in threads:
            thread.join(WAIT)
    assert model.queries == ["q"]
    assert found == [model.vector("q")] * 3


def test_a_failure_is_not_kept():
    """Who asks next asks the model again."""

    class Once(WordEmbeddings):
        def embed_query(self, text):
            super().embed_query(text)
            if len(self.queries) == 1:
                raise RuntimeError("busy")
            return self.vector(text)

    model = Once()
    with one_request():
        with pytest.raises(RuntimeError):
            embedded_query(model, "q")
        assert embedded_query(model, "q") == model.vector("q")


def test_a_model_that_fails_is_told_by_the_stores_own_run():
    """The store is asked as it is, and its error is the retriever's."""

    class Errors(BaseCallbackHandler):
        seen: list = []  # noqa: RUF012 - one test, one list

        def on_retriever_error(self, error, **kwargs):
            self.seen.append(repr(error))

    class Broken(WordEmbeddings):
        def embed_query(self, text):
            raise RuntimeError("the model is down")

    store = InMemoryVectorStore(Broken())
    with pytest.raises(RuntimeError, match="the model is down"):
        MMRRetriever(retriever=store.as_retriever()).invoke("q", {"callbacks": [Errors()]})
    assert Errors.seen == ["RuntimeError('the model is down')"] * 2
