"""Adding, replacing and deleting in real vector stores: in store and index, or in neither."""

from __future__ import annotations

import uuid

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from easyrag_core import EasyRAGError, HybridIndex
from langchain_easyrag import HybridRetriever, ParentChildRetriever, ParentChildTextSplitter
from tests.langchain_adapter.samples import WHOLE_GRAPH, WordEmbeddings

pytestmark = [
    pytest.mark.filterwarnings("ignore:`langchain-community` is being sunset:DeprecationWarning"),
    # faiss is made by SWIG, whose types say no module.
    pytest.mark.filterwarnings("ignore:builtin type [Ss]wig:DeprecationWarning"),
]

A, B, C, NOPE = (str(uuid.uuid5(uuid.NAMESPACE_URL, name)) for name in ("a", "b", "c", "nope"))
OLD = {A: "Cats purr at night.", B: "检索增强生成"}


def documents(texts):
    return [Document(text, id=id_, metadata={"source": "x"}) for id_, text in texts.items()]


def memory():
    return InMemoryVectorStore(WordEmbeddings())


def chroma():
    chromadb = pytest.importorskip("chromadb")
    from langchain_chroma import Chroma

    return Chroma(
        client=chromadb.EphemeralClient(chromadb.config.Settings(anonymized_telemetry=False)),
        collection_name=f"c{uuid.uuid4().hex}",
        embedding_function=WordEmbeddings(),
        collection_configuration=WHOLE_GRAPH,
    )


def faiss():
    library = pytest.importorskip("faiss")
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS

    model = WordEmbeddings()
    return FAISS(model, library.IndexFlatL2(model.dimensions), InMemoryDocstore(), {})


def qdrant():
    pytest.importorskip("qdrant_client")
    from langchain_qdrant import QdrantVectorStore

    store = QdrantVectorStore.from_documents(
        documents({A: "x"}), WordEmbeddings(), location=":memory:", collection_name="c", ids=[A]
    )
    store.delete([A])
    return store


class Refusing(InMemoryVectorStore):
    """Replaces nothing and forgets nothing unknown, and says so."""

    def add_documents(self, documents, ids=None, **kwargs):
        if taken := set(ids) & set(self.store):
            raise ValueError(f"duplicate ids: {taken}")
        return super().add_documents(documents, ids, **kwargs)

    async def aadd_documents(self, documents, ids=None, **kwargs):
        return self.add_documents(documents, ids, **kwargs)

    def delete(self, ids=None, **kwargs):
        if unknown := set(ids) - set(self.store):
            raise KeyError(unknown)
        super().delete(ids)


class Silent(Refusing):
    """As above, and gives no documents by id."""

    def get_by_ids(self, ids):
        raise NotImplementedError

    async def aget_by_ids(self, ids):
        raise NotImplementedError


STORES = {
    "memory": memory,
    "chroma": chroma,
    "faiss": faiss,
    "qdrant": qdrant,
    "refusing": lambda: Refusing(WordEmbeddings()),
    "silent": lambda: Silent(WordEmbeddings()),
}


@pytest.fixture(params=STORES.values(), ids=STORES)
def store(request):
    return request.param()


@pytest.fixture(params=["sync", "async"])
def call(request):
    """Calls a method, or its async twin."""

    async def called(target, method, *args, **kwargs):
        if request.param == "sync":
            return getattr(target, method)(*args, **kwargs)
        return await getattr(target, f"a{method}")(*args, **kwargs)

    return called


def in_store(store):
    """Id to text, as a search of the store sees it."""
    found = store.similarity_search("night 检索", k=50)
    return {d.id or d.metadata["_id"]: d.page_content for d in found}


def in_index(retriever):
    index = retriever.index
    chunks = index.get_many([id_ for doc in index.document_ids for id_ in index.chunks_of(doc)])
    return {chunk.id: chunk.embedding_text for chunk in chunks if chunk.kind != "parent"}


def hybrid(store):
    return HybridRetriever.from_documents(documents(OLD), vector_store=store)


