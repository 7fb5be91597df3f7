"""One document is one document, in fusion, in every stage, and in the explanation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from langchain_core.runnables import RunnableLambda

from easyrag_core import Rerank
from langchain_easyrag import FusionRetriever, MultiQueryRetriever, PipelineRetriever, explain
from langchain_easyrag._document_items import DocumentItems
from langchain_easyrag._identity import fusion_keys
from tests.langchain_adapter.samples import ListRetriever, snapshot


def named(*documents):
    """Channels A, B, …, each with what it finds."""
    return {
        name: RunnableLambda(lambda _, found=found: list(found))
        for name, found in zip("ABC", documents, strict=False)
    }


def line(*documents, **settings):
    return PipelineRetriever(retrievers=named(*documents), **settings)


@pytest.fixture(params=["sync", "async"])
def run(request):
    async def ran(retriever):
        if request.param == "sync":
            return retriever.run("q")
        return await retriever.arun("q")

    return ran


def fell(result):
    return {one.id: one.stage for one in explain(result).fell_out}


def hits(result):
    return [hit.id for hit in explain(result).hits]


# One key


async def test_a_document_without_id_does_not_fall_out(run):
    """It was fused with the one that has an id, and is known by that in all stages."""
    first, twin = Document("same", id="1"), Document("same")
    for channels in ([first], [twin]), ([twin], [Document("other", id="2"), first]):
        result = await run(line(*channels))
        assert "1" in hits(result)
        assert fell(result) == {}
        assert {"1", *hits(result)} == {id_ for s in result.stages for id_ in s.given}


async def test_values_of_any_kind_under_the_key(run):
    """Lists and dicts cost no answer, a number is its text, and `None` is no value."""
    values = [["a"], {"b": 1}, 1, None]
    left = [Document(str(n), id=f"l{n}", metadata={"key": v}) for n, v in enumerate(values)]
    right = [Document("other", id="r", metadata={"key": "1"}), Document("3", id="l3")]
    result = await run(line(left, right, id_key="key"))
    assert set(hits(result)) == {"['a']", "{'b': 1}", "1", "l3"}
    assert fell(result) == {}
    fused = FusionRetriever(retrievers=list(named(left, right).values()), id_key="key").invoke("q")
    assert len(fused) == 4
    assert {one.id for one in explain(fused).hits} == set(hits(result))


async def test_the_key_of_a_twin_is_the_one_under_the_key(run):
    """A document with neither value nor id is the one that has a value and is equal."""
    keyed = Document("same", id="1", metadata={"key": "k"})
    result = await run(line([keyed], [Document("same")], id_key="key"))
    assert hits(result) == ["k"]
    assert result.hits[0].metadata["easyrag"]["channels"].keys() == {"A", "B"}
    assert fell(result) == {}


TEXTS = st.sampled_from(["x", "y"])
IDS = st.sampled_from([None, "1", "2"])
METADATA = st.fixed_dictionaries(
    {}, optional={"source": TEXTS, "key": st.sampled_from([None, 1, "1", [1], "k"])}
)
RANKINGS = st.lists(
    st.lists(st.builds(Document, TEXTS, id=IDS, metadata=METADATA), max_size=4),
    min_size=1,
    max_size=3,
)


@given(RANKINGS, st.sampled_from([None, "key"]))
def test_fusion_and_stages_agree(rankings, id_key):
    """What fusion takes for one has one id in the stages, and what it tells apart has two."""
    keys = [key for row in fusion_keys(rankings, id_key=id_key) for key in row]
    items = DocumentItems(id_key=id_key)
    items.know(rankings)
    told = [items.id_of(document) for ranking in rankings for document in ranking]
    assert len(set(keys)) == len(set(told)) == len(set(zip(keys, told, strict=True)))


@pytest.mark.parametrize("merge", ["rrf", "max"])
def test_several_queries_know_a_twin_as_well(merge):
    """Whatever merges the answers."""
    answers = iter(([Document("same", id="1")], [Document("same")]))
    retriever = MultiQueryRetriever(
        retriever=RunnableLambda(lambda _: next(answers)),
        llm_chain=RunnableLambda(lambda _: ["another"]),
        include_original=True,
        merge=merge,
    )
    assert len(retriever.invoke("q")) == 1


# Compressors


class Cutting(BaseDocumentCompressor):
    """Rewrites the text and gives no id."""

    length: int = 3

    def compress_documents(self, documents, query, callbacks=None):
        return [Document(d.page_content[: self.length], metadata=d.metadata) for d in documents]


class Splitting(BaseDocumentTransformer):
    """Makes two of each, without ids."""

    def transform_documents(self, documents, **kwargs):
        return [
            Document(part, metadata=dict(d.metadata))
            for d in documents
            for part in (d.page_content[:2], d.page_content[2:])
        ]


class Forgetting(BaseDocumentCompressor):
    """Gives texts and nothing else."""

    def compress_documents(self, documents, query, callbacks=None):
        return [Document(d.page_content) for d in documents]


@pytest.mark.parametrize("identified", [True, False], ids=["ids", "no ids"])
@pytest.mark.parametrize("part", [Cutting(), Cutting(length=0), Forgetting()], ids=repr)
async def test_a_rewritten_document_is_known_again(run, part, identified):
    """Also where the new texts are equal: nothing falls out, and nothing is told that is not."""
    texts = ["alpha beta", "alpha gamma"]
    found = [
        Document(text, id=str(n) if identified else None, metadata={"source": "s"})
        for n, text in enumerate(texts)
    ]
    before = snapshot(found)
    result = await run(line(found, postprocessors=[part, part]))
    assert [d.id for d in result.hits] == (["0", "1"] if identified else [None, None])
    assert fell(result) == {}
    assert len(set(hits(result))) == 2
    assert all(not stage.notes for stage in result.stages)
    assert all(set(d.metadata) <= {"source", "easyrag"} for d in result.hits)
    assert all("channels" in d.metadata["easyrag"] for d in result.hits)
    assert snapshot(found) == before


async def test_pieces_are_not_the_document(run):
    """A document that was cut in two is none of the pieces; these keep what was found out."""
    found = [Document("ab cd", id="1"), Document("ef gh", id="2")]
    result = await run(line(found, postprocessors=[Splitting()]))
    assert [d.page_content for d in result.hits] == ["ab", " cd", "ef", " gh"]
    assert {d.id for d in result.hits} == {None}
    assert fell(result) == {"1": "Splitting", "2": "Splitting"}
    assert not result.stages[-2].notes
    assert all(set(d.metadata) == {"easyrag"} for d in result.hits)


# Scores


class Scored(BaseDocumentCompressor):
    """Gives one score to all; `...` gives none."""

    score: object

    def compress_documents(self, documents, query, callbacks=None):
        assert not any("relevance_score" in d.metadata for d in documents)
        if self.score is ...:
            return documents
        return [
            Document(d.page_content, metadata={**d.metadata, "relevance_score": self.score})
            for d in documents
        ]


@pytest.mark.parametrize("old", [None, 0.9, np.float32(0.9)])
@pytest.mark.parametrize("score", [0.9, np.float32(0.9), np.float64(0.9), np.int64(1), 1])
async def test_any_number_is_a_score(run, score, old):
    """Also of numpy, and also one that a store had put there before."""
    metadata = {} if old is None else {"relevance_score": old}
    found = [Document("a", id="1", metadata=metadata)]
    result = await run(line(found, postprocessors=[Rerank(Scored(score=score), min_score=0.3)]))
    assert [d.metadata["easyrag"]["score"] for d in result.hits] == [pytest.approx(float(score))]
    assert type(result.hits[0].metadata["easyrag"]["score"]) is float
    assert found[0].metadata == metadata


@pytest.mark.parametrize("score", [..., math.nan, np.float32("nan"), True, np.True_, "0.9", None])
async def test_what_is_no_number_is_no_score(run, score):
    """The score of the fusion stays, and without a new value the store's own is there again."""
    found = [Document("a", id="1", metadata={"relevance_score": 0.9})]
    (hit,) = (await run(line(found, postprocessors=[Scored(score=score)]))).hits
    assert hit.metadata["easyrag"]["score"] == pytest.approx(1 / 61)
    if score is ...:
        assert hit.metadata["relevance_score"] == 0.9


