"""DocumentNodeParser's settings: saved, compared, sent to workers, seen by caches, and heard."""

from __future__ import annotations

import json
import pickle

import pytest
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.ingestion import IngestionCache, IngestionPipeline
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import Document

from easyrag_core import InvalidParameterError
from llamaindex_easyrag import DocumentNodeParser
from tests.llamaindex_adapter._parts import CallbackEar, WordEmbedding, ids

TEXT = "One is here. Two is there. 三在这里。四在那里。 " * 8


def words(text: str) -> int:
    """A length function that a worker finds by its name."""
    return len(text.split())


def numbered(number: int, source: Document) -> str:
    return f"{source.node_id}-{number}"


SETTINGS = [
    pytest.param({}, id="defaults"),
    pytest.param({"chunk_size": 40, "chunk_overlap": 0}, id="sizes"),
    pytest.param({"boundary": "paragraph", "strip": False}, id="boundary"),
    pytest.param({"length": "tiktoken:cl100k_base", "chunk_size": 9}, id="LI-15-tokens"),
    pytest.param({"length_function": words, "chunk_size": 9}, id="LI-15-function"),
    pytest.param({"length_function": words, "length": "words-v1", "chunk_size": 9}, id="named"),
    pytest.param({"id_func": numbered}, id="ids"),
    pytest.param({"id_scheme": "uuid"}, id="uuids"),
    pytest.param({"metadata_reserve": "embed", "metadata_overflow": "cap"}, id="metadata"),
    pytest.param({"include_metadata": False, "include_prev_next_rel": False}, id="flags"),
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_settings_come_back_from_a_dict_and_from_json(settings):
    """LI-16: `from_dict(to_dict())` and its JSON twin are equal, functions given again."""
    parser = DocumentNodeParser(**settings)
    functions = {k: v for k, v in settings.items() if k in {"length_function", "id_func"}}
    again = DocumentNodeParser.from_dict(parser.to_dict(), **functions)
    assert again == parser
    assert DocumentNodeParser.from_json(parser.to_json(), **functions) == parser
    assert json.loads(json.dumps(parser.to_dict()))["class_name"] == "DocumentNodeParser"


def test_divergence_the_stock_splitter_does_not_come_back():
    """Named divergence (LI-16): SentenceSplitter refuses its own dict."""
    with pytest.raises(ValueError, match="id_func"):
        SentenceSplitter.from_dict(SentenceSplitter().to_dict())


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"length_function": words}, "length"), ({"id_func": numbered}, "id_scheme")],
)
def test_a_function_that_is_missing_is_asked_for(settings, name):
    """A dict holds the name alone: without the function nothing falls back to another one."""
    with pytest.raises(InvalidParameterError) as told:
        DocumentNodeParser.from_dict(DocumentNodeParser(**settings).to_dict())
    assert told.value.name == name


def test_settings_of_another_algorithm_version_are_told(caplog):
    """What was saved by a version that cut elsewhere is taken, with a warning."""
    data = {**DocumentNodeParser().to_dict(), "algorithm_version": 0}
    assert DocumentNodeParser.from_dict(data) == DocumentNodeParser()
    assert "version 0" in caplog.text


@pytest.mark.parametrize("settings", SETTINGS)
def test_settings_survive_pickling(settings):
    """LI-15: a copy made by pickle cuts as the original does."""
    parser = DocumentNodeParser(**settings)
    copy = pickle.loads(pickle.dumps(parser))
    assert copy == parser
    assert copy.split_text(TEXT) == parser.split_text(TEXT)


@pytest.mark.parametrize("name", ["length_function", "id_func"])
def test_a_function_that_cannot_be_sent_is_refused(name):
    """A lambda is not dropped in silence on its way to a worker, and the parser keeps it."""
    parser = DocumentNodeParser(**{name: lambda *given: str(len(given))})
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(parser)
    assert getattr(parser, name)(1) == "1"


def test_divergence_the_stock_splitter_forgets_its_tokenizer():
    """Named divergence (LI-15): SentenceSplitter comes back with another tokenizer."""
    stock = SentenceSplitter(chunk_size=9, chunk_overlap=0, tokenizer=str.split)
    copy = pickle.loads(pickle.dumps(stock))
    assert copy.split_text(TEXT) != stock.split_text(TEXT)


def test_two_functions_never_share_a_name():
    """Cache keys tell every two length functions apart, lambdas too."""
    names = [
        DocumentNodeParser(length_function=function).length
        for function in (len, words, lambda text: 3 * len(text), lambda text: 2 * len(text))
    ]
    assert names[:2] == ["characters", f"{__name__}.words"]
    assert len(set(names)) == 4


@pytest.mark.parametrize("settings", SETTINGS[1:])
def test_every_setting_is_in_the_cache_key(settings):
    """Whatever changes the nodes changes the key of IngestionCache."""
    documents = [Document(text=TEXT, id_="d")]
    keys = [
        get_transformation_hash(documents, parser)
        for parser in (DocumentNodeParser(), DocumentNodeParser(**settings))
    ]
    assert keys[0] != keys[1]


