"""How well BM25 ranks, ours and the peers', over every collection that is there.

Run `python -m tests.benchmarks.quality`; `--json` prints machine-readable figures, names of
collections restrict the run, `--small` only looks whether everything runs: over a few questions
of each, and over a few made-up passages where the data are missing. A floor is what the default
settings must reach on a collection.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
from typing import TYPE_CHECKING, TypeAlias

from easyrag_core.evaluation import ndcg_at_k
from easyrag_core.index.analyzer import JiebaAnalyzer, StandardAnalyzer
from easyrag_core.index.bm25 import BM25Index
from tests.benchmarks._samples import sample_collections
from tests.benchmarks.collections import collection_names, data_root, read_collection, reduced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from easyrag_core import Analyzer
    from tests.benchmarks.collections import Collection

K = 10

FLOORS = {
    "xquad-en": 0.958,
    "xquad-zh": 0.964,
    "xquad-th": 0.967,
    "xquad-hi": 0.946,
    "xquad-ru": 0.871,
    "xquad-ar": 0.884,
    "xquad-vi": 0.958,
    "xquad-de": 0.913,
    "cmrc2018-dev": 0.982,
    "drcd-dev-test": 0.957,
    "cosqa-dev": 0.371,
}
"""nDCG@10 that the default analyzer must reach."""

STEMMED_FLOORS = {"xquad-en": 0.966, "cranfield-graded": 0.362}
"""The same with the English stemmer."""

Ranker: TypeAlias = "Callable[[Sequence[str]], list[list[str]]]"
"""Maps questions to the ids that are found for each."""

Results: TypeAlias = "dict[str, dict[str, dict[str, float]]]"
"""Collection to system to figures."""


def ours(collection: Collection) -> Ranker:
    """Build BM25Index with the default analyzer."""
    return _index(collection, StandardAnalyzer())


def ours_stemmed(collection: Collection) -> Ranker:
    """Build BM25Index with the English stemmer."""
    return _index(collection, StandardAnalyzer(stemmer="english"))


def ours_fields(collection: Collection) -> Ranker:
    """Build it with the stemmer and the title as a field, once beside the text that holds it."""
    index = BM25Index(analyzer=StandardAnalyzer(stemmer="english"), field_weights={"title": 1})
    titles = [collection.titles.get(id_, "") for id_ in collection.ids]
    index.add(collection.ids, collection.texts, fields={"title": titles})
    return _ranker(index)


def ours_jieba(collection: Collection) -> Ranker:
    """Build BM25Index with jieba's words beside the n-grams."""
    return _index(collection, JiebaAnalyzer())


def _index(collection: Collection, analyzer: Analyzer) -> Ranker:
    index = BM25Index(analyzer=analyzer)
    index.add(collection.ids, collection.texts)
    return _ranker(index)


def _ranker(index: BM25Index) -> Ranker:
    return lambda queries: [[hit.id for hit in hits] for hits in index.search_batch(queries, K)]


def langchain_community(collection: Collection) -> Ranker:
    """Build langchain-community's retriever (rank-bm25 over words cut at white space)."""
    from langchain_community.retrievers import BM25Retriever

    metadatas = [{"id": id_} for id_ in collection.ids]
    peer = BM25Retriever.from_texts(collection.texts, metadatas, k=K)
    return lambda queries: [
        [document.metadata["id"] for document in peer.invoke(query)] for query in queries
    ]


def llamaindex(collection: Collection) -> Ranker:
    """Build LlamaIndex's retriever (bm25s, English stemmer)."""
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    pairs = zip(collection.ids, collection.texts, strict=True)
    nodes = [TextNode(id_=id_, text=text) for id_, text in pairs]
    peer = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=K)
    return lambda queries: [
        [found.node.node_id for found in peer.retrieve(query)] for query in queries
    ]


def bm25s_default(collection: Collection) -> Ranker:
    """Build bm25s with its own tokenizer and stop words."""
    import bm25s

    peer = bm25s.BM25(method="lucene")
    peer.index(bm25s.tokenize(collection.texts, show_progress=False), show_progress=False)

    def rank(queries: Sequence[str]) -> list[list[str]]:
        tokens = bm25s.tokenize(list(queries), show_progress=False, return_ids=False)
        k = min(K, len(collection.ids))
        found = [peer.retrieve([words], k=k, show_progress=False)[0][0] for words in tokens]
        return [[collection.ids[number] for number in numbers] for numbers in found]

    return rank


