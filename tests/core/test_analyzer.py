"""What StandardAnalyzer promises: every script, identifiers, one answer for ever."""

from __future__ import annotations

import json
import pickle
import string
import sys
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from easyrag_core.errors import IndexFormatError, InvalidParameterError, MissingDependencyError
from easyrag_core.index.analyzer import (
    Analyzer,
    FunctionAnalyzer,
    StandardAnalyzer,
    _tokens,
    analyzer_from_settings,
    as_analyzer,
)
from easyrag_core.index.analyzer._characters import CONNECTORS, normalize
from easyrag_core.index.analyzer._stop_words import STOP_WORDS
from easyrag_core.index.analyzer._terms import TermTable
from easyrag_core.index.analyzer._tokens import tokens
from tests.strategies import FRAGMENTS, nasty_texts

ANALYZER = StandardAnalyzer()

EXACT = {
    "words": ("The cat sat.", ["the", "cat", "sat"]),
    "single-letters": ("vitamin C, plan B", ["vitamin", "c", "plan", "b"]),
    "punctuation-B2": ("Hello, world", ["hello", "world"]),
    "apostrophe": ("l'homme don’t", ["l", "homme", "don", "t"]),
    "c++": ("C++", ["c++", "c"]),
    "c++-in-a-sentence": ("(C++).", ["c++", "c"]),
    "c++11": ("C++11", ["c++11", "c++", "c", "11"]),
    "c#": ("C#,", ["c#", "c"]),
    ".net": (".NET", [".net", "net"]),
    "version": ("v2.3", ["v2.3", "v2", "2", "3"]),
    "order-number": ("ORD-0012", ["ord-0012", "ord", "0012"]),
    "model-name": ("GPT-4o", ["gpt-4o", "gpt", "4o", "4"]),
    "camel": ("getUserName", ["getusername", "get", "user", "name"]),
    "snake": ("get_user_name", ["get_user_name", "get", "user", "name"]),
    "acronym": ("HTTPServer", ["httpserver", "http", "server"]),
    "plural-acronym": ("DNAs", ["dnas"]),
    "path": ("os.path", ["os.path", "os", "path"]),
    "prose-hyphens": ("state-of-the-art", ["state", "of", "the", "art"]),
    "range": ("1998-2002", ["1998", "2002"]),
    "sum": ("a+b", ["a+b", "a", "b"]),
    "lone-signs": ("# -- ... + _", []),
    "chinese": ("检索增强", ["检", "索", "增", "强", "检索", "索增", "增强"]),
    "chinese-comma": ("检索，好", ["检", "索", "检索", "好"]),
    "border-chinese-digits": ("2010年上海", ["2010", "年", "上", "海", "年上", "上海"]),
    "border-chinese-latin": ("Redis介绍", ["redis", "介", "绍", "介绍"]),
    "identifiers-in-chinese": ("用C++和C#写", ["用", "c++", "c", "和", "c#", "c", "写"]),
    "japanese": ("東京タワー", [*"東京タワー", "東京", "京タ", "タワ", "ワー"]),
    "half-width-kana": ("ｶﾞｽ", ["ガ", "ス", "ガス"]),
    "middle-dot": ("ア・イ", ["ア", "イ"]),
    "thai": ("สวัส", ["สวั", "วัส"]),
    "thai-short": ("ไป", ["ไป"]),
    "lao": ("ເຮືອນ", ["ເຮື", "ຮືອ", "ືອນ"]),
    "khmer": ("ខ្មែរ", ["ខ្ម", "្មែ", "មែរ"]),
    "khmer-hidden-space": ("ខ្\u200bមែរ", ["ខ្ម", "្មែ", "មែរ"]),
    "khmer-full-stop": ("ខ្មែ។", ["ខ្ម", "្មែ"]),
    "burmese": ("မြန်", ["မြန", "ြန်"]),
    "korean": ("한국어", ["한국어", "한국", "국어"]),
    "korean-particle": ("Redis는 2015년", ["redis", "는", "2015", "년"]),
    "hindi-marks": ("हिन्दी दुनिया", ["हिन्दी", "दुनिया"]),
    "tamil-marks": ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
    "bengali-marks": ("বাংলা", ["বাংলা"]),
    "persian-plural": ("کتاب\u200cها", ["كتاب", "ها"]),
    "arabic-points": ("كِتَابٌ كتـاب", ["كتاب", "كتاب"]),
    "arabic-digits": ("٢٠١٥ ۲۰۱۵", ["2015", "2015"]),
    "hebrew-points": ("שָׁלוֹם", ["שלום"]),
    "hebrew-acronym": ('צה״ל צה"ל', ["צהל", "צהל"]),
    "greek-final-sigma": ("ΣΟΦΟΣ σοφός", ["σοφοσ", "σοφόσ"]),
    "german-sharp-s": ("Straße STRASSE", ["strasse", "strasse"]),
    "turkish-dotted-i": ("İstanbul istanbul", ["istanbul", "istanbul"]),
    "cyrillic-latin": ("USBкабель", ["usb", "кабель"]),
    "full-width": (
        "Ｃ＋＋ ＧＰＴ－４ｏ ２０１５",
        ["c++", "c", "gpt-4o", "gpt", "4o", "4", "2015"],
    ),
    "accent-apart": ("cafe\u0301 café", ["café", "café"]),
    "soft-hyphen": ("co\u00adoperate", ["cooperate"]),
    "bom": ("\ufeffword", ["word"]),
    "joiner-inside-accent": ("e\u200d\u0301t", ["ét"]),
    "zero-width-space": ("one\u200btwo", ["one", "two"]),
    "fraction": ("6½", ["6", "1", "2"]),
    "lone-surrogates": ("a\ud83d b\udc00", ["a", "b"]),
    "emoji": ("👍🏽 👨‍👩‍👧‍👦 ok", ["ok"]),
    "nul": ("a\x00b", ["a", "b"]),
    "blank": (" \t\r\n\u3000\u00a0", []),
    "empty": ("", []),
}


