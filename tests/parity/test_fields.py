"""Fields that count beside the text: the same through both frameworks."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from llama_index.core.schema import TextNode

import langchain_easyrag as lc
import llamaindex_easyrag as li
from easyrag_core import BM25Index, InvalidParameterError, StandardAnalyzer
from easyrag_core.index.analyzer import _workers
from tests.parity.frameworks import MODES
from tests.parity.plugs import answers

modes = pytest.mark.parametrize("ask", MODES.values(), ids=MODES)

PASSAGES = {
    "guide": ("Set the limit and start.", {"heading_path": ["Redis", "Memory"]}),
    "notes": ("Redis keeps what fits into memory; redis is quick.", {"heading_path": []}),
    "zh": ("先设置上限。", {"heading_path": ["内存数据库", "配置"], "year": 2026}),
    "bare": ("Start the cache.", {}),
    "odd": ("Stop the cache.", {"heading_path": {"redis": 1}, "year": None}),
}
QUESTIONS = ("redis memory", "内存数据库", "the cache", "2026")
WEIGHTS = {"heading_path": 3, "year": 1}


def told(passages):
    """The passages as documents and as nodes whose metadata are not embedded."""
    hidden = {"excluded_embed_metadata_keys": ["heading_path", "year"]}
    return (
        [Document(t, id=id_, metadata=dict(m)) for id_, (t, m) in passages.items()],
        [TextNode(text=t, id_=id_, metadata=m, **hidden) for id_, (t, m) in passages.items()],
    )


def plugs(passages=PASSAGES, **settings):
    """The two retrievers."""
    by_document, by_node = told(passages)
    return (
        lc.BM25Retriever.from_documents(by_document, k=9, **settings),
        li.BM25Retriever.from_defaults(nodes=by_node, similarity_top_k=9, **settings),
    )


def same(ask, *pairs):
    """All pairs find the same; returns what."""
    found = {question: answers(ask, pairs[0], question)[0] for question in QUESTIONS}
    for pair in pairs:
        for question, expected in found.items():
            assert answers(ask, pair, question) == (expected, expected)
    return {question: [one.id for one in hits] for question, hits in found.items()}


@modes
def test_fields_are_searched_and_weighed(ask):
    """A heading counts as often as it weighs, a number as it is written, a dict not at all."""
    found = same(ask, plugs(field_weights=WEIGHTS))
    assert found == {
        "redis memory": ["guide", "notes"],
        "内存数据库": ["zh"],
        "the cache": ["bare", "odd", "guide"],
        "2026": ["zh"],
    }
    index = BM25Index(field_weights={"heading_path": 3})
    index.add(["a"], ["x"], fields={"heading_path": ["Redis\nMemory"]})
    assert index.explain("redis", "a").terms[0].tf == 3


@modes
def test_fields_are_off_by_default(ask):
    """Without weights the metadata are not searched."""
    found = same(ask, plugs(), plugs(field_weights=None), plugs(field_weights={}))
    assert found["redis memory"] == ["notes"]
    assert found["内存数据库"] == found["2026"] == []


@modes
def test_fields_are_kept_up_to_date_saved_and_loaded(ask, tmp_path):
    """After upserts, removals and a load the scores are those of a retriever built anew."""
    pair = plugs(field_weights=WEIGHTS)
    changes = {
        "guide": ("Set the limit.", {"heading_path": ["Disk"]}),
        "new": ("Start redis.", {"heading_path": "Memory"}),
    }
    by_document, by_node = told(changes)
    ask(pair[0], "upsert", by_document)
    ask(pair[1], "add_nodes", by_node, processes=2)
    ask(pair[0], "delete", ["bare"])
    ask(pair[1], "delete_nodes", ["bare"])
    left = {id_: told for id_, told in {**PASSAGES, **changes}.items() if id_ != "bare"}
    folders = tmp_path / "document", tmp_path / "node"
    for plug, folder in zip(pair, folders, strict=True):
        ask(plug, "persist", folder)
    loaded = (
        ask(lc.BM25Retriever, "from_persist_dir", folders[0], k=9, field_weights=WEIGHTS),
        ask(li.BM25Retriever, "from_persist_dir", folders[1]),
    )
    found = same(ask, pair, loaded, plugs(left, field_weights=WEIGHTS))
    assert found["redis memory"] == ["new", "notes"]
    by_document, by_node = told({"zh": ("x", {"heading_path": ["Redis"]})})
    ask(loaded[0], "upsert", by_document)
    ask(loaded[1], "add_nodes", by_node)
    found = same(ask, loaded)
    assert ("zh" in found["redis memory"], found["内存数据库"]) == (True, [])


def test_bad_weights_are_refused():
    """Weights that are none, and those that an index that is given does not have."""
    for weights in ({"title": 0}, "title", {"title": 1.5}):
        with pytest.raises(InvalidParameterError, match="field_weights"):
            lc.BM25Retriever(field_weights=weights)
        with pytest.raises(InvalidParameterError, match="field_weights"):
            li.BM25Retriever([], field_weights=weights)
    index = BM25Index(field_weights={"title": 2})
    for make in (
        lambda weights: lc.BM25Retriever(vectorizer=index, field_weights=weights),
        lambda weights: li.BM25Retriever(index=index, field_weights=weights),
    ):
        make(None)
        make({"title": 2})
        with pytest.raises(InvalidParameterError, match="leave them out"):
            make({"title": 3})


def test_workers_build_the_same(monkeypatch):
    """`processes` reaches the index in both frameworks, for the text and for the fields."""
    started = []
    real = _workers.Popen
    monkeypatch.setattr(
        _workers, "Popen", lambda *a, **k: started.append(real(*a, **k)) or started[-1]
    )
    monkeypatch.setattr(StandardAnalyzer, "_pool_from", 0)
    alone = plugs(field_weights=WEIGHTS, analyzer=StandardAnalyzer())
    assert started == []
    pair = plugs(field_weights=WEIGHTS, analyzer=StandardAnalyzer(), processes=2)
    assert len(started) == 4
    same(MODES["sync"], alone, pair)
    by_document, by_node = told(PASSAGES)
    texts = [document.page_content for document in by_document]
    lc.BM25Retriever.from_texts(texts, processes=2)
    pair[0].upsert(by_document, processes=2)
    pair[1].add_nodes(by_node, processes=2)
    assert len(started) == 10
    same(MODES["sync"], alone, pair)
