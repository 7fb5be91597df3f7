"""Settings that could only fail later are refused at once, in words that help."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel

from easyrag_core import HybridConfig, InvalidParameterError
from langchain_easyrag import (
    BM25Retriever,
    FusionRetriever,
    HybridRetriever,
    MMRCompressor,
    MMRRetriever,
    ParentChildRetriever,
    RoutedChatModel,
    fuse_documents,
)
from tests.langchain_adapter.samples import ListRetriever, corpus, ids

CHILD = ListRetriever(documents=corpus())


@pytest.mark.parametrize(
    "retrievers", [CHILD, None, [], "ab", {"a": CHILD}, [CHILD, None], [len], 7]
)
def test_retrievers_are_a_list_of_runnables(retrievers):
    """One retriever is no list of them."""
    with pytest.raises(InvalidParameterError, match="retrievers"):
        FusionRetriever(retrievers=retrievers)


def test_retrievers_may_come_from_a_generator():
    """What can be listed is listed once."""
    fused = FusionRetriever(retrievers=(child for child in (CHILD, CHILD)), weights=(1, 2))
    assert (len(fused.retrievers), fused.weights) == (2, [1, 2])


@pytest.mark.parametrize("wrong", [[None, 1], ["1", 1], [True, 1], [np.nan, 1], 1.0, "12", {1: 1}])
def test_weights_are_numbers(wrong):
    """Whatever is no list of numbers is refused as `weights`, wherever weights are taken."""
    for take in (
        lambda: FusionRetriever(retrievers=[CHILD, CHILD], weights=wrong),
        lambda: fuse_documents([corpus(), corpus()], weights=wrong),
        lambda: HybridRetriever(weights=wrong),
    ):
        with pytest.raises(InvalidParameterError, match="weights"):
            take()


def test_weights_from_an_array_count():
    """Numpy's numbers are numbers."""
    fused = FusionRetriever(retrievers=[CHILD, CHILD], weights=np.array([1.0, 0.5]))
    assert fused.weights == [1.0, 0.5]
    assert ids(fuse_documents([corpus()], weights=np.array([2.0]))) == ids(corpus())


@pytest.mark.parametrize("wrong", ["60", None, True, -1, float("nan"), [60]])
def test_the_rank_constant_is_a_number(wrong):
    """By either of its names, in every place that takes it."""
    takes = [
        lambda: FusionRetriever(retrievers=[CHILD], rank_constant=wrong),
        lambda: fuse_documents([corpus()], rank_constant=wrong),
        lambda: HybridRetriever(rank_constant=wrong),
    ]
    if wrong is not None:  # `c=None` means that it is not given
        takes.append(lambda: FusionRetriever(retrievers=[CHILD], c=wrong))
    for take in takes:
        with pytest.raises(InvalidParameterError, match="rank_constant"):
            take()


@pytest.mark.parametrize("wrong", ["0.5", None, True, 1.1, float("nan")])
def test_lambda_is_a_number_from_0_to_1(wrong):
    """In the compressor and in the retriever around it."""
    with pytest.raises(InvalidParameterError, match="lambda_mult"):
        MMRCompressor(lambda_mult=wrong)
    with pytest.raises(InvalidParameterError, match="lambda_mult"):
        MMRRetriever(retriever=CHILD, lambda_mult=wrong)


@pytest.mark.parametrize(
    ("build", "offered"),
    [
        (
            lambda **given: BM25Retriever(docs=[], **given),
            set(inspect.signature(BM25Retriever.__init__).parameters) - {"self", "kwargs"},
        ),
        (
            HybridRetriever,
            {"index", "embeddings", "vector_store", *HybridConfig.__dataclass_fields__},
        ),
        (ParentChildRetriever, {"splitter", "child_k", *HybridConfig.__dataclass_fields__}),
        (lambda **given: FusionRetriever(retrievers=[CHILD], **given), {"c", "rank_constant"}),
        (
            lambda **given: MMRRetriever(retriever=CHILD, **given),
            {"fetch_k", "k", *MMRCompressor.model_fields},
        ),
    ],
    ids=["bm25", "hybrid", "parent-child", "fusion", "mmr"],
)
def test_an_unknown_setting_is_told_all_that_are_known(build, offered):
    """The message lists what the constructor takes, and nothing that is not the user's."""
    with pytest.raises(InvalidParameterError, match="there is no such setting") as caught:
        build(no_such_setting=1)
    told = str(caught.value).split("only ")[1].rstrip(".").split(", ")
    assert offered | {"tags", "metadata", "name"} <= set(told)
    assert "corpus" not in told


def test_a_key_that_is_none_is_no_end_of_a_ranking():
    """Rankings of different lengths, fused by a metadata value that is `None` in one document."""
    first = [Document("a", id="a", metadata={"key": 1})]
    second = [
        Document("b", id="b", metadata={"key": 2}),
        Document("c", id="c", metadata={"key": None}),
    ]
    assert ids(fuse_documents([first, second], id_key="key")) == ["a", "b", "c"]


def test_an_empty_id_is_an_id():
    """It is told from a missing one, which content and source stand in for."""
    rankings = [[Document("a", id=""), Document("b")], [Document("b"), Document("c", id="")]]
    assert [found.page_content for found in fuse_documents(rankings)] == ["a", "b"]


@pytest.mark.parametrize("wrong", ["3", True, 3.0])
def test_the_most_tokens_are_a_whole_number(wrong):
    """A text, a boolean or a float is none, and is not made one."""
    model = FakeListChatModel(responses=["yes"])
    with pytest.raises(InvalidParameterError, match="max_tokens"):
        RoutedChatModel([model], max_tokens=wrong)
    assert RoutedChatModel([model], max_tokens=3).max_tokens == 3
