"""Small hits replaced by the larger passage that holds them."""

from __future__ import annotations

import logging
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.errors import ChunkNotFoundError, InvalidParameterError
from easyrag_core.ranking.expansion import ExpandedItem, expand_to_parents
from easyrag_core.types import Hit

FAMILY = {"a1": "A", "a2": "A", "a3": "A", "b1": "B", "b2": "B"}


def test_p4_four_hits_of_one_parent_are_one_item() -> None:
    """The parent comes once, with the best score and place and all children that hit."""
    hits = [("b1", 0.9), ("a2", 0.8), ("a1", 0.85), ("a3", 0.1), ("lone", 0.05)]
    assert expand_to_parents(hits, FAMILY) == [
        ExpandedItem("B", 0.9, 1, ("b1",)),
        ExpandedItem("A", 0.85, 2, ("a2", "a1", "a3")),
        ExpandedItem("lone", 0.05, 5),
    ]


def test_k_counts_parents_not_children() -> None:
    """`k` items when there are so many, after children have come together."""
    hits = [("a1", 0.9), ("a2", 0.8), ("b1", 0.7), ("c", 0.6)]
    assert [item.id for item in expand_to_parents(hits, FAMILY, k=2)] == ["A", "B"]
    assert expand_to_parents(hits, FAMILY, k=0) == []
    assert len(expand_to_parents(hits, FAMILY, k=9)) == 3


def test_a_missing_parent_leaves_its_children_with_a_warning(caplog) -> None:
    """Children of the missing parent stay where they are; others are replaced."""
    hits = [("a1", 0.9), ("b1", 0.8), ("a2", 0.7)]
    with caplog.at_level(logging.WARNING):
        items = expand_to_parents(hits, FAMILY, exists={"B"})
    assert [item.id for item in items] == ["a1", "B", "a2"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "'A'" in caplog.text


def test_strict_raises_for_missing_parents() -> None:
    """All missing parents are named, in the order of their children."""
    with pytest.raises(ChunkNotFoundError) as caught:
        expand_to_parents([("b1", 1.0), ("a1", 0.5)], FAMILY, exists=set(), strict=True)
    assert caught.value.ids == ["B", "A"]


def test_functions_are_asked_once_with_all_ids() -> None:
    """A store sees one question for parents and one for what exists."""
    asked = []

    def parents(ids: list[str]) -> dict[str, str | None]:
        asked.append(("parents", ids))
        return {id_: FAMILY.get(id_) for id_ in ids}

    def existing(ids: list[str]) -> set[str]:
        asked.append(("exists", ids))
        return set(ids)

    hits = [("a1", 0.9), ("b1", 0.8), ("a1", 0.7), ("lone", 0.1)]
    items = expand_to_parents(hits, parents, exists=existing)
    assert asked == [("parents", ["a1", "b1", "lone"]), ("exists", ["A", "B"])]
    assert items == expand_to_parents(hits, FAMILY)
    asked.clear()
    assert expand_to_parents([], parents, exists=existing) == []
    assert asked == []


def test_a_parent_that_was_hit_itself_takes_its_children_in() -> None:
    """It stands at the better place with the better score."""
    hits = [("a1", 0.5), ("A", 0.9), ("b1", 0.1)]
    assert expand_to_parents(hits, FAMILY)[0] == ExpandedItem("A", 0.9, 1, ("a1",))
    assert expand_to_parents(hits[::-1], FAMILY)[1] == ExpandedItem("A", 0.9, 2, ("a1",))


def test_ids_are_never_parsed() -> None:
    """`doc_001_3` has no parent unless one is given."""
    assert [item.id for item in expand_to_parents([("doc_001_3", 1.0)], {})] == ["doc_001_3"]


@pytest.mark.parametrize("none", [None, math.nan])
def test_scores_that_are_none_do_not_count(none: float | None) -> None:
    """A ranking without scores gives items without scores; one score is enough."""
    assert expand_to_parents([("a1", none)], FAMILY) == [ExpandedItem("A", None, 1, ("a1",))]
    assert expand_to_parents([("a1", none), ("a2", 0.2)], FAMILY)[0].score == 0.2


def test_a_child_that_is_its_own_parent_stays() -> None:
    """A link to itself is no link."""
    assert expand_to_parents([("x", 1.0)], {"x": "x"}) == [ExpandedItem("x", 1.0, 1)]


@pytest.mark.parametrize("k", [-1, 1.5, True, "3"])
def test_misuse_is_refused(k: object) -> None:
    """`k` is a whole number."""
    with pytest.raises(InvalidParameterError, match="k="):
        expand_to_parents([], {}, k=k)


@given(
    st.lists(st.tuples(st.sampled_from([*FAMILY, "x", "y", "A"]), st.floats(0, 1)), max_size=20),
    st.sets(st.sampled_from(["A", "B"])),
)
def test_every_hit_is_in_one_item_and_order_is_kept(hits, existing) -> None:
    """Nothing is lost, nothing comes twice, ranks grow, scores are the best of their hits."""
    items = expand_to_parents(hits, FAMILY, exists=existing)
    assert items == expand_to_parents(
        [Hit(id_, score, 1) for id_, score in hits], FAMILY, exists=existing
    )
    assert len({item.id for item in items}) == len(items)
    assert all(a.rank < b.rank for a, b in pairwise(items))
    found = {child for item in items for child in item.children} | {item.id for item in items}
    assert {id_ for id_, _ in hits} <= found
    for item in items:
        ids = {item.id, *item.children}
        assert item.score == max(score for id_, score in hits if id_ in ids)
        assert item.rank == min(at for at, (id_, _) in enumerate(hits, start=1) if id_ in ids)