def test_a_line_within_a_line():
    """What a document was known by within is nothing to the outer line."""
    found = [Document("a", id="1", metadata={"key": "k"})]
    inner = line(found, id_key="key")
    assert inner.invoke("q")[0].metadata["easyrag"]["key"] == "k"
    outer = PipelineRetriever(retrievers=[inner, ListRetriever(documents=found)])
    result = outer.run("q")
    assert hits(result) == ["1"]
    assert "key" not in result.hits[0].metadata["easyrag"]


class Merging(BaseDocumentCompressor):
    """Makes one document of all, with lists of what they say in their metadata."""

    def compress_documents(self, documents, query, callbacks=None):
        names = {name for document in documents for name in document.metadata}
        lists = {name: [each.metadata.get(name) for each in documents] for name in names}
        whole = [dict(each.metadata) for each in documents]
        metadata = {**lists, "first": whole[0]}
        return [Document("\n".join(d.page_content for d in documents), metadata=metadata)]


async def test_documents_may_be_merged_into_one_with_lists(run):
    """The stage is not skipped for it, and no mark of ours is left, however deep."""
    given = [Document(text, metadata={"source": text}) for text in "ab"]
    result = await run(line(given, postprocessors=[Merging()]))
    (merged,) = result.hits
    assert merged.page_content == "a\nb"
    assert merged.metadata["source"] == ["a", "b"]
    assert merged.metadata["first"]["source"] == "a"
    assert "easyrag_mark" not in str(merged.metadata)
    assert [stage.error for stage in result.stages] == [None] * len(result.stages)


class Within(BaseDocumentCompressor):
    """A line of its own over what it is given."""

    def compress_documents(self, documents, query, callbacks=None):
        return line(documents, postprocessors=[Same()]).invoke(query)


class Same(BaseDocumentCompressor):
    """Gives back what it is given."""

    def compress_documents(self, documents, query, callbacks=None):
        return list(documents)


async def test_a_line_within_a_stage_knows_documents_by_their_ids(run):
    """Not by the place that the stage around it has given them."""
    given = [Document("a", id="doc-a"), Document("b", id="doc-b")]
    assert hits(await run(line(given, postprocessors=[Within()]))) == ["doc-a", "doc-b"]
