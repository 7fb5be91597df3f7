"""The core as a user types it: read by mypy and pyright, never run.

A line with an ignore shows a mistake that the types refuse; were it accepted, the ignore would
be unused and the check would fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, assert_type

import numpy as np

import easyrag_core as core
from easyrag_core.pipeline import ChannelOutcome, arun_channels, run_channels

__all__: list[str] = []


def count_tokens(text: str) -> int:
    """Stand for any tokenizer."""
    return len(text.split())


def chunking(text: str) -> None:
    """Texts into chunks."""
    chunker = core.DocumentChunker(800, 100, length_function=count_tokens, boundary="word")
    assert_type(chunker.spans(text), list[tuple[int, int]])
    assert_type(chunker.chunk(text, "doc", metadata={"page": 3}), list[core.Chunk])
    assert_type(chunker.iter_chunks(text), Iterator[core.Chunk])
    assert_type(chunker.chunk_size, int)
    chunk = chunker.chunk(text)[0]
    assert_type(chunk.start, int)
    assert_type(chunk.parent_id, str | None)
    assert_type(chunk.heading_path, tuple[str, ...])
    assert_type(chunk.metadata, dict[str, Any])
    core.DocumentChunker("800")  # type: ignore[arg-type]
    core.DocumentChunker(length_function=str.split)  # type: ignore[arg-type]
    core.DocumentChunker(800, 100, count_tokens)  # type: ignore[call-arg]


def analysing(text: str) -> None:
    """Texts into terms: ours, or anything of that shape."""
    analyzer: core.Analyzer = core.StandardAnalyzer(stop_words=["the"], stemmer="english")
    assert_type(analyzer(text), list[str])
    analyzer = core.JiebaAnalyzer(words=["云原生"])
    core.StandardAnalyzer().analyze_many(["a"], processes=2, show_progress=True)
    core.BM25Index(analyzer=core.StandardAnalyzer(cjk="unigram+bigram"))
    core.StandardAnalyzer(lowercase="yes")  # type: ignore[arg-type]


def searching(index: core.BM25Index) -> None:
    """Terms into hits."""
    index.add(["a", "b"], ["one", "two"], processes=2, show_progress=True)
    index.add(["c"], ["three"], fields=core.field_texts([{"title": "x"}], index.field_weights))
    assert_type(index.remove(["a"]), int)
    hits = index.search("one", k=3, filter={"a"}, params=core.BM25Params(k1=1.2, b=0.5))
    assert_type(hits, list[core.Hit])
    assert_type(hits[0].channels, Mapping[str, core.ChannelScore])
    assert_type(hits[0].channels["bm25"].score, float | None)
    assert_type(index.search_batch(["one", "two"]), list[list[core.Hit]])
    index.search("one", filter=lambda id_: id_.startswith("a"))
    index.search("one", filter=np.ones(2, dtype=np.bool_))
    index.save("folder")
    assert_type(core.BM25Index.load("folder", mmap=False), core.BM25Index)
    assert_type("a" in index, bool)
    assert_type(len(index), int)
    index.search(["one"])  # type: ignore[arg-type]
    index.search("one", 3, {"a"})  # type: ignore[call-arg]


def comparing(vectors: core.VectorIndex) -> None:
    """Vectors into hits."""
    vectors.add(["a"], np.ones((1, 3), dtype=np.float32))
    vectors.add(["a"], [[1.0, 2.0, 3.0]])
    assert_type(vectors.search([1.0, 2.0, 3.0], k=2), list[core.Hit])


def storing(chunk: core.Chunk) -> None:
    """Every store is a ChunkStore."""
    stores: list[core.ChunkStore] = [
        core.InMemoryChunkStore(),
        core.SQLiteChunkStore("chunks.sqlite"),
        core.CachedChunkStore(core.InMemoryChunkStore(), maxsize=10, ttl=60.0),
    ]
    for store in stores:
        store.put_many([chunk])
        assert_type(store.get_many(["a"]), list[core.Chunk | None])
        assert_type(store.delete_document("doc"), list[str])


def hybrid(chunks: list[core.Chunk], vector: list[float]) -> None:
    """One step in, one search out."""
    index = core.HybridIndex(core.HybridConfig(fusion="score", weights=None))
    index.add(chunks)
    index.add(chunks, np.ones((len(chunks), 3)))
    assert_type(index.search("one", vector, k=5, merge=True), list[core.Hit])
    assert_type(index.get_many(["a"]), list[core.Chunk | None])


def fusing() -> None:
    """Any hashable key comes back as it was."""
    by_text = core.reciprocal_rank_fusion([["a", "b"], ["b"]], weights=[1, 2], k=10)
    assert_type(by_text[0].key, str)
    by_number = core.reciprocal_rank_fusion([[1, 2], [2]])
    assert_type(by_number[0].key, int)
    assert_type(by_number[0].ranks, tuple[int | None, ...])
    scored = core.score_fusion([[("a", 0.5), ("b", None)]], normalization="z_score")
    assert_type(scored[0].score, float)
    core.reciprocal_rank_fusion(["a"], k="ten")  # type: ignore[arg-type]


def diversifying() -> None:
    """Arrays or lists in, indices out; a missing vector is a None."""
    picked = core.maximal_marginal_relevance([[1.0, 0.0], None], [0.5, 0.4], k=1)
    assert_type(picked.indices, list[int])
    assert_type(picked.gains, list[float])
    core.maximal_marginal_relevance(np.ones((2, 3)), np.ones(2), k=2, lambda_mult=0.5)


def channelling() -> None:
    """The channels' own type comes out."""
    outcome = run_channels({"a": lambda: len("x")}, timeout=None)
    assert_type(outcome, ChannelOutcome[int])
    assert_type(outcome.results, dict[str, int])
    assert_type(outcome.errors, dict[str, Exception])


