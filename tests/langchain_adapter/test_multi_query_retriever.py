"""Several queries for one retriever: langchain-classic's arguments, fused, explained, parallel."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest
from langchain_classic.retrievers import MultiQueryRetriever as TheirRetriever
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from easyrag_core import AllChannelsFailedError, HistoryBlend, InvalidParameterError
from langchain_easyrag import (
    BM25Retriever,
    HistoryBlendRetriever,
    HybridRetriever,
    MultiQueryRetriever,
    QueryRewriter,
)
from tests.langchain_adapter.query_samples import TALK, WAYS, AllRuns, ScriptedModel
from tests.langchain_adapter.samples import WAIT, ListRetriever, WordEmbeddings, corpus, ids

EACH_WAY = pytest.mark.parametrize("way", WAYS)
REPLY = "1. marginal relevance\n2. term rarity\n3. too many"


@pytest.fixture
def bm25():
    return BM25Retriever.from_documents(corpus())


def asking(queries):
    """A chain that gives these queries."""
    return RunnableLambda(lambda _: list(queries))


# The arguments of langchain-classic


def test_from_llm_takes_all_arguments_of_theirs_in_their_order(bm25):
    """Names, order and kinds: a change of the import line is enough."""
    theirs = inspect.signature(TheirRetriever.from_llm).parameters
    ours = inspect.signature(MultiQueryRetriever.from_llm).parameters
    positional = [name for name, one in ours.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert positional == list(theirs)
    prompt = PromptTemplate.from_template("Three versions of {question}")
    model = ScriptedModel(REPLY)
    retriever = MultiQueryRetriever.from_llm(bm25, model, prompt, "lines", include_original=False)
    assert ids(retriever.invoke("ranking"))[:1] == ["mmr"]
    assert model.asked == 'Three versions of "ranking"'


def test_their_constructor_with_a_chain_of_the_users(bm25):
    """`llm_chain` from `{"question": …}` to a list, or to a text with one query a line."""
    text = "Here you are:\n1. marginal relevance"
    for worded in (["marginal relevance"], text, AIMessage(text), {"text": text}):
        asked: list[dict] = []
        chain = RunnableLambda(
            lambda given, asked=asked, worded=worded: asked.append(given) or worded
        )
        retriever = MultiQueryRetriever(
            retriever=bm25, llm_chain=chain, verbose=False, parser_key="lines"
        )
        found = retriever.invoke("rarity")
        assert asked == [{"question": "rarity"}]
        assert found[0].metadata["easyrag"]["queries"]
        assert set(ids(found)) == {"mmr", "bm25"}


def test_the_same_documents_as_theirs(bm25):
    """For clean replies the union is theirs; ours is ranked and says why."""
    chain = asking(["marginal relevance", "term rarity"])
    theirs = TheirRetriever(retriever=bm25, llm_chain=chain, include_original=True)
    ours = MultiQueryRetriever(retriever=bm25, llm_chain=chain)
    assert set(ids(ours.invoke("ranking"))) == set(ids(theirs.invoke("ranking")))


# What is asked, and what it gives


@EACH_WAY
def test_the_question_comes_first_and_never_more_than_count(bm25, way):
    """Queries as searched, and which of them found each document."""
    model = ScriptedModel(REPLY)
    retriever = MultiQueryRetriever.from_llm(bm25, model)
    found = {
        d.id: d.metadata["easyrag"]["queries"] for d in WAYS[way](retriever, "ranking rankings")
    }
    assert found["rrf"] == ["ranking rankings"]
    assert found["mmr"] == ["ranking rankings", "marginal relevance"]
    assert found["bm25"] == ["ranking rankings", "term rarity"]
    assert model.calls == 1


@EACH_WAY
@pytest.mark.parametrize("reply", ["", ConnectionError("gone"), "I cannot help with that."])
def test_without_usable_queries_the_question_is_asked(bm25, way, reply):
    """Q3: blank, refused or failed: the question's own documents, in order."""
    for original in (True, False):
        retriever = MultiQueryRetriever.from_llm(
            bm25, ScriptedModel(reply), include_original=original
        )
        assert ids(WAYS[way](retriever, "ranking")) == ids(bm25.invoke("ranking"))


@EACH_WAY
def test_a_failing_chain_of_the_users_too(bm25, way):
    """A chain that raises, or gives something else than queries; `strict` raises."""
    for broken in (RunnableLambda(lambda _: 1 / 0), RunnableLambda(lambda _: 7)):
        retriever = MultiQueryRetriever(retriever=bm25, llm_chain=broken)
        assert ids(WAYS[way](retriever, "ranking")) == ids(bm25.invoke("ranking"))
    strict = MultiQueryRetriever(
        retriever=bm25, llm_chain=RunnableLambda(lambda _: 1 / 0), strict=True
    )
    with pytest.raises(ZeroDivisionError):
        WAYS[way](strict, "ranking")


