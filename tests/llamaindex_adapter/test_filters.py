"""Metadata filters mean what the framework says, and never crash or leak."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from llamaindex_easyrag._filters import matches

OP = FilterOperator
NODE = TextNode(
    text="x",
    metadata={
        "tenant": "A",
        "year": 2003,
        "price": "7.5",
        "ok": True,
        "no": False,
        "tags": ["rag", "检索"],
        "empty": [],
        "none": None,
        "big": 2**60 + 1,
    },
    relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc")},
)


def one(key, value, operator=OP.EQ):
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


def combined(condition, *parts):
    filters = [p.filters[0] if len(p.filters) == 1 else p for p in parts]
    return MetadataFilters(filters=filters, condition=condition)


A, B = one("tenant", "A"), one("tenant", "B")
YES = combined(FilterCondition.AND, A, one("year", 2003))
NESTED = MetadataFilters(filters=[YES, B], condition=FilterCondition.OR)


@pytest.mark.parametrize(
    ("filters", "passes"),
    [
        pytest.param(None, True, id="none"),
        pytest.param(MetadataFilters(filters=[]), True, id="empty"),
        pytest.param(A, True, id="eq"),
        pytest.param(B, False, id="eq-other"),
        pytest.param(one("year", "2003"), True, id="LI-61-eq-number-as-text"),
        pytest.param(one("year", " 2003.0"), True, id="eq-number-spelt-otherwise"),
        pytest.param(one("year", "2004"), False, id="eq-another-number-as-text"),
        pytest.param(one("year", "MMIII"), False, id="eq-no-number"),
        pytest.param(one("year", "2003", OP.NE), False, id="LI-61-ne-number-as-text"),
        pytest.param(one("year", "2004", OP.NE), True, id="ne-another-number-as-text"),
        pytest.param(one("year", ["x", "2003"], OP.IN), True, id="LI-61-in-number-as-text"),
        pytest.param(one("year", ["2003"], OP.NIN), False, id="LI-61-nin-number-as-text"),
        pytest.param(one("year", ["2004"], OP.NIN), True, id="nin-another-number-as-text"),
        pytest.param(one("price", 7.5), True, id="eq-text-as-number"),
        pytest.param(one("price", 7.5, OP.NE), False, id="ne-text-as-number"),
        pytest.param(one("price", [7.5], OP.IN), True, id="in-text-as-number"),
        pytest.param(one("price", "7.50"), False, id="eq-two-texts-are-no-numbers"),
        pytest.param(one("ok", "1"), False, id="eq-bool-is-no-number-as-text"),
        pytest.param(one("tenant", "A", OP.NE), False, id="ne"),
        pytest.param(one("tenant", 7, OP.NE), True, id="ne-other-type"),
        pytest.param(one("year", "2002", OP.GT), True, id="LI-61-number-as-text"),
        pytest.param(one("price", 7, OP.GT), True, id="text-as-number"),
        pytest.param(one("price", "7.5", OP.GTE), True, id="two-texts"),
        pytest.param(one("tenant", 3, OP.GT), False, id="gt-no-number"),
        pytest.param(one("tags", 3, OP.LTE), False, id="lte-list"),
        pytest.param(one("ok", 0, OP.GT), False, id="a-bool-has-no-order"),
        pytest.param(one("big", 2**60, OP.GT), True, id="large-numbers-exact"),
        pytest.param(one("ok", "true"), True, id="LI-61-bool"),
        pytest.param(one("ok", "TRUE "), True, id="bool-spelt-otherwise"),
        pytest.param(one("no", "false"), True, id="bool-false"),
        pytest.param(one("no", "true"), False, id="bool-other"),
        pytest.param(one("ok", 1), True, id="bool-as-number"),
        pytest.param(one("ok", "false", OP.NE), True, id="bool-ne"),
        pytest.param(one("tenant", ["A", "B"], OP.IN), True, id="in"),
        pytest.param(one("tenant", "xAx", OP.IN), False, id="in-a-string-is-no-substring"),
        pytest.param(one("tenant", "A", OP.IN), True, id="in-one-string"),
        pytest.param(one("tenant", ["B"], OP.NIN), True, id="nin"),
        pytest.param(one("tenant", ["A"], OP.NIN), False, id="nin-there"),
        pytest.param(one("tags", "检索", OP.CONTAINS), True, id="contains"),
        pytest.param(one("tenant", "A", OP.CONTAINS), True, id="contains-in-text"),
        pytest.param(one("tenant", 5, OP.CONTAINS), False, id="contains-other-type"),
        pytest.param(one("year", "2", OP.CONTAINS), False, id="contains-in-a-number"),
        pytest.param(one("tags", ["rag", "检索"], OP.ALL), True, id="all"),
        pytest.param(one("tags", ["rag", "x"], OP.ALL), False, id="all-but-one"),
        pytest.param(one("tags", ["rag", "x"], OP.ANY), True, id="any"),
        pytest.param(one("tags", "rag", OP.ANY), True, id="any-one-string"),
        pytest.param(one("tags", "r", OP.ANY), False, id="any-is-not-by-letters"),
        pytest.param(one("year", "2003", OP.TEXT_MATCH), False, id="text-match-number"),
        pytest.param(one("tenant", "a", OP.TEXT_MATCH), False, id="text-match"),
        pytest.param(one("tenant", "a", OP.TEXT_MATCH_INSENSITIVE), True, id="text-match-case"),
        pytest.param(one("empty", None, OP.IS_EMPTY), True, id="empty-list"),
        pytest.param(one("none", None, OP.IS_EMPTY), True, id="empty-none"),
        pytest.param(one("missing", None, OP.IS_EMPTY), True, id="empty-missing"),
        pytest.param(one("ok", None, OP.IS_EMPTY), False, id="empty-bool"),
        pytest.param(one("doc_id", "doc"), True, id="the-document-by-its-usual-names"),
        pytest.param(one("ref_doc_id", "other"), False, id="another-document"),
        pytest.param(combined(FilterCondition.OR, A, B), True, id="or"),
        pytest.param(combined(FilterCondition.AND, A, B), False, id="and"),
        pytest.param(combined(FilterCondition.NOT, A), False, id="LI-61-not"),
        pytest.param(combined(FilterCondition.NOT, B), True, id="not-other"),
        pytest.param(combined(FilterCondition.NOT, A, B), False, id="not-is-none-of"),
        pytest.param(NESTED, True, id="nested"),
        pytest.param(combined(FilterCondition.NOT, NESTED), False, id="not-nested"),
    ],
)
def test_a_filter_means_what_it_says(filters, passes):
    """Each operator and each condition, also over other types than expected."""
    assert matches(filters, NODE) is passes


@pytest.mark.parametrize("operator", list(OP))
def test_a_missing_key_and_none_are_the_same(operator):
    """What is not there matches `!=`, `nin` and `is_empty`, and nothing else."""
    passes = operator in (OP.NE, OP.NIN, OP.IS_EMPTY)
    assert matches(one("missing", "x", operator), NODE) is passes
    assert matches(one("none", "x", operator), NODE) is passes


@given(st.integers(-3, 3), st.integers(-3, 3), st.booleans(), st.booleans())
def test_equality_and_order_agree_on_numbers_written_as_text(
    found, wanted, stored_text, asked_text
):
    """`==` holds where both `>=` and `<=` do, whichever side is written as text."""
    if stored_text and asked_text:
        asked_text = False  # two texts are compared as texts
    node = TextNode(text="x", metadata={"key": str(found) if stored_text else found})
    value = str(wanted) if asked_text else wanted
    passed = {op: matches(one("key", value, op), node) for op in (OP.EQ, OP.NE, OP.GTE, OP.LTE)}
    assert passed[OP.EQ] is (found == wanted) is (passed[OP.GTE] and passed[OP.LTE])
    assert passed[OP.NE] is not passed[OP.EQ]


VALUES = st.one_of(st.integers(-2, 2), st.sampled_from(["a", "b", "ab", ""]), st.floats(-1, 1))
LISTS = st.lists(st.sampled_from(["a", "b"]), max_size=2)


@given(
    stored=st.one_of(VALUES, LISTS, st.none(), st.booleans()),
    wanted=st.one_of(VALUES, LISTS),
    operator=st.sampled_from(list(OP)),
    condition=st.sampled_from(list(FilterCondition)),
)
def test_where_the_framework_answers_we_agree(stored, wanted, operator, condition):
    """Never a crash; the framework's own answer wherever it has one and means it.

    It means something else where a plain string is taken for its letters or parts, and where
    bools and lists are said to be larger or smaller.
    """
    filters = one("key", wanted, operator)
    filters.condition = condition
    node = TextNode(text="x", metadata={"key": stored})
    ours = matches(filters, node)
    assert ours in (True, False)
    parts = isinstance(wanted, str) and operator in (OP.IN, OP.NIN, OP.ANY, OP.ALL)
    unordered = isinstance(stored, bool | list) and operator in (OP.GT, OP.GTE, OP.LT, OP.LTE)
    try:
        theirs = build_metadata_filter_fn(lambda _: node.metadata, filters)("x")
    except TypeError:
        return
    if not parts and not unordered:
        assert ours is bool(theirs)


def test_divergence_the_framework_cannot_nest():
    """Named divergence: the stock evaluation refuses nested filters, ours takes them."""
    with pytest.raises(ValueError, match="Nested"):
        build_metadata_filter_fn(lambda _: NODE.metadata, NESTED)("x")
    assert matches(NESTED, NODE)


def test_divergence_a_string_is_not_its_parts():
    """Named divergence: the stock `in` finds a tenant inside another one's name."""
    filters = one("tenant", "ABC", OP.IN)
    assert build_metadata_filter_fn(lambda _: NODE.metadata, filters)("x")
    assert not matches(filters, NODE)