@pytest.mark.parametrize(("text", "terms"), EXACT.values(), ids=EXACT)
def test_terms(text, terms):
    """Each kind of writing gives exactly these terms."""
    assert ANALYZER(text) == terms


MARKS = {
    "out-of-order": "\u0301\u0323",
    "parted-by-a-joiner": "\u0301\u0323\u034f",
    "that-are-two": "\u0344\u0323",
    "tibetan": "\u0f73\u0301",
    "half-width": "\u0301\uff9e",
    "that-become-letters": "\u0345\u0323",
    "astral": "\U0001d165\u0323",
}


@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS)
@pytest.mark.parametrize("letter", ["", "a"])
def test_runs_of_marks_take_linear_time(marks, letter):
    """A quarter of a million marks on one letter are read in a moment, not in a minute."""
    started = time.perf_counter()
    ANALYZER(letter + marks * (250_000 // len(marks)))
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("number", range(1, 31))
def test_runs_of_marks_as_writers_use_them_are_whole(number):
    """Up to thirty marks on a letter are all kept, in whatever order they come."""
    text = "x" + "".join(["\u0301", "\u0323", "\u0327"][n % 3] for n in range(number)) + "y"
    assert ANALYZER(text) == [unicodedata.normalize("NFKC", text)]


def test_dotless_letters_and_a_turkish_stemmer():
    """The stemmer sees the vowels as they were written, and what it gives is folded."""
    pytest.importorskip("Stemmer")
    analyzer = StandardAnalyzer(stemmer="turkish")
    assert analyzer("kızlar") == ["kiz"]
    assert analyzer("ısparta") == analyzer("ISPARTA")


FOUND = {
    "peers-37-word": ("检索增强生成 RAG，C++ 和 C# 与 a1", "检索"),
    "peers-37-c++": ("检索增强生成 RAG，C++ 和 C# 与 a1", "c++"),
    "peers-37-c#": ("检索增强生成 RAG，C++ 和 C# 与 a1", "C#"),
    "peers-37-rag": ("检索增强生成 RAG，C++ 和 C# 与 a1", "rag"),
    "systems-cafe": ("café Москва こんにちは 한국어", "CAFÉ"),
    "systems-moscow": ("café Москва こんにちは 한국어", "москва"),
    "systems-hello": ("café Москва こんにちは 한국어", "こんにちは"),
    "systems-korean": ("café Москва こんにちは 한국어", "한국어"),
    "systems-redis": ("Redis介绍", "redis"),
    "systems-introduction": ("Redis介绍", "介绍"),
    "langchain-M3-ideographic-space": ("全角\u3000缩进", "缩进"),
    "langchain-M3-no-break-space": ("hard\u00a0space", "space"),
    "part-of-version": ("release v2.3", "2"),
    "part-of-order": ("see ORD-0012", "0012"),
    "part-of-model": ("with GPT-4o", "4o"),
    "part-of-.net": ("on .NET", "net"),
    "part-of-http": ("class HTTPServer", "http server"),
    "name-before-digits-phone": ("iPhone15 MacBook2 DeepSeek3", "iphone macbook deepseek"),
    "name-before-digits-parts": ("iPhone15 MacBook2 DeepSeek3", "phone mac book deep seek 15"),
    "name-before-digits-protocol": ("an OAuth2 token", "oauth"),
    "name-before-digits-version": ("PyTorch2.1", "pytorch"),
    "name-before-digits-year": ("YouTube2024", "youtube"),
    "name-before-digits-chinese": ("iPhone15发布会", "iphone 发布会"),
    "name-after-digits": ("the 2YouTube3Music list", "youtube music"),
    "name-in-an-identifier": ("my_iPhone15_case", "iphone"),
    "turkish-dotted-capital": ("DİYARBAKIR", "diyarbakır"),
    "turkish-dotted-small": ("diyarbakır", "DİYARBAKIR"),
    "turkish-dotless-capital": ("ISPARTA", "ısparta"),
    "turkish-dotless-small": ("ısparta ıspanak", "ISPARTA ISPANAK"),
    "part-of-korean": ("한국어를 배웁니다", "국어"),
}


@pytest.mark.parametrize(("text", "query"), FOUND.values(), ids=FOUND)
def test_query_is_found(text, query):
    """Every term of the query is a term of the text."""
    terms = ANALYZER(query)
    assert terms
    assert set(terms) <= set(ANALYZER(text))


@given(
    st.text(st.sampled_from(string.printable + "\x00\x1c\x7f"), max_size=80),
    st.sampled_from(["", CONNECTORS]),
)
def test_ascii_path_equals_general_path(text, connectors):
    """The fast path for ASCII cuts exactly as the general one does."""
    general = _tokens._token_pattern(connectors).findall(normalize(text))
    assert tokens(text, connectors=connectors) == general


def _carefully_normalized(text):
    """What `normalize` gives for a text with a sign that needs care, here a fraction."""
    return normalize(text + "\n½").removesuffix("\n 1\u20442")


@given(nasty_texts() | st.text())
def test_the_short_ways_lead_to_the_same_terms(text):
    """Signs taken for spaces, NFKC alone, and cutting at lines change no token."""
    general = _tokens._token_pattern(CONNECTORS).findall(_carefully_normalized(text))
    assert tokens(text, connectors=CONNECTORS) == general
    plain = ["plainly", "worded"] * 200
    long = "\n".join([text, *plain, text])
    assert tokens(long, connectors=CONNECTORS) == [*general, *plain, *general]


@pytest.mark.parametrize("sign", _tokens._SEPARATORS)
def test_a_separator_is_as_good_as_a_space(sign):
    """What NFKC makes of each sign that is taken for a space is no part of a word."""
    pattern = _tokens._token_pattern(CONNECTORS)
    assert pattern.findall(normalize(f"a{sign}b")) == ["a", "b"]
    assert unicodedata.combining(unicodedata.normalize("NFKC", sign)[0]) == 0


@given(nasty_texts())
def test_terms_are_words(text):
    """Any text gives non-empty terms without white space or case, and the same ones again."""
    terms = ANALYZER(text)
    assert ANALYZER(text) == StandardAnalyzer()(text) == terms
    for term in terms:
        assert term
        assert not any(character.isspace() for character in term)
        assert term.lower() == term or not term.isascii()


@example("0#0")
@example("a1#b")
@example("1#2+3")
@given(nasty_texts(max_fragments=10))
def test_terms_survive_a_second_analysis(text):
    """A term that is searched for finds itself: analysing it gives it again."""
    for term in set(ANALYZER(text)):
        assert term in ANALYZER(term)


@given(nasty_texts(max_fragments=10), nasty_texts(max_fragments=10))
def test_a_line_break_parts_texts(first, second):
    """What stands on one line does not change the terms of another."""
    assert ANALYZER(f"{first}\n{second}") == ANALYZER(first) + ANALYZER(second)


def test_a_full_memory_changes_nothing(monkeypatch):
    """The terms are the same after the remembered words were dropped."""
    monkeypatch.setattr("easyrag_core.index.analyzer._terms._REMEMBERED_TOKENS", 3)
    analyzer = StandardAnalyzer()
    words = [f"word{number % 7}" for number in range(50)]
    assert analyzer(" ".join(words)) == [term for word in words for term in ANALYZER(word)]
    assert len(analyzer._table) <= 3


@pytest.mark.parametrize(
    ("cjk", "terms"),
    [
        ("unigram+bigram", ["检", "索", "器", "检索", "索器"]),
        ("bigram", ["检索", "索器"]),
        ("unigram", ["检", "索", "器"]),
    ],
)
def test_cjk_modes(cjk, terms):
    """The caller chooses the n-grams of Chinese and Japanese."""
    assert StandardAnalyzer(cjk=cjk)("检索器") == terms


def test_lone_character_in_bigram_mode():
    """A run of one character is not lost when only bigrams are wanted."""
    assert StandardAnalyzer(cjk="bigram")("a 我 b") == ["a", "我", "b"]


def test_case_is_kept_on_request():
    """`lowercase=False` leaves case alone, in parts too."""
    assert StandardAnalyzer(lowercase=False)("getName ÉTÉ") == ["getName", "get", "Name", "ÉTÉ"]


def test_without_identifiers():
    """Without identifiers every sign but the underscore parts words."""
    analyzer = StandardAnalyzer(identifiers=False)
    assert analyzer("C++ v2.3 getName get_name") == ["c", "v2", "3", "getname", "get_name"]


def test_stop_words_of_a_language():
    """A language's stop words are left out."""
    assert StandardAnalyzer(stop_words="english")("The fox didn't jump") == ["fox", "jump"]
    assert StandardAnalyzer(stop_words="chinese")("我的书") == ["书", "我的", "的书"]


@pytest.mark.parametrize("language", STOP_WORDS)
def test_stop_word_lists_stop_themselves(language):
    """Each word of each list is stopped: the lists are written as the analyzer cuts."""
    assert StandardAnalyzer(stop_words=language)(STOP_WORDS[language]) == []


def test_own_stop_words_are_folded():
    """The caller's stop words are compared without regard to case and width."""
    assert StandardAnalyzer(stop_words=["Fox", "ＪＵＭＰ"])("fox jumps, JUMP") == ["jumps"]


def test_stemmer():
    """Words and the parts of identifiers are stemmed, wholes are not."""
    analyzer = StandardAnalyzer(stemmer="english", stop_words="english")
    assert analyzer("the running_tests") == ["running_tests", "run", "test"]
    assert StandardAnalyzer(stemmer="russian")("книгами") == ["книг"]


def test_stemmer_missing(monkeypatch):
    """Without PyStemmer the error says what to install."""
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(MissingDependencyError, match=r"easyrag-core\[stem\]"):
        StandardAnalyzer(stemmer="english")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cjk", "words"),
        ("stop_words", "klingon"),
        ("stop_words", [1, 2]),
        ("stemmer", "klingon"),
        ("lowercase", "yes"),
        ("identifiers", None),
    ],
)
def test_bad_settings_are_refused(name, value):
    """A wrong setting is refused at construction, by name."""
    with pytest.raises(InvalidParameterError, match=name):
        StandardAnalyzer(**{name: value})


