"""Diversity against the frameworks' own: LangChain as an oracle, LlamaIndex by its divergence."""

from __future__ import annotations

import numpy as np
import pytest

from easyrag_core.ranking import mmr
from easyrag_core.ranking.mmr import maximal_marginal_relevance


def problem(seed, n, d):
    """Clustered vectors, as answers to one question are."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(max(2, n // 10), d))
    rows = centers[rng.integers(0, len(centers), n)] + 0.5 * rng.normal(size=(n, d))
    query = centers[0] + 0.3 * rng.normal(size=d)
    cosines = rows @ query / np.linalg.norm(rows, axis=1) / np.linalg.norm(query)
    return rows, query, cosines


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("lambda_mult", [0.0, 0.25, 0.5, 0.7, 1.0])
@pytest.mark.parametrize(("n", "d", "k"), [(1, 3, 4), (20, 16, 20), (120, 64, 12), (300, 32, 40)])
def test_same_picks_as_langchain(monkeypatch, n, d, k, lambda_mult, lazy):
    """The picks are langchain-core's, from arrays and from lists, refreshed in either way."""
    utils = pytest.importorskip("langchain_core.vectorstores.utils")
    monkeypatch.setattr(mmr, "_LAZY_FROM", 0 if lazy else 10**12)
    for seed in range(3):
        rows, query, cosines = problem(seed, n, d)
        theirs = utils.maximal_marginal_relevance(
            query, rows.tolist(), lambda_mult=lambda_mult, k=k
        )
        for vectors in (rows, rows.tolist()):
            ours = maximal_marginal_relevance(vectors, cosines, k=k, lambda_mult=lambda_mult)
            assert ours.indices == [int(index) for index in theirs]


def test_langchain_accepts_a_wrong_lambda():
    """Divergence langchain-D3: a lambda of 1.5 or NaN is accepted there, and refused here."""
    utils = pytest.importorskip("langchain_core.vectorstores.utils")
    rows, query, cosines = problem(0, 5, 4)
    assert len(utils.maximal_marginal_relevance(query, rows.tolist(), lambda_mult=1.5, k=2)) == 2
    with pytest.raises(ValueError, match="lambda_mult"):
        maximal_marginal_relevance(rows, cosines, k=2, lambda_mult=1.5)


def test_llamaindex_looks_at_the_last_pick_alone():
    """Divergence llamaindex-37: there a near copy of an earlier pick comes back; here it waits."""
    utils = pytest.importorskip("llama_index.core.indices.query.embedding_utils")
    query = [1.0, 0.0, 0.0, 0.0]
    rows = [[0.90, 0.44, 0, 0], [0.88, 0.47, 0, 0], [0.70, 0, 0.71, 0], [0.65, 0, 0, 0.76]]
    names = ["A", "duplicate of A", "B", "C"]
    _, theirs = utils.get_top_k_mmr_embeddings(
        query, rows, similarity_top_k=3, embedding_ids=names, mmr_threshold=0.5
    )
    cosines = [row[0] / np.linalg.norm(row) for row in rows]
    ours = maximal_marginal_relevance(rows, cosines, k=3, lambda_mult=0.5).indices
    assert theirs == ["A", "B", "duplicate of A"]
    assert [names[i] for i in ours] == ["A", "B", "C"]


def test_llamaindex_agrees_on_the_first_two_picks():
    """With one item picked, the last one is all there is: the first two picks are the same."""
    utils = pytest.importorskip("llama_index.core.indices.query.embedding_utils")
    for seed in range(5):
        rows, query, cosines = problem(seed, 40, 16)
        _, theirs = utils.get_top_k_mmr_embeddings(
            query.tolist(), rows.tolist(), similarity_top_k=2, mmr_threshold=0.6
        )
        assert maximal_marginal_relevance(rows, cosines, k=2, lambda_mult=0.6).indices == theirs
