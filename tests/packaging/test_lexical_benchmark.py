"""The benchmark of search by words runs; how fast anything is is not asked here."""

from __future__ import annotations

import pytest

from tests.benchmarks import lexical
from tests.benchmarks._corpora import word_windows
from tests.benchmarks._lexical_engines import ENGINES, words


def test_queries_are_sampled_as_said():
    """Spans are words in a row, keywords are distinct and in few passages; each run the same."""
    texts = word_windows(60)
    kinds = lexical.sampled_queries(texts, 5)
    assert kinds == lexical.sampled_queries(texts, 5)
    assert {kind: len(queries) for kind, queries in kinds.items()} == dict.fromkeys(kinds, 5)
    joined = [" ".join(words(text)) for text in texts]
    for number in lexical.TERMS:
        for query in kinds[f"span{number}"]:
            assert len(query.split()) == number
            assert any(query in text for text in joined)
        for query in kinds[f"kw{number}"]:
            found = query.split()
            assert len(set(found)) == len(found) == number
            assert all(sum(word in words(text) for text in texts) < 6 for word in found)


def test_the_fastest_round_of_each_query_counts():
    """Engines take turns; the first turn warms up, and a slow engine answers five queries once."""
    turns = []

    class Engine:
        def __init__(self, name):
            self.name = name

        def search(self, query):
            turns.append((self.name, query))

    queries = [str(number) for number in range(7)]
    taken = lexical.timed({"a": Engine("a"), "b": Engine("b")}, queries, rounds=2)
    assert {name: len(seconds) for name, seconds in taken.items()} == {"a": 7, "b": 7}
    asked = [(name, query) for name in "ab" for query in queries]
    assert turns[20:] == asked * 3


@pytest.mark.parametrize("name", ENGINES)
def test_each_engine_finds_what_it_holds(name):
    """An engine that is compared finds the passage that has a rare word, or it compares nothing."""
    texts = [*word_windows(40), "zyzzyva and nothing else of note"]
    try:
        engines, took = lexical.built(texts, [name])
    except ImportError:
        pytest.skip(f"{name} is not installed")
    if not engines:
        pytest.skip(f"{name} is not installed")
    assert took[name] > 0
    assert len(engines[name].search("zyzzyva")) >= 1
    if name not in ("tantivy", "rank-bm25"):
        assert engines[name].search("zyzzyva")[0] == "40"


def test_it_runs_small(capsys):
    """`--small` prints a table with every kind of query, and what is not installed is said."""
    assert lexical.main(["--small", "--engines", "ours", "fts5"]) == 0
    told = capsys.readouterr().out
    for line in ("200 passages", "build", "arrays", "span2", "kw30", "load", "add of one"):
        assert line in told
