"""BM25Index against bm25s, which has the same formula but for the constant k1 + 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from easyrag_core.index.bm25 import BM25Index, BM25Params

bm25s = pytest.importorskip("bm25s")

WORDS = st.lists(st.sampled_from(list("abcdefghij")), max_size=30)
PARAMS = st.builds(
    BM25Params, st.floats(0.1, 3, allow_subnormal=False), st.floats(0, 1, allow_subnormal=False)
)


def peer_scores(documents, query, params):
    """Return bm25s's score of each document, times k1 + 1."""
    peer = bm25s.BM25(method="lucene", k1=params.k1, b=params.b, dtype="float64")
    peer.index(documents, show_progress=False)
    return peer.get_scores(query) * (params.k1 + 1)


def our_scores(documents, query, params):
    """Return our score of each document, 0 for those that are not found."""
    index = BM25Index(params, analyzer=str.split)
    index.add([str(n) for n in range(len(documents))], [" ".join(words) for words in documents])
    scores = np.zeros(len(documents))
    for hit in index.search(" ".join(query), len(documents)):
        scores[int(hit.id)] = hit.score
    return scores


@settings(max_examples=60, deadline=None)
@given(documents=st.lists(WORDS, min_size=1, max_size=25), query=WORDS, params=PARAMS)
def test_scores_equal_bm25s(documents, query, params):
    """On random corpora, empty documents and repeated terms included, the scores are equal."""
    known = {word for words in documents for word in words}
    query = [word for word in query if word in known]
    assume(known)
    assume(query)
    ours = our_scores(documents, query, params)
    np.testing.assert_allclose(ours, peer_scores(documents, query, params), rtol=1e-5, atol=1e-7)


def test_scores_equal_bm25s_on_a_larger_corpus():
    """The same over a thousand documents with word frequencies as in a language."""
    rng = np.random.default_rng(7)
    documents = [
        [f"w{word}" for word in rng.zipf(1.3, rng.integers(1, 120)) % 500] for _ in range(1000)
    ]
    for query in (documents[0][:5], documents[1][:30], ["w1", "w1", "w17"]):
        expected = peer_scores(documents, query, BM25Params())
        np.testing.assert_allclose(our_scores(documents, query, BM25Params()), expected, rtol=1e-5)
