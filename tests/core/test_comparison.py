"""Retrievers asked the same questions, sync and async; settings tuned on one part of them."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from easyrag_core import Bootstrap, Hit, InvalidParameterError, acompare, compare, tune

QUESTIONS = {"who?": ["a"], "where?": {"b": 2, "c": 1}}
ANSWERS = {"who?": ["a", "x"], "where?": ["x", "b"]}


def by_sync(*arguments, **settings):
    return compare(*arguments, **settings)


def by_async(retrievers, *arguments, **settings):
    return asyncio.run(acompare(retrievers, *arguments, **settings))


def by_async_functions(retrievers, *arguments, **settings):
    """Every retriever as a coroutine function."""

    def later(retriever):
        async def ask(question):
            await asyncio.sleep(0)
            return retriever(question)

        return ask

    if isinstance(retrievers, dict):
        retrievers = {
            name: later(one) if callable(one) else one for name, one in retrievers.items()
        }
    return asyncio.run(acompare(retrievers, *arguments, **settings))


ways = pytest.mark.parametrize("ask", [by_sync, by_async, by_async_functions])


@ways
def test_every_retriever_is_measured_on_every_question(ask):
    """Means, per-question values, and the difference from the first."""
    compared = ask(
        {"words": ANSWERS.get, "none": lambda _: [], "all": lambda _: ["a", "b", "c"]},
        QUESTIONS,
        metrics=["mrr", "recall@5"],
    )
    assert list(compared.evaluations) == ["words", "none", "all"]
    assert compared.evaluations["words"].per_query == {
        "mrr": {"who?": 1.0, "where?": 0.5},
        "recall@5": {"who?": 1.0, "where?": 0.5},
    }
    assert compared.differences["none"]["mrr"].mean == -0.75
    assert (compared.best("mrr"), compared.best("recall@5")) == ("words", "all")
    assert compared.errors == {}


@ways
def test_results_of_any_kind_are_read(ask):
    """Hits, scores, generators, and objects with a key; of several names the one that is asked."""
    retrievers = {
        "hits": lambda q: [Hit(id_, 0.0, 1) for id_ in ANSWERS[q]],
        "scores": lambda q: {id_: -place for place, id_ in enumerate(ANSWERS[q])},
        "generator": lambda q: (id_ for id_ in ANSWERS[q]),
        "result": lambda q: SimpleNamespace(hits=[Hit(id_, 0.0, 1) for id_ in ANSWERS[q]]),
    }
    told = ask(retrievers, QUESTIONS, metrics=["mrr"]).evaluations
    assert [one.means["mrr"] for one in told.values()] == [0.75] * 4
    rows = {"rows": lambda q: [{"chunk": f"{id_}#1", "doc": id_} for id_ in ANSWERS[q]]}
    for key in (lambda row: row["doc"], lambda row: [row["chunk"], row["doc"]]):
        compared = ask(rows, QUESTIONS, metrics=["mrr"], key=key)
        assert compared.evaluations["rows"].means == {"mrr": 0.75}


@ways
def test_one_that_fails_is_told_and_stops_nobody(ask, caplog):
    """What it did answer counts, the rest is 0; the table and the log say so."""

    def breaks(question):
        if question == "where?":
            raise RuntimeError("the server is down")
        return ANSWERS[question]

    with caplog.at_level(logging.WARNING, "easyrag_core"):
        compared = ask(
            {
                "broken": lambda _: 1 // 0,
                "breaks": breaks,
                "words": ANSWERS.get,
                "gives": lambda _: 7,
            },
            QUESTIONS,
            metrics=["mrr"],
        )
    assert list(compared.evaluations) == ["breaks", "words"]
    assert compared.evaluations["breaks"].per_query["mrr"] == {"who?": 1.0, "where?": 0.0}
    assert compared.differences["words"]["mrr"].mean == 0.25
    assert list(compared.errors["broken"]) == ["who?", "where?"]
    assert "ZeroDivisionError" in compared.errors["broken"]["who?"]
    assert compared.errors["breaks"] == {"where?": "RuntimeError('the server is down')"}
    assert "a retriever gives a list" in compared.errors["gives"]["who?"]
    assert "breaks failed on 1 question, such as 'where?': RuntimeError" in str(compared)
    assert "the server is down" in compared._repr_html_()
    assert len(caplog.records) == 3


@ways
def test_when_all_fail_the_table_says_why(ask):
    """No figures, and every error."""
    compared = ask({"broken": lambda _: 1 // 0}, QUESTIONS)
    assert compared.evaluations == {}
    assert str(compared).startswith("broken failed on 2 questions")


@ways
def test_strict_raises_the_retrievers_own_error(ask):
    """As it was raised."""
    with pytest.raises(ZeroDivisionError):
        ask({"broken": lambda _: 1 // 0}, QUESTIONS, strict=True)


@ways
def test_the_answers_text_can_be_what_is_relevant(ask):
    """Any wording, however spaced, wide or large; a passage with it is the right one."""
    passages = ["Nothing.", "It holds ２４ \n Cats.", "检索\n增强生成"]
    compared = ask(
        {"all": lambda _: passages},
        {"how many?": ["twenty-four cats", "24 cats"], "什么?": ["检索增强"], "no?": ["dogs"]},
        metrics=["mrr", "recall@5"],
        match="text",
        text=str,
    )
    assert compared.evaluations["all"].per_query["mrr"] == {
        "how many?": 1 / 2,
        "什么?": 1 / 3,
        "no?": 0,
    }
    assert compared.evaluations["all"].means["recall@5"] == pytest.approx(2 / 3)


def test_time_is_the_median_of_the_questions():
    """In milliseconds; what a generator does while it is read counts."""
    now = iter([0, 1, 10, 13, 20, 29])
    compared = compare(
        {"words": lambda _: []}, {q: ["a"] for q in "xyz"}, clock=lambda: float(next(now))
    )
    assert compared.milliseconds == {"words": 3000}
    assert "3,000.00" in str(compared)


async def test_functions_do_not_block_the_event_loop():
    """A slow function works in a thread: the loop goes on, and frees it here."""
    free = threading.Event()

    async def set_free():
        free.set()

    task = asyncio.create_task(set_free())
    compared = await acompare(
        {"slow": lambda _: ["a"] if free.wait(10) else []}, {"who?": ["a"]}, metrics=["mrr"]
    )
    await task
    assert compared.evaluations["slow"].means == {"mrr": 1}


async def test_cancellation_goes_through():
    """It is no failure of the retriever."""
    entered = asyncio.Event()

    async def hangs(_question):
        entered.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(acompare({"hangs": hangs}, {"who?": ["a"]}))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@ways
@pytest.mark.parametrize(
    ("arguments", "settings", "named"),
    [
        (({}, QUESTIONS), {}, "retrievers"),
        (([ANSWERS.get], QUESTIONS), {}, "retrievers"),
        (({"words": 7}, QUESTIONS), {}, r"retrievers\['words'\]"),
        (({"words": ANSWERS.get}, {}), {}, "questions"),
        (({"words": ANSWERS.get}, {"who?": "a"}), {}, r"questions\['who\?'\]"),
        (({"words": ANSWERS.get}, QUESTIONS), {"metrics": ["recall"]}, "metrics"),
        (({"words": ANSWERS.get}, QUESTIONS), {"match": "words"}, "match"),
        (({"words": ANSWERS.get}, QUESTIONS), {"match": "text"}, "text=None"),
        (({"words": ANSWERS.get}, QUESTIONS), {"groups": {}}, "groups"),
        (
            ({"words": ANSWERS.get}, {"who?": [" "]}),
            {"match": "text", "text": str},
            r"questions\['who\?'\]",
        ),
    ],
)
def test_misuse_is_refused_before_anybody_is_asked(ask, arguments, settings, named):
    """The argument is named; no retriever was called."""
    asked = []
    retrievers, questions = arguments
    if isinstance(retrievers, dict):
        retrievers = {
            name: (lambda question: asked.append(question) or []) if callable(one) else one
            for name, one in retrievers.items()
        }
    with pytest.raises(InvalidParameterError, match=named):
        ask(retrievers, questions, **settings)
    assert asked == []


def test_both_take_the_same_settings():
    """The async twin has every parameter of the sync one."""
    assert list(inspect.signature(compare).parameters) == list(
        inspect.signature(acompare).parameters
    )


def test_progress_is_shown_when_it_is_wanted(capsys):
    """A bar for each retriever, one for the combinations; nothing without asking."""
    pytest.importorskip("tqdm")
    compare({"words": ANSWERS.get}, QUESTIONS, show_progress=True)
    tune(depths, {"depth": [0, 1]}, RELEVANT, show_progress=True)
    told = capsys.readouterr().err
    assert "words: 100%" in told
    assert "Tuning: 100%" in told
    compare({"words": ANSWERS.get}, QUESTIONS)
    assert capsys.readouterr().err == ""


def test_coroutine_functions_are_for_the_async_twin():
    """The sync one says so, and leaves no coroutine behind that nobody awaits."""

    async def ask(_question):
        return []

    with pytest.raises(InvalidParameterError, match="acompare"):
        compare({"later": ask}, QUESTIONS)


def test_each_question_may_speak_of_chunks_or_of_documents():
    """Of the names that a result goes by, the one counts that this question knows."""
    compared = compare(
        {"one": lambda _: ["chunk 1 of page 1"]},
        {"by chunk": ["chunk 1"], "by page": ["page 1"]},
        metrics=["mrr"],
        key=lambda found: found.split(" of "),
    )
    assert compared.evaluations["one"].means == {"mrr": 1}


# Tuning

RELEVANT = {f"q{number}": ["a"] for number in range(40)}


def depths(settings, relevant=RELEVANT):
    """`a` stands so deep."""
    return {question: ["x"] * settings["depth"] + ["a"] for question in relevant}


def test_the_best_settings_are_found_and_judged_elsewhere():
    """Each combination once, the choice compared with the first on the other questions."""
    asked = []

    def search(settings):
        asked.append(dict(settings))
        return depths({"depth": settings["depth"] + settings["more"]})

    tuned = tune(search, {"depth": [2, 0, 1], "more": (1, 0)}, RELEVANT, metric="mrr")
    assert tuned.settings == {"depth": 0, "more": 0}
    assert asked == [{"depth": d, "more": m} for d, m in itertools.product((2, 0, 1), (1, 0))]
    assert [trial.settings for trial in tuned.trials] == asked
    assert [round(trial.score, 3) for trial in tuned.trials] == [0.25, 0.333, 0.5, 1, 0.333, 0.5]
    assert {name: one.means["mrr"] for name, one in tuned.held_out.evaluations.items()} == {
        "first": 0.25,
        "tuned": 1.0,
    }
    assert sorted(tuned.train_questions + tuned.held_out_questions) == sorted(RELEVANT)
    assert not set(tuned.train_questions) & set(tuned.held_out_questions)
    assert (len(tuned.train_questions), len(tuned.held_out_questions)) == (20, 20)


def test_nothing_is_tuned_on_the_held_out_part():
    """Settings that are perfect there and bad on the train part are not chosen."""
    parts = tune(depths, {"depth": [0]}, RELEVANT, metric="mrr")
    held_out = set(parts.held_out_questions)

    def search(settings):
        return {
            question: ["a"] if (question in held_out) == settings["cheats"] else ["x", "a"]
            for question in RELEVANT
        }

    tuned = tune(search, {"cheats": [True, False]}, RELEVANT, metric="mrr")
    assert tuned.held_out_questions == parts.held_out_questions
    assert tuned.settings == {"cheats": False}
    assert tuned.held_out.differences["tuned"]["mrr"].mean == -0.5


def test_when_the_first_are_the_best_there_is_nothing_to_compare():
    """Of equal settings the first are chosen."""
    tuned = tune(depths, {"depth": [0, 0, 1]}, RELEVANT, metric="mrr")
    assert tuned.settings == {"depth": 0}
    assert list(tuned.held_out.evaluations) == ["first"]


def test_settings_of_any_kind_are_tried():
    """Generators, lists of weights, arrays: nothing is asked of a value but to be handed on."""
    grid = {"weights": (np.array([1.0, weight]) for weight in (2, 1)), "depth": range(2, 0, -1)}
    tuned = tune(depths, grid, RELEVANT, metric="mrr")
    assert (tuned.settings["weights"].tolist(), tuned.settings["depth"]) == ([1, 2], 1)
    assert str(tuned).count("0.5000 *") == 1


def test_the_split_is_seeded_and_keeps_groups_whole():
    """The same seed parts in the same way; questions of one page are on one side."""
    groups = {question: int(question[1:]) // 2 for question in RELEVANT}
    settings = {"metric": "mrr", "groups": groups}
    one, two = (tune(depths, {"depth": [0]}, RELEVANT, **settings) for _ in range(2))
    other = tune(depths, {"depth": [0]}, RELEVANT, seed=1, **settings)
    assert one.train_questions == two.train_questions != other.train_questions
    sides = [{groups[q] for q in part} for part in (one.train_questions, one.held_out_questions)]
    assert not sides[0] & sides[1]


def test_a_combination_that_fails_is_left_out(caplog):
    """Its error stands in the table; if all fail, the first error is raised."""

    def search(settings):
        if settings["depth"] != 1:
            raise ValueError(f"no depth {settings['depth']}")
        return depths(settings)

    with caplog.at_level(logging.WARNING, "easyrag_core"):
        tuned = tune(search, {"depth": [0, 1]}, RELEVANT, metric="mrr")
    assert tuned.settings == {"depth": 1}
    assert list(tuned.held_out.evaluations) == ["tuned"]
    assert tuned.trials[0] == ({"depth": 0}, None, "ValueError('no depth 0')")
    assert "no depth 0" in str(tuned)
    with pytest.raises(ValueError, match="no depth 0"):
        tune(search, {"depth": [0, 2]}, RELEVANT)


def test_the_tables_say_what_was_chosen_and_what_it_is_worth():
    """The full table, the choice, the figures of the held-out part."""
    tuned = tune(depths, {"depth": [1, 0]}, RELEVANT, metric="mrr", bootstrap=Bootstrap(samples=9))
    text = str(tuned)
    assert "mrr on 20 questions to choose by" in text
    assert "0      1.0000 *" in text
    assert "Chosen: depth=0. On 20 other questions:" in text
    assert "+0.500 [+0.500, +0.500] *" in text
    assert "Chosen: depth=0." in tuned._repr_html_()
    escaped = tune(lambda _: depths({"depth": 0}), {"<b>": ["<i>"]}, RELEVANT, metric="mrr")
    assert "<i>" not in escaped._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "settings", "named"),
    [
        (({}, RELEVANT), {}, "grid"),
        (([1], RELEVANT), {}, "grid"),
        (({"depth": []}, RELEVANT), {}, r"grid\['depth'\]"),
        (({"depth": "12"}, RELEVANT), {}, r"grid\['depth'\]"),
        (({"depth": 1}, RELEVANT), {}, r"grid\['depth'\]"),
        (({"depth": {1, 2}}, RELEVANT), {}, r"grid\['depth'\]"),
        (({"depth": [1]}, {}), {}, "questions"),
        (({"depth": [1]}, dict(list(RELEVANT.items())[:19])), {}, "give at least 20 questions"),
        (({"depth": [1]}, RELEVANT), {"held_out": 0.2}, "give at least 50 questions"),
        (({"depth": [1]}, RELEVANT), {"held_out": 0.9}, "give at least 100 questions"),
        (({"depth": [1]}, RELEVANT), {"held_out": 1}, "held_out"),
        (({"depth": [1]}, RELEVANT), {"groups": dict.fromkeys(RELEVANT, 1)}, "groups of questions"),
        (({"depth": [1]}, RELEVANT), {"metric": "best"}, "metric='best'"),
        (({"depth": [1]}, RELEVANT), {"seed": -1}, "seed"),
    ],
)
def test_tuning_refuses_what_cannot_work(arguments, settings, named):
    """Before anything is searched."""
    with pytest.raises(InvalidParameterError, match=named):
        tune(lambda _: pytest.fail("searched"), *arguments, **settings)
