"""Chunks seen over their source, in a notebook and in a terminal."""

from __future__ import annotations

import copy
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core import Chunk, DocumentChunker
from easyrag_core._shown import columns, visible
from easyrag_core.chunking.view import ChunkView, _page
from easyrag_core.errors import InvalidParameterError
from easyrag_core.text import is_grapheme_boundary
from tests.strategies import nasty_texts, paragraphs

ENGLISH = "One is here. Two is there. Three is nowhere."
CHINESE = "第一句在这里。第二句在那里。\n\n第三句不在。"
HOSTILE = '</span></div><script>alert(\'1\')</script>" onmouseover="x" <!-- & &amp; <style>'
FACTS = (
    "2 chunks · 44 characters · 13 to 26 each, median 20 · 13 in several chunks · 17 in no chunk"
)
TAGS = {"div", "span", "style", "br"}
BLANKS = {visible(char) for char in map(chr, range(0x3001)) if char.isspace()}
"""How blanks look; some are control characters."""
ATTRIBUTES = {"class", "title", "data-opens", "data-closes"}


class Page(HTMLParser):
    """What a browser would make of a view."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.classes: set[str] = set()
        self.titles: list[str] = []
        self.opens: list[str] = []
        self.others: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[list[str]] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        values = dict(attrs)
        self.attributes |= set(values)
        kinds = (values.get("class") or "").split()
        self.classes |= set(kinds)
        if "title" in values:
            self.titles.append(values["title"] or "")
        if "data-opens" in values:
            self.opens.append(values["data-opens"] or "")
        if tag != "br":
            self._open.append([tag, *kinds])

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, data):
        around = {kind for kinds in self._open for kind in kinds}
        for kind in around if "er-key" not in around else ():
            self.texts.setdefault(kind, []).append(data)
        if "er-source" in around and "er-path" not in around:
            self.texts.setdefault("visible", []).append(data)

    def handle_comment(self, data):
        self.others.append(data)

    handle_decl = handle_pi = unknown_decl = handle_comment

    def text(self, kind):
        return "".join(self.texts.get(kind, []))


def html(view):
    return view._repr_html_()


@st.composite
def texts_with_spans(draw):
    text = draw(nasty_texts(max_fragments=15).filter(bool))
    places = st.integers(0, len(text))
    pairs = draw(st.lists(st.tuples(places, places), max_size=8))
    return text, [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]


@given(texts_with_spans())
def test_only_our_markup_comes_out_and_the_whole_source_is_visible(case):
    """Whatever the text and the spans: our tags, our attributes, and the text as it is."""
    text, spans = case
    page = Page(html(ChunkView.from_spans(text, spans, title=text, max_chars=None)))
    assert page.tags <= TAGS
    assert page.attributes <= ATTRIBUTES
    assert all(kind.startswith(("er-", "easyrag-view")) for kind in page.classes)
    assert page.others == []
    assert page.text("visible") == visible(text)
    assert page.text("er-title") == visible(text)


@given(texts_with_spans())
def test_lost_and_doubled_text_is_marked_and_nothing_else(case):
    """Every non-blank character of no span is in a lost stretch, of two in a striped one."""
    text, spans = case
    page = Page(html(ChunkView.from_spans(text, spans, max_chars=None)))
    depths = [sum(start <= at < end for start, end in spans) for at in range(len(text))]

    def held(wanted):
        pairs = zip(visible(text), depths, strict=True)
        return "".join(char for char, depth in pairs if wanted(depth) and char not in BLANKS)

    def shown(kind):
        return "".join(char for char in page.text(kind) if char not in BLANKS)

    assert shown("er-lost") == held(lambda depth: depth == 0)
    assert shown("er-several") == held(lambda depth: depth > 1)


@given(nasty_texts())
def test_a_view_can_be_sent_as_utf8(text):
    """Lone surrogates and control characters reach neither page nor terminal."""
    view = ChunkView(text, DocumentChunker(60).chunk(text), max_chars=None)
    for shown in (html(view), str(view), repr(view)):
        shown.encode("utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


def test_text_from_outside_is_escaped_everywhere():
    """Title, headings, id and kind may say anything, as the text may."""
    chunk = Chunk(HOSTILE, "d", 0, HOSTILE, 0, len(HOSTILE), heading_path=(HOSTILE,), kind=HOSTILE)
    page = Page(html(ChunkView(HOSTILE, [chunk], title=HOSTILE)))
    assert page.tags <= TAGS
    assert page.attributes <= ATTRIBUTES
    assert page.text("visible") == page.text("er-title") == HOSTILE
    assert any(f"id {HOSTILE}" in title for title in page.titles)


def test_hover_tells_the_facts_of_a_chunk():
    """Index, kind, place, lines, length with and without context, headings and id."""
    text = "# 标题\n\n正文在此。"
    chunk = Chunk(
        "ab12", "d", 7, "正文在此。", 6, 11, 3, 3, ("标题",), "[标题]\n\n正文在此。", kind="table"
    )
    page = Page(html(ChunkView(text, [chunk])))
    assert page.titles[-1].splitlines() == [
        "chunk 7 (table)",
        "characters 6-11, lines 3-3",
        "length 5, with context 11",
        "标题",
        "id ab12",
    ]
    assert page.opens == ["7"]


def test_an_overlap_names_all_its_chunks():
    """Hovering over striped text tells how many chunks hold it, and which."""
    page = Page(html(ChunkView.from_spans("abcdef", [(0, 4), (2, 6)])))
    assert page.text("er-several") == "cd"
    (title,) = (title for title in page.titles if title.startswith("in 2 chunks"))
    assert "characters 0-4" in title
    assert "characters 2-6" in title


def test_neighbours_differ_in_colour():
    """Chunks that touch have different colours, also where the palette begins again."""
    text = "ab" * 9
    shown = html(ChunkView.from_spans(text, [(at, at + 2) for at in range(0, 18, 2)]))
    colours = re.findall(r"er-chunk er-a(\d)", shown)
    assert len(colours) == 9
    assert all(one != other for one, other in pairwise(colours))


def test_headings_stand_at_the_margin_once():
    """A path is shown where it changes; without headings there is no margin."""
    text = "aa bb cc"
    paths = [("Guide",), ("Guide",), ("Guide", "安装")]
    chunks = [
        Chunk("", "", at, text[at * 3 : at * 3 + 2], at * 3, at * 3 + 2, heading_path=path)
        for at, path in enumerate(paths)
    ]
    page = Page(html(ChunkView(text, chunks)))
    assert page.text("er-path") == "Guide" + "Guide › 安装"
    assert page.titles.count("Guide > 安装") == 1
    plain = Page(html(ChunkView.from_spans(text, [(0, 2)])))
    assert not plain.classes & {"er-path", "er-wide"}


def test_a_parent_is_drawn_where_no_child_is():
    """Parents in the list with their children are no overlap; only what a child lacks is grey."""
    text = "first second rest"
    parent = Chunk("p", "d", 0, text, 0, 17, kind="parent")
    children = [
        Chunk("a", "d", 0, "first", 0, 5, parent_id="p"),
        Chunk("b", "d", 1, "second", 6, 12, parent_id="p"),
    ]
    view = ChunkView(text, [parent, *children])
    page = Page(html(view))
    assert page.text("er-parent").split() == ["rest"]
    assert not page.classes & {"er-several", "er-lost"}
    assert str(view).splitlines()[-1] == "1 │ [p0|[0|first|0] [1|second|1] rest|p0]"


@given(nasty_texts(), st.integers(1, 80))
def test_long_texts_are_cut_with_a_note(text, most):
    """At most `max_chars` are shown, no grapheme cluster is cut, and what is missing is said."""
    view = ChunkView(text, DocumentChunker(20, 5).chunk(text), max_chars=most)
    page = Page(html(view))
    shown = page.text("visible")
    assert len(shown) <= most
    assert visible(text).startswith(shown)
    assert is_grapheme_boundary(text, len(shown))
    missing = len(text) - len(shown)
    assert (f"{missing:,} more characters" in page.text("er-rest")) == (missing > 0)
    assert (f"… {missing:,} more characters" in str(view)) == (missing > 0)


def test_the_facts_are_those_of_the_whole_text():
    """Cutting the view changes nothing of what is said about the chunks."""
    text = ENGLISH * 50
    chunks = DocumentChunker(100, 30).chunk(text)
    whole, cut = (ChunkView(text, chunks, max_chars=most) for most in (None, 40))
    assert (
        Page(html(whole)).text("er-facts").split(" · ")[:3]
        == Page(html(cut)).text("er-facts").split(" · ")[:3]
    )
    assert str(whole).splitlines()[0] == str(cut).splitlines()[0]
    assert "max_chars=None" in str(cut)


def test_a_repr_is_short():
    """What an interactive session prints by itself stays within a screen or two."""
    text = ENGLISH * 5000
    view = ChunkView(text, DocumentChunker().chunk(text), max_chars=None)
    assert len(repr(view)) < 4000
    assert len(str(view)) > len(text)


def test_the_page_stands_alone():
    """No script, nothing loaded, and the style touches nothing but the view."""
    shown = html(ChunkView(CHINESE, DocumentChunker(12, 4).chunk(CHINESE)))
    style = shown[shown.index("<style>") + 7 : shown.index("</style>")]
    assert not re.search(r"script|url\(|@import|https?:|src=|href=", shown)
    rules = re.sub(r"@media[^{]*\{(.*?\})\}", r"\1", style, flags=re.DOTALL)
    selectors = re.findall(r"([^{}]+)\{[^{}]*\}", rules)
    assert len(selectors) > 10
    assert all(
        one.strip().startswith(".easyrag-view") for group in selectors for one in group.split(",")
    )


@pytest.mark.parametrize(
    ("ink", "paper"),
    [((0x11,) * 3, (0xFF,) * 3), ((0xDD,) * 3, (0x11,) * 3)],
    ids=["light", "dark"],
)
@pytest.mark.parametrize("rgb", _page._COLOURS)
def test_text_is_readable_on_every_colour(ink, paper, rgb):
    """WCAG's contrast of 4.5 holds on each tint, at its strongest, in light and dark themes."""
    tint = [float(part) for part in rgb.split(",")]
    shades = [float(share) for share in re.findall(r"rgba\(var\(--[ab]\),([.\d]+)\)", _page._STYLE)]
    mixed = [
        max(shades) * one + (1 - max(shades)) * two for one, two in zip(tint, paper, strict=True)
    ]
    bright, dark = sorted((_luminance(mixed), _luminance(ink)), reverse=True)
    assert (bright + 0.05) / (dark + 0.05) >= 4.5


