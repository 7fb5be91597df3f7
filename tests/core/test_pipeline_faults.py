"""Channels that fail in every way, one after the other and all at once: the rest is right."""

from __future__ import annotations

import asyncio
import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core import (
    AllChannelsFailedError,
    AutoMerge,
    Channel,
    Dedupe,
    EvidenceGate,
    Hit,
    RetrievalPipeline,
    reciprocal_rank_fusion,
)

NAMES = ("one", "two", "three", "four")
PATIENT = 30.0
SHORT = 0.05


def ranking(seed):
    """Ten of twenty ids with falling scores."""
    keys = random.Random(seed).sample([f"id{n}" for n in range(20)], 10)
    return [Hit(key, 10.0 - rank, rank) for rank, key in enumerate(keys, start=1)]


SOUND = {name: ranking(name) for name in NAMES}


class Bench:
    """Channels in both forms, of which any may hang until they are let go."""

    def __init__(self, form):
        self.form = form
        self.loose = threading.Event()
        self.threads = []

    def channel(self, name, answer, timeout=PATIENT):
        def search(query, k):
            self.threads.append(threading.current_thread())
            if answer is HANG:
                self.loose.wait(PATIENT)
                return []
            return raised_or(answer)

        async def asearch(query, k):
            if answer is HANG:
                await asyncio.Event().wait()
            return raised_or(answer)

        timeout = SHORT if answer is HANG else timeout
        twin = asearch if self.form == "async" else None
        return Channel(name, search, timeout=timeout, asearch=twin)

    def run(self, pipeline):
        if self.form == "sync":
            return pipeline.run("q")

        async def alone():
            result = await pipeline.arun("q")
            assert asyncio.all_tasks() == {asyncio.current_task()}  # no task is left behind
            return result

        return asyncio.run(alone())

    def joined(self):
        """Let all go, and wait for every thread."""
        self.loose.set()
        for thread in self.threads:
            if thread is not threading.main_thread():
                thread.join(PATIENT)
                assert not thread.is_alive()


HANG = object()


def raised_or(answer):
    if isinstance(answer, BaseException):
        raise answer
    return answer


# The last is sync searches on the async driver: they run in threads of their own.
@pytest.fixture(params=["sync", "async", "threads"])
def bench(request):
    made = Bench(request.param)
    yield made
    made.joined()


FAILURES = {
    "raises": RuntimeError("down"),
    "hangs": HANG,
    "a timeout of its own": TimeoutError(),
    "gives None": None,
    "gives a number": 7,
    "gives one hit": Hit("a", 1.0, 1),
    "gives a text": "abc",
    "gives other things": [("id1", 1.0)],
    "gives a mapping": {"id1": 1.0},
    "gives ids that are none": [Hit("a", 1.0, 1), Hit(["b"], 0.5, 2)],
}


@pytest.mark.parametrize("failing", NAMES)
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_one_failing_channel_is_left_out(bench, failing, failure):
    """The others give what they would give alone; facts and errors tell the reason."""
    answers = {**SOUND, failing: failure}
    pipeline = RetrievalPipeline([bench.channel(name, a) for name, a in answers.items()], k=20)
    result = bench.run(pipeline)
    rest = [[hit.id for hit in hits] for name, hits in SOUND.items() if name != failing]
    expected = reciprocal_rank_fusion(rest, k=20)
    assert [hit.id for hit in result.hits] == [item.key for item in expected]
    assert [hit.score for hit in result.hits] == pytest.approx([item.score for item in expected])
    assert all(failing not in hit.channels for hit in result.hits)
    assert list(result.errors) == [failing]
    facts = {stage.name: stage for stage in result.stages}
    assert facts[failing].error == repr(result.errors[failing])
    assert facts[failing].given == ()
    assert [facts[name].error for name in NAMES if name != failing] == [None] * 3
    if failure is HANG:
        assert "gave no answer within" in facts[failing].error
        assert facts[failing].seconds >= SHORT * 0.9


@pytest.mark.parametrize("failing", NAMES)
def test_a_channel_in_its_own_time(bench, failing):
    """Each has a timeout of its own: one that is late does not shorten the others' time."""
    channels = [bench.channel(n, HANG if n == failing else SOUND[n]) for n in NAMES]
    assert [channel.timeout for channel in channels].count(PATIENT) == 3
    assert list(bench.run(RetrievalPipeline(channels)).errors) == [failing]


def test_a_patient_channel_outlives_an_impatient_one():
    """The first is given up while the second is still at work, and the second's answer counts."""
    gone, loose = threading.Event(), threading.Event()

    def impatient(query, k):
        loose.wait(PATIENT)
        return SOUND["one"]

    def patient(query, k):
        # It goes on only after the other one's time is over.
        gone.wait(SHORT * 4)
        return SOUND["two"]

    channels = [
        Channel("one", impatient, timeout=SHORT),
        Channel("two", patient, timeout=PATIENT),
    ]
    result = RetrievalPipeline(channels).run("q")
    loose.set()
    assert list(result.errors) == ["one"]
    assert [hit.id for hit in result.hits] == [hit.id for hit in SOUND["two"]]


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_all_channels_at_once(bench, failure):
    """No channel answers: one error with every channel's own, and events that tell it."""
    heard = []
    channels = [bench.channel(name, failure) for name in NAMES]
    with pytest.raises(AllChannelsFailedError) as failed:
        bench.run(RetrievalPipeline(channels, on_event=heard.append))
    assert list(failed.value.errors) == list(NAMES)
    assert [event.name for event in heard] == ["easyrag.channel"] * 4 + ["easyrag.retrieval"]
    assert all("error.type" in event.attributes for event in heard)


