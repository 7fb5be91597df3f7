"""`RoutedChatModel`: what it is given, what counts as an answer, what callbacks hear of it."""

from __future__ import annotations

import asyncio
import copy
import pickle
import time
from contextlib import closing
from statistics import median
from typing import Any
from unittest.mock import MagicMock

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    message_chunk_to_message,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.tools import tool
from langchain_core.tracers.context import tracing_v2_enabled
from langchain_core.tracers.langchain import wait_for_all_tracers
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langsmith import Client
from pydantic import BaseModel, Field, ValidationError

from easyrag_core import (
    CircuitBreaker,
    CircuitOpenError,
    Failure,
    InvalidParameterError,
    ModelCandidate,
    ModelUnavailableError,
    StreamInterruptedError,
)
from langchain_easyrag import RoutedChatModel, StreamResetChunk
from tests.langchain_adapter.listener import Listener, total

USAGE: Any = {"input_tokens": 2, "output_tokens": 3, "total_tokens": 5}


class Scripted(BaseChatModel):
    """Says its parts: strings, chunks, or errors to raise; has usage, and no tools."""

    model_name: str = "scripted"
    parts: list[Any] = Field(default_factory=list)
    asked: list[Any] = Field(default_factory=list)

    @property
    def _llm_type(self):
        return "scripted"

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        self.asked.append((messages, kwargs | ({"stop": stop} if stop else {})))
        for part in self.parts:
            if isinstance(part, Exception):
                raise part
            chunk = AIMessageChunk(content=part) if isinstance(part, str) else part
            yield ChatGenerationChunk(message=chunk.model_copy())
        usage = AIMessageChunk(
            content="", usage_metadata=USAGE, response_metadata={"model_name": self.model_name}
        )
        yield ChatGenerationChunk(message=usage)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        chunks = [chunk.message for chunk in self._stream(messages, stop, run_manager, **kwargs)]
        whole = total(chunks)
        fields = whole.model_dump(exclude={"type", "tool_call_chunks", "chunk_position"})
        return ChatResult(generations=[ChatGeneration(message=AIMessage(**fields))])


class Able(Scripted):
    """One that binds tools, in a form of its own."""

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        return self.bind(bound=[f"{self.model_name} {each.name}" for each in tools], **kwargs)


def said(*parts, name="a", kind=Scripted):
    return kind(model_name=name, parts=list(parts))


def dead(name="dead", kind=Scripted):
    return said(ConnectionError("refused"), name=name, kind=kind)


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


# What it is given.


def test_a_plain_list_is_named_by_the_models():
    """Names come from the models, a second one of a name gets a number, none is lost."""
    models = [
        said("x", name="m"),
        said("x", name="m"),
        said("x", name="m #2"),
        FakeListChatModel(responses=["x"]),
    ]
    names = [each.name for each in RoutedChatModel(models).router.candidates]
    assert names == ["m", "m #2", "m #2 #2", "FakeListChatModel"]


def test_capabilities_are_guessed_or_as_given():
    """From the class and its profile; those of a candidate of one's own stay."""
    blind = Scripted(profile={"image_inputs": False, "reasoning_output": True})
    given = ModelCandidate("mine", said("x"), capabilities={"vision"})
    candidates = [
        ModelCandidate("able", said("x", kind=Able)),
        ModelCandidate("blind", blind),
        given,
    ]
    able, blind, mine = RoutedChatModel(candidates=candidates).router.candidates
    assert able.capabilities == {"tools", "structured_output", "vision"}
    assert blind.capabilities == {"thinking"}
    assert mine is given


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "models"),
        ({"models": []}, "at least one"),
        ({"models": [said("x").bind(stop=["x"])]}, "BaseChatModel"),
        ({"models": [said("x")], "candidates": []}, "either models or candidates"),
        ({"candidates": [said("x")]}, "ModelCandidate"),
        ({"models": [said("x")], "first_token_timeout": 0}, "first_token_timeout"),
        ({"models": [said("x")], "mid_stream": "retry"}, "mid_stream"),
        ({"models": [said("x")], "empty": "no"}, "empty"),
        ({"models": [said("x")], "frist_token_timeout": 1}, "no such setting"),
    ],
)
def test_misuse_is_refused_at_construction(settings, said):
    """With the name of what was wrong."""
    with pytest.raises(InvalidParameterError, match=said):
        RoutedChatModel(**settings)


