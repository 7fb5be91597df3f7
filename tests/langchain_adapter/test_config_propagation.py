"""R1: the caller's whole config reaches every child, in a direct call and in a chain."""

from __future__ import annotations

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from easyrag_core import FilterPolicy
from langchain_easyrag import (
    FusionRetriever,
    HybridRetriever,
    MMRRetriever,
    MultiQueryRetriever,
    ParentChildRetriever,
    PipelineRetriever,
    ScopedRetriever,
)
from tests.langchain_adapter.samples import (
    ConfigSeen,
    ListRetriever,
    RunsSeen,
    WordEmbeddings,
    corpus,
    ids,
)


def fusion(child):
    return FusionRetriever(retrievers=[child])


def hybrid(child):
    return HybridRetriever.from_documents(corpus(), vector_retriever=child)


def mmr(child):
    return MMRRetriever(retriever=child)


def parent_child(child):
    return ParentChildRetriever.from_documents(corpus(), vector_retriever=child, child_k=9)


def pipeline(child):
    return PipelineRetriever(retrievers=[child])


def multi_query(child):
    return MultiQueryRetriever(retriever=child, llm_chain=RunnableLambda(lambda _: []))


def scoped(child):
    return ScopedRetriever(retriever=child, policy=FilterPolicy())


WRAPPERS = pytest.mark.parametrize(
    "wrap", [fusion, hybrid, mmr, multi_query, parent_child, pipeline, scoped]
)
CONFIG = {
    "tags": ["from-outside"],
    "metadata": {"tenant": 7},
    "configurable": {"mine": "yes"},
    "run_name": "outer",
}


@WRAPPERS
@pytest.mark.parametrize("in_chain", [False, True])
def test_tags_metadata_and_configurable_reach_the_child(wrap, in_chain):
    """A direct call hands them on as a chain does."""
    seen = ConfigSeen(corpus())
    retriever = wrap(seen.runnable)
    runnable = RunnableLambda(lambda text: text) | retriever if in_chain else retriever
    assert runnable.invoke("ranking", CONFIG)
    (config,) = seen.configs
    assert "from-outside" in config["tags"]
    assert config["metadata"]["tenant"] == 7
    assert config["configurable"]["mine"] == "yes"
    assert config.get("run_name") != "outer"


@WRAPPERS
@pytest.mark.parametrize("in_chain", [False, True])
async def test_the_same_for_async_calls(wrap, in_chain):
    """The async path hands on no less."""
    seen = ConfigSeen(corpus())
    retriever = wrap(seen.runnable)
    runnable = RunnableLambda(lambda text: text) | retriever if in_chain else retriever
    assert await runnable.ainvoke("ranking", CONFIG)
    (config,) = seen.configs
    assert "from-outside" in config["tags"]
    assert config["metadata"]["tenant"] == 7
    assert config["configurable"]["mine"] == "yes"


@WRAPPERS
def test_children_are_child_runs(wrap):
    """Callbacks see each child under its parent, once, with the caller's tags."""
    runs = RunsSeen()
    retriever = wrap(ListRetriever(documents=corpus()))
    retriever.invoke("ranking", {"callbacks": [runs], "tags": ["t"], "metadata": {"m": 1}})
    child = runs.named("ListRetriever")
    parent = runs.named(type(retriever).__name__)
    assert child["parent_run_id"] == parent["run_id"]
    assert parent["parent_run_id"] is None
    assert child["tags"].count("t") == 1
    assert child["metadata"]["m"] == 1
    assert sorted(runs.ends) == sorted(runs.starts)


@WRAPPERS
async def test_children_are_child_runs_async(wrap):
    """The same through `ainvoke`."""
    runs = RunsSeen()
    retriever = wrap(ListRetriever(documents=corpus()))
    await retriever.ainvoke("ranking", {"callbacks": [runs]})
    child = runs.named("ListRetriever")
    assert child["parent_run_id"] == runs.named(type(retriever).__name__)["run_id"]


@WRAPPERS
def test_configurable_fields_of_a_child_work(wrap):
    """A field made configurable is listed by the wrapper and takes effect through it."""
    child = ListRetriever(documents=corpus()).configurable_fields(
        documents=ConfigurableField(id="documents")
    )
    retriever = wrap(child)
    assert [spec.id for spec in retriever.config_specs] == ["documents"]
    only = [Document("only this ranking", id="only")]
    found = retriever.invoke("zzz", {"configurable": {"documents": only}})
    assert ids(found) == ["only"]


def test_handlers_of_the_callers_own_kind_are_called():
    """A custom handler in a constructor-level config of a child is called too."""

    class Count(BaseCallbackHandler):
        def __init__(self):
            self.queries = []

        def on_retriever_start(self, serialized, query, **kwargs):
            self.queries.append(query)

    inner, outer = Count(), Count()
    child = ListRetriever(documents=corpus()).with_config(callbacks=[inner])
    FusionRetriever(retrievers=[child]).invoke("ranking", {"callbacks": [outer]})
    assert inner.queries == ["ranking"]
    assert outer.queries == ["ranking", "ranking"]


def test_an_error_ends_the_childs_run():
    """A failing child's run is closed with an error, the parent's with an answer."""
    runs = RunsSeen()

    def fail(_):
        raise ValueError("no")

    class Failing(ListRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return fail(query)

    children = [Failing(documents=[]), ListRetriever(documents=corpus())]
    FusionRetriever(retrievers=children).invoke("q", {"callbacks": [runs]})
    assert runs.errors == [runs.named("Failing")["run_id"]]
    assert runs.named("FusionRetriever")["run_id"] in runs.ends


def test_tags_and_metadata_of_the_retriever_itself():
    """They mark its own run, as for every LangChain retriever."""
    runs = RunsSeen()
    retriever = FusionRetriever(
        retrievers=[ListRetriever(documents=corpus())], tags=["mine"], metadata={"a": 1}
    )
    retriever.invoke("q", {"callbacks": [runs]})
    assert "mine" in runs.named("FusionRetriever")["tags"]
    assert runs.named("FusionRetriever")["metadata"]["a"] == 1
    assert "mine" not in runs.named("ListRetriever")["tags"]


def test_fields_of_the_wrapper_are_configurable():
    """`k` and `lambda_mult` can be configured per call, without building anything anew."""
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(corpus())
    retriever = MMRRetriever(retriever=store.as_retriever(), k=4)
    configurable = retriever.configurable_fields(k=ConfigurableField(id="k"))
    assert len(configurable.invoke("ranking", {"configurable": {"k": 2}})) == 2
    prepared, _ = configurable.prepare({"configurable": {"k": 2}})
    assert prepared.compressor._cache is retriever.compressor._cache
