"""Retrievers of the frameworks beside ours: the same where they are right, by name where not."""

from __future__ import annotations

import random

import pytest
from langchain_classic.retrievers import EnsembleRetriever, ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever as DocumentRetriever
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter
from llama_index.core import StorageContext
from llama_index.core.base.base_retriever import BaseRetriever as NodeRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import AutoMergingRetriever, QueryFusionRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

import langchain_easyrag as lc
import llamaindex_easyrag as li
from tests.parity.frameworks import WordEmbeddings


class SomeDocuments(DocumentRetriever):
    """Gives what it was given."""

    documents: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.documents


class SomeNodes(NodeRetriever):
    """Gives what it was given, or raises it."""

    def __init__(self, nodes):
        super().__init__()
        self.nodes = nodes

    def _retrieve(self, query_bundle):
        if isinstance(self.nodes, Exception):
            raise self.nodes
        return [one.model_copy() for one in self.nodes]


def rankings(seed, lists=3):
    draw = random.Random(seed)
    keys = [f"text {n}" for n in range(20)]
    return [
        [(key, 1.0 - place / 20 - number / 1000) for place, key in enumerate(draw.sample(keys, 8))]
        for number in range(lists)
    ]


# EnsembleRetriever


@pytest.mark.parametrize("seed", range(5))
def test_ensemble_agrees_on_sound_lists(seed):
    """Ids and distinct texts: the same documents, in the same order but for exact ties."""
    children = [
        SomeDocuments(documents=[Document(key, id=key) for key, _ in ranking])
        for ranking in rankings(seed)
    ]
    weights = [0.5, 0.3, 0.2]
    theirs = EnsembleRetriever(retrievers=children, weights=weights).invoke("q")
    ours = lc.PipelineRetriever(retrievers=children, weights=weights, k=24).invoke("q")
    scores = {d.id: d.metadata["easyrag"]["score"] for d in ours}
    assert {d.id for d in theirs} == scores.keys()
    told = [scores[d.id] for d in theirs]
    assert told == sorted(told, reverse=True)


