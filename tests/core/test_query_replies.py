"""Raw replies of models, in English and Chinese, and what is read from them."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.errors import OutputParseError
from easyrag_core.query import (
    Message,
    Rewrite,
    parse_decomposition,
    parse_queries,
    parse_rewrite,
)
from easyrag_core.query._reply import fenced, read_json, unmarked, unquoted, visible_text
from tests.data.replies import decompositions, queries, rewrites
from tests.strategies import nasty_texts


def history_of(question):
    turns = rewrites.EN if question.isascii() else rewrites.ZH
    return [Message(*turn) for turn in turns]


def named(rows):
    return [pytest.param(*row[1:], id=row[0]) for row in rows]


@pytest.mark.parametrize(("question", "reply", "query"), named(rewrites.USED))
def test_the_query_is_read_from_the_reply(question, reply, query):
    """Whatever a model wraps around its query is removed, and nothing else."""
    read = parse_rewrite(reply, question, history=history_of(question))
    assert (read.query, read.reason) == (query, None)


@pytest.mark.parametrize(("question", "reply", "reason"), named(rewrites.REFUSED))
def test_an_unusable_reply_leaves_the_question(question, reply, reason, caplog):
    """The question itself comes back with a reason, a warning and an event; strict raises."""
    heard = []
    history = history_of(question)
    read = parse_rewrite(reply, question, history=history, on_event=heard.append)
    assert (read.query, read.reason) == (question, reason)
    assert [event.name for event in heard] == ["easyrag.query.rewrite"]
    assert heard[0].attributes["easyrag.query.reason"] == reason
    assert len(caplog.records) == 1
    with pytest.raises(OutputParseError) as raised:
        parse_rewrite(reply, question, history=history, strict=True)
    assert raised.value.raw == reply


@pytest.mark.parametrize(
    ("query", "reply", "found"),
    [pytest.param(queries.Q, *row[1:], id=row[0]) for row in queries.ENGLISH]
    + [pytest.param(queries.ZQ, *row[1:], id=f"zh {row[0]}") for row in queries.CHINESE],
)
def test_the_queries_are_read_from_the_reply(query, reply, found):
    """Marks and prose go, numbers of the text stay, the question is first."""
    heard = []
    assert parse_queries(reply, query, count=4, on_event=heard.append) == [query, *found]
    assert len(heard) == (not found)


def test_the_table_is_large_enough():
    """At least 120 replies, a good part of them Chinese."""
    rows = [*rewrites.USED, *rewrites.REFUSED, *queries.ENGLISH]
    chinese = [row for row in rows if not row[1].isascii()]
    assert len(rows) + len(queries.CHINESE) >= 200
    assert len(chinese) + len(queries.CHINESE) >= 60


@pytest.mark.parametrize(("reply", "rewrite", "parts"), decompositions.DECOMPOSED)
def test_a_decomposition_is_read(reply, rewrite, parts):
    """Rewrite and sub-questions come from one object; not split is one equal to the rewrite."""
    read = parse_decomposition(reply, "What is Redis, and what is Kafka, price?")
    assert (read.rewrite, read.questions, read.reason) == (rewrite, parts, None)


@pytest.mark.parametrize(
    "reply", ["", "no idea", "<think>{", '{"answer": 42}', "[" * 5000, '{"a":' * 3000]
)
def test_without_json_the_punctuation_decides(reply):
    """Line ends and question marks of both widths part the question; an event tells."""
    heard = []
    question = "年假有几天？怎么申请？\n病假呢；要证明吗?谁批准。多久"
    read = parse_decomposition(reply, question, on_event=heard.append)
    assert read.questions == ("年假有几天？", "怎么申请？", "病假呢", "要证明吗? 谁批准 多久")
    assert (read.rewrite, read.reason, len(heard)) == (question, "no JSON", 1)
    with pytest.raises(OutputParseError):
        parse_decomposition(reply, question, strict=True)


def test_a_rejected_rewrite_keeps_good_parts():
    """A drifting rewrite is replaced by the question, which is then taken apart."""
    reply = '{"rewrite": "Best pizza places in Rome tonight", "questions": []}'
    read = parse_decomposition(reply, "What is Redis? And Kafka?")
    assert read.questions == ("What is Redis?", "And Kafka?")
    assert (read.rewrite, read.reason) == ("What is Redis? And Kafka?", "drift")


@pytest.mark.parametrize(("question", "reply", "parts"), decompositions.REJECTED)
def test_the_parts_of_a_rejected_rewrite_are_checked(question, reply, parts):
    """Parts about something else are not searched, whatever they come with."""
    heard = []
    read = parse_decomposition(reply, question, on_event=heard.append)
    assert (read.rewrite, read.questions, read.reason) == (question, parts, "drift")
    assert len(heard) == 1


@pytest.mark.parametrize(("question", "reply", "parts"), decompositions.IN_A_TALK)
def test_parts_are_checked_against_the_conversation(question, reply, parts):
    """A part may use what the rewrite brought in, and is no copy of what was said before."""
    read = parse_decomposition(reply, question, history=history_of(question))
    assert (read.rewrite, read.questions) == ("Redis 支持哪些类型？怎么备份？", parts)


def test_a_part_that_is_not_used_is_told():
    """An event names what is wrong with it; strict raises."""
    heard = []
    question = "What are Redis and Kafka?"
    reply = '{"rewrite": "What are Redis and Kafka?", "questions": ["Best pizza", "Kafka?"]}'
    assert parse_decomposition(reply, question, on_event=heard.append).questions == (question,)
    assert [event.attributes["easyrag.query.reason"] for event in heard] == ["drift"]
    with pytest.raises(OutputParseError):
        parse_decomposition(reply, question, strict=True)


@given(reply=nasty_texts(), question=nasty_texts(max_fragments=3), count=st.integers(1, 5))
def test_any_reply_gives_something_to_search(reply, question, count):
    """No text raises; the question is always first, never more than asked, nothing twice."""
    found = parse_queries(reply, question, count=count)
    assert found[0] == question
    assert len(found) <= count
    assert isinstance(parse_rewrite(reply, question).query, str)
    parts = parse_decomposition(reply, question).questions
    assert 1 <= len(parts) <= 4


HOSTILE = [
    "[" * 10_000,
    "{" * 10_000,
    '{"a":[' * 5_000,
    "'" * 10_000,
    "{'" * 5_000,
    '"' * 10_000,
    "**a " * 2_500,
    "<think>" * 1_500,
    "</think>" * 1_200,
    "- [ ] " * 1_600,
    "1. " * 3_300,
    "`" * 10_000,
    "```\n" * 2_500,
    "(1) " * 2_500,
    "Here is " * 1_250,
    "改写" * 5_000,
    "以下是" * 3_300,
    "the " * 2_500,
    "[1, " * 2_500,
    "1" * 10_000,
    '["\\x", "\\u12", "' * 500,
    "| " * 5_000,
    "<query>" * 1_400,
    "** : " * 2_000,
    "**a:" * 2_500,
    "①②" * 5_000,
    "“a”、" * 2_500,
    "[" + "9" * 9_000 + "]",
    "[INST]" * 1_600,
    "<|im_start|>" * 800,
    "【思考】" * 2_500,
    "{“" * 5_000,
    '{"a":' * 2_000,
    "/*" * 5_000,
    '["a",' * 2_000,
    "{a:" * 3_300,
    "[" * 900 + '"a"' + "]" * 900,
    '{"query":' * 900 + '"a"' + "}" * 900,
    "\n" * 10_000,
]


@pytest.mark.parametrize("reply", HOSTILE, ids=lambda reply: ascii(reply[:8]))
def test_no_reply_takes_long(reply):
    """Runs of what the reader looks for cost no more than other text of 10,000 characters."""
    started = time.process_time()
    assert parse_queries(reply, "How?")[0] == "How?"
    parse_rewrite(reply, "How?")
    parse_decomposition(reply, "How?")
    assert time.process_time() - started < 2.0


BLANK = " " * 100_000
LONG_RUNS = [
    "<" + BLANK,
    "< / " + BLANK + "x",
    "<think" + BLANK + "x",
    "```" + BLANK + "`x",
    "~~~" + BLANK + "a b",
    "`" * 100_000,
    "```" + "`" * 100_000 + "x",
    "q" + BLANK + "x",
    "[" + BLANK + "x",
    "(" + BLANK + "x",
    "question" + BLANK + "#" + BLANK + "x",
    "第" + BLANK + "问题" + BLANK + "x",
    "1" + BLANK + "x",
    '{"a"' + BLANK + "x",
    "{" + BLANK + "x",
    "：" + BLANK + "x",
    "<|im_start|>" + BLANK + "x",
    "assistant" + BLANK + "x",
]


@pytest.mark.parametrize("reply", LONG_RUNS, ids=lambda reply: ascii(reply[:8]))
def test_runs_of_blanks_and_marks_are_linear(reply):
    """Between a mark and what would follow it there may be any number of blanks."""
    started = time.process_time()
    for read in (visible_text, fenced, unmarked):
        read(reply)
    parse_queries(reply, "How?")
    parse_rewrite(reply, "How?")
    assert time.process_time() - started < 3.0


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("see ```json {}``` there", "{}"),
        ("````text x````", "x"),
        ("`````x``` y", "x"),
        ("``` ```", ""),
        ("``x``", "``x``"),
    ],
)
def test_fences_inside_a_line_may_be_of_any_length(text, inside):
    """Three of the opening marks and three of the closing ones are enough."""
    assert fenced(text) == inside


@pytest.mark.parametrize("half", ["\\ud83d", "\\ude00", "\ud83d"], ids=ascii)
def test_half_a_character_is_not_searched(half):
    """An escape that a model or a cut left alone: no endpoint, file or digest could encode it."""
    rewrite = f'{{"rewrite": "Redis {half} price?", "questions": ["Its {half}?", "Its price?"]}}'
    assert parse_rewrite(rewrite, "Redis price?") == Rewrite("Redis price?", "broken text")
    assert parse_queries(f'["Redis {half}", "Redis cost"]', "price") == ["price", "Redis cost"]
    parted = parse_decomposition(rewrite, "Redis price?")
    assert (parted.rewrite, parted.questions) == ("Redis price?", ("Redis price?",))
    whole = parse_rewrite('{"rewrite": "Redis \\ud83d\\ude00 price?"}', "Redis price?")
    assert whole.query == "Redis \U0001f600 price?"


def test_a_tag_that_is_asked_about_is_text():
    """Inside a line, never closed, and in the question; else it opens a block of reasoning."""
    query, line = "What does <think> do?", "What does <think> do in HTML?"
    assert parse_queries(f"1. {line}\n2. HTML tags", query) == [query, line, "HTML tags"]
    assert parse_queries(f"<think>1. no</think>\n1. {line}", query) == [query, line]
    assert parse_queries(f"<think>\n1. {line}", query) == [query]
    assert parse_rewrite(line, query).query == line
    assert parse_rewrite(f"<think>{query}", query).reason == "empty"
    assert parse_rewrite(f"So <think>he means {query}", "Which?").query != query
    reply = json.dumps({"rewrite": line, "questions": [line]})
    assert parse_decomposition(reply, query).rewrite == line


@pytest.mark.parametrize("token", ["<|im_start|>", "<|im_end|>", "</s>", "<s>", "[INST]", "<eos>"])
def test_a_token_that_is_asked_about_is_text(token):
    """Inside a line and in the question; it begins or ends a turn at the edges and elsewhere."""
    query, line = f"How to strip {token} tokens?", f"How to strip {token} tokens from output?"
    assert parse_rewrite(line, query).query == line
    assert parse_rewrite(f"<|im_start|>assistant\n{line}<|im_end|>", query).query == line
    assert parse_rewrite(f"{line} {token}", query).query == line
    rest = [line, "Strip special tokens"]
    assert parse_queries("\n".join(f"- {text}" for text in rest), query) == [query, *rest]
    assert parse_queries(json.dumps({"queries": rest}), query) == [query, *rest]
    reply = json.dumps({"rewrite": line, "questions": [line]})
    assert parse_decomposition(reply, query).rewrite == line
    assert token not in parse_rewrite(line, "How to strip tokens?").query


def test_brackets_of_the_question_stay():
    """A year behind a title in quotes is no remark when the user wrote it."""
    query = 'Who wrote "Attention Is All You Need" (2017)?'
    title = '"Attention Is All You Need" (2017)'
    assert parse_queries(f"1. {title}\n2. {title} (the paper)", query)[1] == title
    assert parse_queries(json.dumps([title]), query) == [query, title]
    assert parse_queries(f"1. {title} authors", "Attention?")[1] == f"{title} authors"
    reply = json.dumps({"rewrite": query, "questions": [title, query]})
    assert parse_decomposition(reply, query).questions == (title, query)
    assert unquoted('"Redis price" (rewritten)') == "Redis price"


def test_the_first_json_of_the_shape_is_taken():
    """Citations and other JSON before it do not hide it."""
    text = 'See [1] and {"b": 2}: {"wrap": {"a": 3}}'
    assert read_json(text, lambda value: isinstance(value, dict) and "a" in value) == {"a": 3}
    assert read_json("[1, 2", bool) is None


def test_pieces_of_the_reader():
    """Each piece leaves alone what is not its own."""
    assert visible_text("a < b and c > d") == "a < b and c > d"
    assert fenced("use `redis-cli` here") == "use `redis-cli` here"
    assert unquoted("it's John's") == "it's John's"
    assert unquoted('"a", "b"') == '"a", "b"'
    assert unmarked("2024 年") == ("2024 年", False)
    assert unmarked("1.") == ("", True)