@pytest.mark.parametrize("failing", NAMES)
def test_strict_raises_the_channels_own_error(bench, failing):
    """The very object."""
    failure = RuntimeError("down")
    answers = {**SOUND, failing: failure}
    channels = [bench.channel(name, answer) for name, answer in answers.items()]
    with pytest.raises(RuntimeError) as raised:
        bench.run(RetrievalPipeline(channels, strict=True))
    assert raised.value is failure


# Answers that are bad data


def with_no_scores(hits):
    return [Hit(hit.id, None, hit.rank) for hit in hits]


def with_nan_scores(hits):
    return [Hit(hit.id, float("nan"), hit.rank) for hit in hits]


def with_one_score_missing(hits):
    return [Hit(hits[0].id, None, 1), *hits[1:]]


ODD = {
    "twice": lambda hits: [hit for hit in hits for _ in range(2)],
    "again at the end": lambda hits: [*hits, *hits],
    "no scores": with_no_scores,
    "NaN scores": with_nan_scores,
    "one score missing": with_one_score_missing,
    "scores in words": lambda hits: [Hit(h.id, "high", h.rank) for h in hits],
    "infinite scores": lambda hits: [Hit(h.id, float("inf"), h.rank) for h in hits],
    "a generator": iter,
    "a tuple": tuple,
}


@pytest.mark.parametrize("fusion", ["rrf", "score"])
@pytest.mark.parametrize("odd", NAMES)
@pytest.mark.parametrize("bend", ODD.values(), ids=ODD)
def test_odd_answers_do_no_harm(bench, odd, bend, fusion):
    """All ids come once, with finite scores; by rank the result is that of the sound answers."""
    answers = {name: bend(hits) if name == odd else hits for name, hits in SOUND.items()}
    channels = [bench.channel(name, answer) for name, answer in answers.items()]
    result = bench.run(RetrievalPipeline(channels, fusion=fusion, k=40))
    sound = reciprocal_rank_fusion([[hit.id for hit in hits] for hits in SOUND.values()])
    assert {hit.id for hit in result.hits} == {item.key for item in sound}
    assert len(result.hits) == len(sound)
    assert all(abs(hit.score) < 1e9 for hit in result.hits)
    assert result.errors == {}
    if fusion == "rrf" and bend is not ODD["twice"]:
        expected = [(item.key, item.score) for item in sound]
        assert [(hit.id, hit.score) for hit in result.hits] == expected


@pytest.mark.parametrize("odd", NAMES)
def test_an_unsorted_answer_is_sorted_by_score_fusion(bench, odd):
    """By score the order of an answer does not count."""
    shuffled = {**SOUND, odd: random.Random(7).sample(SOUND[odd], 10)}
    found = [
        bench.run(
            RetrievalPipeline([bench.channel(n, a) for n, a in answers.items()], fusion="score")
        )
        for answers in (SOUND, shuffled)
    ]
    assert found[0].hits == found[1].hits


@pytest.mark.parametrize("odd", NAMES)
def test_thousands_of_hits_are_cut_to_the_budget(bench, odd):
    """A channel that gives more than was asked has no more votes than the others."""
    many = [Hit(f"many{n}", 1.0, n) for n in range(5000)]
    answers = {**SOUND, odd: many}
    result = bench.run(RetrievalPipeline([bench.channel(n, a) for n, a in answers.items()]))
    facts = {stage.name: stage for stage in result.stages}
    assert facts[odd].given == tuple(f"many{n}" for n in range(20))
    assert len(result.hits) == 10


def test_what_comes_again_takes_no_place_in_the_budget(bench):
    """Twenty copies of one hit before the others do not crowd them out."""
    crowd = [Hit("a", 1.0, 1)] * 200 + SOUND["one"]
    result = bench.run(RetrievalPipeline([bench.channel("c", crowd)], k=11))
    assert [hit.id for hit in result.hits] == ["a", *(hit.id for hit in SOUND["one"])]


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.sampled_from("abcdef"),
                st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)),
            ),
            max_size=8,
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["rrf", "score"]),
)
def test_any_scores_give_an_answer(answers, fusion):
    """Every id that was found comes once, with a finite score, best first."""
    channels = [
        Channel(
            f"c{n}", lambda query, k, found=found: [Hit(i, s, 1) for i, s in found], timeout=None
        )
        for n, found in enumerate(answers)
    ]
    stages = [Dedupe(), EvidenceGate(-1e9)]
    result = RetrievalPipeline(channels, stages, fusion=fusion, strict=True).run("q")
    assert sorted(hit.id for hit in result.hits) == sorted(
        {i for found in answers for i, _ in found}
    )
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)


