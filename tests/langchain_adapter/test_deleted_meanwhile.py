"""Documents that are deleted between the search and the reading leave no gap."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from easyrag_core import HybridConfig, HybridIndex, InMemoryChunkStore
from langchain_easyrag import BM25Retriever, HybridRetriever
from tests.langchain_adapter.samples import WordEmbeddings, ids

MANY = [
    Document(f"A ranking of {'ranking ' * (30 - number)}词 {number}", id=f"d{number:02}")
    for number in range(30)
]
QUERY = "ranking"


class DeletingStore(InMemoryChunkStore):
    """Another request deletes documents just before this one reads them."""

    def __init__(self):
        super().__init__()
        self.plan = []

    def get_many(self, ids):
        if self.plan:
            gone = self.plan.pop(0)(ids)
            self.index.remove(gone)
        return super().get_many(ids)


def hybrid(**sides):
    store = DeletingStore()
    index = HybridIndex(HybridConfig(bm25_k=5, vector_k=5), store=store)
    store.index = index
    # A vector store knows nothing of them: whatever is found, our own side has found.
    retriever = HybridRetriever.from_documents(
        MANY, index=index, k=5, add_to_vector_store=False, **sides
    )
    return retriever, store


SIDES = pytest.mark.parametrize(
    "sides",
    [
        pytest.param(dict, id="bm25"),
        pytest.param(lambda: {"embeddings": WordEmbeddings()}, id="own-vectors"),
        pytest.param(
            lambda: {"vector_store": InMemoryVectorStore(WordEmbeddings())}, id="vector-store"
        ),
    ],
)


@SIDES
@pytest.mark.parametrize("fusion", ["rrf", "score"])
async def test_the_next_best_fill_the_gaps(sides, fusion):
    """As many as were asked for come back, ranked without gaps, none of them deleted."""
    for ask in ("invoke", "ainvoke"):
        retriever, store = hybrid(fusion=fusion, **sides())
        gone = []

        def first_three(asked, gone=gone):
            gone += asked[:3]
            return asked[:3]

        def all_of_them(asked, gone=gone):
            gone += asked
            return asked

        store.plan = [first_three, all_of_them]
        found = getattr(retriever, ask)(QUERY)
        found = found if ask == "invoke" else await found
        assert len(found) == 5
        assert [document.metadata["easyrag"]["rank"] for document in found] == [1, 2, 3, 4, 5]
        assert not set(gone) & set(ids(found))
        assert len(gone) > 3


def test_a_query_is_embedded_once_however_deep_the_search_goes():
    """Looking deeper costs no call to the model."""
    model = WordEmbeddings()
    retriever, store = hybrid(embeddings=model)
    store.plan = [lambda asked: asked] * 2
    assert len(retriever.invoke(QUERY)) == 5
    assert model.queries == [QUERY]


def test_fewer_come_only_where_no_more_match():
    """A content store that lost everything ends the search, too."""
    retriever, store = hybrid(embeddings=WordEmbeddings())
    store.delete_many([document.id for document in MANY[2:]])
    assert sorted(ids(retriever.invoke(QUERY))) == ["d00", "d01"]
    store.delete_many(["d00", "d01"])
    assert retriever.invoke(QUERY) == []


def test_bm25_alone_fills_the_gaps():
    """The retriever with its own corpus does the same."""
    retriever = BM25Retriever.from_documents(MANY, k=5)
    best = ids(retriever.invoke(QUERY))
    search = retriever.vectorizer.search

    class Deleting(type(retriever.vectorizer)):
        """Another request deletes what was found, once."""

        def search(self, *args, **kwargs):
            hits = search(*args, **kwargs)
            retriever.vectorizer = plain
            retriever.delete([hit.id for hit in hits[:3]])
            return hits

    plain = retriever.vectorizer
    retriever.vectorizer = Deleting()
    found = retriever.invoke(QUERY)
    assert len(found) == 5
    assert ids(found)[:2] == best[3:]
    assert [document.metadata["easyrag"]["rank"] for document in found] == [1, 2, 3, 4, 5]
