"""The benchmark of keyword search: it runs with every peer and tells a missed floor."""

from __future__ import annotations

import json

import pytest

from tests.benchmarks import quality
from tests.benchmarks._samples import sample_collections
from tests.benchmarks.collections import Collection, reduced

pytest.importorskip("jieba")
pytest.importorskip("Stemmer")

PEERS = ("langchain_community", "llama_index.retrievers.bm25", "rank_bm25", "bm25s", "tantivy")


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    """A machine without the collections."""
    monkeypatch.setenv("EASYRAG_DATA", str(tmp_path))


def test_the_small_mode_measures_every_system(no_data, capsys):
    """Each column is filled over each made-up collection, and no floor is claimed."""
    for peer in PEERS:
        pytest.importorskip(peer)
    assert quality.main(["--small", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["results"]) == [one.name for one in sample_collections()]
    for measured in told["results"].values():
        assert list(measured) == list(quality.SYSTEMS)
        assert all(0 <= figures["ndcg"] <= 1 for figures in measured.values())
        assert measured["easyrag"]["ndcg"] > 0.9
    assert told["missed"] == []


def test_without_data_nothing_is_measured(no_data, capsys):
    """It says where it looked and how to point it elsewhere."""
    assert quality.main([]) == 0
    assert "EASYRAG_DATA" in capsys.readouterr().out


def test_one_table_with_a_column_per_system(capsys):
    """A line per collection, its figures below the systems' names; what is missing is a dash."""
    figures = {"easyrag": {"ndcg": 0.5, "seconds": 1.0}, "tantivy": {"ndcg": 0.25, "seconds": 1.0}}
    quality.print_table({"xquad-en": figures})
    head, line = capsys.readouterr().out.splitlines()
    for system in quality.SYSTEMS:
        end = head.index(f" {system}") + len(system) + 1
        expected = f"{figures[system]['ndcg']:.4f}" if system in figures else "-"
        assert line[:end].endswith(f" {expected}")
    assert "0.958" in line


def test_a_missed_floor_fails_the_run():
    """What is below its floor is named, for the default and with the stemmer."""
    low = {"easyrag": {"ndcg": 0.5}, "easyrag [stem]": {"ndcg": 0.97}}
    assert quality.missed_floors({"xquad-en": low}) == [
        "easyrag on xquad-en: 0.5000 is below 0.958",
    ]


def test_a_reduced_collection_keeps_its_answers():
    """Questions, what answers them and some others stay, in their order."""
    ids = list("abcdef")
    whole = Collection(
        "n", ids, list("ABCDEF"), {"1": "q", "2": "r"}, {"1": {"e": 1}, "2": {"a": 2}}
    )
    small = reduced(whole, questions=1, others=2)
    assert (small.ids, small.texts) == (["a", "b", "e"], ["A", "B", "E"])
    assert (small.queries, small.grades) == ({"1": "q"}, {"1": {"e": 1}})
