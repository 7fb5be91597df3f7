"""Settings of the Markdown, code and parent-child parsers: saved, sent, cached, heard."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.ingestion import IngestionCache, IngestionPipeline
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.schema import Document
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.span_handlers import SimpleSpanHandler

from easyrag_core import InvalidParameterError
from llamaindex_easyrag import (
    CodeLineNodeParser,
    DocumentNodeParser,
    MarkdownSectionNodeParser,
    ParentChildNodeParser,
)
from tests.llamaindex_adapter._nodes import ids_of
from tests.llamaindex_adapter._parts import CallbackEar

TEXT = "# Guide\n\nOne is here. Two is there.\n\n## 使用\n\n三在这里。四在那里。\n\n" * 6


def words(text: str) -> int:
    """A length function that a worker finds by its name."""
    return len(text.split())


def numbered(number: int, source: Document) -> str:
    return f"{source.node_id}-{number}"


PARENT, CHILD = MarkdownSectionNodeParser(200), DocumentNodeParser(60, 10)
BY_WORDS = DocumentNodeParser(9, 2, length_function=words)

SETTINGS = [
    pytest.param(MarkdownSectionNodeParser, {}, id="markdown"),
    pytest.param(
        MarkdownSectionNodeParser,
        {"chunk_size": 90, "chunk_overlap": 5, "min_chunk_size": 20, "max_heading_level": 2},
        id="markdown-sizes",
    ),
    pytest.param(
        MarkdownSectionNodeParser,
        {"heading_path_in": "metadata", "merge_small": False, "horizontal_rule": "soft"},
        id="markdown-words",
    ),
    pytest.param(
        MarkdownSectionNodeParser,
        {"heading_path_separator": "/", "length": "tiktoken:cl100k_base", "chunk_size": 40},
        id="markdown-tokens",
    ),
    pytest.param(
        MarkdownSectionNodeParser, {"length_function": words, "chunk_size": 12}, id="markdown-own"
    ),
    pytest.param(MarkdownSectionNodeParser, {"id_func": numbered}, id="markdown-ids"),
    pytest.param(CodeLineNodeParser, {}, id="code"),
    pytest.param(
        CodeLineNodeParser, {"chunk_size": 90, "chunk_overlap": 7, "language": "go"}, id="code-go"
    ),
    pytest.param(
        CodeLineNodeParser,
        {"template": "{file}\n{code}", "metadata_reserve": "embed", "metadata_overflow": "cap"},
        id="code-template",
    ),
    pytest.param(
        CodeLineNodeParser, {"length_function": words, "chunk_size": 30}, id="code-own-length"
    ),
    pytest.param(
        CodeLineNodeParser,
        {"include_metadata": False, "include_prev_next_rel": False, "id_scheme": "uuid"},
        id="code-flags",
    ),
    pytest.param(ParentChildNodeParser, {}, id="family"),
    pytest.param(ParentChildNodeParser, {"parent": PARENT, "child": CHILD}, id="family-markdown"),
    pytest.param(ParentChildNodeParser, {"child": BY_WORDS, "id_func": numbered}, id="family-own"),
    pytest.param(
        ParentChildNodeParser,
        {"include_metadata": False, "include_prev_next_rel": False, "heading_path_separator": "/"},
        id="family-flags",
    ),
]


def functions_of(settings: dict) -> dict:
    given = {k: v for k, v in settings.items() if k in {"length_function", "id_func"}}
    if settings.get("child") is BY_WORDS:
        given["length_function"] = words
    return given


@pytest.mark.parametrize(("kind", "settings"), SETTINGS)
def test_settings_come_back_from_a_dict_and_from_json(kind, settings):
    """LI-16: `from_dict(to_dict())` and its JSON twin are equal, functions given again."""
    parser = kind(**settings)
    functions = functions_of(settings)
    assert kind.from_dict(parser.to_dict(), **functions) == parser
    assert kind.from_json(parser.to_json(), **functions) == parser
    assert json.loads(json.dumps(parser.to_dict()))["class_name"] == kind.__name__
    assert kind.from_defaults(**settings) == parser


@pytest.mark.parametrize(("kind", "settings"), SETTINGS)
def test_settings_survive_pickling(kind, settings):
    """LI-15: a copy made by pickle is equal and cuts as the original does."""
    parser = kind(**settings)
    copy = pickle.loads(pickle.dumps(parser))
    assert copy == parser
    if settings.get("id_scheme") != "uuid":
        assert ids_of(copy(documents())) == ids_of(parser(documents()))


@pytest.mark.parametrize(("kind", "settings"), [case for case in SETTINGS if case.values[1]])
def test_every_setting_is_in_the_cache_key(kind, settings):
    """Whatever changes the nodes changes the key of IngestionCache, name by name."""
    plain = kind()
    for name, value in settings.items():
        # A parent of 200 characters needs a smaller child.
        base = {"child": CHILD} if name == "parent" else {}
        keys = [
            get_transformation_hash(documents(), parser)
            for parser in (kind(**base) if base else plain, kind(**{**base, name: value}))
        ]
        assert keys[0] != keys[1], name


def test_parsers_of_different_kinds_are_not_equal():
    """Equal sizes do not make a Markdown parser a code parser."""
    parsers = [
        DocumentNodeParser(500, 0),
        MarkdownSectionNodeParser(500, 0),
        CodeLineNodeParser(500, 0),
    ]
    assert [a == b for a in parsers for b in parsers] == [
        i == j for i in range(3) for j in range(3)
    ]
    assert parsers[0] != "a parser"


def test_a_function_that_is_missing_is_asked_for():
    """A dict holds the name alone: nothing falls back to another function, at no level."""
    for parser in (
        MarkdownSectionNodeParser(length_function=words),
        ParentChildNodeParser(child=BY_WORDS),
    ):
        with pytest.raises(InvalidParameterError) as told:
            type(parser).from_dict(parser.to_dict())
        assert told.value.name == "length"


def test_levels_can_be_replaced_when_loading():
    """`from_dict(data, child=…)` takes the place of what was saved."""
    data = ParentChildNodeParser(PARENT, CHILD).to_dict()
    again = ParentChildNodeParser.from_dict(data, child=DocumentNodeParser(50, 0))
    assert again == ParentChildNodeParser(PARENT, DocumentNodeParser(50, 0))
    with pytest.raises(ValueError, match="class_name"):
        ParentChildNodeParser.from_dict({**data, "child": {"class_name": "SentenceSplitter"}})


@pytest.mark.parametrize(
    ("kind", "settings", "name"),
    [
        (MarkdownSectionNodeParser, {"chunk_size": 0}, "chunk_size"),
        (MarkdownSectionNodeParser, {"chunk_size": 10, "chunk_overlap": 10}, "chunk_overlap"),
        (MarkdownSectionNodeParser, {"min_chunk_size": 9999}, "min_chunk_size"),
        (MarkdownSectionNodeParser, {"max_heading_level": 7}, "max_heading_level"),
        (MarkdownSectionNodeParser, {"heading_path_in": "text"}, "heading_path_in"),
        (MarkdownSectionNodeParser, {"horizontal_rule": "no"}, "horizontal_rule"),
        (MarkdownSectionNodeParser, {"length": "tokens"}, "length"),
        (CodeLineNodeParser, {"chunk_size": 2.5}, "chunk_size"),
        (CodeLineNodeParser, {"chunk_overlap": -1}, "chunk_overlap"),
        (CodeLineNodeParser, {"template": "none"}, "template"),
        (CodeLineNodeParser, {"metadata_reserve": "all"}, "metadata_reserve"),
        (CodeLineNodeParser, {"id_scheme": "mine"}, "id_scheme"),
    ],
)
def test_wrong_settings_are_refused_at_once(kind, settings, name):
    """LI-11 and its kin: at construction, with the parameter's name, as a ValueError."""
    with pytest.raises(ValueError, match=name):
        kind(**settings)