def test_a_request_may_choose_whom_to_ask_first():
    """By the name of the candidate, also bound; a name that there is none of is refused."""
    model = RoutedChatModel([said("one", name="a"), said("two", name="b")])
    assert model.invoke("Hi", model="b").text == "two"
    assert total(model.bind(model="b").stream("Hi")).text == "two"
    with pytest.raises(InvalidParameterError, match="choose one of 'a', 'b'"):
        model.invoke("Hi", model="c")


def test_an_image_goes_to_whom_can_see():
    """Without a word of the caller's; other wants are the caller's own."""
    blind = Scripted(profile={"image_inputs": False}, parts=["blind"])
    model = RoutedChatModel([blind, said("I see")])
    image = {"type": "image", "url": "https://example.com/a.png"}
    assert model.invoke("Hi").text == "blind"
    assert model.invoke([HumanMessage([image])]).text == "I see"
    assert model.invoke("Hi", wants=["vision"]).text == "I see"
    with pytest.raises(InvalidParameterError, match="wants"):
        model.invoke("Hi", wants=["singing"])
    for wrong in ("vision", 7):
        with pytest.raises(InvalidParameterError, match="collection"):
            model.invoke("Hi", wants=wrong)


def test_settings_reach_every_candidate():
    """Those of the model, of the call and of `bind`; the router's own do not."""
    first, second = dead(), said("two")
    model = RoutedChatModel([first, second], temperature=0.5, stop=["."])
    model.bind(seed=7).invoke("Hi", max_tokens=5)
    expected = {"temperature": 0.5, "stop": ["."], "seed": 7, "max_tokens": 5}
    assert [settings for _, settings in first.asked + second.asked] == [expected] * 2


def test_settings_of_the_router_stay_as_they_are():
    """A change that would change nothing is refused; a configured one makes another router."""
    model = RoutedChatModel([said("x")])
    with pytest.raises(ValidationError, match="frozen"):
        model.total_timeout = 3.0
    late = model.configurable_fields(empty=ConfigurableField("empty"))
    assert late.invoke("Hi", {"configurable": {"empty": "accept"}}).text == "x"


def test_configured_calls_share_the_circuits(ask):
    """A dead model is left alone though each call makes its model anew; so do copies and bindings.

    What is configured of the router itself has circuits of its own, which last as well.
    """
    first = dead("a")
    model = RoutedChatModel([first, said("two", name="b")], moving_kinds=["connection"])
    late = model.configurable_fields(
        temperature=ConfigurableField("heat"), empty=ConfigurableField("empty")
    )
    configs = [{"configurable": {"heat": heat / 10}} for heat in range(4)]
    for config in configs:
        assert ask(late, config).text == "two"
    assert len(first.asked) == 2
    assert model.snapshot()["candidates"][0]["state"] == "open"
    for same in (model.model_copy(), model.bind(seed=7), model.with_config(tags=["t"])):
        ask(same)
    assert len(first.asked) == 2
    for config in configs:
        ask(late, {"configurable": {**config["configurable"], "empty": "accept"}})
    assert len(first.asked) == 4


def test_what_is_configured_without_end_is_forgotten_but_the_models_own_circuits():
    """Those that calls have used last stay, and so do those of the model itself."""
    first = dead("a")
    model = RoutedChatModel(
        [first, said("two", name="b")], breaker=CircuitBreaker(failure_threshold=1)
    )
    late = model.configurable_fields(
        stall_timeout=ConfigurableField("stall"), temperature=ConfigurableField("heat")
    )
    for stall in range(1, 41):
        late.invoke("Hi", {"configurable": {"stall": stall}})
        late.invoke("Hi", {"configurable": {"stall": 1}})
    assert len(first.asked) == 40
    model.invoke("Hi")
    late.invoke("Hi", {"configurable": {"heat": 0.5}})
    assert len(first.asked) == 41
    assert len(model.candidates._routers) < 20


