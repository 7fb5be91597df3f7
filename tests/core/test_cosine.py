"""Cosines to a query's vector, whatever the candidates bring."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.ranking.cosine import cosines, fitting_vectors

numbers = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
rows = st.lists(st.one_of(st.none(), st.lists(numbers, min_size=3, max_size=3)), max_size=8)


@given(rows, st.lists(numbers, min_size=3, max_size=3))
def test_cosines_are_what_the_definition_says(vectors, query):
    """Dot product over both norms, and 0 where a norm is 0 or there is no vector."""
    for vector, cosine in zip(vectors, cosines(vectors, query), strict=True):
        norms = 0.0 if vector is None else math.hypot(*vector) * math.hypot(*query)
        expected = float(np.dot(vector, query)) / norms if norms else 0.0
        assert math.isclose(cosine, expected, abs_tol=1e-9)


def test_what_cannot_be_compared_counts_nothing():
    """A missing, longer, broken or zero vector has cosine 0, and the others keep theirs."""
    vectors = [[1.0, 0.0], None, [1.0], [math.nan, 1.0], [0.0, 0.0], [0.0, 3.0]]
    assert cosines(vectors, [0.0, 2.0]) == [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]


def test_the_right_length_is_the_querys_or_the_firsts():
    """Vectors of another model are left out, not compared by half."""
    assert fitting_vectors([None, [1.0], [1.0, 2.0]]) == [None, [1.0], None]
    assert fitting_vectors([None, [1.0], [1.0, 2.0]], [3.0, 4.0]) == [None, None, [1.0, 2.0]]
    assert fitting_vectors([]) == []