def _luminance(rgb):
    linear = [
        part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in rgb
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_line_ends_stay_lines():
    """A lone carriage return breaks the line on a page as it does to us; a CRLF breaks it once."""
    shown = html(ChunkView.from_spans("a\rb\r\nc\nd", [(0, 4), (4, 8)]))
    assert shown.count("<br>") == 1
    assert Page(shown).text("visible") == "a\rb\r\nc\nd"
    assert str(ChunkView.from_spans("a\rb\r\nc\n", [(0, 7)])).splitlines()[1:] == [
        "1 │ [0|a",
        "2 │ b",
        "3 │ c|0]",
    ]


def test_a_terminal_shows_marks_in_the_text():
    """Openings, closings, overlaps and losses stand where they are, in Chinese as in English."""
    english = ChunkView.from_spans(ENGLISH, [(0, 26), (13, 26)], title="T")
    assert str(english).splitlines() == [
        "T",
        FACTS,
        "1 │ [0|One is here. [1|Two is there.|1]|0] [!|Three is nowhere.|!]",
    ]
    chinese = ChunkView.from_spans(CHINESE, [(0, 14), (7, 14), (16, 22)])
    assert str(chinese).splitlines()[1:] == [
        "1 │ [0|第一句在这里。[1|第二句在那里。|1]|0]",
        "2 │",
        "3 │ [2|第三句不在。|2]",
    ]


@given(paragraphs(), st.integers(10, 60))
def test_a_terminal_shows_the_whole_source(text, size):
    """Without the marks and the margin, the lines are the source's."""
    view = ChunkView(text, DocumentChunker(size).chunk(text), max_chars=None)
    shown = "".join(line.partition("│")[2] for line in str(view).splitlines()[1:])
    assert "".join(re.sub(r"\[\d+\||\|\d+\]", "", shown).split()) == "".join(text.split())


@pytest.mark.parametrize("text", [ENGLISH * 8, CHINESE * 20, "長" * 300, "x" * 300], ids=range(4))
def test_columns_line_up_and_are_bounded(text):
    """Wide characters count twice: the margin is straight and no row is too wide."""
    chunks = DocumentChunker(50).chunk(text)
    for chunk in chunks:
        chunk.heading_path = ("指南", "很长的标题" * (chunk.index % 9))
    rows = str(ChunkView(text, chunks)).splitlines()[1:]
    assert len(rows) > 2
    assert len({columns(row.partition("│")[0]) for row in rows}) == 1
    assert max(map(columns, rows)) <= 96


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: ChunkView(b"bytes", []), "text"),
        (lambda: ChunkView("abc", [], max_chars=0), "max_chars"),
        (lambda: ChunkView("abc", [], max_chars=2.5), "max_chars"),
        (lambda: ChunkView("abc", [Chunk("", "", 0, "xyz", 0, 3)]), "chunks[0]"),
        (lambda: ChunkView("abc", [Chunk("", "", 0, "abcd", 0, 4)]), "chunks[0]"),
        (lambda: ChunkView.from_spans("abc", [(0, 1), (2, 4)]), "spans[1]"),
        (lambda: ChunkView.from_spans("abc", [(1, 1)]), "spans[0]"),
        (lambda: ChunkView.from_spans("abc", [(-1, 1)]), "spans[0]"),
        (lambda: ChunkView.from_spans(b"abc", [(0, 1)]), "text"),
    ],
)
def test_what_does_not_fit_is_refused(call, name):
    """Chunks of another text, places outside it and senseless limits are named."""
    with pytest.raises(InvalidParameterError) as refused:
        call()
    assert refused.value.name == name


@pytest.mark.parametrize("text", ["", " \n "])
def test_nothing_to_show_is_shown(text):
    """An empty or blank text without chunks gives a view all the same."""
    view = ChunkView(text, [])
    assert Page(html(view)).text("visible") == text
    assert str(view).startswith(f"0 chunks · {len(text)} characters")


def test_a_view_leaves_its_chunks_alone():
    """Any iterable will do, and nothing of it is changed."""
    chunks = DocumentChunker(20, 8).chunk(ENGLISH)
    before = copy.deepcopy(chunks)
    view = ChunkView(ENGLISH, (chunk for chunk in chunks))
    assert html(view) == html(view)
    assert chunks == before


def test_many_chunks_over_one_place_stay_small():
    """The size of a view grows with the chunks, not with their square."""
    text = "x" * 4000
    sizes = [
        len(html(ChunkView.from_spans(text, [(at, len(text) - at) for at in range(count)])))
        for count in (500, 1000)
    ]
    assert sizes[1] < 2.5 * sizes[0]
