"""A changed document comes again: what the framework does anew, and what stable ids spare."""

from __future__ import annotations

import pytest
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import MarkdownNodeParser
from llama_index.core.schema import MetadataMode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.vector_stores import SimpleVectorStore

from llamaindex_easyrag import (
    BM25Retriever,
    HybridRetriever,
    MarkdownSectionNodeParser,
    ParentChildNodeParser,
)
from tests.llamaindex_adapter._nodes import document, ids_of
from tests.llamaindex_adapter._parts import WordEmbedding

SECTIONS = "".join(
    f"## Part {i}\n\nWhat part {i} says. 第{i}部分这样说。\n\n" + "More of it. " * 12 + "\n\n"
    for i in range(8)
)
TEXT = f"Written today.\n\n# Guide\n\nAn introduction.\n\n{SECTIONS}"
CHANGED = f"A {TEXT}"  # two characters at the top
LONGER = f"\n\n{TEXT}"  # two line feeds at the top: every place is another one
PARSER = MarkdownSectionNodeParser(220)


class CountingEmbedding(WordEmbedding):
    """Notes every text that it embeds."""

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self.embedded.extend(texts)
        return super()._get_text_embeddings(texts)

    @property
    def embedded(self) -> list[str]:
        return self.__dict__.setdefault("_embedded", [])


def texts_to_embed(text: str) -> list[str]:
    return [node.get_content(MetadataMode.EMBED) for node in PARSER([document(text)])]


def pipeline_of(model, parser=PARSER) -> IngestionPipeline:
    return IngestionPipeline(
        transformations=[parser, model],
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.UPSERTS,
        vector_store=SimpleVectorStore(),
        disable_cache=True,
    )


def test_an_unchanged_document_is_not_embedded_again():
    """The document store knows the document's hash: nothing runs."""
    model = CountingEmbedding()
    pipeline = pipeline_of(model)
    pipeline.run(documents=[document(TEXT)])
    embedded = list(model.embedded)
    assert pipeline.run(documents=[document(TEXT)]) == []
    assert model.embedded == embedded == texts_to_embed(TEXT)


def test_the_framework_alone_embeds_a_changed_document_whole():
    """Upserts work by document: one changed character, and all its nodes are embedded anew."""
    model = CountingEmbedding()
    pipeline = pipeline_of(model)
    pipeline.run(documents=[document(TEXT)])
    model.embedded.clear()
    pipeline.run(documents=[document(CHANGED)])
    assert model.embedded == texts_to_embed(CHANGED)


@pytest.mark.parametrize("changed", [CHANGED, LONGER], ids=["two-letters", "two-line-feeds"])
def test_with_the_models_cache_only_changed_texts_are_embedded(changed):
    """`embeddings_cache` of the model: what is embedded holds no place, so the rest is known."""
    model = CountingEmbedding(embeddings_cache=SimpleKVStore())
    pipeline = pipeline_of(model)
    pipeline.run(documents=[document(TEXT)])
    model.embedded.clear()
    nodes = pipeline.run(documents=[document(changed)])
    known = set(texts_to_embed(TEXT))
    assert model.embedded == [text for text in texts_to_embed(changed) if text not in known]
    assert len(model.embedded) == (1 if changed == CHANGED else 0) < len(nodes)


@pytest.mark.parametrize("changed", [CHANGED, LONGER], ids=["two-letters", "two-line-feeds"])
def test_ids_of_what_did_not_change_stay(changed):
    """The vector store holds the same ids as before, but for the changed chunks; no ghosts."""
    pipeline = pipeline_of(WordEmbedding())
    pipeline.run(documents=[document(TEXT)])
    store = pipeline.vector_store
    before = set(store.data.embedding_dict)
    nodes = pipeline.run(documents=[document(changed)])
    after = set(store.data.embedding_dict)
    assert after == set(ids_of(nodes))
    assert before == set(ids_of(PARSER([document(TEXT)])))
    assert len(before - after) == (1 if changed == CHANGED else 0)


def test_divergence_the_stock_parser_gives_new_ids():
    """Named divergence (LI-18): MarkdownNodeParser names every node anew at every run."""
    runs = [ids_of(MarkdownNodeParser()([document(TEXT)])) for _ in range(2)]
    assert set(runs[0]).isdisjoint(runs[1])


def test_our_index_embeds_only_what_changed():
    """HybridRetriever knows vectors by id and text: no cache of the model is needed."""
    model = CountingEmbedding()
    before = PARSER([document(TEXT)])
    retriever = HybridRetriever(before, embed_model=model)
    assert model.embedded == texts_to_embed(TEXT)
    model.embedded.clear()
    after = PARSER([document(LONGER)])
    gone = set(ids_of(before)) - set(ids_of(after))
    retriever.delete_nodes(gone)
    retriever.add_nodes(after)
    new = {node.node_id for node in after} - set(ids_of(before))
    assert len(model.embedded) == len(new) <= 1
    found = retriever.retrieve("第3部分这样说")[0].node
    assert LONGER[found.start_char_idx : found.end_char_idx] == found.text


def test_words_are_replaced_by_id():
    """BM25 takes the new places of known ids, and holds nothing twice."""
    retriever = BM25Retriever(PARSER([document(TEXT)]), similarity_top_k=50)
    retriever.add_nodes(PARSER([document(LONGER)]))
    found = [one.node for one in retriever.retrieve("part")]
    assert len({node.text for node in found}) == len(found)
    assert all(LONGER[n.start_char_idx : n.end_char_idx] == n.text for n in found)


def test_families_keep_their_ids():
    """Parents and children below the change are the same as before."""
    parser = ParentChildNodeParser(MarkdownSectionNodeParser(220), MarkdownSectionNodeParser(90))
    before, after = (set(ids_of(parser([document(text)]))) for text in (TEXT, LONGER))
    assert before == after
