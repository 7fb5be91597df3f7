"""Filters: what passes, what a store is asked, and what a model can never change."""

from __future__ import annotations

import json
import math
import time
from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.errors import InvalidParameterError, OutputParseError
from easyrag_core.filters import (
    OPERATORS,
    And,
    Condition,
    Filter,
    FilterField,
    FilterPolicy,
    Not,
    Or,
    all_of,
    any_of,
    conditions_in,
    filter_from_dict,
    filter_to_dict,
    split_filter,
)
from easyrag_core.query import FilterExtractionPrompt, parse_filters

PASSES = [
    ("eq", "a", "a", True),
    ("eq", "a", "A", False),
    ("eq", 1, 1.0, True),
    ("eq", 1, True, False),
    ("eq", True, True, True),
    ("eq", True, 1, False),
    ("eq", "1", 1, False),
    ("eq", ["a"], ["a"], True),
    ("eq", ["a"], "a", False),
    ("eq", None, "a", False),
    ("eq", math.nan, 1.0, False),
    ("ne", "a", "b", True),
    ("ne", None, "b", True),
    ("ne", "b", "b", False),
    ("gt", 2, 1, True),
    ("gt", 1, 1, False),
    ("gte", 1, 1, True),
    ("lt", 0.5, 1, True),
    ("lte", math.inf, 1, False),
    ("gt", "5", 3, False),
    ("gt", True, 0, False),
    ("gt", None, 0, False),
    ("gt", math.nan, 0, False),
    ("gt", {"a": 1}, 0, False),
    ("lt", "apple", "banana", True),
    ("gte", "2024-05-01", "2024-01-01", True),
    ("gte", "2024-05-01", date(2024, 5, 1), True),
    ("lte", "2024-12-31T15:00:00", "2024-12-31", True),
    ("gt", "2024-12-31T15:00:00", "2024-12-31", False),
    ("lt", "2024-01-01T00:30:00+08:00", "2024-01-01T00:00:00Z", True),
    ("gt", "2024-01-01T00:00:01", datetime(2024, 1, 1), True),  # noqa: DTZ001
    ("gte", date(2024, 5, 1), "2024-05-01", True),
    ("in", "a", ["a", "b"], True),
    ("in", "a", [], False),
    ("in", "a", ["abc"], False),
    ("in", True, [1], False),
    ("in", None, ["a"], False),
    ("nin", "a", ["b"], True),
    ("nin", None, ["b"], True),
    ("nin", "a", [], True),
    ("contains", ["a", "b"], "a", True),
    ("contains", "7.1, 7.2", "7.2", True),
    ("contains", 72, "7", False),
    ("contains", "72", 7, False),
    ("contains", None, "a", False),
    ("any", ["a", "b"], ["b", "c"], True),
    ("any", "b", ["b", "c"], True),
    ("any", ["a"], [], False),
    ("all", ["a", "b"], ["b", "a"], True),
    ("all", ["a"], ["a", "b"], False),
    ("exists", 0, True, True),
    ("exists", None, True, False),
    ("exists", None, False, True),
]


@pytest.mark.parametrize(("operator", "value", "wanted", "passes"), PASSES)
def test_a_condition_passes(operator, value, wanted, passes):
    """A missing field, another kind and a boolean never pass by accident."""
    condition = Condition("f", operator, wanted)
    assert condition.matches({"f": value}) is passes
    assert (~condition).matches({"f": value}) is not passes
    if value is None:
        assert condition.matches({}) is passes