async def channelling_later() -> None:
    """And so it does when it is awaited."""

    async def answer() -> str:
        return "x"

    assert_type((await arun_channels({"a": answer})).results, dict[str, str])


def understanding(history: list[core.Message]) -> None:
    """Messages out, text in; the same for sync and async."""
    prompt = core.RewritePrompt(history_turns=4)
    assert_type(prompt.messages("Its price?", history), list[core.Message])
    assert_type(core.parse_rewrite("Price?", "Its price?").reason, str | None)
    assert_type(core.parse_queries("a", "b", count=2), list[str])
    assert_type(core.parse_decomposition("{}", "b").questions, tuple[str, ...])
    assert_type(core.HistoryBlend().queries("b", history)[0].weight, float)
    assert_type(core.TermMap({"a": "b"}).apply("a"), str)
    core.MultiQueryPrompt(core.PromptTemplate("", "{question}"), count=3)
    core.RewritePrompt({"fr": core.PromptTemplate("", "")})  # type: ignore[dict-item]
    core.Message("user", None)  # type: ignore[arg-type]


def routing(tree: core.IntentTree) -> None:
    """A decision per question; no topic is an answer."""
    decision = core.parse_intents("[]", tree, ["a"])[0]
    assert_type(decision.best, core.IntentNode | None)
    if decision.clarification is not None:
        assert_type(decision.clarification.read("2"), tuple[str, ...] | None)


def filtering() -> None:
    """What a model draws narrows what the system allows."""
    system = core.Condition("tenant", "eq", "a") & ~core.Condition("tags", "any", ["x"])
    policy = core.FilterPolicy(system=system, business_schema=[core.FilterField("year", "integer")])
    drawn = core.parse_filters("[]", policy)
    assert_type(policy.apply(drawn), core.Filter | None)
    assert_type(core.split_filter(system, {"eq"}), tuple[core.Filter | None, core.Filter | None])
    core.FilterPolicy(system={"tenant": "a"})  # type: ignore[arg-type]


def evaluating() -> None:
    """Runs and rankings come in several forms; comparisons and tunings are values."""
    hits = core.BM25Index().search("x")
    qrels: Mapping[str, Mapping[str, float] | list[str]] = {"q": {"a": 2}, "r": ["b"]}
    evaluation = core.evaluate({"q": hits, "r": {"b": 1.0}}, qrels, metrics=["mrr"])
    assert_type(evaluation.estimates["mrr"].low, float)
    compared = core.compare({"words": core.BM25Index().search}, qrels)
    assert_type(compared.best("mrr"), str)
    core.compare({"words": len}, qrels)  # type: ignore[arg-type]
    tuned = core.tune(lambda settings: {"q": ["a"]}, {"k1": [1.2, 1.5]}, qrels)
    assert_type(tuned.held_out, core.Comparison)
    assert_type(core.ndcg_at_k(hits, ["a"], 10), float)


async def evaluating_later() -> None:
    """Coroutine functions and plain ones, side by side."""

    async def ask(question: str) -> list[str]:
        return [question]

    assert_type(await core.acompare({"later": ask}, {"q": ["a"]}), core.Comparison)


def explaining() -> None:
    """Hits are explained; events go to OpenTelemetry like to any handler."""
    stages = [core.StageFacts("mmr", ("a",), ())]
    assert_type(core.explain([core.Hit("a", 1.0, 1)], stages=stages), core.Explanation)
    handler: core.EventHandler = core.OpenTelemetryHandler()
    core.emit(handler, "easyrag.test")


def lining() -> None:
    """A pipeline gives what its channels give."""

    def search(query: str, k: int) -> list[core.Hit]:
        return [core.Hit(query, 1.0, k)]

    pipeline = core.RetrievalPipeline([core.Channel("words", search)], [core.Dedupe[core.Hit]()])
    result = pipeline.run("x")
    assert_type(result.hits, list[core.Hit])
    assert_type(result.stages, tuple[core.StageFacts, ...])
    core.RetrievalPipeline([search])  # type: ignore[arg-type]


def failing() -> None:
    """Errors carry what happened, and are the builtins that a caller would catch."""
    try:
        chunking("x")
    except core.InvalidParameterError as refused:
        assert_type(refused.name, str)
        expect_value_error(refused)
    except core.DimensionMismatchError as mismatch:
        assert_type(mismatch.expected, int)
        expect_value_error(mismatch)
    except core.ChunkNotFoundError as gone:
        assert_type(gone.ids, list[str])
        expect_key_error(gone)
    except core.AllChannelsFailedError as failed:
        assert_type(failed.errors, dict[str, BaseException])
    except core.MissingDependencyError as missing:
        assert_type(missing.extra, str)
        expect_import_error(missing)
        expect_key_error(missing)  # type: ignore[arg-type]


def expect_value_error(error: ValueError) -> None:
    """Stand for a caller who does not know us."""


def expect_key_error(error: KeyError) -> None:
    """Stand for another."""


def expect_import_error(error: ImportError) -> None:
    """Stand for a third."""