@EACH_WAY
def test_all_queries_are_asked_at_once(way):
    """Each search waits for the others: only in parallel do all of them get through."""
    together, tasks = threading.Barrier(3), asyncio.Barrier(3)

    class Meeting(ListRetriever):
        def _get_relevant_documents(self, query, *, run_manager, k=None):
            together.wait(WAIT)
            return self.documents

        async def _aget_relevant_documents(self, query, *, run_manager, k=None):
            await tasks.wait()
            return self.documents

    retriever = MultiQueryRetriever(
        retriever=Meeting(documents=corpus()), llm_chain=asking(["b", "c"])
    )
    assert len(WAYS[way](retriever, "a")) == len(corpus())


@EACH_WAY
def test_a_failing_query_is_left_out(way):
    """The others answer; when all fail, every error is told."""

    def search(query):
        if query != "good":
            raise ConnectionError(query)
        return [Document("x", id="x")]

    retriever = MultiQueryRetriever(
        retriever=RunnableLambda(search), llm_chain=asking(["good"]), include_original=True
    )
    assert ids(WAYS[way](retriever, "bad")) == ["x"]
    broken = MultiQueryRetriever(retriever=RunnableLambda(search), llm_chain=asking(["worse"]))
    with pytest.raises(AllChannelsFailedError):
        WAYS[way](broken, "bad")


def test_ranks_are_fused_by_default_and_scores_on_request(bm25):
    """`merge="max"` gives each document its best score over the queries."""
    queries = ["marginal relevance", "term rarity"]
    best: dict[str, float] = {}
    for query in ("ranking rankings", *queries):
        for document in bm25.invoke(query):
            score = document.metadata["easyrag"]["score"]
            best[document.id] = max(score, best.get(document.id, 0.0))
    merged = MultiQueryRetriever(retriever=bm25, llm_chain=asking(queries), merge="max")
    found = merged.invoke("ranking rankings")
    assert {d.id: d.metadata["easyrag"]["score"] for d in found} == pytest.approx(best)
    assert [d.metadata["easyrag"]["rank"] for d in found] == [1, 2, 3]
    fused = MultiQueryRetriever(retriever=bm25, llm_chain=asking(queries)).invoke(
        "ranking rankings"
    )
    assert fused[0].metadata["easyrag"]["score"] == pytest.approx(1 / 61 + 1 / 62)


def test_a_retriever_without_scores_is_merged_by_its_best_rank(caplog):
    """Ranks take the place of scores, with a warning."""
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(corpus())
    retriever = MultiQueryRetriever(
        retriever=store.as_retriever(), llm_chain=asking(["cat mat"]), merge="max"
    )
    found = retriever.invoke("bm25 ranking")
    assert found[0].metadata["easyrag"]["score"] == 1.0
    assert "no scores" in caplog.text


@EACH_WAY
def test_all_queries_are_embedded_in_one_batch(way, caplog):
    """One call of the model for three queries, the same documents; a failing batch is survived."""
    model = WordEmbeddings()
    hybrid = HybridRetriever.from_documents(corpus(), model)
    chain = asking(["marginal relevance", "cat mat"])
    plain = MultiQueryRetriever(retriever=hybrid, llm_chain=chain)
    wanted = WAYS[way](plain, "ranking")
    model.batches.clear()
    model.queries.clear()
    batched = MultiQueryRetriever(
        retriever=hybrid, llm_chain=chain, embed_queries=model.embed_documents
    )
    assert WAYS[way](batched, "ranking") == wanted
    assert (model.batches, model.queries) == ([["ranking", "marginal relevance", "cat mat"]], [])
    broken = MultiQueryRetriever(
        retriever=hybrid, llm_chain=chain, embed_queries=lambda texts: 1 / 0
    )
    assert WAYS[way](broken, "ranking") == wanted
    assert "one batch failed" in caplog.text
    with pytest.raises(InvalidParameterError, match="embed_queries"):
        MultiQueryRetriever(
            retriever=ListRetriever(documents=[]), llm_chain=chain, embed_queries=len
        )


def test_k_and_documents_without_ids():
    """`k` in constructor and call; equal content of one source is one document."""
    rows = [Document("a"), Document("b"), Document("a", metadata={"source": "x"})]
    retriever = MultiQueryRetriever(
        retriever=ListRetriever(documents=rows), llm_chain=asking(["y"]), k=2
    )
    assert len(retriever.invoke("x")) == 2
    assert len(retriever.invoke("x", k=3)) == 3
    assert retriever.invoke("x", k=0) == []


