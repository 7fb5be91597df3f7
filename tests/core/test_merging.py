"""Children into parents: real ratios, upward until stable, careful with what is missing."""

from __future__ import annotations

import logging
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.errors import InvalidParameterError
from easyrag_core.ranking.fusion import FusedItem
from easyrag_core.ranking.merging import MergedItem, auto_merge
from easyrag_core.types import Hit


def tree(**families):
    """Turn parent to children into the two look-ups that `auto_merge` takes."""
    parents = {child: parent for parent, children in families.items() for child in children}
    return parents, families


def leaves(parent, count):
    return [f"{parent}{n}" for n in range(count)]


def ids(items):
    return [item.id for item in items]


@pytest.mark.parametrize(
    ("children", "hit", "merged", "ratio"),
    [(2, 2, True, 1.0), (40, 3, False, 0.075), (4, 2, True, 0.5), (5, 2, False, 0.4)],
    ids=["systems-2-of-2", "systems-3-of-40", "half", "below half"],
)
def test_ratio_is_by_the_real_number_of_children(children, hit, merged, ratio):
    """The ratio counts the parent's own children, not a constant."""
    parent_of, children_of = tree(p=leaves("p", children))
    items = auto_merge([(leaf, 1.0) for leaf in leaves("p", hit)], parent_of, children_of)
    assert (ids(items) == ["p"]) is merged
    if merged:
        assert items[0].ratio == ratio
    else:
        assert ids(items) == leaves("p", hit)
        assert all(item.ratio is None for item in items)


def test_parent_stands_once_at_the_best_place():
    """Several children of one parent give it once, at the best place, with all children."""
    parent_of, children_of = tree(p=["a", "b", "c"], q=["x", "y", "z"])
    hits = [("x", 0.9), ("b", 0.8), ("free", 0.7), ("a", 0.6)]
    assert auto_merge(hits, parent_of, children_of) == [
        MergedItem("x", 0.9, sources=("x",)),
        MergedItem("p", 0.8, children=("b", "a"), sources=("b", "a"), ratio=2 / 3),
        MergedItem("free", 0.7, sources=("free",)),
    ]


@pytest.mark.parametrize(("score", "value"), [("best", 0.6), ("mean", 0.4), ("sum", 0.8)])
def test_scores(score, value):
    """The parent's score is the best child's, the mean or the sum; `None` is left out."""
    parent_of, children_of = tree(p=["a", "b", "c", "d"])
    hits = [("a", 0.2), ("b", None), ("c", 0.6), ("d", math.nan)]
    items = auto_merge(hits, parent_of, children_of, score=score)
    assert items[0].score == pytest.approx(value)
    nameless = auto_merge([("a", None), ("b", None)], parent_of, children_of, score=score)
    assert nameless[0].score is None


def test_upward_until_stable():
    """Merged parents merge again; the batches ask once per level."""
    asked = []
    parent_of, children_of = tree(g=["p", "q"], p=["a", "b"], q=["c", "d"])

    def parents(batch):
        asked.append(("parents", sorted(batch)))
        return parent_of

    def children(batch):
        asked.append(("children", sorted(batch)))
        return children_of

    items = auto_merge([("a", 0.3), ("c", 0.9), ("b", 0.5), ("d", 0.1)], parents, children)
    assert items == [
        MergedItem("g", 0.9, children=("p", "q"), sources=("a", "b", "c", "d"), ratio=1.0)
    ]
    assert asked == [
        ("parents", ["a", "b", "c", "d"]),
        ("children", ["p", "q"]),
        ("parents", ["p", "q"]),
        ("children", ["g"]),
        ("parents", ["g"]),
    ]


def test_levels_that_are_hit_together():
    """A leaf two levels down and its uncle: the leaf's parent merges first, then both."""
    parent_of, children_of = tree(g=["p", "q"], p=["a"])
    items = auto_merge([("q", 0.9), ("a", 0.8)], parent_of, children_of, merge_threshold=0.6)
    assert items == [MergedItem("g", 0.9, children=("q", "p"), sources=("q", "a"), ratio=1.0)]