# Interruptions


class Interruption(BaseException):
    """Asks for more than to leave a channel out."""


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), Interruption()], ids=repr)
@pytest.mark.parametrize("place", ["channel", "postprocessor"])
def test_an_interruption_is_raised(bench, interruption, place):
    """From a channel or a postprocessor it is the caller's, and no other answer is waited for."""

    class Stage:
        name = "stage"

        def process(self, given, context):
            raise interruption

    stages = [Stage()] if place == "postprocessor" else []
    answer = interruption if place == "channel" else SOUND["one"]
    channels = [bench.channel("one", answer), bench.channel("two", SOUND["two"])]
    with pytest.raises(type(interruption)):
        bench.run(RetrievalPipeline(channels, stages))


async def test_an_answer_after_the_deadline_is_no_answer():
    """Also of a channel that catches its cancellation and answers all the same."""

    async def stubborn(query, k):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return [Hit("late", 9.0, 1)]

    async def sound(query, k):
        return SOUND["one"]

    channels = [
        Channel("late", lambda query, k: [], asearch=stubborn, timeout=SHORT),
        Channel("one", lambda query, k: [], asearch=sound),
    ]
    result = await RetrievalPipeline(channels).arun("q")
    assert [hit.id for hit in result.hits] == [hit.id for hit in SOUND["one"]]
    assert "gave no answer within" in str(result.errors["late"])


@pytest.mark.parametrize("place", ["channel", "postprocessor"])
async def test_a_cancellation_in_the_middle(place):
    """It reaches what is at work, goes on to the caller, and leaves no task."""
    begun, ended = asyncio.Event(), []

    async def forever(*given):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    class Stage:
        name = "stage"
        aprocess = staticmethod(forever)

        def process(self, given, context):
            raise NotImplementedError

    async def sound(query, k):
        return SOUND["one"]

    search = forever if place == "channel" else sound
    channels = [Channel("c", len, asearch=search), Channel("d", len, asearch=sound)]
    task = asyncio.create_task(RetrievalPipeline(channels, [Stage()]).arun("q"))
    await asyncio.wait_for(begun.wait(), PATIENT)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert ended == [1]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_cancelled_search_in_a_thread_ends_by_itself():
    """Its answer is thrown away; the loop is not held, neither now nor when it closes."""
    begun, loose, threads = asyncio.Event(), threading.Event(), []
    loop = asyncio.get_running_loop()

    def search(query, k):
        threads.append(threading.current_thread())
        loop.call_soon_threadsafe(begun.set)
        loose.wait(PATIENT)
        return SOUND["one"]

    task = asyncio.create_task(RetrievalPipeline([Channel("c", search)]).arun("q"))
    await asyncio.wait_for(begun.wait(), PATIENT)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert threads[0].daemon
    loose.set()
    await asyncio.to_thread(threads[0].join, PATIENT)
    assert not threads[0].is_alive()


def test_a_late_postprocessor_is_skipped(bench):
    """A stage with a timeout has it: the order from before stays."""

    class Stage:
        name = "stage"
        timeout = SHORT

        def process(self, given, context):
            bench.threads.append(threading.current_thread())
            bench.loose.wait(PATIENT)
            return []

    result = bench.run(RetrievalPipeline([bench.channel("one", SOUND["one"])], [Stage()]))
    assert [hit.id for hit in result.hits] == [hit.id for hit in SOUND["one"]]
    assert isinstance(result.errors["stage"], TimeoutError)


def test_runs_at_the_same_time_do_not_mix():
    """One instance, many threads: each call gets its own answer."""

    def search(query, k):
        return [Hit(query, 1.0, 1)]

    pipeline = RetrievalPipeline([Channel("a", search), Channel("b", search)], [Dedupe()])
    found = {}

    def ask(number):
        found[number] = [hit.id for hit in pipeline.run(str(number)).hits]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENT)
    assert found == {number: [str(number)] for number in range(20)}


def test_a_stage_that_raises_in_the_middle_of_a_merge(bench):
    """A store that fails at the second level costs the stage; the leaves stay as they were."""

    class Failing:
        def parents_of(self, ids):
            return dict.fromkeys(ids, "p")

        def get_many(self, ids):
            raise ConnectionError("gone")

    pipeline = RetrievalPipeline([bench.channel("one", SOUND["one"])], [AutoMerge(Failing())])
    result = bench.run(pipeline)
    assert [hit.id for hit in result.hits] == [hit.id for hit in SOUND["one"]]
    assert isinstance(result.errors["auto merge"], ConnectionError)


def test_a_run_does_not_wait_for_a_late_channel(bench):
    """The answer comes when the time of the late one is over: its thread is still at work then."""
    channels = [bench.channel("one", HANG), bench.channel("two", SOUND["two"])]
    assert list(bench.run(RetrievalPipeline(channels)).errors) == ["one"]
    at_work = [thread.is_alive() for thread in bench.threads]
    assert any(at_work) == (bench.form != "async")