def test_models_of_their_own_have_circuits_of_their_own(ask):
    """Though they are made of the same chat models, or of a list of the same candidates."""
    first = dead("a")
    members = [first, said("two", name="b")]
    model = RoutedChatModel(members)
    others = [RoutedChatModel(members), RoutedChatModel(candidates=list(model.candidates))]
    for each in (model, *others):
        ask(each)
        assert each.snapshot()["candidates"][0]["calls"] == 1


def test_it_is_shown_by_the_names_of_its_models():
    """What is shown goes into each trace: it stays short, and keeps keys to itself."""
    models = [said("secret", name=f"m{n}") for n in range(3)]
    assert "['m0', 'm1', 'm2']" in repr(RoutedChatModel(models))
    assert "secret" not in repr(RoutedChatModel(models))


def test_it_costs_less_than_a_millisecond_before_the_first_token():
    """At the median, its own thread included, over what the model alone takes."""

    def seconds(model):
        begun = time.process_time()
        with closing(model.stream("Hi")) as stream:
            next(stream)
        return time.process_time() - begun

    alone = FakeListChatModel(responses=["x"])
    routed = RoutedChatModel([alone, said("never")])
    pairs = [(seconds(alone), seconds(routed)) for _ in range(60)]
    assert median(ours - theirs for theirs, ours in pairs) < 0.001


# What counts as an answer.

CALL: Any = {"name": "weather", "args": '{"city": "Oslo"}', "id": "1", "index": 0}
ANSWERS = {
    "text": "two",
    "a text block": [{"type": "text", "text": "two"}],
    "a tool call": AIMessageChunk(content="", tool_call_chunks=[CALL]),
    "a bad tool call": AIMessageChunk(content="", tool_call_chunks=[{**CALL, "args": "[1"}]),
    "reasoning": [{"type": "reasoning", "reasoning": "hm"}],
    "a reasoning summary": [{"type": "reasoning", "summary": [{"type": "s_text", "text": "hm"}]}],
    "thinking": [{"type": "thinking", "thinking": "hm"}],
    "reasoning beside": AIMessageChunk(content="", additional_kwargs={"reasoning_content": "hm"}),
    "a refusal": [{"type": "refusal", "refusal": "no"}],
    "a refusal beside": AIMessageChunk(content="", additional_kwargs={"refusal": "no"}),
    "an image": [{"type": "image", "base64": "aGk="}],
    "a server's tool": [{"type": "server_tool_call", "name": "search", "args": {}, "id": "1"}],
}
BLANKS = {
    "nothing": "",
    "white space": " \n\u3000",
    "no blocks": [],
    "an empty text block": [{"type": "text", "text": " "}],
    "reasoning to come": [{"type": "reasoning", "summary": [], "id": "rs_1"}],
    "thinking to come": [{"type": "thinking", "thinking": "", "index": 0}],
    "a signature": [{"type": "thinking", "signature": "abc", "index": 0}],
    "nothing beside": AIMessageChunk(
        content="", additional_kwargs={"refusal": None, "reasoning_content": ""}
    ),
}


def _part(value):
    return AIMessageChunk(content=value) if isinstance(value, list) else value


@pytest.fixture(params=["invoke", "ainvoke", "stream", "astream"])
def ask(request):
    """Asks in one of four forms, and gives the whole answer."""

    async def astream(model, config):
        return total([chunk async for chunk in model.astream("Hi", config)])

    forms = {
        "invoke": lambda model, config: model.invoke("Hi", config),
        "ainvoke": lambda model, config: asyncio.run(model.ainvoke("Hi", config)),
        "stream": lambda model, config: total(model.stream("Hi", config)),
        "astream": lambda model, config: asyncio.run(astream(model, config)),
    }
    return lambda model, config=None: forms[request.param](model, config)


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_whatever_says_something_is_an_answer(ask, answer):
    """Text, reasoning, refusals, tool calls and media, wherever an integration puts them."""
    model = RoutedChatModel([said(_part(answer), name="a"), said("never", name="b")])
    assert ask(model).response_metadata["easyrag"] == {"candidate": "a", "asked": ["a"]}