async def test_unknown_ids_are_ignored(store, call):
    """Whatever the store does with them; ids may come from a generator."""
    retriever = hybrid(store)
    assert await call(retriever, "delete", (id_ for id_ in (B, NOPE, B))) == 1
    assert in_store(store) == in_index(retriever) == {A: OLD[A]}
    assert await call(retriever, "delete", [NOPE]) == await call(retriever, "delete", []) == 0
    for wrong in (A, [A, None], None):
        with pytest.raises(EasyRAGError):
            await call(retriever, "delete", wrong)
    assert in_store(store) == in_index(retriever) == {A: OLD[A]}


async def test_ids_that_are_there_are_replaced(store, call):
    """Old and new ones in one call; of an id that comes twice the last counts."""
    retriever = hybrid(store)
    given = documents({C: "Mice hide.", A: "Dogs bark at night."})
    assert await call(retriever, "add_documents", [given[0], *given]) == [C, C, A]
    expected = {A: "Dogs bark at night.", B: OLD[B], C: "Mice hide."}
    assert in_store(store) == in_index(retriever) == expected
    (found, *_) = retriever.invoke("dogs bark at night", k=1)
    assert found.metadata["easyrag"]["channels"].keys() == {"bm25", "vector"}


async def test_what_only_the_store_holds(call):
    """A document that another has put there is replaced and removed as well."""
    store = faiss()
    store.add_documents(documents(OLD), ids=list(OLD))
    retriever = HybridRetriever(vector_store=store)
    assert await call(retriever, "add_documents", documents({A: "New."})) == [A]
    assert await call(retriever, "delete", [B]) == 0
    assert in_store(store) == in_index(retriever) == {A: "New."}


def failing_at(store, numbers, log):
    """Let the calls of these numbers that write into a store fail, before or after their work."""

    class Failing(type(store)):
        def _counted(self, name, *args, **kwargs):
            log.append(name)
            if len(log) in numbers:
                raise ConnectionError(f"call {len(log)} fails")
            return getattr(super(), name)(*args, **kwargs)

        def add_documents(self, *args, **kwargs):
            return self._counted("add_documents", *args, **kwargs)

        def add_embeddings(self, *args, **kwargs):
            return self._counted("add_embeddings", *args, **kwargs)

        def delete(self, *args, **kwargs):
            return self._counted("delete", *args, **kwargs)

        async def aadd_documents(self, *args, **kwargs):
            return self.add_documents(*args, **kwargs)

        async def adelete(self, *args, **kwargs):
            return self.delete(*args, **kwargs)

    if not hasattr(store, "add_embeddings"):
        del Failing.add_embeddings
    store.__class__ = Failing
    return store


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("build", ["memory", "chroma", "faiss", "refusing"])
async def test_a_store_that_fails_changes_nothing(build, number, call):
    """Replacing and deleting: the error goes on, store and index are what they were."""
    store = STORES[build]()
    retriever = hybrid(store)
    before = in_store(store)
    changed = documents({A: "Dogs bark.", C: "Mice hide."})
    for method, given in (("add_documents", changed), ("delete", [B, NOPE])):
        log = []
        original = type(store)
        failing_at(store, {number}, log)
        try:
            await call(retriever, method, given)
        except ConnectionError:
            assert in_store(store) == before
        else:
            assert len(log) < number  # so many calls were not needed
            break
        finally:
            store.__class__ = original
        assert in_index(retriever) == OLD


async def test_a_model_that_fails_costs_no_document(call):
    """What makes room for the new is removed only once that is embedded."""
    store = faiss()
    retriever = hybrid(store)

    def fails(texts):
        raise ConnectionError("no model")

    store.embedding_function.embed_documents = fails
    with pytest.raises(ConnectionError):
        await call(retriever, "add_documents", documents({A: "Dogs bark."}))
    assert in_store(store) == in_index(retriever) == OLD


