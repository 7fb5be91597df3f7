"""`RoutedEmbeddings`: one vector space behind several places."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.embeddings import Embeddings

from easyrag_core import (
    CircuitBreaker,
    InvalidParameterError,
    ModelCandidate,
    ModelUnavailableError,
)
from langchain_easyrag import RoutedEmbeddings


class Fixed(Embeddings):
    """Vectors of so many dimensions, or an error; counts what it is asked."""

    def __init__(self, size, *, model="m", error=None, lost=0):
        self.model = model
        self.size = size
        self.error = error
        self.lost = lost
        self.calls = 0

    def embed_documents(self, texts):
        self.calls += 1
        if self.error is not None:
            raise self.error
        return [[float(len(text))] * self.size for text in texts[self.lost :]]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


@pytest.fixture(params=["sync", "async"])
def embed(request):
    """Embeds documents in either form."""
    if request.param == "sync":
        return lambda embeddings, texts: embeddings.embed_documents(texts)
    return lambda embeddings, texts: asyncio.run(embeddings.aembed_documents(texts))


@pytest.fixture(params=["sync", "async"])
def embed_query(request):
    """Embeds a query in either form."""
    if request.param == "sync":
        return lambda embeddings, text: embeddings.embed_query(text)
    return lambda embeddings, text: asyncio.run(embeddings.aembed_query(text))


def dead():
    return Fixed(2, error=ConnectionError("refused"))


def test_the_second_answers_for_the_first(embed, embed_query):
    """With all vectors, and the first is left alone after two failures."""
    first = dead()
    embeddings = RoutedEmbeddings([first, Fixed(2)])
    for _ in range(3):
        assert embed(embeddings, ["a", "bb"]) == [[1.0, 1.0], [2.0, 2.0]]
        assert embed_query(embeddings, "ccc") == [3.0, 3.0]
    assert first.calls == 2
    assert embeddings.snapshot()["candidates"][0]["state"] == "open"


@pytest.mark.parametrize("texts", [None, 5, "abc", ["a", 5], [None]])
def test_what_is_no_list_of_texts_is_no_failure_of_a_member(embed, embed_query, texts):
    """It is refused, and opens no circuit."""
    member = Fixed(2)
    embeddings = RoutedEmbeddings([member])
    for _ in range(5):
        with pytest.raises(InvalidParameterError, match=r"give a (list of )?text"):
            embed(embeddings, texts)
        with pytest.raises(InvalidParameterError, match="give a text"):
            embed_query(embeddings, 5)
    assert member.calls == 0
    assert embeddings.snapshot()["candidates"][0]["state"] == "closed"


def test_texts_may_come_one_by_one(embed):
    """From a generator, also for the member that is asked second."""
    found = embed(RoutedEmbeddings([dead(), Fixed(2)]), (text for text in "abc"))
    assert len(found) == 3


def test_no_texts_ask_nobody(embed):
    """As there is nothing to embed."""
    first = dead()
    assert embed(RoutedEmbeddings([first]), []) == []
    assert first.calls == 0


@pytest.mark.parametrize(
    ("models", "settings", "said"),
    [
        ([Fixed(2, model="a"), Fixed(2, model="b")], {}, "vector space"),
        ([Fixed(2), object()], {}, "Embeddings"),
        ([], {}, "at least one"),
        (Fixed(2), {}, "give a list"),
        (7, {}, "give a list"),
        ([Fixed(2)], {"total_timeout": -1}, "total_timeout"),
        ([Fixed(2)], {"dimensions": 0}, "at least 1"),
        ([Fixed(2)], {"dimensions": -1}, "at least 1"),
        ([Fixed(2)], {"dimensions": "2"}, "at least 1"),
        ([Fixed(2)], {"dimensions": True}, "at least 1"),
    ],
)
def test_misuse_is_refused_at_construction(models, settings, said):
    """Above all members of two models."""
    with pytest.raises(InvalidParameterError, match=said):
        RoutedEmbeddings(models, **settings)


def test_dimensions_that_are_told_have_to_be_equal():
    """Those of the members among each other, and those of the index."""
    small, large = Fixed(2), Fixed(3)
    small.dimensions, large.dimensions = 2, 3
    with pytest.raises(InvalidParameterError, match="dimensions differ"):
        RoutedEmbeddings([small, large])
    with pytest.raises(InvalidParameterError, match="dimensions differ"):
        RoutedEmbeddings([small], dimensions=3)


def test_names_may_differ_where_the_caller_vouches(embed):
    """Deployments of one model have names of their own."""
    members = [Fixed(2, model="east"), Fixed(2, model="west")]
    assert embed(RoutedEmbeddings(members, same_model=True), ["a"]) == [[1.0, 1.0]]


def test_a_vector_of_another_space_is_never_handed_on(embed):
    """The first vector, or the caller, settles the dimensions; another one is a failure."""
    first, other = Fixed(2), Fixed(3)
    embeddings = RoutedEmbeddings([first, other])
    embed(embeddings, ["a"])
    first.error = ConnectionError("refused")
    with pytest.raises(ModelUnavailableError, match="3 dimensions, 2 are expected"):
        embed(embeddings, ["a"])
    known = RoutedEmbeddings([Fixed(3), Fixed(2)], dimensions=2)
    assert embed(known, ["a"]) == [[1.0, 1.0]]


def test_an_answer_that_is_short_of_vectors_is_a_failure(embed):
    """Vectors that are shifted against their texts would be worse than none."""
    members = [Fixed(2, lost=1), Fixed(2)]
    assert embed(RoutedEmbeddings(members), ["a", "bb"]) == [[1.0, 1.0], [2.0, 2.0]]


def test_candidates_have_names_and_order_of_their_own(embed):
    """As for chat models; events tell who was asked."""
    events = []
    embeddings = RoutedEmbeddings(
        candidates=[ModelCandidate("far", Fixed(2), priority=2), ModelCandidate("near", dead())],
        breaker=CircuitBreaker(failure_threshold=1),
        on_event=events.append,
    )
    embed(embeddings, ["a"])
    asked = [e.attributes["gen_ai.request.model"] for e in events if e.name.endswith(".attempt")]
    assert asked == ["near", "far"]
    assert [each.name for each in embeddings.router.candidates] == ["far", "near"]