# Pipelines and events


def documents() -> list[Document]:
    return [
        Document(text=TEXT, id_=name, metadata={"file_path": f"{name}.py"}) for name in ("a", "b")
    ]


KINDS = [
    pytest.param(MarkdownSectionNodeParser(30, length_function=words), id="markdown"),
    pytest.param(CodeLineNodeParser(30, length_function=words), id="code"),
    pytest.param(ParentChildNodeParser(PARENT, BY_WORDS), id="family"),
]


@pytest.mark.parametrize("parser", KINDS)
def test_a_pipeline_with_a_cache(parser, tmp_path):
    """The second run, and a run from a cache on disk, give the nodes of the first."""
    pipeline = IngestionPipeline(transformations=[parser])
    first = pipeline.run(documents=documents())
    assert first == parser(documents())
    assert pipeline.run(documents=documents()) == first
    path = str(tmp_path / "cache.json")
    pipeline.cache.persist(path)
    later = IngestionPipeline(
        transformations=[parser], cache=IngestionCache.from_persist_path(path)
    )
    assert later.run(documents=documents()) == first


@pytest.mark.parametrize("parser", KINDS)
def test_a_pipeline_with_two_workers(parser):
    """LI-15: workers cut with the caller's own length function, at every level."""
    pipeline = IngestionPipeline(transformations=[parser], disable_cache=True)
    assert pipeline.run(documents=documents(), num_workers=2) == parser(documents())