def test_immutable():
    """An analyzer cannot be changed after an index was built with it."""
    with pytest.raises(AttributeError):
        ANALYZER.cjk = "bigram"


SETTINGS = [
    {},
    {"lowercase": False, "identifiers": False, "cjk": "bigram"},
    {"stop_words": "english", "stemmer": "english"},
    {"stop_words": ["b", "a", "a"]},
]


@pytest.mark.parametrize("options", SETTINGS)
def test_settings_and_pickle_round_trip(options):
    """Settings survive JSON and pickle, and the copy analyses alike."""
    analyzer = StandardAnalyzer(**options)
    stored = json.loads(json.dumps(analyzer.settings()))
    for copy in (analyzer_from_settings(stored), pickle.loads(pickle.dumps(analyzer))):
        assert copy == analyzer
        assert hash(copy) == hash(analyzer)
        assert copy.settings() == stored
        assert copy("".join(FRAGMENTS)) == analyzer("".join(FRAGMENTS))


def test_equality_by_settings():
    """Different settings make different analyzers."""
    assert StandardAnalyzer() == ANALYZER
    assert StandardAnalyzer(cjk="bigram") != ANALYZER
    assert StandardAnalyzer(stop_words=["b", "a", "b"]) == StandardAnalyzer(stop_words={"a", "b"})


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"name": "lucene"},
        {"name": ["standard"]},
        {"name": "standard", "version": 1, "stop_words": 5},
        {"name": "function", "function": "builtins.str.split"},
        {"name": "standard", "version": 99},
        {"name": "standard", "version": 1, "ngrams": 4},
        {"name": "standard", "version": 1, "cjk": "words"},
    ],
)
def test_unknown_settings_are_refused(settings):
    """Settings that are not ours, or of another version, raise IndexFormatError."""
    with pytest.raises(IndexFormatError):
        analyzer_from_settings(settings)