@pytest.mark.parametrize("blank", BLANKS.values(), ids=BLANKS)
def test_what_says_nothing_is_a_failure(ask, blank):
    """However it is wrapped; accepted where the caller wants it so."""
    members = [said(_part(blank), name="a"), said("two", name="b")]
    model = RoutedChatModel(members)
    assert ask(model).text == "two"
    assert model.snapshot()["candidates"][0]["failures"] == {"blank": 1}
    accepting = RoutedChatModel(members, empty="accept")
    assert ask(accepting).response_metadata["easyrag"]["candidate"] == "a"


def test_errors_are_told_together_or_as_they_are(ask):
    """All of them when nobody answers, the circuits when nobody is asked, a bad request alone."""
    breaker = CircuitBreaker(failure_threshold=1)
    model = RoutedChatModel([dead("a"), dead("b")], breaker=breaker)
    with pytest.raises(ModelUnavailableError, match="refused") as error:
        ask(model)
    assert list(error.value.attempts) == ["a", "b"]
    with pytest.raises(CircuitOpenError):
        ask(model)
    refusing = RoutedChatModel(
        [said(KeyError("bad"), name="a"), said("two")],
        classify=lambda error: Failure("invalid_request"),
    )
    with pytest.raises(KeyError, match="bad"):
        ask(refusing)


# Resets.


def test_the_sum_over_a_restarted_stream_is_the_second_answer():
    """For the consumer, for a chain, for callbacks, and for `invoke` that reads a stream."""
    listener, members = Listener(), [said("Hel", OSError("cut")), said("Good ", "morning")]

    def model(**settings):
        return RoutedChatModel(members, mid_stream="restart", **settings)

    chunks = list(model().stream("Hi", {"callbacks": [listener]}))
    assert [isinstance(chunk, StreamResetChunk) for chunk in chunks][:3] == [False, True, False]
    assert type(total(chunks)) is AIMessageChunk
    assert total(chunks).text == listener.ends[-1][1].text == "Good morning"
    assert total(chunks[1:]).text == "Good morning"
    chain = RunnableLambda(lambda x: x) | model() | RunnableLambda(lambda message: message.text)
    assert chain.invoke("Hi") == total(list(chain.stream("Hi"))) == "Good morning"
    assert model(streaming=True).invoke("Hi").text == "Good morning"


def test_chunks_that_may_be_void_become_messages_as_others_do():
    """LangChain's own conversion and copies know them for what they are."""
    members = [said("Hel", OSError("cut")), said(city('{"name": "Oslo"}'), "Good")]
    chunks = list(RoutedChatModel(members, mid_stream="restart").stream("Hi"))
    for chunk in chunks:
        message = message_chunk_to_message(chunk)
        plain = message_chunk_to_message(AIMessageChunk.model_construct(**dict(chunk)))
        assert type(message) is AIMessage
        assert message == plain
        for again in (chunk.model_copy(), copy.deepcopy(chunk), pickle.loads(pickle.dumps(chunk))):
            assert type(again) is type(chunk)
            assert again == chunk


def test_a_reset_is_a_custom_event_of_the_run(ask):
    """It names who starts anew, the text that is void, and why; the parent is our run."""
    members = [said("Hel", OSError("cut"), name="a"), said("Good", name="b")]
    listener = Listener()
    model = RoutedChatModel(members, mid_stream="restart", streaming=True)
    ask(model, {"callbacks": [listener]})
    [(name, data, run)] = listener.custom
    assert name == "easyrag_stream_reset"
    assert data == {"candidate": "b", "partial": "Hel", "error": "OSError: cut"}
    assert run == listener.starts[0]["run"]


