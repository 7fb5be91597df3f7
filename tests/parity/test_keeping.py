"""Built, kept up to date, filtered, saved and loaded: the same through both frameworks."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

import langchain_easyrag as lc
import llamaindex_easyrag as li
from easyrag_core import JiebaAnalyzer, StandardAnalyzer
from tests.parity.frameworks import MODES
from tests.parity.plugs import PASSAGES, answers

modes = pytest.mark.parametrize("ask", MODES.values(), ids=MODES)

QUESTIONS = ("How are rankings fused?", "片段的位置", "redis v2.3")
ONLY_ENGLISH = MetadataFilters(filters=[MetadataFilter(key="language", value="en")])


def told(texts):
    """The passages as documents and as nodes, with their language."""
    languages = {id_: "en" if text.isascii() else "zh" for id_, text in texts.items()}
    return (
        [Document(t, id=id_, metadata={"language": languages[id_]}) for id_, t in texts.items()],
        [
            TextNode(
                text=text,
                id_=id_,
                metadata={"language": languages[id_]},
                excluded_embed_metadata_keys=["language"],
            )
            for id_, text in texts.items()
        ],
    )


def plugs(texts=PASSAGES, **settings):
    """The two retrievers."""
    by_document, by_node = told(texts)
    return (
        lc.BM25Retriever.from_documents(by_document, k=5, **settings),
        li.BM25Retriever(by_node, similarity_top_k=5, **settings),
    )


def same(ask, pair, *others):
    """Both find the same, and so do the other pairs; returns what is found."""
    found = {}
    for question in QUESTIONS:
        found[question] = answers(ask, pair, question)[0]
        for one in (pair, *others):
            assert answers(ask, one, question) == (found[question], found[question])
    return found


def analyzers():
    """Names of ours, each a way to read texts."""
    return {
        "default": StandardAnalyzer,
        "stemmed": lambda: StandardAnalyzer(stemmer="english", stop_words="english"),
        "jieba": lambda: JiebaAnalyzer(words=["内存数据库"]),
    }


@modes
@pytest.mark.parametrize("analyzer", analyzers())
def test_a_saved_retriever_comes_back_in_both(ask, analyzer, tmp_path):
    """Saved and loaded, sync or async, they answer as before, and go on being written to."""
    pytest.importorskip("jieba")
    pytest.importorskip("Stemmer")
    pair = plugs(analyzer=analyzers()[analyzer]())
    folders = tmp_path / "document", tmp_path / "node"
    for plug, folder in zip(pair, folders, strict=True):
        ask(plug, "persist", folder)
    loaded = (
        ask(lc.BM25Retriever, "from_persist_dir", folders[0], k=5),
        ask(li.BM25Retriever, "from_persist_dir", folders[1]),
    )
    assert any(same(ask, pair, loaded).values())
    for retrievers in (pair, loaded):
        write(ask, retrievers, {"new": "Rankings of redis v2.3 片段"})
    assert {one.id for one in same(ask, pair, loaded)[QUESTIONS[2]]} == {"redis", "new"}


def write(ask, pair, texts):
    """Add passages to both, or replace them."""
    by_document, by_node = told(texts)
    ask(pair[0], "upsert", by_document)
    ask(pair[1], "add_nodes", by_node)


@modes
def test_upserts_and_deletes_are_those_of_a_rebuilt_retriever(ask):
    """After any writes both have the scores of a retriever built of what is left."""
    pair = plugs()
    write(ask, pair, {"fuse": "A fused passage of redis.", "more": "片段与排序"})
    ask(pair[0], "delete", ["places", "nobody"])
    ask(pair[1], "delete_nodes", ["places", "nobody"])
    left = {**PASSAGES, "fuse": "A fused passage of redis.", "more": "片段与排序"}
    del left["places"]
    same(ask, pair, plugs(left))


@modes
def test_filters_hold_before_ranking(ask):
    """Both filter before they rank: five of the right ones, none of the others."""
    pair = plugs()
    pair[0].filter = lambda document: document.metadata["language"] == "en"
    pair[1].filters = ONLY_ENGLISH
    found = same(ask, pair)
    assert {one.id for one in found[QUESTIONS[0]]} == {"fuse", "twin"}
    assert found[QUESTIONS[1]] == []


def test_a_bar_is_shown_by_both_when_it_is_asked_for(capsys):
    """`show_progress` at building and adding in LangChain; `verbose` and it in LlamaIndex."""
    pytest.importorskip("tqdm")
    by_document, by_node = told(PASSAGES)
    pair = plugs()
    assert capsys.readouterr().err == ""
    for build in (
        lambda: lc.BM25Retriever.from_documents(by_document, show_progress=True),
        lambda: pair[0].upsert(by_document, show_progress=True),
        lambda: li.BM25Retriever.from_defaults(nodes=by_node, verbose=True),
        lambda: pair[1].add_nodes(by_node, show_progress=True),
    ):
        build()
        assert f"{len(PASSAGES)}/{len(PASSAGES)}" in capsys.readouterr().err
