"""Ours and the peers on the same input, in one process: `python -m tests.benchmarks.speed`.

Prints a table of ratios beside those that are asked for. Nothing here fails for being slow: a
ratio is read by a person, and a machine under load is not a fault of the code. Results that must
be equal are compared, though.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import time
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from easyrag_core.errors import MissingDependencyError
from tests.benchmarks import _markdown, _routing
from tests.benchmarks._code import code, code_nodes
from tests.benchmarks._corpora import corpus, without_separators, word_windows
from tests.benchmarks._timing import Row, interleaved, megabytes, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["main"]

SIZE, OVERLAP = 800, 100
LANGUAGES = ("en", "zh")
PEERS = (
    *("numpy", "langchain-core", "langchain-text-splitters", "langchain-classic"),
    *("llama-index-core", "bm25s", "tiktoken", "tree-sitter-language-pack"),
)


@dataclass(frozen=True)
class Settings:
    """How large and how often: the defaults are those of the figures that we quote."""

    megabytes: float = 10
    documents: tuple[int, ...] = (10_000, 100_000)
    candidates: int = 1000
    rounds: int = 3

    def times(self, *calls: Callable[[], object]) -> list[float]:
        """Median seconds of each call."""
        return interleaved(calls, rounds=self.rounds)


def spans(settings: Settings) -> Iterator[Row]:
    """Exact spans against strings without a place."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    from easyrag_core import DocumentChunker

    ours = DocumentChunker(SIZE, OVERLAP)
    peer = RecursiveCharacterTextSplitter(chunk_size=SIZE, chunk_overlap=OVERLAP)
    for language in LANGUAGES:
        text, source = corpus(language, int(settings.megabytes * 1e6))
        taken = settings.times(partial(ours.spans, text), partial(peer.split_text, text))
        yield Row(
            name=f"spans-{language}",
            work=f"{megabytes(text):.3g} MB of {source}, {SIZE}/{OVERLAP}",
            peer="RecursiveCharacterTextSplitter.split_text",
            amount=megabytes(text),
            unit="MB",
            ours=taken[0],
            theirs=taken[1],
            asked=3,
        )