async def test_astream_events_tell_of_a_reset_and_of_each_token_once():
    """`on_custom_event` between the two answers; text in the events of one run only."""
    members = [said("Hel", OSError("cut")), said("Good ", "day")]
    model = RoutedChatModel(members, mid_stream="restart")
    events = [event async for event in model.astream_events("Hi", version="v2")]
    told = [
        event["data"]["chunk"].text if "chunk" in event["data"] else event["event"]
        for event in events
        if event["event"] in {"on_chat_model_stream", "on_custom_event"}
    ]
    assert [text for text in told if text] == ["Hel", "on_custom_event", "Good ", "day"]
    assert events[-1]["data"]["output"].text == "Good day"


@pytest.mark.filterwarnings("ignore:The method `BaseChatModel")
async def test_events_that_cannot_be_taken_back_are_not_begun_anew():
    """Two answers would be one: the third version of events has no word for a reset."""
    model = RoutedChatModel([said("Hel", OSError("cut")), said("Good")], mid_stream="restart")
    with pytest.raises(StreamInterruptedError) as error:
        _ = model.stream_events("Hi", version="v3").output
    assert error.value.partial == "Hel"
    with pytest.raises(StreamInterruptedError):
        await (await model.astream_events("Hi", version="v3")).output


def test_a_broken_stream_raises_with_its_text():
    """By default nothing is said twice, and nothing is lost."""
    with pytest.raises(StreamInterruptedError) as error:
        list(RoutedChatModel([said("Hel", OSError("cut")), said("x")]).stream("Hi"))
    assert error.value.partial == "Hel"


# Callbacks.


def test_candidates_run_inside_our_run(ask):
    """With the caller's tags and metadata; each token and each number is heard once."""
    listener = Listener()
    model = RoutedChatModel([dead("a"), said("x", "y", name="b")])
    config = {"callbacks": [listener], "tags": ["t"], "metadata": {"user": 7}, "run_name": "mine"}
    with get_usage_metadata_callback() as usage:
        ask(model, config)
    ours, *theirs = listener.starts
    assert ours["parent"] is None
    assert ours["name"] == "mine"
    assert [each["parent"] for each in theirs] == [ours["run"]] * 2
    assert [each["metadata"]["easyrag_candidate"] for each in theirs] == ["a", "b"]
    assert all(sorted(each["tags"]) == ["nostream", "t"] for each in theirs)
    assert all(each["metadata"]["user"] == 7 for each in theirs)
    assert "".join(listener.tokens) in {"", "xy"}
    [(run, error)] = listener.errors
    assert (run, str(error)) == (theirs[0]["run"], "refused")
    assert [message.usage_metadata for _, message in listener.ends] == [None, USAGE]
    assert usage.usage_metadata["b"]["total_tokens"] == 5


def test_our_run_is_a_child_of_the_chain():
    """And a tracer sees the whole tree, each run with its own usage."""
    collector = RunCollectorCallbackHandler()
    chain = RunnableLambda(lambda x: x) | RoutedChatModel([dead("a"), said("x", name="b")])
    chain.invoke("Hi", {"callbacks": [collector]})
    [root] = collector.traced_runs
    ours = root.child_runs[-1]
    assert ours.name == "RoutedChatModel"
    assert [run.run_type for run in ours.child_runs] == ["llm", "llm"]
    assert ["refused" in (run.error or "") for run in ours.child_runs] == [True, False]


def test_langsmith_is_told_one_tree(ask):
    """Switched on by its context, as by its variables: each try hangs under our run."""
    client = MagicMock(spec=Client, tracing_queue=None)
    with tracing_v2_enabled(client=client):
        ask(RoutedChatModel([dead("a"), said("x", name="b")]))
        wait_for_all_tracers()
    ours, *theirs = [call.kwargs for call in client.create_run.call_args_list]
    assert ours.get("parent_run_id") is None
    assert [each["parent_run_id"] for each in theirs] == [ours["id"]] * 2
    assert all(each["dotted_order"].startswith(ours["dotted_order"]) for each in theirs)


