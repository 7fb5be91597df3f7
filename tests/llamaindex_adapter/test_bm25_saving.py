"""BM25Retriever on disk: every setting comes back, and what is torn is told."""

from __future__ import annotations

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import Stemmer
from llama_index.core.schema import ImageNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from easyrag_core import (
    BM25Params,
    DocumentChunker,
    HybridConfig,
    HybridIndex,
    IndexFormatError,
    InvalidParameterError,
    SQLiteChunkStore,
    StandardAnalyzer,
)
from llamaindex_easyrag import BM25Retriever, HybridRetriever
from tests.llamaindex_adapter._parts import ids

POEM = ["床前明月光", "疑是地上霜", "举头望明月", "低头思故乡"]
ENGLISH = ["running shoes for runners", "the vitamin C tablet", "a C++ compiler", "he runs fast"]
ONLY_A = MetadataFilters(filters=[MetadataFilter(key="t", value="A")])


def nodes_of(texts, **metadata):
    return [TextNode(text=t, id_=f"n{i}", metadata=dict(metadata)) for i, t in enumerate(texts)]


SAVED = [
    pytest.param({}, {}, id="defaults"),
    pytest.param({"stemmer": "english", "language": "en"}, {}, id="stemmer"),
    pytest.param({"stemmer": Stemmer.Stemmer("english"), "language": "en"}, {}, id="PyStemmer"),
    pytest.param({"skip_stemming": True, "token_pattern": r"\w+"}, {}, id="LI-60"),
    pytest.param({"token_pattern": r"\w+", "stemmer": "english"}, {}, id="pattern-and-stemmer"),
    pytest.param({"params": BM25Params(k1=2.0, b=0.1)}, {}, id="params"),
    pytest.param({"filters": ONLY_A}, {}, id="filters"),
    pytest.param({"analyzer": str.split}, {"analyzer": str.split}, id="function"),
]


@pytest.mark.parametrize(("settings", "again"), SAVED)
def test_a_saved_retriever_answers_as_before(tmp_path, settings, again):
    """LI-60: nodes, scores, filters and every setting come back; an older state is replaced."""
    nodes = nodes_of([*ENGLISH, *POEM], t="A")
    nodes[0].metadata["t"] = "B"
    nodes.append(ImageNode(text="runs", id_="image", image_path="a.png", metadata={"t": "A"}))
    retriever = BM25Retriever(nodes, similarity_top_k=7, **settings)
    BM25Retriever(nodes_of(["old"])).persist(tmp_path / "r")
    retriever.persist(tmp_path / "r")
    loaded = BM25Retriever.from_persist_dir(tmp_path / "r", **again)
    for query in ("he runs running the vitamin C", "明月"):
        assert loaded.retrieve(query) == retriever.retrieve(query)
    loaded.add_nodes([TextNode(text="zebra", id_="z", metadata={"t": "A"})])
    assert ids(loaded.retrieve("zebra")) == ["z"]
    assert len([p for p in (tmp_path / "r").iterdir() if p.is_dir()]) == 1


@pytest.mark.parametrize("language", Stemmer.algorithms())
def test_a_stemmer_object_is_known_by_what_it_does(language):
    """PyStemmer's objects do not tell their language, but no two stem alike."""
    told = BM25Retriever([], stemmer=Stemmer.Stemmer(language))._index.analyzer
    assert told == StandardAnalyzer(stemmer=language)