def documents(settings: Settings) -> Iterator[Row]:
    """LangChain documents with every offset, line and id against those with a start alone."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    from langchain_easyrag import DocumentTextSplitter

    ours = DocumentTextSplitter(chunk_size=SIZE, chunk_overlap=OVERLAP)
    peer = RecursiveCharacterTextSplitter(
        chunk_size=SIZE, chunk_overlap=OVERLAP, add_start_index=True
    )
    facts = [{"source": "a.md", "title": "A"}]
    for language in LANGUAGES:
        text, source = corpus(language, int(settings.megabytes * 1e6))
        taken = settings.times(
            partial(ours.create_documents, [text], facts),
            partial(peer.create_documents, [text], facts),
        )
        yield Row(
            name=f"documents-{language}",
            work=f"{megabytes(text):.3g} MB of {source}, {SIZE}/{OVERLAP}",
            peer="Recursive.create_documents(add_start_index)",
            amount=megabytes(text),
            unit="MB",
            ours=taken[0],
            theirs=taken[1],
            asked=1.5,
        )


def nodes(settings: Settings) -> Iterator[Row]:
    """LlamaIndex nodes by tokens against SentenceSplitter, both counting with one tiktoken."""
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.schema import Document
    from llama_index.core.utils import get_tokenizer

    from llamaindex_easyrag import DocumentNodeParser

    tokenizer = get_tokenizer()  # cl100k_base, from a file that llama-index-core brings

    def count(text: str) -> int:
        return len(tokenizer(text))

    ours = DocumentNodeParser(chunk_size=200, chunk_overlap=25, length_function=count)
    peer = SentenceSplitter(chunk_size=200, chunk_overlap=25, tokenizer=tokenizer)
    for language in LANGUAGES:
        text, source = corpus(language, int(settings.megabytes * 1e5))
        given = [Document(text=text, id_="a")]
        taken = settings.times(
            partial(ours.get_nodes_from_documents, given),
            partial(peer.get_nodes_from_documents, given),
        )
        yield Row(
            name=f"nodes-{language}",
            work=f"{megabytes(text):.3g} MB of {source}, 200/25 tokens",
            peer="SentenceSplitter",
            amount=megabytes(text),
            unit="MB",
            ours=taken[0],
            theirs=taken[1],
            asked=3,
        )


def mmr(settings: Settings) -> Iterator[Row]:
    """The same picks from the same matrix."""
    from langchain_core.vectorstores.utils import maximal_marginal_relevance as peer

    from easyrag_core import maximal_marginal_relevance

    n, d = settings.candidates, 768
    k = min(50, n)
    vectors, query = _clustered(n, d)
    as_lists = vectors.tolist()

    def ours(given: Any) -> list[int]:
        matrix = np.asarray(given, dtype=np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix)) * np.linalg.norm(query)
        relevance = matrix @ query / lengths
        return list(maximal_marginal_relevance(matrix, relevance, k=k, lambda_mult=0.7).indices)

    for name, given in (("mmr", vectors), ("mmr-lists", as_lists)):
        theirs = partial(peer, query, given, lambda_mult=0.7, k=k)
        _equal(name, ours(given), [int(at) for at in theirs()])
        taken = settings.times(partial(ours, given), theirs)
        yield Row(
            name=name,
            work=f"n={n}, k={k}, d={d}, query included",
            peer="langchain-core maximal_marginal_relevance",
            ours=taken[0],
            theirs=taken[1],
            asked=50 if name == "mmr" else None,
            note="same picks",
        )


def _clustered(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(5)
    centres = draw.normal(size=(20, d))
    vectors = centres[draw.integers(20, size=n)] + 0.7 * draw.normal(size=(n, d))
    query = centres[:3].mean(axis=0)
    return vectors.astype(np.float32), query.astype(np.float32)


def rrf(settings: Settings) -> Iterator[Row]:
    """Documents in, documents out."""
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_core.documents import Document

    from easyrag_core import reciprocal_rank_fusion
    from langchain_easyrag.retrievers.fusion import fuse_documents

    draw = random.Random(11)
    pool = [
        Document(id=f"{at:032x}", page_content=f"passage {at} " + "word " * 80) for at in range(240)
    ]
    lists = [draw.sample(pool, 100) for _ in range(4)]
    ids = [[document.id for document in ranking] for ranking in lists]
    peer = EnsembleRetriever.model_construct(retrievers=[], weights=[1.0] * 4, c=60, id_key=None)
    theirs = peer.weighted_reciprocal_rank(lists)
    _equal("rrf", {d.id for d in fuse_documents(lists)}, {d.id for d in theirs})
    calls = {
        "the best 10": partial(fuse_documents, lists, k=10),
        "all of them": partial(fuse_documents, lists),
        "ids alone, with ranks": partial(reciprocal_rank_fusion, ids, k=10),
    }
    for what, call in calls.items():
        taken = settings.times(call, partial(peer.weighted_reciprocal_rank, lists))
        yield Row(
            name="rrf",
            work=f"4 lists of 100 Documents, {what}",
            peer="EnsembleRetriever.weighted_reciprocal_rank",
            ours=taken[0],
            theirs=taken[1],
            asked=2.5 if what == "the best 10" else None,
            note="same documents",
        )


def linear(settings: Settings) -> Iterator[Row]:
    """The time for a quarter, a half and the whole of a text: twice the text, twice the time."""
    from easyrag_core import DocumentChunker

    chunker = DocumentChunker(SIZE, OVERLAP)
    size = int(settings.megabytes * 1e6)
    texts = {
        "prose": corpus("en", size)[0],
        "prose-zh": corpus("zh", size)[0],
        "no-separator": without_separators(size),
    }
    for name, text in texts.items():
        parts = [text[: len(text) // share] for share in (4, 2, 1)]
        taken = settings.times(*(partial(chunker.chunk, part, "a") for part in parts))
        for part, seconds in zip(parts, taken, strict=True):
            growth = seconds / taken[0] / (len(part) / len(parts[0]))
            yield Row(
                name=f"linear-{name}",
                work=f"{megabytes(part):.3g} MB into chunks",
                amount=megabytes(part),
                unit="MB",
                ours=seconds,
                note=f"{seconds:.2f} s, {growth:.2f} of linear",
            )


def analysis(settings: Settings) -> Iterator[Row]:
    """Texts into terms; Chinese against the words of jieba, which is what the peers need for it."""
    from easyrag_core import JiebaAnalyzer, StandardAnalyzer
    from easyrag_core.index.analyzer._segmenter import loaded_tokenizer

    default, words, jieba = StandardAnalyzer(), JiebaAnalyzer(), loaded_tokenizer()
    pieces = {}
    for language in LANGUAGES:
        text, _ = corpus(language, int(settings.megabytes * 1e6))
        pieces[language] = [text[at : at + SIZE] for at in range(0, len(text), SIZE)]

    def by_jieba(texts: list[str]) -> None:
        for text in texts:
            jieba.lcut_for_search(text)

    for analyzer, language, peer, name in (
        (default, "en", _tokens, "bm25s.tokenize"),
        (default, "zh", by_jieba, "jieba.lcut_for_search"),
        (words, "zh", by_jieba, "jieba.lcut_for_search"),
    ):
        texts = pieces[language]
        taken = settings.times(partial(analyzer.analyze_many, texts), partial(peer, texts))
        size = sum(map(megabytes, texts))
        work = f"{size:.3g} MB in pieces of {SIZE}, {analyzer.name}"
        yield Row(f"analysis-{language}", work, name, size, "MB", taken[0], taken[1])


def bm25(settings: Settings) -> Iterator[Row]:
    """Build from texts, then ask from text: tokenising counts on both sides."""
    import bm25s

    from easyrag_core import BM25Index

    for count in settings.documents:
        texts = word_windows(count)
        ids = [f"{at:032x}" for at in range(count)]

        def ours(ids: list[str] = ids, texts: list[str] = texts) -> Any:
            index = BM25Index()
            index.add(ids, texts)
            return index

        def peer(texts: list[str] = texts) -> Any:
            index = bm25s.BM25(method="lucene")
            index.index(_tokens(texts), show_progress=False)
            return index

        taken = settings.times(ours, peer)
        work = f"{count:,} documents of 60 to 100 words"
        yield Row("bm25-build", work, "bm25s", count, "document", taken[0], taken[1])
        yield from _bm25_queries(settings, ours(), peer(), texts)


def _tokens(texts: list[str]) -> Any:
    import bm25s

    return bm25s.tokenize(texts, stopwords=None, token_pattern=r"(?u)\w+", show_progress=False)


def _bm25_queries(settings: Settings, ours: Any, peer: Any, texts: list[str]) -> Iterator[Row]:
    draw = random.Random(13)
    for words in (2, 5, 10, 30):
        queries = [" ".join(draw.choice(texts).split()[:words]) for _ in range(50)]

        def ask_ours(queries: list[str] = queries) -> None:
            for query in queries:
                ours.search(query, 10)

        def ask_peer(queries: list[str] = queries) -> None:
            for query in queries:
                peer.retrieve(_tokens([query]), k=10, show_progress=False)

        taken = settings.times(ask_ours, ask_peer)
        work = f"{words} words in {len(texts):,} documents"
        yield Row("bm25-query", work, "bm25s (numpy)", len(queries), "query", taken[0], taken[1])


def pipeline(settings: Settings) -> Iterator[Row]:
    """What the line adds to its slowest channel: four channels of 50, in threads and as tasks."""
    import asyncio

    from easyrag_core import Channel, Dedupe, Hit, Rerank, RetrievalPipeline

    draw = random.Random(17)
    lists = [
        [
            Hit(f"{at:032x}", 1 / rank, rank)
            for rank, at in enumerate(draw.sample(range(120), 50), 1)
        ]
        for _ in range(4)
    ]

    async def given(_: str, __: int, found: list[Hit]) -> list[Hit]:
        return found

    channels = [
        Channel(
            f"c{n}", lambda _, __, found=found: found, k=50, asearch=partial(given, found=found)
        )
        for n, found in enumerate(lists)
    ]
    stages = [Dedupe(), Rerank(lambda _, hits: [hit.score for hit in hits], min_score=0)]
    lines = {
        "fusion alone": RetrievalPipeline(channels),
        "fusion, dedupe, rerank": RetrievalPipeline(channels, stages),
    }
    for what, line in lines.items():

        async def asked(line: Any = line) -> None:
            for _ in range(20):
                await line.arun("q")

        calls = partial(line.run, "q"), lambda asked=asked: asyncio.run(asked())
        # The processor's time: that of threads on a busy machine says how busy it is.
        taken = interleaved(calls, rounds=settings.rounds, clock=time.process_time)
        for how, seconds in (("threads", taken[0]), ("tasks", taken[1] / 20)):
            yield Row(
                name="pipeline",
                work=f"4 channels of 50, {what}, {how}",
                ours=seconds,
                note="over the slowest channel; under 2 ms are asked",
            )


CONTESTS: dict[str, Callable[[Settings], Iterator[Row]]] = {
    "spans": spans,
    "documents": documents,
    "nodes": nodes,
    "code": code,
    "code-nodes": code_nodes,
    "markdown": _markdown.documents,
    "markdown-sections": _markdown.sections,
    "markdown-tokens": _markdown.tokens,
    "mmr": mmr,
    "rrf": rrf,
    "linear": linear,
    "analysis": analysis,
    "bm25": bm25,
    "pipeline": pipeline,
    "routing": _routing.first_token,
}


def _equal(name: str, ours: object, theirs: object) -> None:
    if ours != theirs:
        raise AssertionError(f"{name}: the results differ\nours   {ours}\ntheirs {theirs}")


def machine() -> dict[str, str]:
    """Where the figures come from."""
    found = {"python": platform.python_version(), "cpus": str(os.cpu_count())}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ours and the peers on the same input.")
    parser.add_argument("--only", action="append", choices=CONTESTS, help="may be given twice")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here as well")
    parser.add_argument("--megabytes", type=float, default=10, help="size of the texts")
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each, at least 3")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the contests, print the table; a peer that is not installed is said and left out."""
    asked = _parsed(arguments)
    settings = Settings(
        megabytes=asked.megabytes,
        documents=tuple(asked.documents),
        rounds=max(3, asked.rounds),
    )
    rows: list[Row] = []
    for name in asked.only or CONTESTS:
        try:
            for row in CONTESTS[name](settings):
                rows.append(row)
                print(f"... {row.name}: {row.work}", file=sys.stderr, flush=True)
        except (ModuleNotFoundError, MissingDependencyError) as missing:
            rows.append(Row(name, "left out", note=f"{missing.name} is not installed"))
    print(table(rows))
    print("\n" + ", ".join(f"{name} {told}" for name, told in machine().items()))
    if asked.json:
        told = {"machine": machine(), "rows": [row.told() for row in rows]}
        asked.json.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


def _with_one_thread() -> None:
    """Start again with one BLAS thread: several on a busy machine give times that mean nothing."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    if not any(name in os.environ for name in names):
        os.environ.update(dict.fromkeys(names, "1"))
        command = [sys.executable, "-m", "tests.benchmarks.speed", *sys.argv[1:]]
        os.execv(sys.executable, command)


if __name__ == "__main__":
    _with_one_thread()
    sys.exit(main())
