"""Term maps: one pass, longest first, whole words, never twice."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from easyrag_core.errors import InvalidParameterError
from easyrag_core.query import Term, TermMap, TermMatch

CASES = [
    ({"平安": "平安保司"}, "平安保司的平安险", "平安保司的平安保司险"),
    (
        {"k8s": "Kubernetes"},
        "K8S、ｋ８ｓ 和k8s集群, not k8s2 or xk8s",
        "Kubernetes、Kubernetes 和Kubernetes集群, not k8s2 or xk8s",
    ),
    (
        {"AI": "artificial intelligence"},
        "用AI做, said AI, mail",
        "用artificial intelligence做, said artificial intelligence, mail",
    ),
    ({"社保": "社会保险", "社保卡": "社会保障卡"}, "社保卡和社保", "社会保障卡和社会保险"),
    ({"C++": "cpp"}, "C++, C++11 and c++", "cpp, cpp11 and cpp"),
    ({"new york": "NYC"}, "New York, new yorker", "NYC, new yorker"),
    ({"a": "b"}, "a aa a", "b aa b"),
    ({"公司": ""}, "我们公司的制度", "我们的制度"),
    ({}, "unchanged", "unchanged"),
    ({"x": "y"}, "", ""),
    ({"A": "B", "B": "C"}, "A", "B"),
    ({"İ": "i"}, "İİ İ", "İİ i"),
]


@pytest.mark.parametrize(("terms", "text", "mapped"), CASES)
def test_terms_are_mapped(terms, text, mapped):
    """Case and width do not matter, Latin words have borders, Chinese has none."""
    assert TermMap(terms).apply(text) == mapped


def test_priority_goes_before_length():
    """Among equals the longest, among equal terms the highest, then the first."""
    terms = [Term("社保卡", "long"), Term("社保", "short", priority=1)]
    assert TermMap(terms).apply("社保卡") == "short卡"
    assert TermMap([Term("a", "1"), Term("A", "2", 5), Term("a", "3", 5)]).apply("a") == "2"


def test_matches_tell_their_places():
    """In code points of the text as given."""
    assert TermMap({"ai": "AI"}).matches("x，ai") == []
    assert TermMap({"ml": "machine learning"}).matches("😀 ML!") == [
        TermMatch(2, 4, "machine learning")
    ]


def test_a_term_that_is_a_replacement_is_told(caplog):
    """It stays as it is, since nobody can tell whether it was replaced before."""
    assert TermMap({"a": "b", "b": "c"}).apply("a b") == "b b"
    assert "both a term and a replacement" in caplog.text


@given(
    st.dictionaries(
        st.text("平安保险", min_size=1, max_size=3), st.text("甲乙丙平", max_size=3), max_size=5
    ),
    st.text("平安保险甲乙 ", max_size=12),
)
@example({"平": "平平"}, "平平平")
def test_replacements_are_never_replaced_again(terms, text):
    """Every character of the result is of the text, or of one replacement; places agree."""
    mapping = TermMap(terms)
    found = mapping.matches(text)
    rebuilt, last = "", 0
    for match in found:
        assert match.start >= last
        assert match.replacement == terms[text[match.start : match.end]]
        rebuilt += text[last : match.start] + match.replacement
        last = match.end
    assert mapping.apply(text) == rebuilt + text[last:]


@given(
    st.dictionaries(
        st.text("甲乙a ", min_size=1, max_size=3).filter(str.strip),
        st.text("甲乙a ", max_size=4),
        max_size=3,
    ),
    st.text("甲乙a ", max_size=8),
)
def test_any_map_applied_twice_is_applied_once(terms, text):
    """Chains, circles, terms inside replacements and borders that meet."""
    mapping = TermMap(terms)
    once = mapping.apply(text)
    assert mapping.apply(once) == once


@given(
    st.lists(st.sampled_from(["平安", "社保", "险种", "k8s", "ai", "ml ops"]), unique=True),
    st.lists(
        st.sampled_from(["平安", "社保", "险种", "k8s", "ai", "ml ops", "保司", " ", "x", "，"])
    ),
)
def test_applying_twice_changes_nothing(terms, pieces):
    """Also where the replacement holds the term."""
    for form in ("{}保司", "新{}", "<{}>", "完全不同"):
        mapping = TermMap({term: form.format(term) for term in terms})
        once = mapping.apply("".join(pieces))
        assert mapping.apply(once) == once


def test_a_replacement_that_completes_another_term_is_left_alone():
    """Mapping once and mapping twice give the same, whatever meets at a border."""
    mapping = TermMap({"丙丙": "甲", "乙甲": "丁"})
    assert mapping.apply("丙丙") == "甲"
    assert mapping.apply("乙丙丙") == "乙丙丙"
    assert mapping.apply("乙丙丙和丙丙") == "乙丙丙和甲"


def test_many_terms_and_long_texts_are_quick():
    """Ten thousand terms cost no more per character than ten."""
    few = TermMap({f"术语{at}号": "x" for at in range(10)})
    many = TermMap({f"术语{at}号": "x" for at in range(10_000)})
    text = "这里有术语17号和术语9999号以及别的。" * 500
    rounds = {few: [], many: []}
    for _ in range(3):
        for mapping, seconds in rounds.items():
            started = time.process_time()
            mapping.apply(text)
            seconds.append(time.process_time() - started)
    assert min(rounds[many]) < 5 * min(rounds[few]) + 0.01


@pytest.mark.parametrize(
    "terms",
    [
        "ab",
        {"": "x"},
        {" ": "x"},
        {"a": 3},
        {3: "a"},
        [("a", "b")],
        [Term("a", "b", float("nan"))],
        None,
    ],
)
def test_bad_terms_are_refused(terms):
    """At construction, with what is allowed."""
    with pytest.raises(InvalidParameterError):
        TermMap(terms)


def test_a_text_is_needed():
    """None is no text."""
    with pytest.raises(InvalidParameterError, match="text"):
        TermMap({"a": "b"}).apply(None)
    assert repr(TermMap({"a": "b"})) == "<TermMap of 1 terms>"
