"""Embedding in batches: every text once, in order, and nothing else is taken for vectors."""

from __future__ import annotations

import numpy as np
import pytest

from easyrag_core import DimensionMismatchError, InvalidParameterError, embed_in_batches


class Model:
    """Embeds a text as its number and remembers the batches that it was asked for."""

    def __init__(self):
        self.batches = []

    def __call__(self, texts):
        self.batches.append(texts)
        return [[float(text), 1.0] for text in texts]


TEXTS = [str(number) for number in range(7)]


@pytest.mark.parametrize(
    ("size", "batches"),
    [(1, [1] * 7), (3, [3, 3, 1]), (7, [7]), (64, [7]), (np.int64(4), [4, 3])],
)
def test_every_text_once_in_order(size, batches):
    """Batches of the size wanted, the last one smaller; one row per text in its place."""
    model = Model()
    rows = embed_in_batches(model, TEXTS, batch_size=size)
    assert [len(batch) for batch in model.batches] == batches
    assert all(type(batch) is list for batch in model.batches)
    assert [text for batch in model.batches for text in batch] == TEXTS
    assert rows[:, 0].tolist() == [float(number) for number in range(7)]
    assert (rows.dtype, rows.shape) == (np.float32, (7, 2))


def test_the_usual_batch_has_64_texts():
    """Without a size 64 texts are embedded at a time."""
    model = Model()
    embed_in_batches(model, ["1"] * 130)
    assert [len(batch) for batch in model.batches] == [64, 64, 2]


def test_no_texts_no_call():
    """The model is not asked for nothing."""
    model = Model()
    assert embed_in_batches(model, []).shape == (0, 0)
    assert model.batches == []


@pytest.mark.parametrize("size", [0, -1, 1.5, "3", True, None], ids=repr)
def test_a_batch_size_that_is_none_is_refused(size):
    """Before the model is asked."""
    with pytest.raises(InvalidParameterError, match="batch_size"):
        embed_in_batches(Model(), TEXTS, batch_size=size)


def test_a_single_string_is_refused():
    """A string is no list of texts: its characters would be embedded."""
    with pytest.raises(InvalidParameterError, match="give a list of texts"):
        embed_in_batches(Model(), "123")


@pytest.mark.parametrize(
    "answer",
    [
        [],
        [[1.0]],
        [[1.0]] * 3,
        [1.0, 2.0],
        [[[1.0]], [[2.0]]],
        [[1.0], [1.0, 2.0]],
        [["a"], ["b"]],
        None,
    ],
    ids=repr,
)
def test_an_answer_that_is_not_one_row_per_text_is_refused(answer):
    """Too few or many rows, no rows, rows of different lengths, no numbers: a typed error."""
    with pytest.raises(InvalidParameterError, match="embed"):
        embed_in_batches(lambda texts: answer, ["x", "y"])


def test_batches_that_differ_in_length_are_refused():
    """Both lengths are named, and where the batch begins."""
    answers = iter([[[1.0, 2.0]], [[1.0]]])
    with pytest.raises(DimensionMismatchError, match="batch at text 1") as refused:
        embed_in_batches(lambda texts: next(answers), ["x", "y"], batch_size=1)
    assert (refused.value.expected, refused.value.actual) == (2, 1)


def test_the_models_own_error_is_raised():
    """What the model raises comes through unchanged."""
    failure = RuntimeError("out of memory")

    def embed(texts):
        raise failure

    with pytest.raises(RuntimeError) as raised:
        embed_in_batches(embed, TEXTS)
    assert raised.value is failure


@pytest.mark.parametrize("show", [False, True])
def test_progress_is_shown_on_request(show, capsys):
    """A bar that counts the batches goes to standard error, and only if it is wanted."""
    embed_in_batches(Model(), TEXTS, batch_size=2, show_progress=show)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert ("Embedding" in shown.err and "4/4" in shown.err) == show
    assert bool(shown.err) == show
