"""Why each passage is there, and what fell out: for a notebook and for a terminal."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core import ChannelScore, Hit, InvalidParameterError, StageFacts, explain
from easyrag_core.explanation import FellOut, hit_of_facts
from easyrag_core.explanation._page import bar_widths
from tests.strategies import nasty_texts

HITS = [
    Hit(
        "a",
        0.0325,
        1,
        {"bm25": ChannelScore(1, 7.52), "vector": ChannelScore(2, 0.5)},
        reasons=("bm25: rank 1, score 7.520", "mmr: gain 0.7"),
    ),
    Hit("p", 0.0161, 2, {"vector": ChannelScore(1, 1.0)}, query="another wording"),
    Hit("plain", math.nan, 3, {"words": ChannelScore(4, None)}),
]
STAGES = [
    StageFacts("bm25", given=("a", "c", "d"), seconds=0.0008),
    StageFacts("vector", error="TimeoutError('late')"),
    StageFacts("fusion", ("a", "c", "d"), ("a", "c", "d")),
    StageFacts("mmr", ("a", "c", "d"), ("a", "d"), 0.01, notes={"a": "gain 0.7", "c": "as a"}),
    StageFacts("merge", ("a", "d"), ("a", "p"), notes={"p": "stands for 2 of 3 children"}),
]
TEXTS = {"a": "Ranks are fused.", "c": "排序由名次融合而成。"}


@dataclass
class Result:
    """As a pipeline gives it."""

    hits: list[Hit]
    stages: list[StageFacts]


def test_the_text_tells_places_scores_and_steps():
    """A line for each passage, one for each step, the stages, and what fell out where."""
    told = str(explain(HITS, texts=TEXTS, stages=STAGES, query="How are\nranks fused?"))
    assert told.splitlines() == [
        "3 passages for: How are ranks fused?",
        "#   score  bm25      vector   words  passage",
        "1  0.0325  1 (7.52)  2 (0.5)  -      Ranks are fused.",
        "                                     · mmr: gain 0.7",
        "2  0.0161  -         1 (1)    -      p",
        "                                     · found by: another wording",
        "                                     · merge: stands for 2 of 3 children",
        "3       -  -         -        4      plain",
        "",
        "stage   in  out     ms",
        "bm25          3   0.80",
        "vector        0   0.00  failed: TimeoutError('late')",
        "fusion   3    3   0.00",
        "mmr      3    2  10.00",
        "merge    2    2   0.00",
        "",
        "2 fell out:",
        "  排序由名次融合而成。",
        "    at mmr, bm25 rank 2: as a",
        "  d",
        "    at merge, bm25 rank 3",
    ]


def test_times_that_nobody_took_are_not_shown():
    """Stages without seconds, such as those read from a node's facts, have no column of zeros."""
    untimed = [replace(stage, seconds=0.0) for stage in STAGES]
    told = explain(HITS, stages=untimed)
    lines = str(told).splitlines()
    assert "stage   in  out" in lines
    assert "vector        0  failed: TimeoutError('late')" in lines
    assert "<th>ms" not in told._repr_html_().replace(' class="er-r"', "")
    assert "<th>ms" in explain(HITS, stages=STAGES)._repr_html_().replace(' class="er-r"', "")


def test_what_fell_out_can_be_read():
    """Id, the last stage that it did not come out of, its note, and its places in channels."""
    assert explain(HITS, stages=STAGES).fell_out == [
        FellOut("c", "mmr", "as a", {"bm25": 2}),
        FellOut("d", "merge", "", {"bm25": 3}),
    ]
    # What comes back in the end did not fall out.
    back = [StageFacts("mmr", ("a", "p"), ("p",)), StageFacts("top", ("p",), ("p", "a"))]
    assert explain(HITS, stages=back).fell_out == []


def test_a_result_brings_its_stages():
    """Hits with stages are explained as one thing; stages of one's own win."""
    assert str(explain(Result(HITS, STAGES))) == str(explain(HITS, stages=STAGES))
    assert explain(Result(HITS, STAGES), stages=[]).stages == ()


def test_hits_alone_are_enough():
    """No stages, no texts, no query; no hits either."""
    assert str(explain(HITS[1:2])).splitlines()[0] == "1 passage"
    assert str(explain([])) == "0 passages"
    assert "0 passages" in explain([])._repr_html_()
    assert repr(explain(HITS)) == str(explain(HITS))