def test_doubles_are_asked_once(bm25):
    """Equal but for case, width and final marks."""
    asked = []
    counted = RunnableLambda(lambda query: asked.append(query) or [])
    MultiQueryRetriever(
        retriever=counted, llm_chain=asking(["What is RAG", "what is rag?", " ", "ＲＡＧ"])
    ).invoke("What is RAG?")
    assert asked == ["What is RAG?", "ＲＡＧ"]


@EACH_WAY
def test_runs_are_nested_and_config_goes_on(bm25, way):
    """The chain and every search are child runs with the caller's tags."""
    runs = AllRuns()
    retriever = MultiQueryRetriever.from_llm(bm25, ScriptedModel(REPLY))
    WAYS[way](retriever, "ranking", {"callbacks": [runs], "tags": ["t"]})
    (outer,) = runs.named("MultiQueryRetriever")
    searches = runs.named("BM25Retriever")
    assert {run["query"] for run in searches} == {"ranking", "marginal relevance", "term rarity"}
    assert all(run["parent_run_id"] == outer["run_id"] for run in searches)
    assert all("t" in run["tags"] for run in searches)
    assert runs.parent_of("MultiQueryGenerator") == outer["run_id"]


@pytest.mark.parametrize(
    "wrong",
    [{"retriever": 3}, {"llm_chain": print}, {"merge": "sum"}, {"count": 0}, {"k": -1}, {"c": 1}],
)
def test_bad_settings_are_refused(bm25, wrong):
    """At construction."""
    with pytest.raises(InvalidParameterError):
        MultiQueryRetriever(**{"retriever": bm25, "llm_chain": asking([]), **wrong})


# The question with what was said before it


@EACH_WAY
def test_a_follow_up_is_searched_with_the_last_answer(way):
    """Without a model: the question's own scores, and a tenth of the last answer's."""
    rows = [
        Document("Redis costs nothing: it is a key-value store in memory", id="redis"),
        Document("Kafka costs nothing", id="kafka"),
    ]
    bm25 = BM25Retriever.from_documents(rows)
    blend = HistoryBlendRetriever(bm25)
    given = {"input": "What costs nothing?", "chat_history": TALK}
    assert ids(bm25.invoke(given["input"])) == ["kafka", "redis"]
    found = WAYS[way](blend, given)
    assert ids(found) == ["redis", "kafka"]
    said = [TALK[-1].content]
    assert found[0].metadata["easyrag"]["queries"] == [given["input"], *said]
    own = {d.id: d.metadata["easyrag"]["score"] for d in bm25.invoke(given["input"])}
    past = {d.id: d.metadata["easyrag"]["score"] for d in bm25.invoke(*said)}
    for document in found:
        total = own[document.id] + 0.1 * past.get(document.id, 0.0)
        assert document.metadata["easyrag"]["score"] == pytest.approx(total)


@EACH_WAY
def test_the_question_stays_beside_a_rewrite(bm25, way):
    """A rewrite is one more query; one that fails, or equals the question, is none."""
    given = {"input": "and ranking?", "chat_history": TALK}
    for said, queries in (
        ("Redis ranking", ["and ranking?", "Redis ranking"]),
        (ConnectionError("gone"), ["and ranking?"]),
    ):
        blend = HistoryBlendRetriever(
            bm25,
            rewriter=QueryRewriter(ScriptedModel(said)),
            blend=HistoryBlend(history_weight=0),
        )
        found = WAYS[way](blend, given, k=1)
        assert len(found) == 1
        assert found[0].metadata["easyrag"]["queries"] == queries
    broken = HistoryBlendRetriever(bm25, rewriter=RunnableLambda(lambda _: 1 / 0))
    assert ids(WAYS[way](broken, "ranking")) == ids(bm25.invoke("ranking"))
    with pytest.raises(ZeroDivisionError):
        WAYS[way](broken.model_copy(update={"strict": True}), "ranking")


def test_a_blend_over_a_store_without_scores_keeps_its_order(caplog):
    """Ranks take the place of scores: nobody is ranked below what was not found at all."""
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(corpus())
    blend = HistoryBlendRetriever(store.as_retriever())
    found = blend.invoke({"input": "cat on the mat", "chat_history": TALK})
    assert found[0].id == store.as_retriever().invoke("cat on the mat")[0].id
    assert "no scores" in caplog.text


@pytest.mark.parametrize(
    "wrong", [{"retriever": 3}, {"rewriter": print}, {"blend": 0.1}, {"k": -1}, {"llm": 1}]
)
def test_bad_settings_of_a_blend_are_refused(bm25, wrong):
    """At construction."""
    with pytest.raises(InvalidParameterError):
        HistoryBlendRetriever(**{"retriever": bm25, **wrong})
