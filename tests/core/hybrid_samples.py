"""Chunks, vectors and stores for the tests of the hybrid index."""

from __future__ import annotations

import zlib

import numpy as np

from easyrag_core import Chunk, HybridConfig, HybridIndex, InMemoryChunkStore

__all__ = [
    "PLAIN",
    "PLAIN_VECTORS",
    "SCORED",
    "BrokenStore",
    "answers",
    "family",
    "hashed_vector",
    "piece",
    "plain_index",
    "with_vectors",
]


def piece(id_, text="text", document="doc", index=0, **fields):
    """A chunk of a document."""
    return Chunk(id_, document, index, text, 0, len(text), **fields)


PLAIN = [
    piece("a", "the quick brown fox", "one", 0),
    piece("b", "a lazy dog and a fox", "one", 1),
    piece("c", "向量检索与关键词检索", "two", 0),
    piece("d", "the fox the fox 狐狸", "two", 1),
    piece("e", "nothing to see here", "three", 0),
]
PLAIN_VECTORS = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]], np.float32)


def plain_index(config=None, **parts):
    """Five chunks of three documents, each with a vector; `a` and `e` share one."""
    index = HybridIndex(config, **parts)
    index.add(PLAIN, PLAIN_VECTORS)
    return index


def hashed_vector(text, dimensions=16):
    """A vector that depends on the text's words alone, in any process."""
    row = np.zeros(dimensions, np.float32)
    for word in text.split():
        row[zlib.crc32(word.encode("utf-8", "surrogatepass")) % dimensions] += 1
    return row


def with_vectors(chunks):
    """One hashed vector per chunk."""
    return [hashed_vector(chunk.embedding_text) for chunk in chunks]


LEAF_WORDS = ("alpha", "beta", "gamma", "delta")


def family(parents=3, leaves=4, *, missing=()):
    """Parents and their leaves: `p0`, `p0c0`, `p0c1`, …; every leaf tells of the fox."""
    chunks = []
    for number in range(parents):
        name = f"p{number}"
        texts = [f"fox {LEAF_WORDS[leaf % 4]}" for leaf in range(leaves)]
        if name not in missing:
            chunks.append(piece(name, " ".join(texts), name, 0, kind="parent"))
        chunks += [
            piece(f"{name}c{leaf}", text, name, leaf + 1, parent_id=name)
            for leaf, text in enumerate(texts)
        ]
    return chunks


def answers(index, vectors=((1, 0, 0), (0, 1, 1))):
    """What an index says to some questions, ties and all, with the content behind it."""
    asked = [
        index.search(query, vector, 20)
        for query in ("fox", "检索", "the lazy nothing", "")
        for vector in (None, *(np.array(v, np.float32) for v in vectors))
    ]
    found = [index.get_many([hit.id for hit in hits]) for hits in asked]
    held = (index.bm25.ids, index.vectors.ids if index.vectors else [], index.store.ids())
    return asked, found, held, index.document_ids, len(index)


class BrokenStore(InMemoryChunkStore):
    """A store whose writes fail on request: half done, or only the next time, if told so."""

    def __init__(self, *, half=False):
        super().__init__()
        self.failing = ()
        self._half = half

    def put_many(self, chunks):
        chunks = list(chunks)
        if "put" in self.failing:
            if self._half:
                self.failing = ()
                super().put_many(chunks[: len(chunks) // 2])
            raise OSError("the disk is full")
        super().put_many(chunks)

    def delete_many(self, ids):
        if "delete" in self.failing or "next delete" in self.failing:
            self.failing = tuple(word for word in self.failing if word != "next delete")
            raise OSError("the disk is gone")
        return super().delete_many(ids)


SCORED = HybridConfig(fusion="score")