def test_parent_that_was_hit_itself():
    """A parent among the hits takes its children in, and its own score counts."""
    parent_of, children_of = tree(p=["a", "b"])
    items = auto_merge([("a", 0.5), ("p", 0.9), ("b", 0.7)], parent_of, children_of)
    assert items == [MergedItem("p", 0.9, children=("a", "b"), sources=("p", "a", "b"), ratio=1.0)]
    apart = auto_merge([("p", 0.9), ("a", 0.5)], *tree(p=["a", "b", "c"]))
    assert ids(apart) == ["p", "a"]


def test_repeated_hits_count_once():
    """The same child twice is one child, with its better score at its first place."""
    parent_of, children_of = tree(p=["a", "b", "c", "d"])
    items = auto_merge([("a", 0.5), ("a", 0.7)], parent_of, children_of)
    assert items == [MergedItem("a", 0.7, sources=("a",))]


@pytest.mark.parametrize(
    "options",
    [{"exists": {"q"}}, {"exists": lambda _: ["q"]}],
    ids=["llamaindex-50 set", "llamaindex-50 function"],
)
def test_missing_parent_leaves_its_children(caplog, options):
    """A parent whose content is gone is not put in: the leaves stay, with a warning."""
    parent_of, children_of = tree(p=["a", "b"], q=["c"])
    with caplog.at_level(logging.WARNING):
        items = auto_merge([("a", 2), ("c", 1), ("b", 0)], parent_of, children_of, **options)
    assert ids(items) == ["a", "q", "b"]
    assert "'p' is missing" in caplog.text


def test_parent_unknown_to_the_store(caplog):
    """A parent without children in the store is left alone, with one warning."""
    with caplog.at_level(logging.WARNING):
        items = auto_merge([("a", 2), ("b", 1)], {"a": "p", "b": "p"}, {})
    assert ids(items) == ["a", "b"]
    assert caplog.text.count("'p' has no children") == 1


def test_stale_list_of_children():
    """A hit that the parent's list does not know counts as a child: never above 1."""
    items = auto_merge([("a", 2), ("b", 1)], {"a": "p", "b": "p"}, {"p": ["a"]})
    assert items[0].ratio == 1.0


@pytest.mark.parametrize(
    "parents", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "a"}]
)
@pytest.mark.parametrize("hits", [["a"], ["a", "b"], ["a", "b", "c"]])
def test_links_in_a_circle_end(parents, hits):
    """Damaged links never loop, and never lose all hits."""
    children = {parent: [child] for child, parent in parents.items()}
    assert auto_merge([(id_, 1.0) for id_ in hits], parents, children)


def test_any_kind_of_hit():
    """Pairs, fused items and hits are read alike, and not changed."""
    parent_of, children_of = tree(p=["a", "b", "c"])
    hits = [("a", 3.0), FusedItem("b", 2.0, (1,)), Hit("x", 1.0, 3)]
    assert ids(auto_merge(hits, parent_of, children_of)) == ["p", "x"]
    assert hits == [("a", 3.0), FusedItem("b", 2.0, (1,)), Hit("x", 1.0, 3)]
    assert auto_merge([], parent_of, children_of) == []


@given(
    st.lists(st.sampled_from([f"{p}{n}" for p in "pqr" for n in range(4)]), max_size=12),
    st.sampled_from([0.25, 0.5, 0.75, 1.0]),
)
def test_sources_cover_the_hits_exactly_once(hit, threshold):
    """Every hit is the source of exactly one item; scores and places never get worse."""
    parent_of, children_of = tree(**{p: leaves(p, 4) for p in "pqr"}, root=["p", "q", "r"])
    hits = [(leaf, float(-place)) for place, leaf in enumerate(hit)]
    items = auto_merge(hits, parent_of, children_of, merge_threshold=threshold)
    sources = [source for item in items for source in item.sources]
    assert sorted(sources) == sorted(set(hit))
    assert [item.score for item in items] == sorted((i.score for i in items), reverse=True)
    for item in items:
        assert item.ratio is None or item.ratio >= threshold


@pytest.mark.parametrize(
    "options",
    [
        {"merge_threshold": 0},
        {"merge_threshold": 1.1},
        {"merge_threshold": math.nan},
        {"score": "max"},
    ],
)
def test_refusals(options):
    """A threshold outside of (0, 1] and an unknown word are refused by name."""
    with pytest.raises(InvalidParameterError) as caught:
        auto_merge([], {}, {}, **options)
    assert caught.value.name in options