def test_a_torn_or_foreign_folder_is_told(tmp_path):
    """What cannot be read is said, never searched."""
    with pytest.raises(FileNotFoundError):
        BM25Retriever.from_persist_dir(tmp_path / "nothing")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "file").write_text("x", encoding="utf-8")
    with pytest.raises(IndexFormatError):
        BM25Retriever.from_persist_dir(tmp_path / "foreign")
    with pytest.raises(IndexFormatError):
        BM25Retriever(nodes_of(POEM)).persist(tmp_path / "foreign")
    BM25Retriever(nodes_of(POEM)).persist(tmp_path / "r")
    kept = next((tmp_path / "r").glob("*/*metadata*.utf8"))
    kept.write_text(kept.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    with pytest.raises(IndexFormatError, match="truncated"):
        BM25Retriever.from_persist_dir(tmp_path / "r")


BROKEN = [
    pytest.param({"d": object()}, id="object"),
    pytest.param({"d": {"deep": [dt.date(2003, 1, 1)]}}, id="nested-date"),
    pytest.param({"d": {1, 2}}, id="set"),
    pytest.param({"d": threading.Lock()}, id="lock"),
]


@pytest.mark.parametrize("make", [BM25Retriever, HybridRetriever], ids=["bm25", "hybrid"])
@pytest.mark.parametrize("metadata", BROKEN)
def test_a_failed_save_leaves_the_old_state(tmp_path, make, metadata):
    """A node that is no JSON is named; the path is as usable as before, first save or not."""
    odd = make([*nodes_of(POEM), TextNode(text="x", id_="odd one", metadata=metadata)])
    for place in ("new/path", "kept"):
        if place == "kept":
            make(nodes_of(POEM)).persist(tmp_path / place)
        with pytest.raises(InvalidParameterError, match="'odd one'"):
            odd.persist(tmp_path / place)
    assert not (tmp_path / "new" / "path").exists()
    assert ids(make.from_persist_dir(tmp_path / "kept").retrieve("故乡")) == ["n3"]
    odd.delete_nodes(["odd one"])
    odd.persist(tmp_path / "new" / "path")
    assert ids(make.from_persist_dir(tmp_path / "new" / "path").retrieve("故乡")) == ["n3"]


def test_a_killed_first_save_is_written_over(tmp_path):
    """What a killed writer leaves behind, half a generation and its lock, blocks nobody."""
    (tmp_path / f"generation-{'0' * 16}").mkdir()
    (tmp_path / f"generation-{'0' * 16}" / "bm25.lengths.npy").write_bytes(b"half")
    (tmp_path / ".lock").write_bytes(b"")
    with pytest.raises(IndexFormatError):
        BM25Retriever.from_persist_dir(tmp_path)
    BM25Retriever(nodes_of(POEM)).persist(tmp_path)
    assert ids(BM25Retriever.from_persist_dir(tmp_path).retrieve("故乡")) == ["n3"]
    assert len([p for p in tmp_path.iterdir() if p.is_dir()]) == 1


@pytest.mark.parametrize("make", [BM25Retriever, HybridRetriever], ids=["bm25", "hybrid"])
def test_savers_and_loaders_do_not_disturb_each_other(tmp_path, make):
    """Two writers on one path, and readers meanwhile: each reader gets one writer's whole state."""
    writers = [make(nodes_of([f"故乡 {word}"] * size)) for word, size in (("one", 3), ("two", 5))]
    writers[0].persist(tmp_path)

    def save(writer):
        for _ in range(12):
            writer.persist(tmp_path)

    with ThreadPoolExecutor(2) as pool:
        saving = [pool.submit(save, writer) for writer in writers]
        sizes = []
        while not all(job.done() for job in saving):
            found = make.from_persist_dir(tmp_path, similarity_top_k=9).retrieve("故乡")
            sizes.append((len(found), found[0].node.text))
        for job in saving:
            job.result()
    assert set(sizes) <= {(3, "故乡 one"), (5, "故乡 two")}
    assert sizes
    assert len(make.from_persist_dir(tmp_path, similarity_top_k=9).retrieve("故乡")) in (3, 5)
    assert len([p for p in tmp_path.iterdir() if p.is_dir()]) == 1


OURS = [
    pytest.param({"stemmer": "english"}, id="stemmer"),
    pytest.param({"token_pattern": r"\w+"}, id="pattern"),
    pytest.param({"analyzer": StandardAnalyzer(cjk="bigram")}, id="standard"),
    pytest.param({"analyzer": str.split}, id="function"),
]


@pytest.mark.parametrize("settings", OURS)
def test_another_analyzer_and_another_kind_are_refused(tmp_path, settings):
    """A folder is searched as it was built or not at all; an index alone is no retriever."""
    BM25Retriever(nodes_of(POEM), **settings).persist(tmp_path / "r")
    with pytest.raises(IndexFormatError, match="analyzer"):
        BM25Retriever.from_persist_dir(tmp_path / "r", analyzer=str.lower)
    with pytest.raises(InvalidParameterError, match="analyzer"):
        BM25Retriever.from_persist_dir(tmp_path / "r", analyzer=5)
    known = {"analyzer": str.split} if settings == {"analyzer": str.split} else {}
    with pytest.raises(IndexFormatError, match="'bm25'"):
        HybridRetriever.from_persist_dir(tmp_path / "r", **known)
    HybridIndex().save(tmp_path / "index")
    with pytest.raises(IndexFormatError, match="no retriever"):
        BM25Retriever.from_persist_dir(tmp_path / "index")


def test_nodes_come_back_whole(tmp_path):
    """Links, templates, odd ids and lone surrogates too; empty retrievers are saved as well."""
    odd = TextNode(text="天 \ud800\udc00 \udc00", id_="settings", metadata={"n": [1, {"二": None}]})
    odd.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id="settings'")
    odd.text_template = "{content}"
    for make in (BM25Retriever, HybridRetriever):
        make([odd, TextNode(text="地", id_="settings'")]).persist(tmp_path / make.__name__)
        found = make.from_persist_dir(tmp_path / make.__name__).retrieve("天 地")
        assert sorted(ids(found)) == ["settings", "settings'"]
        back = next(one.node for one in found if one.node.node_id == "settings")
        assert (back.text, back.text_template) == (odd.text, odd.text_template)
        assert back.relationships == odd.relationships
        assert back.metadata["n"] == [1, {"二": None}]
        make([]).persist(tmp_path / make.__name__)
        assert make.from_persist_dir(tmp_path / make.__name__).retrieve("天") == []


def test_an_index_of_chunks_is_saved_with_what_its_store_holds(tmp_path):
    """A hybrid retriever over chunks alone, in any store, answers after a load as before."""
    with SQLiteChunkStore(tmp_path / "chunks.sqlite") as store:
        index = HybridIndex(HybridConfig(bm25_k=3), store=store)
        index.add(DocumentChunker(30, 0).chunk("One. Two is there.\n\n三在这里。四在那里。", "doc"))
        retriever = HybridRetriever(index=index)
        retriever.persist(tmp_path / "r")
        expected = retriever.retrieve("四在那里")
    loaded = HybridRetriever.from_persist_dir(tmp_path / "r")
    found = loaded.retrieve("四在那里")
    assert [(one.node.node_id, one.node.text, one.score) for one in found] == [
        (one.node.node_id, one.node.text, one.score) for one in expected
    ]