def test_filters_combine():
    """Nothing joined by and passes all, nothing joined by or passes none."""
    one, two = Condition("a", "eq", 1), Condition("b", "eq", 2)
    assert (one & two).matches({"a": 1, "b": 2})
    assert not (one & two).matches({"a": 1})
    assert (one | two).matches({"b": 2})
    assert And(()).matches({})
    assert not Or(()).matches({})
    assert all_of() is None
    assert all_of(one, None, one & two) == And((one, one, two))
    assert any_of(one, one | two) == Or((one, one, two))
    assert [c.field for c in conditions_in(Not(one) | two)] == ["a", "b"]
    assert list(conditions_in(None)) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: Condition("", "eq", 1),
        lambda: Condition("a", "like", 1),
        lambda: Condition("a", "eq", None),
        lambda: Condition("a", "eq", math.nan),
        lambda: Condition("a", "gt", value=True),
        lambda: Condition("a", "gt", [1]),
        lambda: Condition("a", "in", "abc"),
        lambda: Condition("a", "in", [None]),
        lambda: Condition("a", "exists", "yes"),
        lambda: And(Condition("a", "eq", 1)),
        lambda: Or(("a",)),
        lambda: Not("a"),
        lambda: Filter().matches({}),
        lambda: filter_from_dict({"and": "x"}),
        lambda: filter_from_dict({"field": "a", "operator": "eq"}),
        lambda: FilterField("a", "text"),
        lambda: FilterField("", "string"),
        lambda: FilterField("a", "boolean", ("gt",)),
        lambda: FilterField("a", "integer", enum=("1",)),
        lambda: FilterField("a", "string", "eq"),
        lambda: FilterPolicy(system="tenant == a"),
        lambda: FilterPolicy(business_schema=[FilterField("a"), FilterField("a")]),
        lambda: FilterPolicy(system=~Condition("a", "eq", 1), business_schema=[FilterField("a")]),
    ],
)
def test_misuse_is_refused_at_construction(make):
    """A filter that could not mean anything is never built."""
    with pytest.raises(InvalidParameterError):
        make()


FIELDS = ("a", "b", "c")
SCALARS = st.one_of(st.integers(-2, 2), st.booleans(), st.sampled_from(["x", "y", "2024-01-01"]))


@st.composite
def conditions(draw):
    operator = draw(st.sampled_from(OPERATORS))
    if operator == "exists":
        value = draw(st.booleans())
    elif operator in ("in", "nin", "any", "all"):
        value = draw(st.lists(SCALARS, max_size=3))
    else:
        value = draw(SCALARS.filter(lambda v: not isinstance(v, bool) or operator in ("eq", "ne")))
    return Condition(draw(st.sampled_from(FIELDS)), operator, value)


FILTERS = st.recursive(
    conditions(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(inner, max_size=3).map(lambda parts: Or(tuple(parts))),
        inner.map(Not),
    ),
    max_leaves=6,
)
METADATA = st.dictionaries(
    st.sampled_from(FIELDS), st.one_of(SCALARS, st.none(), st.lists(SCALARS, max_size=2))
)


@given(FILTERS, st.sets(st.sampled_from([*OPERATORS, "and", "or", "not"])), METADATA)
def test_a_split_filter_is_the_filter(whole, operators, metadata):
    """Pushed and rest together pass what the whole passes; pushed alone never loses any."""
    pushed, rest = split_filter(whole, operators)
    passes = [part is None or part.matches(metadata) for part in (pushed, rest)]
    assert all(passes) == whole.matches(metadata)
    assert passes[0] >= whole.matches(metadata)


@given(FILTERS, st.sets(st.sampled_from([*OPERATORS, "and", "or", "not"])))
def test_a_store_is_asked_only_what_it_knows(whole, operators):
    """No operator and no connective that it does not have."""
    pushed, _ = split_filter(whole, operators, accepts=lambda c: c.field != "c")

    def used(part):
        if isinstance(part, Condition):
            assert part.field != "c"
            return {part.operator}
        if isinstance(part, Not):
            return {"not"} | used(part.filter)
        name = "and" if isinstance(part, And) else "or"
        return {name}.union(*map(used, part.filters))

    assert pushed is None or used(pushed) <= operators


def test_negations_move_to_where_a_store_can_take_them():
    """Not equal is an operator, not greater is not at most."""
    assert split_filter(~Condition("a", "eq", 1), {"ne"}) == (Condition("a", "ne", 1), None)
    either = ~(Condition("a", "eq", 1) | Condition("b", "in", [1]))
    pushed, rest = split_filter(either, {"ne", "nin", "and"})
    assert rest is None
    assert pushed == And((Condition("a", "ne", 1), Condition("b", "nin", [1])))
    greater = ~Condition("a", "gt", 1)
    assert split_filter(greater, {"lte"}) == (None, greater)
    assert split_filter(None, set()) == (None, None)
    assert split_filter(Condition("a", "in", []), {"in"})[0] == Condition("a", "in", [])


