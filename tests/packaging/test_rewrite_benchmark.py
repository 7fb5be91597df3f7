"""The benchmark of rewrites says what it needs, and measures what it says."""

from __future__ import annotations

import pytest

from tests.benchmarks import rewrite
from tests.benchmarks.collections import Collection


def test_it_is_skipped_with_a_message(monkeypatch, capsys):
    """Without its packages it names them and fails nothing."""
    monkeypatch.setattr(rewrite, "PACKAGES", ("no_such_package",))
    assert rewrite.main([]) == 0
    assert capsys.readouterr().out == "skipped: pip install no-such-package\n"


def test_each_way_to_search_is_measured(monkeypatch, tmp_path):
    """On one follow-up whose rewrite finds what the question does not."""
    models = pytest.importorskip("langchain_core.language_models")
    collection = Collection(
        "talk",
        ["redis", "kafka"],
        ["the price of redis is nothing", "what does it cost to run kafka"],
        {"q": "What does it cost?"},
        {"q": {"redis": 1}},
    )
    folder = tmp_path / "ir" / "talk"
    folder.mkdir(parents=True)
    (folder / "queries.jsonl").write_text(
        '{"_id": "q", "text": "What does it cost?", '
        '"history": [["user", "What is redis?"], ["agent", "A store."]]}\n'
    )
    monkeypatch.setenv("EASYRAG_DATA", str(tmp_path))
    monkeypatch.setattr(rewrite, "read_collection", lambda _: collection)
    figures = rewrite.measure(models.FakeListChatModel(responses=["the price of redis"]), None)
    assert figures["questions"] == figures["used rewrites"] == 1
    assert figures["raw question"] == 0
    assert figures["rewrite alone"] == 1
    assert set(figures) >= {"history blend", "rewrite and raw", "rewrite and blend"}
