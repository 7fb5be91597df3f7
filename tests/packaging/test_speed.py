"""The speed benchmark measures in turns and says what it measured; it is run by `make bench`."""

from __future__ import annotations

import json
from itertools import count

import pytest

from easyrag_core.errors import MissingDependencyError
from tests.benchmarks import speed
from tests.benchmarks._corpora import without_separators, word_windows
from tests.benchmarks._timing import Row, interleaved, table


def test_calls_take_turns_and_the_median_is_given():
    """Each is run once to warm up, then all in each round; one slow round does not count."""
    now = [0.0]
    ran = []
    seconds = {"a": iter([1, 2, 90, 4]), "b": iter([10, 10, 10, 10])}

    def call(name: str) -> None:
        ran.append(name)
        now[0] += next(seconds[name])

    medians = interleaved(
        [lambda: call("a"), lambda: call("b")], rounds=3, at_least=0, clock=lambda: now[0]
    )
    assert ran == ["a", "b"] * 4
    assert medians == [4, 10]


def test_short_calls_are_repeated():
    """A measurement lasts at least as long as asked, its time is told for one run."""
    ticks, ran = count(), []
    interleaved([lambda: ran.append(1)], rounds=2, at_least=5, clock=lambda: float(next(ticks)))
    assert len(ran) == 1 + 2 * 5


def test_the_table_tells_ratio_and_verdict():
    """Throughput for megabytes, time for the rest; a floor is met or not."""
    fast = Row("spans", "x", "peer", amount=10, unit="MB", ours=0.1, theirs=0.5, asked=3)
    slow = Row("mmr", "x", "peer", ours=0.002, theirs=0.05, asked=50)
    alone = Row("linear", "x", ours=0.00001, note="0.1 s")
    lines = [" ".join(line.split()) for line in table([fast, slow, alone]).splitlines()]
    assert lines[1:] == [
        "spans x 100.0 MB/s 20.0 MB/s peer 5.00x 3x met",
        "mmr x 2 ms 50 ms peer 25.00x 50x NOT MET",
        "linear x 10 us - - - 0.1 s",
    ]
    assert fast.told()["ratio"] == pytest.approx(5)


@pytest.mark.parametrize(
    "missing_error",
    [
        ModuleNotFoundError(name="no_such_peer"),
        MissingDependencyError("no_such_peer", "langchain"),
    ],
)
def test_a_peer_that_is_missing_is_said(monkeypatch, tmp_path, capsys, missing_error):
    """The others still run, and nothing fails."""

    def missing(settings: speed.Settings):
        yield Row("first", "x")
        raise missing_error

    monkeypatch.setitem(speed.CONTESTS, "mmr", missing)
    file = tmp_path / "rows.json"
    assert speed.main(["--only", "mmr", "--json", str(file)]) == 0
    assert "no_such_peer is not installed" in capsys.readouterr().out
    told = json.loads(file.read_text(encoding="utf-8"))
    assert [row["name"] for row in told["rows"]] == ["first", "mmr"]
    assert told["machine"]["cpus"]


def test_results_that_differ_are_an_error():
    """A ratio between two different answers says nothing."""
    speed._equal("mmr", [1, 2], [1, 2])
    with pytest.raises(AssertionError, match="mmr: the results differ"):
        speed._equal("mmr", [1, 2], [2, 1])


def test_made_texts_are_the_same_every_time():
    """Two runs measure the same work."""
    assert word_windows(3) == word_windows(3)
    assert all(60 <= len(text.split()) <= 100 for text in word_windows(5))
    assert not set(without_separators(1000)) & set(" \n.,")
    assert len(without_separators(1000)) == 1000


@pytest.mark.parametrize("name", speed.CONTESTS)
def test_each_contest_runs_on_a_little_text(name, capsys):
    """No contest is broken: each gives rows with a time; how fast is not asked here."""
    for package in (
        "langchain_classic",
        "langchain_text_splitters",
        "llama_index",
        "bm25s",
        "jieba",
    ):
        pytest.importorskip(package)
    if name == "code-nodes":
        pytest.importorskip("tree_sitter_language_pack")
    settings = speed.Settings(megabytes=0.02, documents=(50,), candidates=60, rounds=1)
    rows = list(speed.CONTESTS[name](settings))
    assert rows
    assert all(row.ours for row in rows)