@given(FILTERS)
def test_a_filter_is_kept_as_plain_data(whole):
    """JSON and back gives an equal filter; equal filters hash alike."""
    back = filter_from_dict(json.loads(json.dumps(filter_to_dict(whole))))
    assert back == whole
    assert hash(back) == hash(whole)


SYSTEM = Condition("tenant", "eq", "a") & Condition("valid_until", "gte", "2024-06-01")
SCHEMA = [
    FilterField("year", "integer", description="of publication"),
    FilterField("version", "string", ("contains",)),
    FilterField("kind", "string", enum=("Report", "Law")),
    FilterField("price", "number", ("lt", "lte")),
    FilterField("open", "boolean"),
    FilterField("issued", "date"),
    FilterField("tags", "strings"),
]
ONE_MINUTE = timedelta(minutes=1)
POLICY = FilterPolicy(system=SYSTEM, business_schema=SCHEMA)

GOOD = [
    ({"field": "year", "operator": "gte", "value": 2020}, ("year", "gte", 2020)),
    ({"field": "year", "operator": ">", "value": "2003"}, ("year", "gt", 2003)),
    ({"field": "year", "operator": "==", "value": "２０２０"}, ("year", "eq", 2020)),
    ({"field": "year", "operator": "eq", "value": [2020, "2021"]}, ("year", "in", (2020, 2021))),
    ({"field": "year", "operator": "in", "value": 2020}, ("year", "in", (2020,))),
    ({"field": "year", "operator": "大于等于", "value": 2020.0}, ("year", "gte", 2020)),
    ({"field": "version", "operator": "contains", "value": 7.2}, ("version", "contains", "7.2")),
    ({"field": "kind", "operator": "eq", "value": "report"}, ("kind", "eq", "Report")),
    ({"field": "price", "operator": "<", "value": "1,000.5"}, ("price", "lt", 1000.5)),
    ({"field": "open", "operator": "eq", "value": "true"}, ("open", "eq", True)),
    ({"field": "open", "operator": "是", "value": "否"}, ("open", "eq", False)),
    (
        {"field": "issued", "operator": "after", "value": "2024年1月5日"},
        ("issued", "gt", "2024-01-05"),
    ),
    ({"field": "issued", "operator": "lte", "value": "2024/1/5"}, ("issued", "lte", "2024-01-05")),
    ({"field": "tags", "operator": "any", "value": ["a"]}, ("tags", "any", ("a",))),
    ({"field": "tags", "op": "contains", "value": "a", "why": "x"}, ("tags", "contains", "a")),
]
BAD = [
    ({"field": "tenant", "operator": "eq", "value": "b"}, "unknown field"),
    ({"field": "Year", "operator": "eq", "value": 2020}, "unknown field"),
    ({"field": "year", "operator": "regex", "value": ".*"}, "operator"),
    ({"field": "version", "operator": "=", "value": "7.2"}, "operator"),
    ({"field": "price", "operator": "gt", "value": 3}, "operator"),
    ({"field": "year", "operator": "eq", "value": "last year"}, ""),
    ({"field": "year", "operator": "eq", "value": True}, "number"),
    ({"field": "year", "operator": "eq", "value": 20.5}, "whole"),
    ({"field": "year", "operator": "eq", "value": 10**30}, "finite"),
    ({"field": "year", "operator": "eq", "value": None}, "number"),
    ({"field": "year", "operator": "in", "value": []}, "no values"),
    ({"field": "year", "operator": "in", "value": [2020, "x"]}, ""),
    ({"field": "kind", "operator": "eq", "value": "Novel"}, "allowed values"),
    ({"field": "open", "operator": "eq", "value": "perhaps"}, "true or false"),
    ({"field": "issued", "operator": "gt", "value": "2024-13-01"}, ""),
    ({"field": "issued", "operator": "gt", "value": "recently"}, "date"),
    ({"field": "year", "operator": {"$gt": 1}, "value": 1}, "operator"),
    ({"field": ["year"], "operator": "eq", "value": 1}, "unknown field"),
    ({"not": {"field": "year", "operator": "eq", "value": 1}}, "unknown field"),
    ("year = 2020", "object"),
    (None, "object"),
]