def test_ensemble_falls_with_one_retriever():
    """Divergence langchain-F4: one that raises ends the call there; here the rest answers."""

    class Down(DocumentRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            raise ConnectionError("gone")

    children = [Down(), SomeDocuments(documents=[Document("a", id="a")])]
    with pytest.raises(ConnectionError):
        EnsembleRetriever(retrievers=children, weights=[0.5, 0.5]).invoke("q")
    assert [d.id for d in lc.PipelineRetriever(retrievers=children).invoke("q")] == ["a"]


def test_ensemble_gives_no_scores_and_no_k():
    """Divergence langchain-F7: neither how many nor why; here both."""
    children = [SomeDocuments(documents=[Document(key, id=key) for key in "abc"])] * 2
    theirs = EnsembleRetriever(retrievers=children, weights=[1, 1]).invoke("q", k=1)
    assert len(theirs) == 3
    assert theirs[0].metadata == {}
    (ours,) = lc.PipelineRetriever(retrievers=children).invoke("q", k=1)
    assert ours.metadata["easyrag"]["channels"]["SomeDocuments"]["rank"] == 1


# QueryFusionRetriever


def nodes_of(ranking):
    return [NodeWithScore(node=TextNode(text=key, id_=key), score=score) for key, score in ranking]


@pytest.mark.parametrize("seed", range(5))
def test_query_fusion_agrees_by_relative_score(seed):
    """Sound scores: the same ids, order and scores."""
    children = [SomeNodes(nodes_of(ranking)) for ranking in rankings(seed)]
    theirs = QueryFusionRetriever(
        children,
        llm=MockLLM(),
        mode="relative_score",
        num_queries=1,
        similarity_top_k=9,
        use_async=False,
    ).retrieve("q")
    ours = li.PipelineRetriever(
        children, fusion="score", retriever_weights=[1 / 3] * 3, similarity_top_k=9
    ).retrieve("q")
    assert [one.score for one in ours] == pytest.approx([one.score for one in theirs])
    assert {o.node.node_id for o in ours[:5]} == {t.node.node_id for t in theirs[:5]}


def test_query_fusion_falls_with_one_retriever():
    """Divergence llamaindex-47: one that raises takes the answer down there, under another name."""
    children = [SomeNodes(RuntimeError("db is down")), SomeNodes(nodes_of([("a", 1.0)]))]
    theirs = QueryFusionRetriever(children, llm=MockLLM(), num_queries=1, use_async=False)
    with pytest.raises(RuntimeError):
        theirs.retrieve("q")
    result = li.PipelineRetriever(children).run("q")
    assert [one.node.node_id for one in result.hits] == ["a"]
    assert result.stages[0].error == "RuntimeError('db is down')"


# AutoMergingRetriever


def family(size, *, parent=True):
    """A parent of so many leaves in a docstore, and the leaves as they are found."""
    leaves = [
        TextNode(
            text=f"leaf {n}",
            id_=f"leaf{n}",
            relationships={NodeRelationship.PARENT: RelatedNodeInfo(node_id="parent")},
        )
        for n in range(size)
    ]
    links = {NodeRelationship.CHILD: [RelatedNodeInfo(node_id=leaf.node_id) for leaf in leaves]}
    docstore = SimpleDocumentStore()
    docstore.add_documents(leaves)
    if parent:
        docstore.add_documents([TextNode(text="all", id_="parent", relationships=links)])
    return docstore, leaves


def merged(docstore, found, **settings):
    """What their retriever and our postprocessor make of the same nodes."""
    context = StorageContext.from_defaults(docstore=docstore)
    theirs = AutoMergingRetriever(SomeNodes(found), context).retrieve("q")
    ours = li.AutoMergingPostprocessor(docstore, **settings).postprocess_nodes(found)
    return [[(one.node.node_id, one.score) for one in nodes] for nodes in (theirs, ours)]


@pytest.mark.parametrize(("size", "hit"), [(2, 2), (4, 3), (5, 3), (5, 1), (9, 4), (9, 5)])
def test_auto_merging_agrees_off_the_threshold(size, hit):
    """The same nodes, and with the mean the same scores."""
    docstore, leaves = family(size)
    found = [NodeWithScore(node=leaf, score=1.0 - n / 10) for n, leaf in enumerate(leaves[:hit])]
    found.append(NodeWithScore(node=TextNode(text="free", id_="free"), score=0.05))
    theirs, ours = merged(docstore, found, score="mean")
    assert dict(theirs) == pytest.approx(dict(ours))


def test_auto_merging_leaves_the_threshold_out():
    """Divergence: two of four are not half there, the share must be above; here it is enough."""
    docstore, leaves = family(4)
    found = [NodeWithScore(node=leaf, score=0.5) for leaf in leaves[:2]]
    theirs, ours = merged(docstore, found)
    assert [id_ for id_, _ in theirs] == ["leaf0", "leaf1"]
    assert [id_ for id_, _ in ours] == ["parent"]


def test_auto_merging_falls_without_the_parent(caplog):
    """Divergence llamaindex-50: a parent that is missing ends the query there; here leaves stay."""
    docstore, leaves = family(2, parent=False)
    found = [NodeWithScore(node=leaf, score=0.5) for leaf in leaves]
    context = StorageContext.from_defaults(docstore=docstore)
    with pytest.raises(ValueError, match="parent not found"):
        AutoMergingRetriever(SomeNodes(found), context).retrieve("q")
    ours = li.AutoMergingPostprocessor(docstore).postprocess_nodes(found)
    assert [one.node.node_id for one in ours] == ["leaf0", "leaf1"]
    assert "'parent'" in caplog.text


def test_auto_merging_counts_no_score_as_zero():
    """Divergence: a leaf without a score pulls the parent down there; here it is left out."""
    docstore, leaves = family(2)
    found = [NodeWithScore(node=leaves[0], score=0.8), NodeWithScore(node=leaves[1])]
    theirs, ours = merged(docstore, found, score="mean")
    assert theirs == [("parent", pytest.approx(0.4))]
    assert ours == [("parent", pytest.approx(0.8))]


def test_auto_merging_takes_its_documents_apart():
    """Divergence: each parent is a look-up of its own there; here a level is one."""

    class Counting(SimpleDocumentStore):
        def __init__(self):
            super().__init__()
            self.single, self.batches = 0, 0

        def get_document(self, *given, **told):
            self.single += 1
            return super().get_document(*given, **told)

        def get_nodes(self, node_ids, *given, **told):
            self.batches += 1
            return super().get_nodes(node_ids, *given, **told)

    docstore, found = Counting(), []
    for number in range(3):
        leaf = TextNode(
            text=f"leaf {number}",
            id_=f"leaf{number}",
            relationships={NodeRelationship.PARENT: RelatedNodeInfo(node_id=f"p{number}")},
        )
        child = {NodeRelationship.CHILD: [RelatedNodeInfo(node_id=leaf.node_id)]}
        docstore.add_documents([leaf, TextNode(text="p", id_=f"p{number}", relationships=child)])
        found.append(NodeWithScore(node=leaf, score=0.5))
    context = StorageContext.from_defaults(docstore=docstore)
    AutoMergingRetriever(SomeNodes(found), context).retrieve("q")
    assert docstore.single >= 3
    docstore.batches = 0
    ours = li.AutoMergingPostprocessor(docstore).postprocess_nodes(found)
    assert [one.node.node_id for one in ours] == ["p0", "p1", "p2"]
    assert docstore.batches == 1


# ParentDocumentRetriever

TEXTS = {
    "cats": "Cats sleep all day. They purr at night.",
    "dogs": "Dogs bark at strangers. They guard the house.",
    "fusion": "Rankings are fused by rank. Scores are not used.",
}


def parents(**settings):
    """Their retriever over a store of vectors, with its parents' ids in the children."""
    retriever = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(WordEmbeddings()),
        docstore=InMemoryStore(),
        child_splitter=CharacterTextSplitter(separator=". ", chunk_size=25, chunk_overlap=0),
        **settings,
    )
    retriever.add_documents(
        [Document(text, id=id_) for id_, text in TEXTS.items()], ids=list(TEXTS)
    )
    return retriever