class FailingIndex(HybridIndex):
    """Takes no more writes once it is full."""

    full = False

    def add(self, *args):
        if self.full:
            raise OSError("full")
        super().add(*args)

    def remove(self, ids):
        if self.full:
            raise OSError("full")
        return super().remove(ids)

    def update_document(self, document_id, *args):
        if self.full and document_id != "first":
            raise OSError("full")
        super().update_document(document_id, *args)


async def test_an_index_that_fails_changes_nothing(store, call):
    """What the store has taken already is taken back."""
    index = FailingIndex()
    retriever = HybridRetriever.from_documents(documents(OLD), vector_store=store, index=index)
    index.full = True
    with pytest.raises(OSError, match="full"):
        await call(retriever, "add_documents", documents({A: "Dogs bark.", C: "Mice hide."}))
    assert in_store(store) == in_index(retriever) == OLD
    with pytest.raises(OSError, match="full"):
        await call(retriever, "delete", [B, NOPE])
    assert in_store(store) == in_index(retriever) == OLD


async def test_stores_that_replace_are_written_once(call):
    """Nothing is removed before: there is no moment without the document."""
    store, log = memory(), []
    retriever = hybrid(store)
    failing_at(store, (), log)
    await call(retriever, "add_documents", documents({A: "Dogs bark."}))
    assert log == ["add_documents"]


# Parents and children

ANIMALS = "Cats purr at night. Dogs bark all day.\n\nMice hide. 鸟在天上飞。"


def family(store, **settings):
    splitter = ParentChildTextSplitter(24, 0, parent_chunk_size=80)
    return ParentChildRetriever(splitter=splitter, vector_store=store, **settings)


async def test_children_follow_their_documents(store, call):
    """Added, changed and deleted; children that the store lacks are no obstacle."""
    tells = type(store).__name__ != "QdrantVectorStore"  # writes ids of chunks in its own form
    retriever = family(store)
    first = [Document(ANIMALS, id="first"), Document("Fish swim.", id="second")]
    assert await call(retriever, "add_documents", first) == ["first", "second"]
    assert set(in_store(store).values()) == set(in_index(retriever).values())
    assert not tells or in_store(store) == in_index(retriever)
    changed = [Document(ANIMALS.replace("bark", "sleep"), id="first")]
    await call(retriever, "add_documents", changed)
    assert set(in_store(store).values()) == set(in_index(retriever).values())
    # A store that refuses what it has not, and does not say what that is, must have all.
    apart = {"add_to_vector_store": isinstance(store, Silent)}
    await call(retriever, "add_documents", [Document("Own.", id="own")], **apart)
    await call(retriever, "add_documents", [Document("Other.", id="own")])
    assert await call(retriever, "delete", (id_ for id_ in ("first", "own", NOPE))) == 2
    assert set(in_store(store).values()) == set(in_index(retriever).values()) == {"Fish swim."}


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("build", ["memory", "faiss"])
async def test_a_store_that_fails_leaves_children_as_they_were(build, number, call):
    """A change is an addition and a removal: where either fails there is neither."""
    store = STORES[build]()
    retriever = family(store)
    await call(retriever, "add_documents", [Document(ANIMALS, id="first")])
    before, log = in_store(store), []
    failing_at(store, {number}, log)
    changed = Document(ANIMALS.replace("bark", "sleep"), id="first")
    with pytest.raises(ConnectionError):
        await call(retriever, "add_documents", [changed])
    assert in_store(store) == in_index(retriever) == before


async def test_the_store_follows_an_index_that_took_some(call):
    """The document that was replaced stays so, the other stays as it was: in both places."""
    index, store = FailingIndex(), faiss()
    retriever = family(store, index=index)
    old = [Document(ANIMALS, id="first"), Document("Fish swim.", id="second")]
    await call(retriever, "add_documents", old)
    index.full = True
    new = [Document("Cats sleep.", id="first"), Document("Fish jump.", id="second")]
    with pytest.raises(OSError, match="full"):
        await call(retriever, "add_documents", new)
    assert in_store(store) == in_index(retriever)
    assert set(in_store(store).values()) == {"Cats sleep.", "Fish swim."}
