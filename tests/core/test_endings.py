"""Why a blank answer ended, wherever a provider tells it and in whatever word."""

from __future__ import annotations

import pickle
from enum import Enum
from types import SimpleNamespace

import pytest

from easyrag_core import Failure, ModelUnavailableError, classify_failure
from easyrag_core.routing._endings import BlankAnswerError, ending_of
from tests.core.routing_forms import FORMS, Model, routed


class FinishReason(Enum):
    """As Gemini's client has it."""

    SAFETY = 3


FILTERED = [
    "content_filter",
    "CONTENT_FILTER",
    "contentFiltered",
    "SAFETY",
    "IMAGE_SAFETY",
    "refusal",
    "PROHIBITED_CONTENT",
    "BLOCKLIST",
    "RECITATION",
    "guardrail_intervened",
    "sensitive",
    "ERROR_TOXIC",
    FinishReason.SAFETY,
]
CUT = ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length", "maxTokens"]
OTHERS = [
    "stop",
    "STOP",
    "end_turn",
    "tool_calls",
    "eos",
    "",
    None,
    1,
    "BLOCKED_REASON_UNSPECIFIED",
]


def places(reason):
    """Where LangChain, LlamaIndex and the raw clients keep it."""
    choice = SimpleNamespace(finish_reason=reason)
    return [
        SimpleNamespace(response_metadata={"finish_reason": reason}),
        SimpleNamespace(response_metadata={"stop_reason": reason}),
        SimpleNamespace(response_metadata={"stopReason": reason}),
        SimpleNamespace(response_metadata={"done_reason": reason}),
        SimpleNamespace(response_metadata={"prompt_feedback": {"block_reason": reason}}),
        SimpleNamespace(response_metadata={"incomplete_details": {"reason": reason}}),
        SimpleNamespace(raw=SimpleNamespace(choices=[choice])),
        SimpleNamespace(raw={"candidates": [{"finish_reason": reason}]}),
        SimpleNamespace(choices=[choice]),
        {"raw": SimpleNamespace(response_metadata={"finish_reason": reason})},
        choice,
    ]


@pytest.mark.parametrize(
    ("reasons", "expected"), [(FILTERED, "content_filter"), (CUT, "length"), (OTHERS, None)]
)
def test_every_place_and_word(reasons, expected):
    """Letter case, enumerations and the providers' many words for one thing."""
    for reason in reasons:
        for answer in places(reason):
            assert ending_of([answer]) == expected


def test_words_that_only_look_like_a_filter_are_none():
    """An answer that is down is not one that was filtered."""
    for told in ({"reason": "connection refused"}, {"reason": "blocked by a rate limiter"}):
        assert ending_of([{"raw": told}]) is None
    for word in ("unfiltered", "no_filter", "refused"):
        assert ending_of([{"finish_reason": word}]) is None
    assert ending_of([{"incomplete_details": {"reason": "content_filter"}}]) == "content_filter"


def test_any_chunk_may_tell():
    """The last of them often has the usage alone."""
    chunks = ["", {"choices": [{"finish_reason": "length"}]}, {"choices": []}]
    assert ending_of(chunks) == "length"


def test_an_answer_that_breaks_on_reading_tells_nothing():
    """Its property is not the model's failure; a circle ends."""

    class Odd:
        @property
        def finish_reason(self):
            raise RuntimeError

    circle = {}
    circle["raw"] = circle
    assert ending_of([Odd(), circle]) is None


@pytest.fixture(params=FORMS, ids=lambda form: form.name)
def form(request):
    made = request.param()
    yield made
    made.close()


class Answer(str):
    """A text with what a provider says of its end."""

    __slots__ = ("finish_reason",)

    def __new__(cls, reason, text=""):
        made = super().__new__(cls, text)
        made.finish_reason = reason
        return made


def call(form, router):
    return form.call(router, is_blank=lambda text: not text.strip())


def stream(form, router):
    return form.stream(router)[-1]


def models(asked, answer, other="two"):
    """Two models for one way to ask."""
    return [Model([each]) if asked is stream else Model(each) for each in (answer, other)]


both = pytest.mark.parametrize("asked", [call, stream])


def told(router, what):
    return router.snapshot()["candidates"][0][what]


@both
def test_what_a_filter_ended_is_an_answer(form, asked):
    """It is handed on with all that it has, and says nothing against the model."""
    first, second = models(asked, Answer("content_filter"))
    router = routed(first, second)
    for _ in range(3):
        answer = asked(form, router)
        assert (answer, answer.finish_reason) == ("", "content_filter")
    assert (told(router, "state"), told(router, "successes"), second.calls) == ("closed", 3, 0)


@both
def test_whether_a_refusal_moves_on_is_a_policy(form, asked):
    """As with the refusals that are errors."""
    router = routed(*models(asked, Answer("safety")), moving_kinds=["refusal"])
    assert [asked(form, router) for _ in range(3)] == ["two"] * 3
    assert (told(router, "state"), told(router, "failures")) == ("closed", {"refusal": 3})


@both
def test_what_its_length_ended_moves_on_and_is_not_counted(form, asked):
    """Too small a limit is one caller's own; the error says so."""
    router = routed(*models(asked, Answer("length", " ")))
    assert [asked(form, router) for _ in range(3)] == ["two"] * 3
    assert (told(router, "state"), told(router, "failures")) == ("closed", {"truncated": 3})
    router = routed(*models(asked, Answer("length"), Answer("length")))
    with pytest.raises(ModelUnavailableError, match="length limit"):
        asked(form, router)


@both
def test_the_users_word_on_a_blank_answer(form, asked):
    """It is asked once for each, is shown what came, and may call it what it likes."""
    seen = []

    def classify(error):
        seen.append(error)
        return Failure("refusal") if error.answers[0].finish_reason == "odd" else None

    router = routed(*models(asked, Answer("odd")), classify=classify)
    assert asked(form, router).finish_reason == "odd"
    assert len(seen) == 1
    router = routed(*models(asked, Answer("stop")), classify=classify)
    assert asked(form, router) == "two"
    assert told(router, "failures") == {"blank": 1}
    router = routed(*models(asked, Answer("odd")), classify=classify, empty="accept")
    assert asked(form, router).finish_reason == "odd"
    assert len(seen) == 2


def test_after_another_models_words_a_refusal_is_no_answer(form):
    """The caller is told that the stream broke."""
    first = Model(["half", ConnectionError("cut")])
    router = routed(first, Model([Answer("content_filter")]), mid_stream="continue")
    seen = []
    with pytest.raises(ModelUnavailableError):
        form.stream(router, seen)
    assert seen == ["half"]


@pytest.mark.parametrize(
    ("reason", "kind"), [("stop", "blank"), ("length", "truncated"), ("safety", "refusal")]
)
def test_the_class_of_a_blank_answer_passes_through_routers(reason, kind):
    """An outer router, and a worker's pickle, keep it."""
    blank = BlankAnswerError("a", [Answer(reason)])
    assert classify_failure(blank).kind == kind
    assert classify_failure(pickle.loads(pickle.dumps(blank))).kind == kind
    outer = ModelUnavailableError({"a": blank})
    outer.__cause__ = blank
    assert classify_failure(outer).kind == kind


def test_the_metrics_of_an_outer_router(form):
    """A nested router's blank answer is blank there, too."""
    outer = routed(routed(Model("")))

    def ask(candidate):
        return form.call(candidate.model, is_blank=lambda text: not text)

    with pytest.raises(ModelUnavailableError):
        outer.call(ask)
    assert told(outer, "failures") == {"blank": 1}
