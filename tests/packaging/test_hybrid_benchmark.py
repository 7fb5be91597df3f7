"""The benchmark of hybrid search, over a small collection and a model made by code."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.benchmarks import hybrid
from tests.benchmarks._embeddings import cached_vectors
from tests.benchmarks.collections import Collection, read_collection

WORDS = ["rank", "fusion", "chunk", "place", "limit", "redis", "score", "tie"]


def embed(texts):
    """One dimension for each word, and one that is never 0."""
    return np.array([[text.count(word) for word in WORDS] + [0.1] for text in texts], np.float32)


def write(folder, name):
    """Forty documents of two words each, and a question about each."""
    home = folder / "ir" / name
    home.mkdir(parents=True)
    pairs = [(first, second) for first in WORDS for second in WORDS[:5]]
    texts = [f"the {first} and the {second}" for first, second in pairs]
    lines = [{"_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(texts)]
    asked = [{"_id": f"q{at}", "text": f"{a} {b}?"} for at, (a, b) in enumerate(pairs)]
    (home / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (home / "queries.jsonl").write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")
    graded = [f"q{at}\td{at}\t1" for at in range(len(pairs))]
    (home / "qrels.tsv").write_text("\n".join(["q\td\tgrade", *graded]), encoding="utf-8")


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The data, the cache and the model of a small run."""
    write(tmp_path, "xquad-en")
    monkeypatch.setenv("EASYRAG_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(hybrid, "local_model", lambda: {"query": embed, "passage": embed})


def test_a_small_run_measures_every_system(small, capsys):
    """All six systems with all three metrics, and a verdict for each way to fuse."""
    assert hybrid.main(["xquad-en", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["xquad-en"]
    assert set(told["systems"]) == {
        *("BM25", "vectors", "RRF 60", "RRF 10", "min-max sum", "min-max sum, MMR")
    }
    for system in told["systems"].values():
        assert set(system) == {"recall@5", "recall@10", "ndcg@10"}
        assert all(0 < low <= mean <= high <= 1 for mean, low, high in system.values())
    first = next(iter(told["systems"]))
    assert set(told["differences"]) == set(told["systems"]) - {first}
    assert hybrid.main(["--tune"]) == 0
    text = capsys.readouterr().out
    assert "xquad-en: 40 documents" in text
    assert "Chosen: weights=" in text
    assert text.count("xquad-en: RRF") == 2


def test_the_better_part_comes_first():
    """What is compared with is the part that has the better nDCG."""
    ids = [f"d{at}" for at in range(4)]
    texts = ["rank rank", "fusion", "chunk", "place"]
    collection = Collection("made", ids, texts, {"q": "rank"}, {"q": {"d0": 1}})
    blind = {"query": embed(["rank"]), "passage": embed(["place", "fusion", "chunk", "rank"])}
    sighted = {"query": embed(["rank"]), "passage": embed(texts)}
    assert next(iter(hybrid.measure(collection, blind).evaluations)) == "BM25"
    assert next(iter(hybrid.measure(collection, sighted).evaluations)) == "BM25"  # a tie
    deaf = Collection("made", ids, texts, {"q": "nothing"}, {"q": {"d0": 1}})
    assert next(iter(hybrid.measure(deaf, sighted).evaluations)) == "vectors"


def test_the_parts_of_large_collections_are_what_they_say(monkeypatch, tmp_path):
    """All questions of one, the first documents of the other; a small one stays whole."""
    for name in ("cosqa-dev", "cmrc2018-dev", "xquad-zh"):
        write(tmp_path, name)
    monkeypatch.setenv("EASYRAG_DATA", str(tmp_path))
    monkeypatch.setattr(hybrid, "COSQA_DOCUMENTS", 40)
    monkeypatch.setattr(hybrid, "CMRC_DOCUMENTS", 7)
    sizes = {}
    for name in ("cosqa-dev", "cmrc2018-dev", "xquad-zh"):
        part = hybrid.part(read_collection(name))
        sizes[name] = (len(part.ids), len(part.texts), len(part.queries), len(part.grades))
    assert sizes == {
        "cosqa-dev": (40, 40, 40, 40),
        "cmrc2018-dev": (7, 7, 7, 7),
        "xquad-zh": (40, 40, 40, 40),
    }


def test_vectors_are_computed_once(tmp_path):
    """The same texts under the same name come from the cache; others do not."""
    asked = []

    def model(texts):
        asked.append(len(texts))
        return embed(texts)

    texts = [f"{word} {at}" for at in range(20) for word in WORDS]
    first = cached_vectors(model, texts, name="one", folder=tmp_path)
    again = cached_vectors(model, texts, name="one", folder=tmp_path)
    assert np.array_equal(first, again)
    assert np.array_equal(first, embed(texts))
    assert asked == [64, 64, 32]
    cached_vectors(model, texts[:64], name="two", folder=tmp_path)
    assert asked == [64, 64, 32, 64]
    assert {path.suffix for path in tmp_path.iterdir()} == {".npy"}


def test_without_the_data_it_says_so(monkeypatch, tmp_path, capsys):
    """A machine without the collections gets a sentence, not an error."""
    monkeypatch.setenv("EASYRAG_DATA", str(tmp_path))
    assert hybrid.main([]) == 0
    assert "EASYRAG_DATA" in capsys.readouterr().out