def test_the_stock_id_function_means_uuids():
    """The framework's default function and its name say the same thing."""
    assert DocumentNodeParser(id_func=default_id_func) == DocumentNodeParser(id_scheme="uuid")


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        pytest.param({"chunk_size": 0}, "chunk_size", id="no-size"),
        pytest.param({"chunk_size": 10.5}, "chunk_size", id="size-no-int"),
        pytest.param({"chunk_size": 10, "chunk_overlap": 10}, "chunk_overlap", id="LI-11"),
        pytest.param({"chunk_overlap": -1}, "chunk_overlap", id="LI-11-negative"),
        pytest.param({"boundary": "page"}, "boundary", id="boundary"),
        pytest.param({"length": "tokens"}, "length", id="length"),
        pytest.param({"length": "tiktoken:nope"}, "length", id="encoding"),
        pytest.param(
            {"length": "characters", "length_function": words}, "length", id="two-lengths"
        ),
        pytest.param({"id_scheme": "mine"}, "id_scheme", id="ids-without-function"),
        pytest.param({"id_scheme": "uuid", "id_func": numbered}, "id_scheme", id="two-schemes"),
        pytest.param({"metadata_reserve": "all"}, "metadata_reserve", id="reserve"),
        pytest.param({"metadata_overflow": "cut"}, "metadata_overflow", id="overflow"),
    ],
)
def test_wrong_settings_are_refused_at_once(settings, name):
    """LI-11 and its kin: at construction, with the parameter's name, as a ValueError."""
    with pytest.raises(ValueError, match=name) as told:
        DocumentNodeParser(**settings)
    assert isinstance(told.value, InvalidParameterError)


def test_the_default_overlap_is_small():
    """LI-12: an eighth of the size, never above 100."""
    sizes = [256, 800, 4000]
    assert [DocumentNodeParser(size).chunk_overlap for size in sizes] == [32, 100, 100]
    assert DocumentNodeParser.from_defaults(chunk_size=256) == DocumentNodeParser(256)


# Pipelines


def documents() -> list[Document]:
    return [Document(text=TEXT, id_=name, metadata={"k": name}) for name in ("a", "b")]


def test_a_pipeline_with_a_cache(tmp_path):
    """The second run, and a run from a cache on disk, give the nodes of the first."""
    parser = DocumentNodeParser(60, 10)
    pipeline = IngestionPipeline(transformations=[MarkdownNodeParser(), parser])
    first = pipeline.run(documents=documents())
    assert pipeline.run(documents=documents()) == first
    path = str(tmp_path / "cache.json")
    pipeline.cache.persist(path)
    later = IngestionPipeline(
        transformations=[parser], cache=IngestionCache.from_persist_path(path)
    )
    assert ids_of(later.run(documents=documents())) == ids_of(parser(documents()))


def ids_of(nodes) -> list[str]:
    return [node.node_id for node in nodes]


def test_two_documents_of_one_text_are_two():
    """LI-17: each document keeps its own nodes, also when one pipeline run follows another."""
    parser = DocumentNodeParser()
    pipeline = IngestionPipeline(transformations=[parser], disable_cache=True)
    runs = [pipeline.run(documents=[Document(text="hello", id_=name)]) for name in ("one", "two")]
    assert [run[0].ref_doc_id for run in runs] == ["one", "two"]
    assert runs[0][0].node_id != runs[1][0].node_id


async def test_a_pipeline_run_asynchronously():
    """LI-37b: `arun` gives the nodes of `run`."""
    pipeline = IngestionPipeline(transformations=[DocumentNodeParser(60, 10)], disable_cache=True)
    assert await pipeline.arun(documents=documents()) == pipeline.run(documents=documents())


def test_a_pipeline_with_two_workers():
    """LI-15: workers cut with the caller's own length function."""
    parser = DocumentNodeParser(6, 2, length_function=words)
    pipeline = IngestionPipeline(transformations=[parser], disable_cache=True)
    assert pipeline.run(documents=documents(), num_workers=2) == parser(documents())


# Where the framework takes a parser


def test_as_the_global_text_splitter():
    """`Settings.text_splitter` is used by `from_documents`."""
    kept = Settings._node_parser, Settings._transformations
    try:
        Settings._transformations = None
        Settings.text_splitter = DocumentNodeParser(60, 10)
        index = VectorStoreIndex.from_documents(documents(), embed_model=WordEmbedding())
    finally:
        Settings._node_parser, Settings._transformations = kept
    assert set(index.docstore.docs) == set(ids_of(DocumentNodeParser(60, 10)(documents())))


def test_as_a_transformation_of_an_index():
    """Retrieved nodes know their place in the document."""
    index = VectorStoreIndex.from_documents(
        documents(), transformations=[DocumentNodeParser(60, 10)], embed_model=WordEmbedding()
    )
    found = index.as_retriever(similarity_top_k=3).retrieve("三在这里")
    assert len(ids(found)) == 3
    for one in found:
        assert TEXT[one.node.start_char_idx : one.node.end_char_idx] == one.node.text


def test_events_are_those_of_the_stock_splitters():
    """NODE_PARSING around all, CHUNKING per document, with texts and pieces as payloads."""
    heard = []
    for make in (DocumentNodeParser, SentenceSplitter):
        ear = CallbackEar()
        parser = make(chunk_size=50, chunk_overlap=0, callback_manager=CallbackManager([ear]))
        parser(documents())
        heard.append([(when, what, set(payload)) for when, what, payload in ear.heard])
    assert heard[0] == heard[1]
    assert ("start", CBEventType.CHUNKING, {EventPayload.CHUNKS}) in heard[0]


def test_tokens_are_counted_without_network():
    """The encodings that the framework ships are read from its own folder."""
    for encoding in ("cl100k_base", "o200k_base"):
        assert DocumentNodeParser(length=f"tiktoken:{encoding}").split_text("hello") == ["hello"]