@pytest.mark.parametrize(("raw", "condition"), GOOD)
def test_a_good_condition_is_read_by_its_type(raw, condition):
    """Texts become numbers, booleans and dates; signs become operators."""
    drawn = POLICY.check([raw])
    assert drawn.conditions == (Condition(*condition),)
    assert drawn.dropped == ()


@pytest.mark.parametrize(("raw", "reason"), BAD)
def test_a_bad_condition_is_dropped_alone(raw, reason):
    """The others stay, and the reason is told."""
    good = {"field": "year", "operator": "gte", "value": 2020}
    drawn = POLICY.check([raw, good])
    assert drawn.conditions == (Condition("year", "gte", 2020),)
    assert [dropped.raw for dropped in drawn.dropped] == [raw]
    assert reason in drawn.dropped[0].reason


def test_the_system_always_applies():
    """With conditions, without any, and after relaxing."""
    drawn = POLICY.check([{"field": "year", "operator": "eq", "value": 2020}])
    assert POLICY.apply() == SYSTEM
    assert POLICY.attempts(drawn) == [all_of(SYSTEM, Condition("year", "eq", 2020)), SYSTEM]
    assert POLICY.attempts() == [SYSTEM]
    assert POLICY.attempts(POLICY.check([])) == [SYSTEM]
    assert FilterPolicy().attempts() == [None]
    other = FilterPolicy(business_schema=[FilterField("tenant")])
    forged = other.check([{"field": "tenant", "operator": "eq", "value": "b"}])
    with pytest.raises(InvalidParameterError, match="business"):
        POLICY.apply(forged)


def test_a_policy_is_narrowed_for_one_tenant():
    """What stood before stays; a field that the model may set cannot become the system's."""
    policy = FilterPolicy(business_schema=SCHEMA).restricted_to(Condition("tenant", "eq", "a"))
    narrower = policy.restricted_to(Condition("user", "in", ["me"]))
    assert [c.field for c in conditions_in(narrower.system)] == ["tenant", "user"]
    assert narrower.business_schema == tuple(SCHEMA)
    with pytest.raises(InvalidParameterError, match="never shown"):
        policy.restricted_to(Condition("year", "eq", 1))


def test_conditions_are_bounded():
    """Equal ones count once, more than the maximum are dropped."""
    same = {"field": "year", "operator": "eq", "value": 2020}
    many = [{"field": "year", "operator": "ne", "value": at} for at in range(20)]
    drawn = POLICY.check([same, same, *many])
    assert len(drawn.conditions) == 8
    assert {dropped.reason for dropped in drawn.dropped} == {"too many conditions"}


REPLIES = [
    ('{"conditions": [{"field": "year", "operator": "eq", "value": 2020}]}', 1),
    ('[{"field": "year", "operator": "eq", "value": 2020}]', 1),
    ('{"field": "year", "operator": "eq", "value": 2020}', 1),
    ('```json\n{"filters": [{"key": "year", "op": "=", "value": 1}]}\n```', 1),
    ('<think>{"conditions": []}</think>[{"key": "year", "op": "=", "value": 1}]', 1),
    ('根据问题 [1]：{"条件": [{"字段": "year", "运算符": "等于", "值": 2020}]}', 1),
    ('{"conditions": []}', 0),
    ("[]", 0),
]


@pytest.mark.parametrize(("reply", "count"), REPLIES)
def test_conditions_are_read_from_a_reply(reply, count):
    """In prose, fences and after reasoning; none is an answer too."""
    heard = []
    assert len(parse_filters(reply, POLICY, on_event=heard.append).conditions) == count
    assert heard == []