@pytest.mark.parametrize("query", ["Do cats purr?", "who guards the house", "fused rankings"])
def test_parents_agree(query):
    """The same parents in the same order, each once."""
    theirs = parents(search_kwargs={"k": 4})
    children = theirs.vectorstore.as_retriever(search_kwargs={"k": 4})
    expansion = lc.ParentExpansionCompressor(store=theirs.docstore, parent_key="doc_id")
    ours = lc.PipelineRetriever(retrievers=[children], postprocessors=[expansion]).invoke(query)
    assert [d.page_content for d in ours] == [d.page_content for d in theirs.invoke(query)]


def test_parents_come_without_a_reason():
    """Divergence langchain-P4: neither score nor the child that was hit; here both."""
    retriever = parents(search_kwargs={"k": 2})
    assert all("score" not in d.metadata for d in retriever.invoke("Do cats purr?"))
    stored = retriever.vectorstore.similarity_search("Do cats purr?", k=9)
    children = lc.BM25Retriever.from_documents(stored)
    expansion = lc.ParentExpansionCompressor(store=retriever.docstore, parent_key="doc_id")
    line = lc.PipelineRetriever(retrievers=[children], postprocessors=[expansion])
    facts = line.invoke("Do cats purr?")[0].metadata["easyrag"]
    assert facts["score"] > 0
    assert facts["children"]


def test_fewer_parents_than_children_were_asked_for():
    """Divergence langchain-P4: `k` counts children there; here it counts what is returned."""
    text = "Cats sleep. Cats purr. Cats climb. Cats eat. Cats play."
    theirs = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(WordEmbeddings()),
        docstore=InMemoryStore(),
        child_splitter=CharacterTextSplitter(separator=". ", chunk_size=11, chunk_overlap=0),
        search_kwargs={"k": 3},
    )
    theirs.add_documents([Document(text), *(Document(other) for other in TEXTS.values())])
    assert len(theirs.invoke("Cats")) < 3
    ours = lc.ParentChildRetriever.from_documents(
        [Document(text, id="c"), *(Document(o, id=i) for i, o in TEXTS.items())],
        WordEmbeddings(),
        splitter=lc.ParentChildTextSplitter(11, 0, parent_chunk_size=80),
        k=3,
    )
    assert len(ours.invoke("Cats")) == 3
