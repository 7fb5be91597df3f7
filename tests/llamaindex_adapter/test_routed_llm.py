"""RoutedLLM as a part of LlamaIndex: its settings, its place in traces, tools and objects."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle

import pytest
from llama_index.core import Settings
from llama_index.core.base.llms.types import ImageBlock, ToolCallBlock
from llama_index.core.callbacks import (
    CallbackManager,
    CBEventType,
    EventPayload,
    TokenCountingHandler,
)
from llama_index.core.llms import LLM, ChatMessage, MockLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.prompts import ChatPromptTemplate, PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.rate_limiter import BaseRateLimiter
from llama_index.core.schema import TextNode
from llama_index.core.tools import FunctionTool
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.span_handlers import SimpleSpanHandler
from pydantic import BaseModel

from easyrag_core import (
    CircuitBreaker,
    EasyRAGError,
    InvalidParameterError,
    ModelCandidate,
    ModelUnavailableError,
    StreamInterruptedError,
)
from llamaindex_easyrag import BM25Retriever, RoutedLLM
from tests.llamaindex_adapter._parts import CallbackEar, listening
from tests.llamaindex_adapter._scripted import scripted

ASKED = [ChatMessage(content="Hi")]
DEAD = ConnectionError("refused")


class City(BaseModel):
    """A city."""

    name: str


def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


WEATHER = FunctionTool.from_defaults(weather)


# Settings


@pytest.mark.parametrize(
    "make",
    [
        RoutedLLM,
        lambda: RoutedLLM([]),
        lambda: RoutedLLM(["gpt"]),
        lambda: RoutedLLM([MockLLM()], candidates=[]),
        lambda: RoutedLLM(candidates=[MockLLM()]),
        lambda: RoutedLLM([MockLLM()], stal_timeout=1),
        lambda: RoutedLLM([MockLLM()], stall_timeout=0),
        lambda: RoutedLLM([MockLLM()], mid_stream="again"),
        lambda: RoutedLLM([MockLLM()], empty="maybe"),
        lambda: RoutedLLM([MockLLM()], moving_kinds=["weather"]),
    ],
)
def test_misuse_is_refused_at_once(make):
    """With a word on what is allowed, before anybody is asked."""
    with pytest.raises(InvalidParameterError):
        make()


def test_settings_that_would_have_no_effect_later_cannot_be_changed():
    """They are the router's from the beginning."""
    llm = RoutedLLM([MockLLM()])
    with pytest.raises(ValueError, match="frozen"):
        llm.stall_timeout = 3.0


def test_metadata_are_what_all_candidates_hold():
    """The smallest window, the most room for an answer, chat and tools only where all have them."""
    small = scripted("small", context_window=500, num_output=10, is_chat_model=True)
    large = scripted("large", context_window=9000, num_output=300)
    told = RoutedLLM([large, small]).metadata
    assert (told.context_window, told.num_output) == (500, 300)
    assert (told.is_chat_model, told.is_function_calling_model) == (False, False)
    assert told.model_name == "large, small"
    able = MockFunctionCallingLLM(is_chat_model=True)
    assert RoutedLLM([able]).metadata.is_function_calling_model
    assert not RoutedLLM([able, small]).metadata.is_function_calling_model
    assert RoutedLLM([able, small]).metadata.is_chat_model


def test_equal_names_are_numbered():
    """Candidates are told apart in answers and on the health page."""
    llm = RoutedLLM([scripted("a"), scripted("a"), MockLLM()])
    names = [each["name"] for each in llm.snapshot()["candidates"]]
    assert names == ["a", "a #2", "MockLLM"]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda llm: pickle.loads(pickle.dumps(llm))])
