"""BM25Retriever on disk: every setting comes back, and what is torn is told."""

from __future__ import annotations

import pytest
from llama_index.core.schema import ImageNode, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from easyrag_core import BM25Params, IndexFormatError
from llamaindex_easyrag import BM25Retriever
from tests.llamaindex_adapter._parts import ids

POEM = ["床前明月光", "疑是地上霜", "举头望明月", "低头思故乡"]
ENGLISH = ["running shoes for runners", "the vitamin C tablet", "a C++ compiler", "he runs fast"]
ONLY_A = MetadataFilters(filters=[MetadataFilter(key="t", value="A")])


def nodes_of(texts, **metadata):
    return [TextNode(text=t, id_=f"n{i}", metadata=dict(metadata)) for i, t in enumerate(texts)]


SAVED = [
    pytest.param({}, {}, id="defaults"),
    pytest.param({"stemmer": "english", "language": "en"}, {}, id="stemmer"),
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
    lines = next((tmp_path / "r").glob("*/nodes.jsonl"))
    lines.write_text(lines.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    with pytest.raises(IndexFormatError, match="damaged"):
        BM25Retriever.from_persist_dir(tmp_path / "r")


def test_a_failed_save_leaves_the_old_state(tmp_path):
    """A node that is no JSON is told, and what was saved before is still there."""
    BM25Retriever(nodes_of(POEM)).persist(tmp_path)
    odd = BM25Retriever([TextNode(text="x", id_="x", metadata={"o": object()})])
    with pytest.raises(TypeError):
        odd.persist(tmp_path)
    assert ids(BM25Retriever.from_persist_dir(tmp_path).retrieve("故乡")) == ["n3"]