def test_tokens_are_heard_once_by_who_streams():
    """As many as without a router, in order."""
    alone, routed = Listener(), Listener()
    list(said("x", "y").stream("Hi", {"callbacks": [alone]}))
    list(RoutedChatModel([said("x", "y")]).stream("Hi", {"callbacks": [routed]}))
    assert routed.tokens == alone.tokens


def test_a_cached_answer_asks_nobody():
    """Whoever gave it; another binding is another question."""
    first, second = dead("a", Able), said("two", name="b", kind=Able)
    model = RoutedChatModel([first, second], cache=InMemoryCache())
    bound = model.bind_tools([weather])
    for _ in range(2):
        assert model.invoke("Hi").text == bound.invoke("Hi").text == "two"
    assert len(second.asked) == 2
    assert model._identifying_params == RoutedChatModel([first, second])._identifying_params


def test_it_is_named_as_the_router_in_traces():
    """The candidates' own runs carry the models' own names."""
    params = RoutedChatModel([said("x", name="a"), said("x", name="b")])._get_ls_params()
    assert params["ls_provider"] == "easyrag"
    assert params["ls_model_name"] == "a, b"


def test_it_stands_within_retries_and_fallbacks():
    """As any chat model does; one that retries asks the candidates anew."""
    failing = RoutedChatModel([dead("a")], breaker=CircuitBreaker(failure_threshold=9))
    with pytest.raises(ModelUnavailableError):
        failing.with_retry(stop_after_attempt=3, wait_exponential_jitter=False).invoke("Hi")
    assert failing.snapshot()["candidates"][0]["calls"] == 3
    other = RoutedChatModel([said("other", kind=Able)])
    safe = RoutedChatModel([dead("a", Able)]).with_fallbacks([other])
    assert safe.invoke("Hi").text == "other"
    assert safe.bind_tools([weather]).invoke("Hi").text == "other"


def test_one_answer_fails_in_a_batch_alone():
    """The others are whole, and the order is that of the questions."""
    model = RoutedChatModel([said("x")])
    answers = model.batch(["a", "b"], return_exceptions=True)
    assert [answer.text for answer in answers] == ["x", "x"]


# Tools and objects.


def test_each_candidate_binds_its_own_tools():
    """Those that have none are not asked; the caller's tools reach nobody in a foreign form."""
    first, deaf, second = dead("a", Able), said("deaf"), said("two", name="b", kind=Able)
    model = RoutedChatModel([first, deaf, second])
    assert model.bind_tools([weather], seed=1).invoke("Hi", seed=2).text == "two"
    assert [settings for _, settings in first.asked] == [{"bound": ["a weather"], "seed": 2}]
    assert [settings for _, settings in second.asked] == [{"bound": ["b weather"], "seed": 2}]
    assert deaf.asked == []
    with pytest.raises(InvalidParameterError, match="tools"):
        RoutedChatModel([deaf]).bind_tools([weather])


def test_bound_tools_survive_what_is_bound_with_them():
    """A config, a further setting, a chain; and a call without a run of its own."""
    second = said("two", name="b", kind=Able)
    bound = RoutedChatModel([dead("a", Able), second]).bind_tools([weather])
    bound.with_config(tags=["t"]).bind(seed=3).invoke("Hi")
    list((RunnableLambda(lambda x: x) | bound).stream("Hi"))
    bound.bound.generate([[HumanMessage("Hi")]], **bound.kwargs)
    expected = {"bound": ["b weather"]}
    assert [given for _, given in second.asked] == [expected | {"seed": 3}, expected, expected]


def test_a_candidate_that_does_not_stream_gives_one_chunk():
    """With its tool calls, its usage and its name."""
    whole = said("x", city('{"name": "Oslo"}'), name="a")
    whole.disable_streaming = True
    [chunk, *rest] = [c for c in RoutedChatModel([whole]).stream("Hi") if c.content or c.tool_calls]
    assert rest == []
    assert (chunk.text, chunk.tool_calls[0]["args"]) == ("x", {"name": "Oslo"})
    assert chunk.usage_metadata == USAGE
    assert chunk.response_metadata["easyrag"]["candidate"] == "a"