def test_it_is_copied_and_told_as_json(copied):
    """A copy makes its own breakers; JSON has neither models nor their keys."""
    llm = RoutedLLM([scripted("a", DEAD), scripted("b", "two")], stall_timeout=3, system_prompt="S")
    llm.chat(ASKED)
    again = copied(llm)
    assert again.chat(ASKED).message.content == "two"
    assert (again.stall_timeout, again.system_prompt) == (3, "S")
    assert again.snapshot()["candidates"][0]["calls"] == 1
    told = json.loads(llm.to_json())
    assert told["class_name"] == RoutedLLM.class_name() == "RoutedLLM"
    assert (told["stall_timeout"], "candidates" in told) == (3, False)


def test_the_model_asked_for_comes_first():
    """The router's own arguments are not handed to the candidates."""
    candidates = [
        ModelCandidate("a", scripted("a", "one")),
        ModelCandidate("b", scripted("b", "2")),
    ]
    llm = RoutedLLM(candidates=candidates)
    assert llm.complete("Hi", model="b").text == "2"
    assert next(llm.stream_complete("Hi", model="b")).text == "2"
    with pytest.raises(InvalidParameterError, match="'a', 'b'"):
        llm.stream_chat(ASKED, model="c")
    for wants in (["thinking"], "vision"):
        with pytest.raises(InvalidParameterError, match="wants"):
            llm.chat(ASKED, wants=wants)


def test_an_image_goes_to_a_model_that_sees():
    """Where one is known for it; where none is, everybody is asked."""
    blind, seeing = scripted("a", "blind"), scripted("b", "seen")
    asked = [ChatMessage(blocks=[ImageBlock(url="https://example.org/cat.png")])]
    candidates = [ModelCandidate("a", blind), ModelCandidate("b", seeing, capabilities={"vision"})]
    assert RoutedLLM(candidates=candidates).chat(asked).message.content == "seen"
    assert RoutedLLM([blind, seeing]).chat(asked).message.content == "blind"


def _asked_for_a_city(llm, messages):
    """All ways to an object, whole and as it grows."""

    async def streamed(opened):
        return [each async for each in await opened][-1]

    prompt, structured = ChatPromptTemplate(messages), llm.as_structured_llm(City)
    return [
        llm.structured_predict(City, prompt),
        asyncio.run(llm.astructured_predict(City, prompt)),
        list(llm.stream_structured_predict(City, prompt))[-1],
        asyncio.run(streamed(llm.astream_structured_predict(City, prompt))),
        structured.chat(messages).raw,
        asyncio.run(structured.achat(messages)).raw,
    ]


def test_an_object_of_an_image_comes_from_a_model_that_sees():
    """As an answer does; without an image, or where none is known to see, everybody is asked."""
    blind, seeing = scripted("a", '{"name": "blind"}'), scripted("b", '{"name": "seen"}')
    candidates = [ModelCandidate("a", blind), ModelCandidate("b", seeing, capabilities={"vision"})]
    image = [ChatMessage(blocks=[ImageBlock(url="https://example.org/cat.png")])]
    for llm, asked, name in [
        (RoutedLLM(candidates=candidates), image, "seen"),
        (RoutedLLM(candidates=candidates), ASKED, "blind"),
        (RoutedLLM([blind, seeing]), image, "blind"),
    ]:
        assert {each.name for each in _asked_for_a_city(llm, asked)} == {name}


# Answers


def test_a_completion_model_gets_its_prompt_as_it_is():
    """It is not asked by way of a chat, and continues where the text ends."""
    first = scripted("a", "one", " two", DEAD)
    second = scripted("b", " three")
    llm = RoutedLLM([first, second], mid_stream="continue")
    chunks = list(llm.stream_complete("Count:", formatted=True))
    assert [chunk.text for chunk in chunks] == ["one", "one two", "one two three"]
    assert first.asked == [("Count:", True)]
    assert second.asked == [("Count:one two", True)]


