"""The values that every room exchanges."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from easyrag_core import ChannelScore, Chunk, DocumentChunker, Hit, StageFacts

CHUNK = Chunk("c1", "doc/文档", 3, "text 😀", 10, 16, metadata={"a": [1]})
HIT = Hit("c1", 0.5, 1, {"bm25": ChannelScore(1, 7.5)}, "query", ("bm25: rank 1",))
STAGE = StageFacts("mmr", ("a", "b", "c"), ("c", "a"), 0.25, "ValueError('x')", {"c": "gain 0.5"})

AGAIN = pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]
)


def test_without_added_context_the_text_is_embedded():
    """`embedding_text` is the text unless something was added to it."""
    assert CHUNK.embedding_text == CHUNK.text
    assert Chunk("c", "d", 0, "t", 0, 1, embedding_text="[H]\n\nt").embedding_text == "[H]\n\nt"


def test_defaults_of_a_chunk():
    """A plain passage in the first line, without parent, headings or language."""
    chunk = Chunk("c", "d", 0, "t", 0, 1)
    assert (chunk.start_line, chunk.end_line, chunk.heading_path) == (1, 1, ())
    assert (chunk.parent_id, chunk.kind, chunk.language, chunk.metadata) == (None, "text", "", {})
    assert chunk.metadata is not Chunk("c", "d", 0, "t", 0, 1).metadata


@pytest.mark.parametrize("value", [CHUNK, HIT, STAGE], ids=["chunk", "hit", "stage"])
@AGAIN
def test_copies_are_equal(value, again):
    """Copied and pickled values equal the original in every field."""
    assert again(value) == value
    assert dataclasses.asdict(again(value)) == dataclasses.asdict(value)


@pytest.mark.parametrize("value", [CHUNK, HIT, STAGE], ids=["chunk", "hit", "stage"])
def test_a_misspelt_field_is_refused(value):
    """Slots: what is no field cannot be set by accident."""
    with pytest.raises((AttributeError, TypeError)):
        value.scores = 1
    assert not hasattr(value, "__dict__")


def test_a_hit_is_frozen_and_can_be_a_key():
    """Its fields stay; equal hits are one in a set."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        HIT.score = 1.0
    assert {HIT, dataclasses.replace(HIT)} == {HIT}
    assert dataclasses.replace(HIT, rank=2) != HIT


def test_a_hit_needs_no_channels():
    """Id, score and rank are enough; each hit has a dict of its own."""
    hit = Hit("a", 1.0, 1)
    assert (hit.channels, hit.query, hit.reasons) == ({}, None, ())
    assert hit.channels is not Hit("a", 1.0, 1).channels


def test_a_channel_may_give_no_score():
    """A channel's place is a rank from 1, and a score where there is one."""
    assert ChannelScore(2, None) == (2, None)
    assert ChannelScore(rank=1, score=0.5).score == 0.5


def test_the_chunks_that_a_chunker_makes_are_these():
    """Slices of the source with lines that say where they stand."""
    source = "\ufeffEins.\r\n\r\n“二。”\n"
    for chunk in DocumentChunker(6, 0).chunk(source, "d"):
        assert type(chunk) is Chunk
        assert source[chunk.start : chunk.end] == chunk.text == chunk.embedding_text


def test_a_stage_says_what_fell_out():
    """In the order in which it went in, whatever the order in which the rest came out."""
    assert STAGE.dropped == ("b",)
    assert StageFacts("bm25", given=("a",)).dropped == ()


def test_a_stage_is_frozen_and_can_be_a_key():
    """Its fields stay; equal stages are one in a set, each with notes of its own."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        STAGE.seconds = 1.0
    assert {STAGE, dataclasses.replace(STAGE)} == {STAGE}
    assert StageFacts("mmr").notes is not StageFacts("mmr").notes