class City(BaseModel):
    """A city."""

    name: str


def city(arguments):
    call = {"name": "City", "args": arguments, "id": "1", "index": 0}
    return AIMessageChunk(content="", tool_call_chunks=[call])


class Former(Able):
    """Binds classes as tools."""

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        kwargs.pop("ls_structured_output_format", None)
        return self.bind(**kwargs)


WRONG = {
    "dead": ConnectionError("refused"),
    "text": "Oslo",
    "invalid": city('{"nmae": 1}'),
    "blank": "",
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_an_object_comes_from_the_next_candidate(wrong):
    """When the first is dead, or says what is no such object."""
    model = RoutedChatModel(
        [said(wrong, name="a", kind=Former), said(city('{"name": "Oslo"}'), name="b", kind=Former)]
    )

    structured = model.with_structured_output(City)
    with pytest.raises(InvalidParameterError, match="collection"):
        structured.invoke("Hi", wants="vision")
    assert structured.invoke("Hi") == City(name="Oslo")
    assert list(structured.stream("Hi"))[-1] == City(name="Oslo")
    assert model.snapshot()["candidates"][0]["calls"] == 2


def test_raw_answers_are_given_with_the_object():
    """And with the error where there is none; a dead candidate is passed over."""
    model = RoutedChatModel([dead("a", Former), said(city('{"name": "Oslo"}'), kind=Former)])
    answer = model.with_structured_output(City, include_raw=True).invoke("Hi")
    assert answer["parsed"] == City(name="Oslo")
    assert answer["raw"].tool_calls[0]["name"] == "City"
    wrong = RoutedChatModel([said(city('{"x": 1}'), kind=Former), said("never", kind=Former)])
    answer = wrong.with_structured_output(City, include_raw=True).invoke("Hi")
    assert answer["parsed"] is None
    assert answer["parsing_error"] is not None


async def test_objects_come_awaited_as_well():
    """By `ainvoke` and `astream`, whole or with what is raw."""
    model = RoutedChatModel([dead("a", Former), said(city('{"name": "Oslo"}'), kind=Former)])
    structured = model.with_structured_output(City)
    assert await structured.ainvoke("Hi") == City(name="Oslo")
    assert [each async for each in structured.astream("Hi")][-1] == City(name="Oslo")
    raw = model.with_structured_output(City, include_raw=True)
    assert [each async for each in raw.astream("Hi")][-1]["parsed"] == City(name="Oslo")


@pytest.mark.parametrize("asked", [None, 5, {"question": "Hi"}])
async def test_what_no_model_can_be_asked_is_no_failure_of_a_model(asked):
    """It is refused in all forms, and the circuit stays closed for all others."""
    model = RoutedChatModel([said("never", kind=Former)])
    for form in (model, model.with_structured_output(City)):
        for _ in range(3):
            with pytest.raises(ValueError, match=r"input=.* give a text|Invalid input type"):
                form.invoke(asked)
            with pytest.raises(ValueError, match=r"input=.* give a text|Invalid input type"):
                list(form.stream(asked))
            with pytest.raises(ValueError, match=r"input=.* give a text|Invalid input type"):
                await form.ainvoke(asked)
            with pytest.raises(ValueError, match=r"input=.* give a text|Invalid input type"):
                [each async for each in form.astream(asked)]
    assert model.snapshot()["candidates"][0]["calls"] == 0


@pytest.mark.parametrize("name", ["models", "candidates"])
def test_one_model_is_no_list_of_models(name):
    """It is refused by its own name, not by what it can be taken apart into."""
    for wrong in (said("Hi"), 7):
        with pytest.raises(InvalidParameterError, match=f"{type(wrong).__name__}.*give a list"):
            RoutedChatModel(**{name: wrong})
