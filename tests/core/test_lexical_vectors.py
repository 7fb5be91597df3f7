"""Vectors from terms alone."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.errors import InvalidParameterError
from easyrag_core.ranking.lexical_vectors import lexical_vectors
from tests.strategies import nasty_texts


@given(st.lists(nasty_texts(max_fragments=6), max_size=5))
def test_rows_are_unit_or_zero(texts):
    """Any text gives a finite row of length 1, or zeros when it has no term; none is negative."""
    rows = lexical_vectors(texts, str.split, dimensions=64)
    assert rows.shape == (len(texts), 64)
    assert rows.dtype == np.float32
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    expected = [1.0 if text.split() else 0.0 for text in texts]
    np.testing.assert_allclose(lengths, expected, atol=1e-6)
    assert (rows >= 0).all()


def test_rare_terms_count_more():
    """Sharing a rare term is nearer than sharing one that all texts have."""
    texts = ["the cat", "the dog", "cat nap", "the sun", "the sea"]
    rows = lexical_vectors(texts, str.split)
    assert rows[0] @ rows[2] > rows[0] @ rows[1] > 0
    assert rows[2] @ rows[3] == 0


def test_chinese_terms():
    """Terms of any script work, here single characters."""
    rows = lexical_vectors(["床前明月光", "明月几时有", "低头思故乡"], list)
    assert rows[0] @ rows[1] > 0.2
    assert rows[0] @ rows[2] == 0


def test_same_rows_in_another_process():
    """Columns do not depend on the process's hash seed."""
    code = (
        "from easyrag_core.ranking.lexical_vectors import lexical_vectors as v;"
        "print(v(['a b', 'b 词'], str.split).nonzero()[1].tolist())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_refusal():
    """At least one column is needed."""
    with pytest.raises(InvalidParameterError, match="dimensions"):
        lexical_vectors(["a"], str.split, dimensions=0)