YEAR = '{"field": "year", "operator": "eq", "value": 2020}'
KIND = '{"field": "kind", "operator": "eq", "value": "Law"}'
REVERSED = [
    *(
        f'{{"{key}": {YEAR}}}'
        for key in ("not", "must_not", "exclude", "nor", "$not", "NOT", "排除", "非")
    ),
    *(
        f'{{"{key}": [{YEAR}]}}'
        for key in ("mustNot", "none_of", "excluded", "except", "不包含", "不是")
    ),
    *(
        f'{{"{key}": [{YEAR}, {KIND}]}}'
        for key in ("or", "$or", "should", "any", "any_of", "或", "或者")
    ),
    f'{{"conditions": [{{"not": {YEAR}}}]}}',
    f'{{"conditions": {{"must_not": [{YEAR}]}}}}',
    f'{{"filters": [{YEAR}, {KIND}], "condition": "or"}}',
    f'{{"operator": "or", "arguments": [{YEAR}, {KIND}]}}',
    f'{{"operator": "not", "condition": {YEAR}}}',
    f'{{"逻辑": "或", "条件": [{YEAR}, {KIND}]}}',
    f'{{"bool": {{"must_not": {YEAR}}}}}',
    f'{{"and": [{{"or": [{YEAR}, {KIND}]}}]}}',
    f'{{"not": {{"conditions": [{YEAR}]}}}}',
    f'{{"not": {{"not": {YEAR}}}}}',
    f'{{"whatever": {{"x": {YEAR}}}}}',
    YEAR[:-1] + ', "negate": true}',
    YEAR[:-1] + ', "not": "true"}',
    YEAR[:-1] + ', "排除": true}',
    f'{YEAR[:-1]}, "or": [{KIND}]}}',
    f"NOT {YEAR}",
    f"Exclude: [{YEAR}]",
    f"排除：{YEAR}",
    f"{YEAR} OR {KIND}",
    f"not({YEAR})",
    f'{{"not": {{"or": [{YEAR}]}}}}',
    f'{{"should": [{YEAR}]}}',
    f'{{"optional": [{YEAR}]}}',
    f'{{"and_not_filters": [{YEAR}]}}',
    f'{{"排除条件": [{YEAR}]}}',
    f'{{"or": [{YEAR}], "any": [{KIND}]}}',
    f'A 5" disk, "a" or "b". NOT {YEAR}',
    "not {field: 'year', operator: 'eq', value: 2020}",
    f"[{YEAR}] or [{KIND}]",
]
BRACKETS = ["a] or [b", "a] or [[b", 'not {"x": 1}']
NAMED = [
    *("criteria", "constraints", "filter_conditions", "search_conditions", "condition_list"),
    *("query_filters", "metadata_conditions", "filter_criteria", "must_conditions", "restrictions"),
    *("提取结果", "限制条件", "过滤器", "元数据过滤条件", "提取的条件", "约束条件", "条件列表"),
]


@pytest.mark.parametrize("reply", REVERSED)
def test_no_condition_is_taken_out_of_its_group(reply):
    """What is negated or one of several would mean the opposite, or more, alone: it is dropped."""
    heard = []
    drawn = parse_filters(reply, POLICY, on_event=heard.append)
    assert drawn.conditions == ()
    assert drawn.dropped
    assert [event.name for event in heard] == ["easyrag.query.filters"]
    with pytest.raises(OutputParseError):
        parse_filters(reply, POLICY, strict=True)


@pytest.mark.parametrize(
    ("reply", "dropped"),
    [
        (f'{{"and": [{YEAR}, {KIND}]}}', 0),
        (f'{{"must": [{YEAR}, {KIND}]}}', 0),
        (f'{{"$and": [{YEAR}, {{"all": [{KIND}]}}]}}', 0),
        (f'{{"filters": [{YEAR}, {KIND}], "condition": "and"}}', 0),
        (f'{{"operator": "and", "arguments": [{YEAR}, {KIND}]}}', 0),
        (f'{{"且": [{YEAR}, {KIND}]}}', 0),
        (f'{{"result": {{"conditions": [{YEAR}, {KIND}]}}, "reasoning": ["a"]}}', 0),
        (f'{{"conditions": [{YEAR[:-1]}, "negate": false}}, {KIND}], "exclude": []}}', 0),
        (f'{{"must": [{YEAR}, {KIND}], "must_not": [{YEAR}]}}', 1),
        (f'{{"conditions": [{YEAR}, {KIND}, {{"or": [{YEAR}, {KIND}]}}]}}', 2),
        (f'{{"conditions": [{YEAR}, {KIND}], "排除": [{KIND}]}}', 1),
        *((f'{{"{key}": [{YEAR}, {KIND}]}}', 0) for key in NAMED),
        (f'[{{"or": [{YEAR}]}}, {{"any_of": {KIND}}}]', 0),
        (f'[{{"operator": "or", "conditions": [{YEAR}]}}, {{"或": [{KIND}]}}]', 0),
        (f"[{YEAR}, {KIND}]\nNote: given without {{placeholders}}.", 0),
        (f"Fields not [listed] are ignored. See [1] or [2].\n[{YEAR}, {KIND}]", 0),
        *((f"[{YEAR}, {KIND}, {YEAR.replace('2020', json.dumps(text))}]", 1) for text in BRACKETS),
    ],
)
def test_what_must_hold_together_is_kept(reply, dropped):
    """Groups of any depth, with others beside them that are dropped."""
    drawn = parse_filters(reply, POLICY)
    assert [condition.field for condition in drawn.conditions] == ["year", "kind"]
    assert len(drawn.dropped) == dropped