@pytest.mark.parametrize("kind", ["chat", "complete"])
def test_what_is_held_is_replayed_unchanged(kind):
    """White space before the first word is no beginning, and not lost: texts stay cumulative."""
    llm = RoutedLLM([scripted("a", " ", "\n"), scripted("b", " ", "\n", "two", " ")])
    chunks = list(getattr(llm, f"stream_{kind}")(ASKED if kind == "chat" else "Hi"))
    assert [chunk.delta for chunk in chunks] == [" ", "\n", "two", " "]
    texts = [chunk.message.content if kind == "chat" else chunk.text for chunk in chunks]
    assert texts == [" ", " \n", " \ntwo", " \ntwo "]


def test_nothing_that_was_handed_in_or_out_is_changed():
    """Neither the messages nor the candidate's own chunks."""
    messages, first = [*ASKED], scripted("a", "one", DEAD)
    llm = RoutedLLM([first, scripted("b", "two")], mid_stream="continue")
    stream = llm.stream_chat(messages)
    messages.append(ChatMessage(content="Too late"))
    assert [chunk.message.content for chunk in stream] == ["one", "onetwo"]
    assert "Too late" not in str(first.asked)
    assert messages[:1] == ASKED == [ChatMessage(content="Hi")]


async def test_all_candidates_failing_is_one_error():
    """With each one's own in it, in all forms."""
    llm = RoutedLLM([scripted("a", DEAD), scripted("b", OSError("no disk"))])
    for ask in (llm.complete, llm.chat):
        with pytest.raises(ModelUnavailableError) as error:
            ask("Hi" if ask == llm.complete else ASKED)
        assert list(error.value.attempts) == ["a", "b"]
    stream = await llm.astream_complete("Hi")
    with pytest.raises(EasyRAGError):
        async for _ in stream:
            pass


def test_blank_answers_may_be_accepted():
    """When the caller says so."""
    models = [scripted("a", " \n"), scripted("b", "two")]
    assert RoutedLLM(models).complete("Hi").text == "two"
    assert RoutedLLM(models, empty="accept").complete("Hi").text == " \n"
    accepted = list(RoutedLLM(models, empty="accept").stream_complete("Hi"))
    assert [chunk.text for chunk in accepted] == [" \n"]


def test_it_is_the_llm_of_the_settings():
    """Prompts go through it, in one piece and as a stream."""
    llm = RoutedLLM([scripted("a", DEAD), scripted("b", "two", "!")])
    before = Settings._llm
    try:
        Settings.llm = llm
        assert Settings.llm is llm
        assert isinstance(llm, LLM)
        assert Settings.llm.predict(PromptTemplate("Say {x}"), x="it") == "two!"
        assert "".join(Settings.llm.stream(PromptTemplate("Say {x}"), x="it")) == "two!"
    finally:
        Settings._llm = before


async def test_it_answers_in_a_query_engine():
    """In one piece and as a stream, sync and async."""
    llm = RoutedLLM([scripted("a", DEAD), scripted("b", "two", "!")])
    retriever = BM25Retriever([TextNode(text="床前明月光"), TextNode(text="a cat")])
    engine = RetrieverQueryEngine.from_args(retriever, llm=llm)
    assert str(engine.query("明月")) == str(await engine.aquery("明月")) == "two!"
    streaming = RetrieverQueryEngine.from_args(retriever, llm=llm, streaming=True)
    assert "".join(streaming.query("明月").response_gen) == "two!"


async def test_a_limiter_is_asked_once_for_a_request():
    """Not once for every candidate."""
    asked = []

    class Limiter(BaseRateLimiter):
        def acquire(self):
            asked.append("sync")

        async def async_acquire(self):
            asked.append("async")

    llm = RoutedLLM([scripted("a", DEAD), scripted("b", "two")], rate_limiter=Limiter())
    await _all_forms(llm)
    assert asked == ["sync", "sync", "async", "async"]