def rank_bm25(collection: Collection) -> Ranker:
    """Build rank-bm25 over lower-cased words; it brings no tokenizer."""
    from rank_bm25 import BM25Okapi

    def words(text: str) -> list[str]:
        return re.findall(r"\w+", text.lower())

    peer = BM25Okapi(list(map(words, collection.texts)))
    return lambda queries: [peer.get_top_n(words(query), collection.ids, K) for query in queries]


def tantivy(collection: Collection) -> Ranker:
    """Build tantivy with its default tokenizer, which lower-cases words."""
    from tantivy import Document, Index, SchemaBuilder

    builder = SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw")
    builder.add_text_field("text")
    peer = Index(builder.build())
    writer = peer.writer(num_threads=1)
    for id_, text in zip(collection.ids, collection.texts, strict=True):
        writer.add_document(Document(id=id_, text=text))
    writer.commit()
    writer.wait_merging_threads()
    peer.reload()
    searcher = peer.searcher()

    def rank(query: str) -> list[str]:
        # Without signs and capitals: none of them is meant as an operator.
        asked, _ = peer.parse_query_lenient(re.sub(r"\W+", " ", query.lower()), ["text"])
        hits = searcher.search(asked, K).hits
        return [searcher.doc(address)["id"][0] for _, address in hits]

    return lambda queries: list(map(rank, queries))


SYSTEMS: dict[str, Callable[[Collection], Ranker]] = {
    "easyrag": ours,
    "easyrag [stem]": ours_stemmed,
    "easyrag fields": ours_fields,
    "easyrag [zh]": ours_jieba,
    "langchain-community": langchain_community,
    "llama-index": llamaindex,
    "rank-bm25": rank_bm25,
    "bm25s": bm25s_default,
    "tantivy": tantivy,
}


def measure(collection: Collection, build: Callable[[Collection], Ranker]) -> dict[str, float]:
    """Return nDCG@10 of one system over one collection, and the seconds it took."""
    started = time.perf_counter()
    found = build(collection)(list(collection.queries.values()))
    seconds = time.perf_counter() - started
    gains = [
        ndcg_at_k(ids, collection.grades[query], K)
        for query, ids in zip(collection.queries, found, strict=True)
    ]
    return {"ndcg": sum(gains) / len(gains), "seconds": seconds}


def measure_all(collections: Iterable[Collection]) -> Results:
    """Measure every system over every collection; a peer that is not installed is left out."""
    results: Results = {}
    for collection in collections:
        name = collection.name
        results[name] = {}
        for system, build in SYSTEMS.items():
            try:
                results[name][system] = measure(collection, build)
            except ImportError as error:
                print(f"{system} is left out: {error}", file=sys.stderr)
        print(f"{name} is measured", file=sys.stderr)
    return results


def missed_floors(results: Results) -> list[str]:
    """Say which floors are not reached."""
    return [
        f"{system} on {name}: {results[name][system]['ndcg']:.4f} is below {floor}"
        for system, floors in (("easyrag", FLOORS), ("easyrag [stem]", STEMMED_FLOORS))
        for name, floor in floors.items()
        if name in results and system in results[name] and results[name][system]["ndcg"] < floor
    ]


def print_table(results: Results) -> None:
    """Print one line per collection, one column per system."""
    print(f"nDCG@{K}".ljust(18), "floor".rjust(6), *(f" {system}" for system in SYSTEMS))
    for name, measured in results.items():
        floor = f"{FLOORS[name]:.3f}" if name in FLOORS else "-"
        cells = (
            (f"{measured[system]['ndcg']:.4f}" if system in measured else "-").rjust(
                len(system) + 1
            )
            for system in SYSTEMS
        )
        print(name.ljust(18), floor.rjust(6), *cells)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a floor is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("collections", nargs="*", help="names; all that are there if none is given")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--small", action="store_true", help="only look whether everything runs")
    options = parser.parse_args(arguments)
    names = options.collections or collection_names()
    if not names and not options.small:
        print(f"No collections under {data_root() / 'ir'}: set EASYRAG_DATA. Nothing is measured.")
        return 0
    collections = map(read_collection, names) if names else iter(sample_collections())
    if options.small:
        collections = map(reduced, collections)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the peers' own
        results = measure_all(collections)
    missed = [] if options.small else missed_floors(results)
    if options.json:
        print(json.dumps({"results": results, "missed": missed}, indent=1))
    else:
        print_table(results)
        reached = "No floor holds for so few." if options.small else "Every floor is reached."
        print("\n".join(missed) or reached)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
