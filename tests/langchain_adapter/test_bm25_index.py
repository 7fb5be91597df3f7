"""`BM25Retriever` as an index: kept up to date, kept on disk."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, index

from easyrag_core import BM25Params, IndexFormatError
from langchain_easyrag import BM25Retriever, DocumentTextSplitter, chunk_key
from tests.langchain_adapter.samples import corpus, ids

if TYPE_CHECKING:
    from pathlib import Path

RANKING = "ranking"


def test_construction_warns_about_nothing():
    """LangChain marks DocumentIndex as beta; users of ours do not hear of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BM25Retriever()
        BM25Retriever.from_texts(["a"])


def test_upsert_and_delete_change_scores_exactly():
    """B5: after updates every score equals that of a retriever built anew."""
    documents = corpus()
    retriever = BM25Retriever.from_documents(documents[:4])
    retriever.upsert([*documents[2:], Document("changed ranking", id="rrf")])
    retriever.delete(["cat", "never there"])
    wanted = [Document("changed ranking", id="rrf"), *documents[1:-1]]
    fresh = BM25Retriever.from_documents(wanted)
    for query in ("ranking of a query", "学习", "cat"):
        assert [(d.id, d.metadata["easyrag"]) for d in retriever.invoke(query)] == [
            (d.id, d.metadata["easyrag"]) for d in fresh.invoke(query)
        ]


def test_upsert_without_ids_twice_adds_nothing():
    """A derived id depends on content and source, so the second time is an update."""
    retriever = BM25Retriever()
    documents = [Document("same"), Document("same", metadata={"source": "b"}), Document("same")]
    first = retriever.upsert(documents)
    assert retriever.upsert(documents) == first
    assert len(retriever.docs) == len(set(first["succeeded"])) == 3


def test_stored_documents_cannot_be_changed_from_outside():
    """Neither the caller's object nor a result is the stored one."""
    given = Document("the cat", id="1", metadata={"n": 1})
    retriever = BM25Retriever()
    retriever.upsert([given])
    given.metadata["n"] = 2
    retriever.get(["1"])[0].metadata["n"] = 3
    retriever.invoke("cat")[0].metadata["n"] = 4
    assert retriever.get(["1"]) == [Document("the cat", id="1", metadata={"n": 1})]


def test_delete_refuses_a_single_string():
    """A string is a sequence of letters, surely not what was meant."""
    with pytest.raises(ValueError, match="list of ids"):
        BM25Retriever.from_documents(corpus()).delete("rrf")


def _indexed(documents, records, retriever):
    result = index(
        documents,
        records,
        retriever,
        cleanup="scoped_full",
        source_id_key="source",
        key_encoder=chunk_key,
        batch_size=2,
    )
    return {name: count for name, count in result.items() if count}


def test_langchain_indexing_re_embeds_only_what_changed():
    """I1, I3: text inserted above leaves the ids below; small batches change nothing."""
    sentences = [f"Sentence number {n} has its own words. " for n in range(12)]
    splitter = DocumentTextSplitter(chunk_size=40, chunk_overlap=0)
    records, retriever = InMemoryRecordManager("test"), BM25Retriever(k=20)
    records.create_schema()

    def document(text):
        return [Document(text, id="doc", metadata={"source": "a.md"})]

    first = splitter.split_documents(document("".join(sentences)))
    assert _indexed(first, records, retriever) == {"num_added": 12}
    assert _indexed(first, records, retriever) == {"num_skipped": 12}
    longer = splitter.split_documents(document("Above all. ".ljust(40) + "".join(sentences[1:])))
    counts = _indexed(longer, records, retriever)
    assert counts == {"num_added": 1, "num_skipped": 11, "num_deleted": 1}
    assert sorted(ids(retriever.docs)) == sorted(ids(longer))


def test_persist_and_load_give_the_same_answers(tmp_path: Path):
    """Documents, ids (also missing ones), settings and scores survive."""
    documents = [*corpus(), Document("a ranking without id", metadata={"n": [1, {"x": None}]})]
    retriever = BM25Retriever.from_documents(documents, k=3, bm25_params=BM25Params.short_text())
    retriever.persist(tmp_path / "index")
    loaded = BM25Retriever.from_persist_dir(tmp_path / "index", k=3)
    assert loaded.docs == documents
    assert loaded.invoke(RANKING) == retriever.invoke(RANKING)
    loaded.upsert([Document("one more ranking", id="new")])
    loaded.persist(tmp_path / "index")
    assert len(BM25Retriever.from_persist_dir(tmp_path / "index").docs) == len(documents) + 1


def test_metadata_are_saved_as_json(tmp_path: Path):
    """What `persist` says of them: tuples come back as lists, keys that are numbers as texts."""
    retriever = BM25Retriever.from_documents(
        [Document("a ranking", id="a", metadata={"t": (1, (2,)), 7: "seven"})]
    )
    retriever.persist(tmp_path / "index")
    (loaded,) = BM25Retriever.from_persist_dir(tmp_path / "index").docs
    assert loaded.metadata == {"t": [1, [2]], "7": "seven"}
    assert "tuples come back as lists" in (BM25Retriever.persist.__doc__ or "")


def test_the_users_value_under_our_key_stays_in_the_documents():
    """Results carry our facts there, as the class says; what was given is not changed."""
    retriever = BM25Retriever.from_documents([Document("a ranking", metadata={"easyrag": "mine"})])
    (found,) = retriever.invoke(RANKING)
    assert found.metadata["easyrag"]["rank"] == 1
    assert [document.metadata for document in retriever.docs] == [{"easyrag": "mine"}]
    assert "a value of yours under that key" in (BM25Retriever.__doc__ or "")


def test_a_function_of_the_users_is_asked_for_again(tmp_path: Path):
    """An index made with a function is refused without it and loads with it."""
    retriever = BM25Retriever.from_documents(corpus(), preprocess_func=str.split)
    retriever.persist(tmp_path / "index")
    with pytest.raises(IndexFormatError):
        BM25Retriever.from_persist_dir(tmp_path / "index")
    loaded = BM25Retriever.from_persist_dir(tmp_path / "index", preprocess_func=str.split)
    assert ids(loaded.invoke(RANKING)) == ids(retriever.invoke(RANKING))


def test_a_missing_or_foreign_folder_is_named(tmp_path: Path):
    """No folder, and a folder of something else, are two different errors."""
    with pytest.raises(FileNotFoundError):
        BM25Retriever.from_persist_dir(tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_text("not an index")
    with pytest.raises(IndexFormatError):
        BM25Retriever.from_persist_dir(tmp_path)