def test_the_page_has_a_bar_for_each_score():
    """The best of a column is full, the others are in proportion; no score, no bar."""
    page = explain(HITS[:2])._repr_html_()
    widths = [part.split("%")[0] for part in page.split('style="width:')[1:]]
    assert widths == ["100", "100", "50", "50", "100"]  # score, bm25, vector of a; of p
    assert explain(HITS[2:])._repr_html_().count("er-bar") == 1 + page.count("er-bar") - 5


class Tags(HTMLParser):
    """Collects tags, and refuses attributes that could run something."""

    def __init__(self):
        super().__init__()
        self.tags = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"class", "style", "title"}


ALLOWED = {"div", "style", "table", "thead", "tbody", "tr", "th", "td", "b", "span"}


@given(nasty_texts(), nasty_texts(), nasty_texts())
def test_all_that_comes_from_outside_is_escaped(name, text, note):
    """Names, texts, ids, notes, errors and the query are text and nothing else."""
    hits = [Hit(text, 1.0, 1, {name: ChannelScore(1, 2.0)}, note, (note,))]
    stages = [StageFacts(name, (text, note), (text,), error=text, notes={note: name, text: note})]
    explained = explain(hits, texts={text: note}, stages=stages, query=note)
    page = explained._repr_html_()
    parser = Tags()
    parser.feed(page)
    assert parser.tags <= ALLOWED
    page.encode()
    assert not any(ord(char) < 32 for char in str(explained).replace("\n", ""))


HOSTILE = '</td><script>alert(1)</script>" onmouseover="x" <!-- \x1b[31m'


def test_markup_is_shown_not_run():
    """A passage that is a page of its own stays text."""
    hits = [Hit("a", 1.0, 1, {HOSTILE: ChannelScore(1, 2.0)}, reasons=(HOSTILE,))]
    page = explain(hits, texts={"a": HOSTILE}, query=HOSTILE)._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page


def test_long_results_are_cut_and_say_so():
    """The first fifty passages, the first twenty that fell out, and how many more there are."""
    hits = [Hit(f"h{n}", 1.0 - n / 100, n + 1) for n in range(70)]
    stages = [StageFacts("top", tuple(f"x{n}" for n in range(30)), ())]
    explained = explain(hits, texts={"h0": "word " * 5000}, stages=stages)
    for shown in (str(explained), explained._repr_html_()):
        assert "… and 20 more" in shown
        assert "… and 10 more" in shown
        assert "h49" in shown
        assert "h50" not in shown
        assert len(shown) < 30_000


@given(st.lists(st.floats() | st.none(), max_size=9))
def test_bars_stay_within_their_cell(scores):
    """Negative, infinite, missing: from 0 to 100 per cent, or no bar."""
    for score, width in zip(scores, bar_widths(scores), strict=True):
        if score is None or not math.isfinite(score):
            assert width is None
        else:
            assert 0 <= width <= 100


@pytest.mark.parametrize(
    ("arguments", "settings", "named"),
    [
        (("abc",), {}, "hits"),
        ((None,), {}, "hits"),
        ((["a"],), {}, r"hits\[0\]"),
        ((HITS,), {"stages": ["mmr"]}, r"stages\[0\]"),
        ((HITS,), {"texts": ["a"]}, "texts"),
    ],
)
def test_bad_input_is_named(arguments, settings, named):
    """Which argument, and what is expected."""
    with pytest.raises(InvalidParameterError, match=named):
        explain(*arguments, **settings)


def test_facts_of_a_framework_become_a_hit():
    """Channels, also those within a channel; MMR, parents and reasons in words."""
    facts = {
        "score": 0.5,
        "channels": {
            "hybrid": {
                "rank": 1,
                "score": 0.03,
                "channels": {"bm25": {"rank": 2, "score": 7}, "vector": {"rank": 1, "score": None}},
            }
        },
        "mmr": {"gain": 0.25, "relevance": 1.0},
        "children": [{"id": "c1"}, {"id": "c2"}],
        "reasons": ["rerank: score 3"],
    }
    hit = hit_of_facts("p", 2, facts)
    assert list(hit.channels) == ["hybrid", "hybrid › bm25", "hybrid › vector"]
    assert explain([hit]).notes(hit) == [
        "mmr: gain 0.250 over what stands above",
        "parent of 2 that were found: c1, c2",
        "rerank: score 3",
    ]
    assert math.isnan(hit_of_facts("a", 1, {}).score)


def test_a_gain_that_a_stage_has_told_is_not_told_again():
    """A pipeline's reasons come with the facts that its stage left."""
    hit = hit_of_facts("a", 1, {"mmr": {"gain": 0.5}, "reasons": ["MMRCompressor: gain 0.5"]})
    assert explain([hit]).notes(hit) == ["MMRCompressor: gain 0.5"]