@pytest.mark.parametrize(
    "reply", ["", "no conditions", "[1, 2]", "<think>[]", '{"conditions": "x"}']
)
def test_an_unreadable_reply_gives_no_condition(reply):
    """And is told; strict raises."""
    heard = []
    assert parse_filters(reply, POLICY, on_event=heard.append).filter is None
    assert [event.name for event in heard] == ["easyrag.query.filters"]
    with pytest.raises(OutputParseError):
        parse_filters(reply, POLICY, strict=True)


def test_a_dropped_condition_is_reported_once():
    """One event names all reasons; strict raises."""
    heard = []
    reply = json.dumps([raw for raw, _ in BAD if isinstance(raw, dict)])
    parse_filters(reply, POLICY, on_event=heard.append)
    assert len(heard) == 1
    assert "unknown field" in heard[0].attributes["easyrag.query.reason"]
    with pytest.raises(OutputParseError):
        parse_filters(reply, POLICY, strict=True)


def test_the_system_is_never_shown_to_a_model():
    """Neither its fields nor its values stand in the prompt."""
    prompt = FilterExtractionPrompt(POLICY)
    told = "\n".join(message.content for message in prompt.messages("reports since 2020"))
    assert "tenant" not in told
    assert "valid_until" not in told
    assert '"values": ["Report", "Law"]' in told
    assert prompt.needed
    condition = prompt.reply_schema["properties"]["conditions"]["items"]
    assert condition["properties"]["field"]["enum"] == [field.name for field in SCHEMA]
    assert condition["additionalProperties"] is False
    assert not FilterExtractionPrompt(FilterPolicy(system=SYSTEM)).needed
    with pytest.raises(InvalidParameterError, match="policy"):
        FilterExtractionPrompt(SCHEMA)


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.sampled_from(["tenant", "a", "b", "eq", "ne", "or", "not", "$or", "*", "", "2020"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["field", "operator", "value", "not", "or", "conditions", "system"]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)
DRAWN = st.fixed_dictionaries(
    {
        "field": st.one_of(
            st.sampled_from([f.name for f in SCHEMA] + ["tenant", "valid_until"]), JSON
        ),
        "operator": st.one_of(st.sampled_from([*OPERATORS, "or", "not", "$ne", ">"]), JSON),
        "value": JSON,
    }
)
HOSTILE = st.one_of(
    st.lists(DRAWN, max_size=5).map(lambda drawn: json.dumps({"conditions": drawn})),
    st.builds(
        lambda drawn, more: json.dumps({**more, "filters": drawn, "system": None}),
        st.lists(DRAWN, max_size=3),
        st.dictionaries(st.just("relax"), JSON),
    ),
    JSON.map(json.dumps),
    st.text(max_size=60),
)
DOCUMENTS = [
    {"tenant": tenant, "valid_until": until, "year": year, "kind": "Report", "open": True}
    for tenant in ("a", "b", None)
    for until in ("2024-01-01", "2025-01-01")
    for year in (2019, 2020)
]


@given(HOSTILE)
def test_no_reply_reaches_the_system_conditions(reply):
    """None drops, widens or negates them, or names a field or operator outside the schema."""
    drawn = parse_filters(reply, POLICY)
    fields = {field.name: field for field in SCHEMA}
    for condition in drawn.conditions:
        assert condition.operator in fields[condition.field].operators
    for attempt in POLICY.attempts(drawn):
        for document in DOCUMENTS:
            if attempt.matches(document):
                assert SYSTEM.matches(document)
        pushed, rest = split_filter(attempt, {"eq", "and"})
        assert pushed is not None
        assert all(SYSTEM.matches(d) for d in DOCUMENTS if pushed.matches(d) and rest.matches(d))


@pytest.mark.parametrize(
    "tail", [" " * 100_000 + "\nx", " " * 100_000 + "日" + "T" * 100_000 + "\n"]
)
def test_a_day_out_of_a_hostile_reply_is_read_in_linear_time(tail):
    """What follows a day is looked at as far as any value is, however long a model made it."""
    policy = FilterPolicy(business_schema=[FilterField("day", "date")])
    started = time.process_time()
    policy.check([{"field": "day", "operator": "eq", "value": "2024-01-31" + tail}])
    assert time.process_time() - started < 2.0


MOMENTS = [
    ("2024-01-05T18:00:00", "2024-01-05T18:00:00"),
    ("2024-01-05T23:30:00-08:00", "2024-01-05T23:30:00-08:00"),
    ("2024-01-05 18:00", "2024-01-05T18:00:00"),
    ("2024/1/5 8:05 UTC", "2024-01-05T08:05:00+00:00"),
    ("2024年1月5日 18：30", "2024-01-05T18:30:00"),
    ("2024年1月5日 10时", "2024-01-05T10:00:00"),
    ("2024年1月5日 10点30分", "2024-01-05T10:30:00"),
    ("2024年1月5日10点30分", "2024-01-05T10:30:00"),
    ("2024年1月5日 9时5分7秒", "2024-01-05T09:05:07"),
    ("2024-01-05 10:00:00 PM", "2024-01-05T22:00:00"),
    ("2024-01-05 12:30 pm", "2024-01-05T12:30:00"),
    ("2024-01-05 9:05 a.m. UTC", "2024-01-05T09:05:00+00:00"),
    ("2024-01-05T18:00:00.250Z", "2024-01-05T18:00:00.250000+00:00"),
    ("2024-01-05T18:00:00 +0800", "2024-01-05T18:00:00+08:00"),
]


@pytest.mark.parametrize(("given", "kept"), MOMENTS)
@pytest.mark.parametrize("operator", ["gt", "gte", "lt", "lte"])
def test_a_time_of_day_is_kept_where_dates_have_an_order(operator, given, kept):
    """A document of the same evening is on the side of the moment that it belongs to."""
    (condition,) = POLICY.check(
        [{"field": "issued", "operator": operator, "value": given}]
    ).conditions
    assert condition == Condition("issued", operator, kept)
    earlier, later = (
        datetime.fromisoformat(kept) - ONE_MINUTE,
        datetime.fromisoformat(kept) + ONE_MINUTE,
    )
    assert condition.matches({"issued": earlier}) is operator.startswith("l")
    assert condition.matches({"issued": later}) is operator.startswith("g")


@pytest.mark.parametrize("operator", ["eq", "ne", "in", "nin"])
def test_a_time_of_day_is_no_equality(operator):
    """Moments are equal as texts alone: such a condition is dropped and told, never a whole day."""
    for text, _ in MOMENTS:
        drawn = POLICY.check([{"field": "issued", "operator": operator, "value": text}])
        assert drawn.conditions == ()
        assert "time of day" in drawn.dropped[0].reason
    for midnight in ("2024-01-05T00:00:00", "2024-01-05T00:00:00Z", "2024-01-05 00:00"):
        raw = {"field": "issued", "operator": operator, "value": midnight}
        day = ("2024-01-05",) if operator.endswith("in") else "2024-01-05"
        assert POLICY.check([raw]).conditions == (Condition("issued", operator, day),)


@pytest.mark.parametrize(
    "tail", [" 6pm", "T25:00:00", " evening", " 18:00 somewhere", "T18:00X", " 13:00 PM", " 25时"]
)
@pytest.mark.parametrize("operator", ["gt", "lt", "eq", "in"])
def test_a_time_of_day_that_cannot_be_read_is_told(operator, tail):
    """What stands behind a day is never cut off in silence."""
    raw = {"field": "issued", "operator": operator, "value": f"2024-01-05{tail}"}
    drawn = POLICY.check([raw])
    assert drawn.conditions == ()
    assert drawn.dropped[0].raw == raw
    assert "time of day" in drawn.dropped[0].reason