@pytest.mark.parametrize("parser", KINDS)
async def test_a_pipeline_run_asynchronously(parser):
    """LI-37b: `arun` gives the nodes of `run`."""
    pipeline = IngestionPipeline(transformations=[parser], disable_cache=True)
    assert await pipeline.arun(documents=documents()) == parser(documents())


@pytest.mark.parametrize(
    "kind", [MarkdownSectionNodeParser, CodeLineNodeParser, ParentChildNodeParser]
)
def test_events_are_those_of_the_stock_splitters(kind):
    """NODE_PARSING around all, CHUNKING per document, with texts and pieces as payloads."""
    ear = CallbackEar()
    parser = kind(callback_manager=CallbackManager([ear]))
    nodes = parser(documents())
    told = [(when, what) for when, what, _ in ear.heard]
    one = [("start", CBEventType.CHUNKING), ("end", CBEventType.CHUNKING)]
    parsing = CBEventType.NODE_PARSING
    assert told == [("start", parsing), *one, *one, ("end", parsing)]
    pieces = ear.heard[2][2][EventPayload.CHUNKS]
    assert pieces == [node.text for node in nodes if node.ref_doc_id == "a"]


def test_spans_carry_the_parsers_name():
    """Traces name the class that the user chose."""
    root, handler = get_dispatcher(), SimpleSpanHandler()
    root.add_span_handler(handler)
    try:
        MarkdownSectionNodeParser()(documents())
    finally:
        root.span_handlers.remove(handler)
    names = {span.id_.rsplit("-", 5)[0] for span in handler.completed_spans}
    assert any(name.startswith("MarkdownSectionNodeParser") for name in names)


@pytest.mark.parametrize("parser", KINDS)
@pytest.mark.parametrize("text", ["", " ", "  \n", "\u3000\r\n\t"], ids=repr)
def test_a_blank_document_gives_no_node(parser, text):
    """LI-13: neither an empty nor a blank document becomes a node."""
    assert parser([Document(text=text)]) == []


def test_split_text_follows_the_framework():
    """LI-13: the empty text gives itself, a blank one nothing, as the stock splitters do."""
    for parser in (MarkdownSectionNodeParser(60), CodeLineNodeParser(60)):
        assert parser.split_text("") == [""]
        assert parser.split_text("   ") == []
        assert parser.split_text_metadata_aware("", "k: v") == [""]
        pieces = parser.split_text_metadata_aware(TEXT, "k: v")
        assert len(pieces) >= len(parser.split_text(TEXT)) > 1
        with pytest.raises(ValueError, match="Metadata length"):
            parser.split_text_metadata_aware(TEXT, "k: v" * 20)


WHOLE_NUMBERS = [
    (parser, name)
    for parser in (CodeLineNodeParser, DocumentNodeParser, MarkdownSectionNodeParser)
    for name in ("chunk_size", "chunk_overlap")
]
WHOLE_NUMBERS += [(MarkdownSectionNodeParser, n) for n in ("min_chunk_size", "max_heading_level")]


@pytest.mark.parametrize("wrong", ["3", True, False, 3.0, "x", b"3", [3]])
@pytest.mark.parametrize(("parser", "name"), WHOLE_NUMBERS)
def test_whole_numbers_are_not_made_of_other_things(parser, name, wrong):
    """A text, a boolean or a float is no size, however the parser is made."""
    settings = {"chunk_size": 900, "chunk_overlap": 3, name: wrong}
    saved = {**parser().to_dict(), **settings}
    for make in (
        lambda: parser(**settings),
        lambda: parser.from_defaults(**settings),
        lambda: parser.from_dict(saved),
        lambda: ParentChildNodeParser(parser(**settings), DocumentNodeParser(2, 0)),
        lambda: ParentChildNodeParser.from_dict(
            {**ParentChildNodeParser(DocumentNodeParser(900)).to_dict(), "parent": saved}
        ),
    ):
        with pytest.raises(InvalidParameterError, match=name):
            make()


@pytest.mark.parametrize(("parser", "name"), WHOLE_NUMBERS)
def test_whole_numbers_may_be_numpys(parser, name):
    """What is an int in all but its class is one in the settings."""
    made = parser(**{"chunk_size": 900, "chunk_overlap": 3, name: np.int64(4)})
    assert type(getattr(made, name)) is int
    assert parser.from_dict(json.loads(made.to_json())) == made
