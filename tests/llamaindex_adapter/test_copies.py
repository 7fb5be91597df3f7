"""Retrievers can be copied and pickled, and the copies are retrievers of their own."""

from __future__ import annotations

import copy
import pickle

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import Document, TextNode

from easyrag_core import BM25Params
from llamaindex_easyrag import (
    BM25Retriever,
    DocumentNodeParser,
    FusionRetriever,
    HybridRetriever,
    ParentChildNodeParser,
    ParentChildRetriever,
)
from tests.llamaindex_adapter._parts import WordEmbedding, ids

TEXTS = {"cat": "the cat sat", "moon": "床前明月光", "run": "he runs fast", "home": "低头思故乡"}
QUERIES = ("the cat running 明月", "故乡")


def nodes_of(texts=TEXTS):
    return [TextNode(text=text, id_=name) for name, text in texts.items()]


def parents(**settings):
    text = "\n\n".join(f"{text}. {text} again." for text in TEXTS.values())
    parser = ParentChildNodeParser(DocumentNodeParser(60, 0), DocumentNodeParser(20, 0))
    nodes = parser.get_nodes_from_documents([Document(text=text, id_="doc")])
    return ParentChildRetriever(nodes, **settings)


def beside():
    index = VectorStoreIndex(nodes_of(), embed_model=WordEmbedding())
    return HybridRetriever(nodes_of(), vector_retriever=index)


MAKERS = [
    pytest.param(lambda: BM25Retriever(nodes_of(), params=BM25Params(b=0.1)), id="bm25"),
    pytest.param(lambda: BM25Retriever(nodes_of(), stemmer="english"), id="bm25-stemmer"),
    pytest.param(
        lambda: BM25Retriever(nodes_of(), stemmer="english", token_pattern=r"\w+"),
        id="bm25-pattern-and-stemmer",
    ),
    pytest.param(lambda: HybridRetriever(nodes_of(), embed_model=WordEmbedding()), id="hybrid"),
    pytest.param(beside, id="hybrid-beside"),
    pytest.param(
        lambda: FusionRetriever([BM25Retriever(nodes_of()), beside()], retriever_weights=[1, 2]),
        id="fusion",
    ),
    pytest.param(parents, id="parent-child"),
    pytest.param(lambda: parents(embed_model=WordEmbedding()), id="parent-child-hybrid"),
]
WAYS = {"pickle": lambda one: pickle.loads(pickle.dumps(one)), "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("make", MAKERS)
def test_a_copy_answers_as_the_original(make, way):
    """Same nodes, scores and facts."""
    retriever = make()
    copied = way(retriever)
    assert retriever.retrieve(QUERIES[0])
    for query in QUERIES:
        assert copied.retrieve(query) == retriever.retrieve(query)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("make", [MAKERS[0], MAKERS[1], MAKERS[3], MAKERS[7]])
def test_a_copy_changes_alone(make, way):
    """What is added to a copy is not in the original."""
    retriever = make()
    copied = way(retriever)
    copied.add_nodes([TextNode(text="zebra 斑马", id_="z")])
    assert "z" in ids(copied.retrieve("zebra 斑马"))
    assert "z" not in ids(retriever.retrieve("zebra 斑马"))


@pytest.mark.parametrize("make", [MAKERS[0], MAKERS[3]])
def test_a_shallow_copy_shares_what_it_holds(make):
    """Index and nodes together: what is added to one is found whole by the other."""
    retriever = make()
    shallow = copy.copy(retriever)
    shallow.similarity_top_k = 1
    shallow.add_nodes([TextNode(text="zebra 斑马", id_="z")])
    assert ids(retriever.retrieve("zebra"))[0] == ids(shallow.retrieve("zebra"))[0] == "z"
    assert retriever.similarity_top_k != 1


def test_a_stemmer_that_cannot_be_copied_is_shared():
    """An object of PyStemmer refuses to be copied: a deep copy uses the same one."""
    stemmer = pytest.importorskip("Stemmer").Stemmer("english")
    retriever = BM25Retriever(nodes_of(), stemmer=stemmer)
    copied = copy.deepcopy(retriever)
    assert ids(copied.retrieve("running")) == ids(retriever.retrieve("running")) == ["run"]
