"""Where fusion in the frameworks gives another answer, by name, and where it agrees."""

from __future__ import annotations

import random

import pytest

from easyrag_core.ranking.fusion import reciprocal_rank_fusion, score_fusion


def pool(seed):
    rng = random.Random(seed)
    ids = [f"id-{n}" for n in range(30)]
    return [rng.sample(ids, rng.randrange(1, 20)) for _ in range(3)]


# LangChain


@pytest.fixture
def ensemble():
    """Give their fusion alone: lists of (content, source) in, contents in order out."""
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Nothing(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return []

    def fuse(lists, *, weights, id_key=None):
        ensemble = retrievers.EnsembleRetriever(
            retrievers=[Nothing() for _ in lists], weights=weights, id_key=id_key
        )
        documents = [
            [Document(page_content=text, metadata={"source": source}) for text, source in entries]
            for entries in lists
        ]
        fused = ensemble.weighted_reciprocal_rank(documents)
        return [(document.page_content, document.metadata["source"]) for document in fused]

    return fuse


@pytest.mark.parametrize("seed", range(5))
def test_langchain_agrees_without_repeats(ensemble, seed):
    """Same order as EnsembleRetriever where it is sound, up to the order of exact ties."""
    lists, weights = pool(seed), [0.5, 0.3, 0.2]
    ours = {item.key: item.score for item in reciprocal_rank_fusion(lists, weights=weights)}
    theirs = ensemble([[(key, key) for key in keys] for keys in lists], weights=weights)
    assert {key for key, _ in theirs} == ours.keys()
    scores = [ours[key] for key, _ in theirs]
    assert scores == sorted(scores, reverse=True)


def test_langchain_lets_one_list_vote_many_times(ensemble):
    """Divergence langchain-F1: five passages of one source in one list beat a true double hit."""
    lists = [["S"] + ["L"] * 5, ["S"]]
    theirs = ensemble(
        [[(f"{key}{n}", key) for n, key in enumerate(keys)] for keys in lists],
        weights=[0.5, 0.5],
        id_key="source",
    )
    assert [source for _, source in theirs] == ["L", "S"]
    ours = reciprocal_rank_fusion(lists, weights=[0.5, 0.5])
    assert [item.key for item in ours] == ["S", "L"]
    assert [item.score for item in ours] == pytest.approx([0.5 / 61 * 2, 0.5 / 62])


def test_langchain_drops_one_of_two_sources(ensemble):
    """Divergence langchain-F2: equal text of two sources is one there, two keys are two here."""
    theirs = ensemble([[("same", "a.md")], [("same", "b.md")]], weights=[0.5, 0.5])
    assert theirs == [("same", "a.md")]
    ours = reciprocal_rank_fusion([[("same", "a.md")], [("same", "b.md")]])
    assert [item.key for item in ours] == [("same", "a.md"), ("same", "b.md")]


# LlamaIndex


@pytest.fixture
def query_fusion():
    """Give their fusion alone: lists of (id, score) in, (id, score) in order out."""
    fusion = pytest.importorskip("llama_index.core.retrievers.fusion_retriever")
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Nothing(BaseRetriever):
        def _retrieve(self, query_bundle):
            return []

    def fuse(mode, lists, *, weights=None):
        retriever = fusion.QueryFusionRetriever(
            [Nothing() for _ in lists],
            llm=MockLLM(),
            mode=fusion.FUSION_MODES(mode),
            retriever_weights=weights,
            num_queries=1,
        )
        nodes = {id_ for entries in lists for id_, _ in entries}
        nodes = {id_: TextNode(id_=id_, text=id_) for id_ in nodes}
        results = {
            ("q", number): [NodeWithScore(node=nodes[id_], score=score) for id_, score in entries]
            for number, entries in enumerate(lists)
        }
        if mode == "reciprocal_rerank":
            fused = retriever._reciprocal_rerank_fusion(results)
        else:
            fused = retriever._relative_score_fusion(results)
        return [(hit.node.node_id, hit.score) for hit in fused]

    return fuse


def test_llamaindex_counts_ranks_from_zero(query_fusion):
    """Divergence llamaindex-40: the first rank is 0 there; the paper counts from 1."""
    lists = [["a", "b"], ["b", "c"]]
    scored = [[(keys[0], 0.9), (keys[1], 0.8)] for keys in lists]
    theirs = query_fusion("reciprocal_rerank", scored)
    assert theirs == [
        ("b", pytest.approx(1 / 61 + 1 / 60)),
        ("a", pytest.approx(1 / 60)),
        ("c", pytest.approx(1 / 61)),
    ]
    ours = [(item.key, item.score) for item in reciprocal_rank_fusion(lists)]
    assert ours == [
        ("b", pytest.approx(0.032522, abs=5e-7)),
        ("a", pytest.approx(1 / 61)),
        ("c", pytest.approx(1 / 62)),
    ]


def test_llamaindex_ignores_weights_in_rank_fusion(query_fusion):
    """Divergence llamaindex-40, peers-41: weights do nothing there; here they weigh the votes."""
    theirs = query_fusion("reciprocal_rerank", [[("a", 1.0)], [("b", 1.0)]], weights=[0.01, 0.99])
    assert theirs == [("a", pytest.approx(1 / 60)), ("b", pytest.approx(1 / 60))]
    ours = reciprocal_rank_fusion([["a"], ["b"]], weights=[0.01, 0.99])
    assert [item.key for item in ours] == ["b", "a"]


def test_llamaindex_fails_on_a_missing_score(query_fusion):
    """Divergence llamaindex-42: a score of `None` is a TypeError there, and absent here."""
    with pytest.raises(TypeError):
        query_fusion("relative_score", [[("a", None), ("b", 0.5)]])
    assert [item.key for item in score_fusion([[("a", None), ("b", 0.5)]])] == ["b"]


def test_llamaindex_loses_tied_negative_scores(query_fusion):
    """Divergence peers-43: a lone hit with a score below 0 counts nothing there, 1 here."""
    assert query_fusion("relative_score", [[("a", -1.0)]]) == [("a", 0.0)]
    assert score_fusion([[("a", -1.0)]])[0].score == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_llamaindex_agrees_on_relative_scores(query_fusion, seed):
    """Min-max sums with weights are the same where scores are there and differ."""
    rng = random.Random(seed)
    lists = [[(key, rng.random()) for key in keys] for keys in pool(seed) if len(keys) > 1]
    weights = [1 / len(lists)] * len(lists)
    theirs = query_fusion("relative_score", lists)
    ours = score_fusion(lists, weights=weights)
    assert {item.key: pytest.approx(item.score) for item in ours} == dict(theirs)