@pytest.mark.parametrize("given", [None, 5, "Hi", ["Hi"], [None], ChatMessage(content="Hi")])
async def test_what_is_no_conversation_is_no_failure_of_a_model(given):
    """It is refused, nobody is asked, and the circuit stays closed for all others."""
    llm = RoutedLLM([scripted("a", "one")])
    for _ in range(3):
        with pytest.raises(InvalidParameterError, match=r"messages=.* give a list of ChatMessage"):
            llm.chat(given)
        with pytest.raises(InvalidParameterError, match="messages"):
            llm.stream_chat(given)
        with pytest.raises(InvalidParameterError, match="messages"):
            await llm.achat(given)
        with pytest.raises(InvalidParameterError, match="messages"):
            await llm.astream_chat(given)
    assert llm.snapshot()["candidates"][0]["calls"] == 0
    assert llm.snapshot()["candidates"][0]["state"] == "closed"


@pytest.mark.parametrize("given", [None, 5, b"Hi", ["Hi"]])
async def test_what_is_no_prompt_is_no_failure_of_a_model(given):
    """In all four forms."""
    llm = RoutedLLM([scripted("a", "one")])
    for _ in range(3):
        for ask in (llm.complete, llm.stream_complete):
            with pytest.raises(InvalidParameterError, match=r"prompt=.* give a text"):
                ask(given)
        for ask in (llm.acomplete, llm.astream_complete):
            with pytest.raises(InvalidParameterError, match=r"prompt=.* give a text"):
                await ask(given)
    assert llm.snapshot()["candidates"][0]["state"] == "closed"


# Traces


async def _all_forms(llm):
    llm.chat(ASKED)
    list(llm.stream_chat(ASKED))
    await llm.achat(ASKED)
    [_ async for _ in await llm.astream_chat(ASKED)]


@pytest.mark.parametrize("limit", [None, 60.0])
async def test_events_are_told_once_by_the_candidate_who_answers(limit):
    """Not again by the routed model; a stream's spans stay below the call that opened it."""
    llm = RoutedLLM([scripted("a", DEAD), scripted("b", "two")], first_token_timeout=limit)
    root, spans = get_dispatcher(), SimpleSpanHandler()
    root.add_span_handler(spans)
    try:
        with listening() as heard:
            await _all_forms(llm)
    finally:
        root.span_handlers.remove(spans)
    ends = [event for event in heard if type(event).__name__ == "LLMCompletionEndEvent"]
    assert [event.response.text for event in ends] == ["two"] * 4
    ours = {s.id_ for s in spans.completed_spans if s.id_.startswith("RoutedLLM.")}
    assert len(ours) == 4
    parents = {s.parent_id for s in spans.completed_spans if s.id_.startswith("Scripted.")}
    assert ours <= parents
    assert None not in parents


@pytest.mark.parametrize("shared", [False, True])
async def test_handlers_count_every_call_once(shared):
    """Whether the candidates have them, too, or the routed model alone: tokens are not doubled."""
    counter = TokenCountingHandler(tokenizer=str.split)
    ear = CallbackEar()
    manager = CallbackManager([counter, ear])
    theirs = {"callback_manager": manager} if shared else {}
    models = [scripted("a", DEAD, **theirs), scripted("b", "two words", **theirs)]
    breaker = CircuitBreaker(failure_threshold=100)
    llm = RoutedLLM(models, callback_manager=manager, breaker=breaker)
    llm.complete("Hi")
    list(llm.stream_complete("Hi"))
    await llm.acomplete("Hi")
    [_ async for _ in await llm.astream_complete("Hi")]
    assert counter.completion_llm_token_count == 4 * 2
    ends = [payload for how, kind, payload in ear.heard if (how, kind) == ("end", CBEventType.LLM)]
    assert len(ends) == 8
    answers = [end[EventPayload.COMPLETION].text for end in ends if EventPayload.COMPLETION in end]
    assert answers == ["two words"] * 4
    assert [EventPayload.EXCEPTION in end for end in ends] == [True, False] * 4


def test_a_routers_events_reach_the_ear():
    """`on_event` hears the attempts, `classify` has the first word."""
    heard = []
    llm = RoutedLLM([scripted("a", KeyError("x")), scripted("b", "2")], on_event=heard.append)
    llm.complete("Hi")
    attempts = [e.attributes for e in heard if e.name == "easyrag.routing.attempt"]
    assert [each["easyrag.routing.outcome"] for each in attempts] == ["failure", "success"]