def test_threads_share_an_analyzer(monkeypatch):
    """Eight threads over one analyzer, with a memory that is dropped all the time, agree."""
    monkeypatch.setattr("easyrag_core.index.analyzer._terms._REMEMBERED_TOKENS", 16)
    analyzer = StandardAnalyzer(stemmer="english")
    texts = [f"running tests{n % 90} of getName{n % 70}" for n in range(2000)]
    expected = [StandardAnalyzer(stemmer="english")(text) for text in texts[:200]]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(analyzer, texts))[:200] == expected


def test_function_analyzer():
    """A plain function serves as an analyzer, named after the function."""
    analyzer = as_analyzer(str.split)
    assert isinstance(analyzer, Analyzer)
    assert analyzer == FunctionAnalyzer(str.split)
    assert analyzer != FunctionAnalyzer(str.splitlines)
    assert hash(analyzer) == hash(FunctionAnalyzer(str.split))
    assert analyzer.analyze_many(["a b", ""], processes=4) == [["a", "b"], []]
    assert analyzer.settings() == {"name": "function", "function": "builtins.str.split"}
    assert "str.split" in repr(analyzer)


def test_as_analyzer_leaves_analyzers_alone():
    """An analyzer is returned as it is."""
    assert as_analyzer(ANALYZER) is ANALYZER


@given(
    st.text("aB1C-.#+_é", min_size=1, max_size=6) | st.sampled_from(["Words.", "end.-", "U.S."]),
    st.booleans(),
    st.booleans(),
)
def test_the_short_way_for_words_is_no_other(token, lowercase, identifiers):
    """Plain words are recognised first: the rules for names give the same terms."""
    analyzer = StandardAnalyzer(
        lowercase=lowercase, identifiers=identifiers, stop_words=["a", "end"], cjk="unigram"
    )
    table = TermTable(analyzer._rules())
    assert list(table[token]) == table._kept(table._word_terms(token))
