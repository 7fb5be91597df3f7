"""RoutedEmbeddings: one vector space, whoever answers."""

from __future__ import annotations

import copy
import pickle

import pytest
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.embeddings import BaseEmbedding, MockEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.rate_limiter import TokenBucketRateLimiter
from llama_index.core.schema import Document, TextNode
from llama_index.core.storage.kvstore import SimpleKVStore

from easyrag_core import (
    CircuitBreaker,
    DimensionMismatchError,
    InvalidParameterError,
    ModelCandidate,
    ModelUnavailableError,
)
from llamaindex_easyrag import HybridRetriever, RoutedEmbeddings
from tests.llamaindex_adapter._parts import WordEmbedding, listening


class Place(WordEmbedding):
    """The word embedding at one place, which may be down or cut its vectors short."""

    down: bool = False
    size: int = 64
    short: int = 0

    def _vector(self, text: str) -> list[float]:
        if self.down:
            raise ConnectionError("refused")
        return super()._vector(text)[: self.size]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors = super()._get_text_embeddings(texts)
        return vectors[: len(vectors) - self.short]


class Sized(Place):
    """Says how many dimensions it has."""

    dimensions: int | None = None


TEXTS = ["a cat", "一只猫", "🐱"]
RIGHT = [WordEmbedding()._vector(text) for text in TEXTS]


async def _ask(model, form):
    if form == "texts":
        return model.get_text_embedding_batch(TEXTS)
    if form == "atexts":
        return await model.aget_text_embedding_batch(TEXTS)
    if form == "text":
        return [model.get_text_embedding(text) for text in TEXTS]
    if form == "atext":
        return [await model.aget_text_embedding(text) for text in TEXTS]
    if form == "query":
        return [model.get_query_embedding(text) for text in TEXTS]
    return [await model.aget_query_embedding(text) for text in TEXTS]


FORMS = ["texts", "atexts", "text", "atext", "query", "aquery"]


@pytest.mark.parametrize("form", FORMS)
async def test_the_second_place_answers_for_the_first(form):
    """In every form, with the vectors that it would give alone."""
    model = RoutedEmbeddings([Place(down=True), Place()])
    assert await _ask(model, form) == RIGHT
    assert model.snapshot()["candidates"][0]["failures"]["connection"] >= 1


@pytest.mark.parametrize("form", FORMS)
async def test_another_space_is_never_handed_on(form):
    """The first vector settles the dimensions; who then gives others has failed."""
    first, second = Place(), Place(size=32)
    model = RoutedEmbeddings([first, second])
    assert await _ask(model, form) == RIGHT
    first.down = True
    with pytest.raises(ModelUnavailableError) as error:
        await _ask(model, form)
    [told] = {type(each) for each in error.value.attempts.values()} - {ConnectionError}
    assert told is DimensionMismatchError


def test_a_batch_that_is_short_of_vectors_is_a_failure():
    """Otherwise texts would go with each other's vectors."""
    model = RoutedEmbeddings([Place(short=1), Place()])
    assert model.get_text_embedding_batch(TEXTS) == RIGHT


@pytest.mark.parametrize(
    "make",
    [
        lambda: RoutedEmbeddings([]),
        lambda: RoutedEmbeddings(["bge"]),
        lambda: RoutedEmbeddings([Place()], candidates=[]),
        lambda: RoutedEmbeddings([Place(model_name="a"), Place(model_name="b")]),
        lambda: RoutedEmbeddings([Sized(dimensions=8), Sized(dimensions=9)]),
        lambda: RoutedEmbeddings([Sized(dimensions=8)], dimensions=9),
        lambda: RoutedEmbeddings([Place()], dimensions=0),
        lambda: RoutedEmbeddings([Place()], total_timeout=0),
        lambda: RoutedEmbeddings([Place()], mid_stream="restart"),
        lambda: RoutedEmbeddings([Place(embeddings_cache=SimpleKVStore())]),
        lambda: RoutedEmbeddings(
            [Place(rate_limiter=TokenBucketRateLimiter(requests_per_minute=60))]
        ),
    ],
)
def test_misuse_is_refused_at_once(make):
    """Two models, and settings that would have no effect."""
    with pytest.raises(InvalidParameterError):
        make()


@pytest.mark.parametrize("wrong", ["3", True, 3.0, 0])
@pytest.mark.parametrize("name", ["embed_batch_size", "num_workers"])
def test_whole_numbers_are_not_made_of_other_things(name, wrong):
    """A text, a boolean or a float is no number of texts or workers."""
    with pytest.raises(InvalidParameterError, match=name):
        RoutedEmbeddings([Place()], **{name: wrong})


def test_one_model_under_two_names_is_vouched_for():
    """As deployments are; the dimensions are watched all the same."""
    places = [Place(model_name="a", down=True), Place(model_name="b")]
    assert RoutedEmbeddings(places, same_model=True).get_text_embedding(TEXTS[0]) == RIGHT[0]
    known = RoutedEmbeddings(places, same_model=True, dimensions=8)
    with pytest.raises(ModelUnavailableError):
        known.get_text_embedding(TEXTS[0])


def test_a_name_that_nobody_gave_says_nothing():
    """The framework calls a model without a name "unknown": it may be any."""
    model = RoutedEmbeddings([Place(), Place(model_name="bge", embed_batch_size=2)])
    assert (model.model_name, model.embed_batch_size) == ("bge", 2)
    assert RoutedEmbeddings([Place()], embed_batch_size=5).embed_batch_size == 5


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_it_is_copied(copied):
    """The settled dimensions go with it; the breakers are new."""
    model = RoutedEmbeddings([MockEmbedding(embed_dim=3), MockEmbedding(embed_dim=4)])
    model.get_query_embedding("a")
    again = copied(model)
    assert again.dimensions == 3
    assert again.snapshot()["candidates"][0]["calls"] == 0
    assert again.get_query_embedding("a") == [0.5] * 3


async def test_events_and_tokens_are_told_once():
    """By the routed model; its places tell nothing of their own."""
    counter = TokenCountingHandler(tokenizer=str.split)
    manager = CallbackManager([counter])
    places = [Place(down=True, callback_manager=manager), Place(callback_manager=manager)]
    model = RoutedEmbeddings(
        places, callback_manager=manager, breaker=CircuitBreaker(failure_threshold=9)
    )
    with listening() as heard:
        model.get_text_embedding("two words")
        await model.aget_query_embedding("two words")
    ends = [event for event in heard if type(event).__name__ == "EmbeddingEndEvent"]
    assert [event.chunks for event in ends] == [["two words"]] * 2
    assert counter.total_embedding_token_count == 4


def test_it_works_where_an_embedding_model_does():
    """In an ingestion pipeline and behind a retriever; names and priorities are the user's."""
    candidates = [
        ModelCandidate("far", Place(), priority=2),
        ModelCandidate("near", Place(down=True), priority=1),
    ]
    model = RoutedEmbeddings(candidates=candidates)
    assert isinstance(model, BaseEmbedding)
    pipeline = IngestionPipeline(transformations=[model], disable_cache=False)
    nodes = pipeline.run(documents=[Document(text=text) for text in TEXTS])
    assert [node.embedding for node in nodes] == RIGHT
    nodes = [TextNode(text=text) for text in TEXTS]
    retriever = HybridRetriever(nodes, embed_model=model, similarity_top_k=1)
    [best] = retriever.retrieve("一只猫")
    assert best.text == "一只猫"
