"""`RoutedChatModel.with_structured_output`: what is the model's own holds for its objects, too."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.rate_limiters import BaseRateLimiter
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

from easyrag_core import CircuitBreaker
from langchain_easyrag import RoutedChatModel
from tests.langchain_adapter.listener import Listener
from tests.langchain_adapter.test_routed_chat_model import City, Former, Scripted, city, dead, said
from tests.langchain_adapter.test_routed_handlers import Raising

OSLO = City(name="Oslo")


async def _collected(stream):
    return [chunk async for chunk in stream]


FORMS = {
    "invoke": lambda form, asked, config: form.invoke(asked, config),
    "ainvoke": lambda form, asked, config: asyncio.run(form.ainvoke(asked, config)),
    "stream": lambda form, asked, config: list(form.stream(asked, config))[-1],
    "astream": lambda form, asked, config: asyncio.run(_collected(form.astream(asked, config)))[-1],
}


@pytest.fixture(params=FORMS)
def ask(request):
    """Asks in one of four forms, and gives the object."""
    return lambda form, asked="Hi", config=None: FORMS[request.param](form, asked, config)


def maker(name="Oslo", **settings):
    candidate = said(city(f'{{"name": "{name}"}}'), name=name, kind=Former)
    return candidate.model_copy(update=settings)


class Limiter(BaseRateLimiter):
    """Counts how often it is asked."""

    def __init__(self):
        self.asked = 0

    def acquire(self, *, blocking=True):
        self.asked += 1
        return True

    async def aacquire(self, *, blocking=True):
        return self.acquire()


IMAGE = HumanMessage([{"type": "image", "url": "https://example.com/a.png"}])


@pytest.mark.parametrize(
    ("asked", "name"),
    [([IMAGE], "sees"), (ChatPromptValue(messages=[IMAGE]), "sees"), ("Hi", "blind")],
)
def test_an_object_of_an_image_comes_from_whom_can_see(ask, asked, name):
    """However the image is handed over."""
    blind = maker("blind", profile={"image_inputs": False})
    model = RoutedChatModel([blind, maker("sees")])
    assert ask(model.with_structured_output(City), asked) == City(name=name)


def test_the_models_own_handlers_tags_and_metadata_are_those_of_the_run(ask):
    """Beside the caller's; the run of each candidate says whose it is."""
    own, callers = Listener(), Listener()
    model = RoutedChatModel(
        [dead("a", Former), maker("b")], callbacks=[own], tags=["own"], metadata={"team": "x"}
    )
    config = {"callbacks": [callers], "tags": ["callers"], "metadata": {"user": 7}}
    ask(model.with_structured_output(City), config=config)
    assert [each["run"] for each in own.starts] == [each["run"] for each in callers.starts]
    told = [each["metadata"] for each in own.starts]
    assert [each["easyrag_candidate"] for each in told] == ["a", "b"]
    assert all((each["team"], each["user"]) == ("x", 7) for each in told)
    assert all({"own", "callers"} <= {*each["tags"]} for each in own.starts)
    assert len(own.ends) == len(own.errors) == 1


@pytest.mark.parametrize("own", [[], ["a listener"]])
def test_an_objects_run_is_a_child_of_the_chain(ask, own):
    """With callbacks of the model's own as well; nothing is heard twice."""
    callers, collector = Listener(), RunCollectorCallbackHandler()
    model = RoutedChatModel([maker("a")], callbacks=[Listener() for _ in own])
    structured = model.with_structured_output(City)
    chain = RunnableLambda(lambda asked: ask(structured, asked))
    chain.invoke("Hi", {"callbacks": [callers, collector]})
    [root] = collector.traced_runs
    assert [run.name for run in root.child_runs] == ["RoutedStructuredOutput"]
    assert len(callers.starts) == len(callers.ends) == 1
    assert all(len(each.starts) == 1 for each in model.callbacks)


def test_the_models_own_limiter_is_asked_once_for_an_object(ask):
    """Whoever makes it."""
    limiter = Limiter()
    model = RoutedChatModel([dead("a", Former), maker("b")], rate_limiter=limiter)
    assert ask(model.with_structured_output(City)) == City(name="b")
    assert limiter.asked == 1


class Runs(BaseCallbackHandler):
    """Notes the chains that begin and end."""

    def __init__(self):
        self.began, self.ended = [], []

    def on_chain_start(self, *_, run_id, **__):
        self.began.append(run_id)

    def on_chain_end(self, *_, run_id, **__):
        self.ended.append(run_id)


def test_the_models_cache_keeps_no_objects():
    """One bad answer in it would make a healthy model fail for as long as it is kept."""
    candidate = maker()
    model = RoutedChatModel([candidate], cache=InMemoryCache())
    structured = model.with_structured_output(City)
    assert structured.invoke("Hi") == structured.invoke("Hi") == OSLO
    assert len(candidate.asked) == 2


def test_a_handler_of_the_model_and_of_the_call_is_told_once(ask):
    """As of the model itself: a run that ends twice is an error of tracers."""
    handler = Runs()
    model = RoutedChatModel([maker()], callbacks=[handler])
    ask(model.with_structured_output(City), config={"callbacks": [handler]})
    assert len(handler.began) == len(set(handler.began))
    assert sorted(handler.began) == sorted(handler.ended)


def test_a_candidates_own_cache_stays_its_own():
    """And `False` of the model keeps its candidates from a cache as well."""
    cached, fresh = maker(cache=InMemoryCache()), maker()
    for candidate, asked in ((cached, 1), (fresh, 2)):
        model = RoutedChatModel([candidate], cache=False)
        structured = model.with_structured_output(City)
        assert structured.invoke("Hi") == structured.invoke("Hi") == OSLO
        assert len(candidate.asked) == asked


def test_a_raw_answer_tells_who_gave_it(ask):
    """As an answer of the model itself does."""
    model = RoutedChatModel([dead("a", Former), maker("b")])
    answer = ask(model.with_structured_output(City, include_raw=True))
    assert answer["raw"].response_metadata["easyrag"] == {"candidate": "b", "asked": ["a", "b"]}
    assert answer["parsed"] == City(name="b")


@pytest.mark.parametrize("where", ["on_chat_model_start", "on_llm_end", "on_chain_end"])
def test_what_a_handler_raises_is_no_failure_of_a_model(ask, where):
    """It reaches the caller as it is; nobody else is asked, and no circuit opens."""
    breaker = CircuitBreaker(failure_threshold=1)
    model = RoutedChatModel([maker("a"), maker("b")], breaker=breaker)
    with pytest.raises(PermissionError):
        ask(model.with_structured_output(City), config={"callbacks": [Raising(where)]})
    first, second = model.snapshot()["candidates"]
    assert (first["failures"], first["state"], second["calls"]) == ({}, "closed", 0)


class Growing(Scripted):
    """Gives a dict that grows."""

    def with_structured_output(self, schema, *, include_raw=False, **kwargs):
        return self | JsonOutputParser()


async def test_an_object_that_grows_is_left_at_once():
    """Whoever stops reading frees the candidate's place, not the garbage collector."""
    model = RoutedChatModel([Growing(parts=['{"name": "O', "sl", 'o"}'])])
    stream = model.with_structured_output(City).astream("Hi")
    await anext(stream)
    await stream.aclose()
    assert model.snapshot()["candidates"][0]["cancelled"] == 1
