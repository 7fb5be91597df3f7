"""Many texts at once: the same terms from this process and from workers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from easyrag_core import (
    FunctionAnalyzer,
    InvalidParameterError,
    JiebaAnalyzer,
    MissingDependencyError,
    StandardAnalyzer,
)
from easyrag_core.index.analyzer import _workers
from tests.strategies import FRAGMENTS

TEXTS = [f"{FRAGMENTS[n % len(FRAGMENTS)]} 数据库 \ud83d\ude00 {n}" for n in range(300)] + [
    "",
    "\ud83d",
]


@pytest.fixture
def eager(monkeypatch):
    """Workers for any amount of text, in small tasks."""
    for kind in (StandardAnalyzer, JiebaAnalyzer):
        monkeypatch.setattr(kind, "_pool_from", 0)
    monkeypatch.setattr(_workers, "_CHARACTERS_PER_TASK", 500)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (StandardAnalyzer, {"lowercase": False, "stop_words": ["b", "a"]}),
        (JiebaAnalyzer, {"words": ["数据库"]}),
    ],
)
def test_workers_give_the_same_in_the_same_order(kind, options, eager, caplog):
    """Terms and order are those of single calls, for every script and for lone surrogates."""
    if kind is JiebaAnalyzer:
        pytest.importorskip("jieba")
    analyzer = kind(**options)
    expected = [analyzer(text) for text in TEXTS]
    assert analyzer.analyze_many(TEXTS) == expected
    assert analyzer.analyze_many(TEXTS, processes=2) == expected
    assert caplog.records == []
    assert analyzer.analyze_many([], processes=2) == []


def test_few_texts_start_no_worker(monkeypatch):
    """Below the amount that pays for it no process is started."""

    def refuse(*arguments, **settings):
        raise AssertionError("a process was started")

    monkeypatch.setattr(_workers, "Popen", refuse)
    analyzer = StandardAnalyzer()
    assert analyzer.analyze_many(["a b"] * 1000, processes=8) == [["a", "b"]] * 1000
    assert analyzer.analyze_many(iter(["a b"] * 8)) == [["a", "b"]] * 8


SCRIPT = """
from easyrag_core import StandardAnalyzer
print("once")
StandardAnalyzer._pool_from = 0
print(StandardAnalyzer().analyze_many(["a b", "检索"], processes=2))
"""


def test_a_script_without_a_guard_may_use_workers(tmp_path):
    """The script's own lines run once; nothing is said on the error stream."""
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-W", "error", tmp_path / "script.py"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert ran.stdout == "once\n[['a', 'b'], ['检', '索', '检索']]\n"
    assert ran.stderr == ""


BROKEN = {
    "cannot start": ("executable", "no-such-interpreter"),
    "ends at once": ("command", "raise SystemExit(3)"),
    "ends in the middle": ("command", "import sys; sys.stdin.buffer.read(300)"),
    "half an answer": ("command", "import sys; sys.stdout.buffer.write(bytes(7) + b'9a')"),
    "no JSON": ("command", "import sys; sys.stdout.buffer.write(bytes(7) + b'\\x01[')"),
}


@pytest.mark.parametrize(("what", "value"), BROKEN.values(), ids=BROKEN)
def test_what_a_broken_worker_should_read_is_read_here(what, value, eager, monkeypatch, caplog):
    """The terms are complete, and a warning says what happened."""
    if what == "executable":
        monkeypatch.setattr(sys, "executable", value)
    else:
        monkeypatch.setattr(_workers, "_COMMAND", value)
    analyzer = StandardAnalyzer()
    assert analyzer.analyze_many(TEXTS, processes=2) == list(map(analyzer, TEXTS))
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert "worker process failed" in caplog.text


def test_an_error_comes_back_as_itself(monkeypatch):
    """What fails in a worker fails here with the very error of the analyzer."""

    def fail(text):
        raise ZeroDivisionError(text)

    analyzer = FunctionAnalyzer(fail)  # which no worker can build
    with (
        pytest.raises(ZeroDivisionError, match="first"),
        _workers.reading(analyzer, 2) as read,
    ):
        list(read([["first"]]))


def test_no_process_is_left_behind(eager, monkeypatch):
    """When the call is over, also by an error, its workers have ended."""
    started = []
    real = _workers.Popen
    monkeypatch.setattr(
        _workers, "Popen", lambda *a, **k: started.append(real(*a, **k)) or started[-1]
    )
    with pytest.raises(KeyError), _workers.reading(StandardAnalyzer(), 2):
        raise KeyError
    StandardAnalyzer().analyze_many(TEXTS, processes=2)
    assert len(started) == 4
    assert all(process.poll() is not None for process in started)


@pytest.mark.parametrize("texts", ["one text", ["a", 5], [None]])
def test_what_is_no_list_of_texts_is_refused(texts):
    """A single text would be read as its characters."""
    with pytest.raises(InvalidParameterError, match="texts"):
        StandardAnalyzer().analyze_many(texts)


def test_no_processes_are_refused():
    """Zero workers are refused."""
    with pytest.raises(InvalidParameterError, match="processes"):
        StandardAnalyzer().analyze_many(["a"], processes=0)


def test_a_bar_moves_with_the_texts(monkeypatch):
    """The bar counts texts, with and without workers, and changes no term."""
    tqdm = pytest.importorskip("tqdm")
    pytest.importorskip("tqdm.auto")
    bars = []
    monkeypatch.setattr(
        tqdm.auto, "tqdm", lambda items, desc, total: bars.append((desc, total)) or items
    )
    assert StandardAnalyzer().analyze_many(["a", "b"], show_progress=True) == [["a"], ["b"]]
    assert bars == [("Analyzing", 2)]


def test_a_bar_without_tqdm(monkeypatch):
    """The error names the extra."""
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(MissingDependencyError, match="progress"):
        StandardAnalyzer().analyze_many(["a"], show_progress=True)