# Tools and objects


def _caller(*answers):
    """A model that calls functions and gives these answers in turn."""
    script = iter(answers)
    return MockFunctionCallingLLM(
        is_chat_model=True, response_generator=lambda messages, **_: next(script)
    )


CALL = ToolCallBlock(tool_call_id="1", tool_name="weather", tool_kwargs={"city": "Oslo"})


def test_a_routed_model_within_another_has_what_its_candidates_have():
    """One of several is enough: the inner router leaves the others out."""
    plain = scripted("plain", "Hi")
    able = _caller(ChatMessage(role="assistant", blocks=[CALL]))
    mixed, none = RoutedLLM([plain, able]), RoutedLLM([plain])
    assert not mixed.metadata.is_function_calling_model
    outer = RoutedLLM([none, mixed])
    assert [each.capabilities for each in outer.router.candidates] == [set(), {"tools"}]
    answer = outer.chat_with_tools([WEATHER], "Hi")
    assert answer.message.blocks == [CALL]


def test_tools_go_to_those_who_have_them():
    """A model without is left out; where nobody has them it is said at once."""
    able = _caller(ChatMessage(role="assistant", blocks=[CALL]))
    llm = RoutedLLM([scripted("a", "no tools here"), able])
    response = llm.chat_with_tools([WEATHER], user_msg="How is it?")
    [call] = llm.get_tool_calls_from_response(response)
    assert call.tool_kwargs == {"city": "Oslo"}
    with pytest.raises(InvalidParameterError, match="tools"):
        RoutedLLM([scripted("a", "x")]).chat_with_tools([WEATHER], user_msg="How is it?")


@pytest.mark.parametrize("bad", ["no JSON", '{"name": 3}'])
async def test_an_object_comes_from_the_next_model(bad):
    """What is no such object is a failure; each model makes it by its own means."""
    good = json.dumps({"name": "Oslo"})
    prompt = PromptTemplate("Which {what}?")
    models = [scripted("a", bad), scripted("b", good)]
    llm = RoutedLLM(models, breaker=CircuitBreaker(failure_threshold=100))
    oslo = City(name="Oslo")
    assert llm.structured_predict(City, prompt, what="city") == oslo
    assert await llm.astructured_predict(City, prompt, what="city") == oslo
    assert llm.as_structured_llm(City).chat(ASKED).raw == oslo
    assert llm.as_structured_llm(City).complete("Which?").raw == oslo
    assert llm.snapshot()["candidates"][0]["calls"] == 4


async def test_an_object_that_grows_is_begun_by_the_next_model():
    """Fields that are empty are no beginning; what has begun is not continued by another."""
    grown = ['{"na', 'me": "Os', 'lo"}']
    prompt = PromptTemplate("Which?")
    llm = RoutedLLM([scripted("a", DEAD), scripted("b", *grown)])
    assert [*llm.stream_structured_predict(City, prompt)][-1].name == "Oslo"
    stream = await llm.astream_structured_predict(City, prompt)
    assert [each async for each in stream][-1].name == "Oslo"
    broken = scripted("a", *grown[:2], DEAD)
    anew = RoutedLLM([broken, scripted("b", *grown)], mid_stream="restart")
    assert [*anew.stream_structured_predict(City, prompt)][-1].name == "Oslo"
    with pytest.raises(StreamInterruptedError):
        list(
            RoutedLLM(
                [broken, scripted("b", *grown)], mid_stream="continue"
            ).stream_structured_predict(City, prompt)
        )


@pytest.mark.parametrize("name", ["models", "candidates"])
def test_one_model_is_no_list_of_models(name):
    """It is refused by its own name, not by what it can be taken apart into."""
    for wrong in (MockLLM(), 7):
        with pytest.raises(InvalidParameterError, match=f"{type(wrong).__name__}.*give a list"):
            RoutedLLM(**{name: wrong})
