"""Code written for the frameworks' own BM25 retrievers runs after a change of the import."""

from __future__ import annotations

import logging
import textwrap

import pytest

LANGCHAIN = """
    import asyncio

    from langchain_core.documents import Document
    from langchain_core.runnables import RunnablePassthrough
    from langchain_core.tools import create_retriever_tool

    texts = [
        "the cat sat on the mat",
        "a dog barked at the moon",
        "stocks fell sharply on monday",
        "cat food is not for a dog",
        "rain is expected on the coast",
    ]
    metadatas = [{"page": number} for number in range(len(texts))]

    retriever = BM25Retriever.from_texts(texts, metadatas=metadatas, ids=list("abcde"))
    retriever.k = 1
    (best,) = retriever.invoke("moon")
    assert (best.page_content, best.metadata["page"], best.id) == (texts[1], 1, "b")

    documents = [Document(page_content=text, metadata={"source": "s"}) for text in texts]
    retriever = BM25Retriever.from_documents(documents, k=2, bm25_params={"k1": 1.2, "b": 0.5})
    assert len(retriever.docs) == 5
    cats = retriever.invoke("cat")
    found = sorted(document.page_content for document in cats)
    assert [type(document) for document in cats] == [Document] * 2
    assert retriever.batch(["cat"])[0] == cats
    assert asyncio.run(retriever.ainvoke("cat")) == cats

    def tokens(text):
        return text.upper().split()

    upper = BM25Retriever.from_texts(texts, preprocess_func=tokens, k=1)
    assert upper.preprocess_func is tokens
    found += [document.page_content for document in upper.invoke("Stocks")]
    again = BM25Retriever(
        vectorizer=upper.vectorizer, docs=upper.docs, k=1, preprocess_func=upper.preprocess_func
    )
    found += [document.page_content for document in again.invoke("COAST rain")]

    chain = {"context": again | (lambda docs: docs[0].page_content), "q": RunnablePassthrough()}
    found += [(RunnablePassthrough() | chain).invoke("moon")["context"]]
    found += [create_retriever_tool(again, "search", "Searches.").invoke({"query": "moon"})]
"""

LLAMAINDEX = """
    import asyncio

    from llama_index.core import Document, VectorStoreIndex
    from llama_index.core.embeddings import MockEmbedding
    from llama_index.core.llms import MockLLM
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.storage.docstore import SimpleDocumentStore
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
    import Stemmer

    texts = [
        "Cats were sitting on the mat.",
        "A dog barked at the moon.",
        "Stocks fell sharply on Monday.",
        "Rain is expected on the coast.",
    ]
    documents = [Document(text=text, doc_id=str(at), metadata={"page": at})
                 for at, text in enumerate(texts)]
    nodes = SentenceSplitter(chunk_size=128, chunk_overlap=20).get_nodes_from_documents(documents)

    retriever = BM25Retriever.from_defaults(
        nodes=nodes, similarity_top_k=1, stemmer=Stemmer.Stemmer("english"), language="english"
    )
    (best,) = retriever.retrieve("Which cat sits there?")
    assert (best.node.get_content(), best.node.ref_doc_id) == (texts[0], "0")
    assert best.score > 0
    found = [best.text]
    found += [one.text for one in asyncio.run(retriever.aretrieve("barking"))]

    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(4))
    for source in ({"docstore": docstore}, {"index": index}):
        one = BM25Retriever.from_defaults(similarity_top_k=1, **source)
        found += [hit.node.text for hit in one.retrieve("moon")]

    only = MetadataFilters(filters=[MetadataFilter(key="page", value=2)])
    one = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=1, filters=only)
    found += [hit.node.text for hit in one.retrieve("stocks on the moon")]

    retriever.persist(folder)
    loaded = BM25Retriever.from_persist_dir(folder)
    found += [hit.node.text for hit in loaded.retrieve("moon")]

    fusion = QueryFusionRetriever(
        [retriever, loaded], similarity_top_k=1, num_queries=1, llm=MockLLM(), use_async=False
    )
    found += [hit.node.text for hit in fusion.retrieve("moon")]
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    found += [hit.node.text for hit in engine.query("sharply fallen stocks").source_nodes]
"""

IMPORTS = {
    "langchain": (
        LANGCHAIN,
        "from langchain_community.retrievers import BM25Retriever",
        "from langchain_easyrag import BM25Retriever",
    ),
    "llamaindex": (
        LLAMAINDEX,
        "from llama_index.retrievers.bm25 import BM25Retriever",
        "from llamaindex_easyrag import BM25Retriever",
    ),
}


def run(code, import_line, folder):
    """Run a code text below an import line, and return what it found."""
    names = {"folder": str(folder)}
    exec(f"{import_line}\n{textwrap.dedent(code)}", names)
    return names["found"]


@pytest.mark.filterwarnings("ignore")  # the peers' own
@pytest.mark.parametrize("framework", IMPORTS)
def test_the_import_line_is_all_that_changes(framework, tmp_path, caplog):
    """The same text, line for line, runs with both and finds the same passages."""
    code, theirs, ours = IMPORTS[framework]
    try:
        exec(theirs, {})
    except ImportError as error:
        pytest.skip(str(error))
    with caplog.at_level(logging.CRITICAL):
        expected = run(code, theirs, tmp_path / "theirs")
    assert run(code, ours, tmp_path / "ours") == expected
    assert len(expected) > 4


@pytest.mark.parametrize("framework", IMPORTS)
def test_ours_warns_about_nothing(framework, tmp_path):
    """Without the peer, and with every warning an error, the text runs as well."""
    pytest.importorskip("Stemmer")
    code, _, ours = IMPORTS[framework]
    assert run(code, ours, tmp_path / "ours")
