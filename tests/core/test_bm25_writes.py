"""What BM25Index promises to one who adds, updates, removes, saves and loads."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from easyrag_core.errors import IndexFormatError, InvalidParameterError
from easyrag_core.index.analyzer import StandardAnalyzer
from easyrag_core.index.bm25 import BM25Index, BM25Params, _settling
from tests.strategies import nasty_texts

QUERIES = ("a b", "c", "a a d", "检索", "e zebra")
IDS = st.sampled_from([f"id{number}" for number in range(12)])
TEXTS = st.lists(
    st.sampled_from(["a", "a", "a", "b", "b", "c", "d", "e", "检索", "索"]), max_size=8
).map(" ".join)
WRITES = st.one_of(
    st.tuples(st.just("add"), st.lists(st.tuples(IDS, TEXTS), max_size=9)),
    st.tuples(st.just("remove"), st.lists(IDS, max_size=5)),
    st.tuples(st.just("compact"), st.none()),
)


def apply(index, live, write):
    """Do one write to an index and to the dict that says what it should hold."""
    kind, given_ = write
    if kind == "add":
        index.add([id_ for id_, _ in given_], [text for _, text in given_])
        live.update(given_)
    elif kind == "remove":
        expected = len({id_ for id_ in given_ if id_ in live})
        assert index.remove(given_) == expected
        for id_ in given_:
            live.pop(id_, None)
    else:
        index.compact()


def rebuilt(live, **options):
    """Build an index from scratch."""
    index = BM25Index(**options)
    index.add(list(live), list(live.values()))
    return index


def answers(index):
    """Return everything that can be asked."""
    found = [index.search(query, k) for query in QUERIES for k in (1, 3, 20)]
    reasons = [index.explain(query, id_) for query in QUERIES for id_ in index.ids]
    return index.ids, len(index), found, reasons


@settings(max_examples=200)
@given(st.lists(WRITES, max_size=25))
def test_writes_equal_a_rebuild(writes):
    """After any writes every hit, score and explanation is that of an index from scratch."""
    index, live = BM25Index(), {}
    for write in writes:
        apply(index, live, write)
    assert answers(index) == answers(rebuilt(live))
    assert all(id_ in index for id_ in live)


@given(st.lists(WRITES, max_size=12))
def test_many_small_batches_stay_few_parts(writes):
    """The number of parts grows with the logarithm of the size: each is twice what follows."""
    index, live = BM25Index(), {}
    for write in writes:
        apply(index, live, write)
        sizes = [part.size for part in index._snapshot.parts]
        assert all(sizes[at] >= 2 * sum(sizes[at + 1 :]) for at in range(len(sizes) - 1))
        assert all(2 * part.live >= len(part.segment) for part in index._snapshot.parts)


def test_one_document_does_not_rewrite_the_index():
    """Adding to a large index leaves its large part as it is."""
    index = BM25Index(analyzer=str.split)
    index.add([str(number) for number in range(3000)], ["some words here"] * 3000)
    large = index._snapshot.parts[0].segment
    for number in range(100):
        index.add([f"new{number}"], ["some more"])
    assert index._snapshot.parts[0].segment is large
    assert len(index) == 3100


def test_single_adds_rewrite_each_posting_a_few_times(monkeypatch):
    """To add one at a time costs O(log n) per posting over all, and parts stay few."""
    rewritten = []
    merge = _settling.merge_segments

    def counted(parts):
        merged = merge(parts)
        rewritten.append(merged.documents.size)
        return merged

    monkeypatch.setattr(_settling, "merge_segments", counted)
    monkeypatch.setattr(_settling, "_SMALL", 8)
    index = BM25Index(analyzer=str.split)
    count = 2048
    for number in range(count):
        index.add([str(number)], ["a b c d"])
    assert sum(rewritten) <= 4 * count * 11
    assert len(index._snapshot.parts) <= 11
    assert len(index.search("a", count)) == count


def test_full_parts_are_left_alone(monkeypatch):
    """A part that has no room for more is not rewritten by what comes after it."""
    monkeypatch.setattr(_settling, "_MOST_DOCUMENTS", 32)
    monkeypatch.setattr("easyrag_core.index.bm25._documents._BATCH_DOCUMENTS", 8)
    index, live = BM25Index(analyzer=str.split), {}
    apply(index, live, ("add", [(f"x{number}", "a b") for number in range(100)]))
    full = [part.segment for part in index._snapshot.parts[:3]]
    assert [len(segment) for segment in full] == [32, 32, 32]
    for number in range(200):
        apply(index, live, ("add", [(f"y{number}", "a c")]))
    assert all(
        part.segment is kept for part, kept in zip(index._snapshot.parts, full, strict=False)
    )
    assert all(len(part.segment) <= 32 for part in index._snapshot.parts)
    assert answers(index) == answers(rebuilt(live, analyzer=str.split))


@pytest.mark.parametrize("most", [1, 4, 11])
def test_many_parts_equal_a_rebuild(monkeypatch, most):
    """Parts that are full after a few documents change no answer, nor does compacting them."""
    monkeypatch.setattr(_settling, "_MOST_DOCUMENTS", most)

    @settings(max_examples=60, deadline=None)
    @given(st.lists(WRITES, max_size=20))
    def holds(writes):
        index, live = BM25Index(), {}
        for write in writes:
            apply(index, live, write)
        expected = answers(rebuilt(live))
        assert answers(index) == expected
        loaded = BM25Index.from_contents(index.contents())
        assert answers(loaded) == expected
        index.compact()
        assert answers(index) == expected
        assert len(index._snapshot.parts) == -(-len(live) // most)

    holds()


def test_batches_are_joined(monkeypatch):
    """A call that is worked off in batches gives what one batch gives."""
    texts = [f"word{number % 7} word{number % 11}" for number in range(50)]
    ids = [str(number) for number in range(50)]
    whole = BM25Index()
    whole.add(ids, texts)
    monkeypatch.setattr("easyrag_core.index.bm25._documents._BATCH_DOCUMENTS", 7)
    index = BM25Index()
    index.add(ids, texts)
    assert index.search("word1 word2", 50) == whole.search("word1 word2", 50)


def test_update_keeps_its_place():
    """An updated document keeps its place among equals, one that comes back stands last."""
    index = BM25Index()
    index.add(["a", "b", "c"], ["x", "x", "x"])
    index.add(["a"], ["x"])
    assert [hit.id for hit in index.search("x")] == index.ids == ["a", "b", "c"]
    index.remove(["a"])
    index.add(["a"], ["x"])
    index.compact()
    assert [hit.id for hit in index.search("x")] == index.ids == ["b", "c", "a"]


def test_last_text_of_an_id_counts():
    """Of an id that comes twice in a batch the last text counts."""
    index = BM25Index()
    index.add(["a", "b", "a"], ["old", "b", "new"])
    assert index.search("old") == []
    assert index.ids == ["a", "b"]
    assert len(index) == 2


def test_systems_update_and_delete_leave_nothing():
    """Neither an updated nor a removed document is found by its old words."""
    index = BM25Index()
    index.add(["a", "b"], ["old words", "others"])
    index.add(["a"], ["new terms"])
    assert index.search("old words") == []
    assert index.remove(["a", "nope", "a"]) == 1
    assert index.search("new terms") == []
    assert index.ids == ["b"]
    assert "a" not in index
    assert 7 not in index


def test_everything_removed():
    """An index that was emptied answers nothing and takes documents again."""
    index = BM25Index()
    index.add(["a", "b"], ["x", "y"])
    assert index.remove(["a", "b"]) == 2
    assert (len(index), index.ids, index.search("x")) == (0, [], [])
    index.compact()
    index.add(["a"], ["x"])
    assert [hit.id for hit in index.search("x")] == ["a"]


def test_compact_forgets_terms():
    """Compacting leaves no terms of removed documents."""
    index = BM25Index()
    index.add(["a", "b"], ["gone", "stays"])
    index.remove(["a"])
    index.compact()
    assert list(index._snapshot.vocabulary) == ["stays"]


@pytest.mark.parametrize(
    ("ids", "texts"),
    [(["a"], []), (["a"], ["x", "y"]), ("a", ["x"]), (["a"], "x"), ([1], ["x"]), (["a"], [None])],
)
def test_bad_documents_are_refused(ids, texts):
    """Lists that do not pair, and values that are no strings, change nothing."""
    index = BM25Index()
    with pytest.raises(InvalidParameterError):
        index.add(ids, texts)
    assert len(index) == 0


def test_remove_refuses_a_single_string():
    """One string is not a list of one-letter ids."""
    index = BM25Index()
    index.add(["a", "b"], ["x", "y"])
    with pytest.raises(InvalidParameterError, match="ids"):
        index.remove("ab")
    assert len(index) == 2


def test_a_failing_analyzer_changes_nothing():
    """If a text cannot be analysed, the index is as it was."""

    def analyzer(text):
        if "bad" in text:
            raise RuntimeError(text)
        return text.split()

    index = BM25Index(analyzer=analyzer)
    index.add(["a", "b"], ["x", "y"])
    with pytest.raises(RuntimeError, match="bad"):
        index.add(["a", "c"], ["fine", "bad"])
    assert index.ids == ["a", "b"]
    assert [hit.id for hit in index.search("x")] == ["a"]


def test_inputs_are_left_alone():
    """Neither the lists nor the filter of the caller is changed."""
    ids, texts, mask = ["a", "a"], ["x", "y"], np.array([True])
    index = BM25Index()
    index.add(ids, texts)
    index.search("y", filter=mask)
    assert (ids, texts, mask.tolist()) == (["a", "a"], ["x", "y"], [True])


def test_writers_wait_for_each_other():
    """Documents that eight threads add at once are all there."""
    index = BM25Index(analyzer=str.split)

    def add(worker):
        for number in range(30):
            index.add([f"{worker}-{number}"], [f"common word{worker}"])

    writers = [threading.Thread(target=add, args=(worker,)) for worker in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(index.search("common", 1000)) == len(index) == 240
    assert len(index.search("word3", 1000)) == 30


def test_each_answer_is_that_of_one_state():
    """While documents come one by one, each answer is right for the number that is there."""
    count, readers = 150, 4
    texts = ["all " + "word " * (number % 5) for number in range(count)]
    growing, expected = BM25Index(analyzer=str.split), {0: []}
    for number, text in enumerate(texts):
        growing.add([str(number)], [text])
        expected[number + 1] = growing.search("all word", count)
    index = BM25Index(analyzer=str.split)
    start, done = threading.Barrier(readers + 1), threading.Event()
    seen: list[list[int]] = [[] for _ in range(readers)]
    wrong = []

    def read(numbers):
        start.wait()
        while not done.is_set():
            hits = index.search("all word", count)
            numbers.append(len(hits))
            if hits != expected[len(hits)]:
                wrong.append(hits)

    threads = [threading.Thread(target=read, args=(numbers,)) for numbers in seen]
    for thread in threads:
        thread.start()
    start.wait()
    for number, text in enumerate(texts):
        index.add([str(number)], [text])
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert all(numbers == sorted(numbers) for numbers in seen)


# Keeping


@settings(max_examples=40)
@given(writes=st.lists(WRITES, max_size=10), mmap=st.booleans())
def test_saved_equals_loaded(tmp_path_factory, writes, mmap):
    """A loaded index answers as the saved one, and can be written to."""
    path = tmp_path_factory.mktemp("bm25") / "index"
    index, live = BM25Index(BM25Params(1.2, 0.4)), {}
    for write in writes:
        apply(index, live, write)
    index.save(path)
    loaded = BM25Index.load(path, mmap=mmap)
    assert loaded.params == index.params
    assert loaded.analyzer == index.analyzer
    assert answers(loaded) == answers(index)
    for one in (index, loaded):
        one.add(["id3", "new"], ["a b", "d"])
        one.remove(["id1"])
    assert answers(loaded) == answers(index)


@given(
    texts=st.dictionaries(nasty_texts(max_fragments=3), nasty_texts(max_fragments=4), max_size=5)
)
def test_odd_strings_survive(texts):
    """Ids and terms with line breaks, lone surrogates or nothing come back exactly."""
    index = BM25Index(analyzer=list)
    index.add(list(texts), list(texts.values()))
    loaded = BM25Index.from_contents(index.contents(), analyzer=list)
    assert loaded.ids == list(texts)
    for text in texts.values():
        assert loaded.search(text) == index.search(text)


def test_odd_strings_survive_the_disk(tmp_path):
    """What the folder holds is exact, too."""
    ids = ["", "line\nbreak", "\ud83d", "\x00", "中"]
    index = BM25Index(analyzer=list)
    index.add(ids, ["\n\ud83d", "\x00", "", "a\r", "中文"])
    index.save(tmp_path / "index")
    loaded = BM25Index.load(tmp_path / "index", analyzer=list)
    assert loaded.ids == ids
    assert loaded.search("\ud83d\n") == index.search("\ud83d\n")
    assert [hit.id for hit in loaded.search("\x00")] == ["line\nbreak"]


def test_llamaindex_60_all_settings_restored(tmp_path):
    """Stop words, stemmer, n-grams and params come back with the index."""
    analyzer = StandardAnalyzer(stop_words=["the"], stemmer="english", cjk="bigram")
    index = BM25Index(BM25Params(0.9, 0.1), analyzer=analyzer)
    index.add(["a", "b", "c"], ["the tests ran", "testing 检索", "the"])
    index.save(tmp_path / "index")
    loaded = BM25Index.load(tmp_path / "index")
    assert loaded.analyzer == analyzer
    assert loaded.search("the test 检索") == index.search("the test 检索")


def test_empty_index_is_kept(tmp_path):
    """An empty index can be saved and loaded."""
    BM25Index().save(tmp_path / "index")
    loaded = BM25Index.load(tmp_path / "index")
    assert (len(loaded), loaded.search("a")) == (0, [])
    loaded.add(["a"], ["a"])
    assert len(loaded.search("a")) == 1


def test_another_analyzer_is_refused(tmp_path):
    """An index is not searched with other terms than it was built with; both are named."""
    index = BM25Index()
    index.add(["a"], ["检索"])
    index.save(tmp_path / "index")
    with pytest.raises(IndexFormatError, match=r"unigram\+bigram.*'cjk': 'bigram'"):
        BM25Index.load(tmp_path / "index", analyzer=StandardAnalyzer(cjk="bigram"))
    assert len(BM25Index.load(tmp_path / "index", analyzer=StandardAnalyzer())) == 1


def test_a_function_must_be_given_again(tmp_path):
    """An index that was built with a function says so when it is loaded without."""
    index = BM25Index(analyzer=str.split)
    index.add(["a"], ["x y"])
    index.save(tmp_path / "index")
    with pytest.raises(IndexFormatError, match="analyzer="):
        BM25Index.load(tmp_path / "index")
    with pytest.raises(IndexFormatError, match="splitlines"):
        BM25Index.load(tmp_path / "index", analyzer=str.splitlines)
    assert len(BM25Index.load(tmp_path / "index", analyzer=str.split).search("x")) == 1


def test_missing_and_torn_folders(tmp_path):
    """A path that is not there is a FileNotFoundError, a torn index an IndexFormatError."""
    with pytest.raises(FileNotFoundError):
        BM25Index.load(tmp_path / "nope")
    index = BM25Index()
    index.add(["a"], ["x y z"])
    index.save(tmp_path / "index")
    [file] = (tmp_path / "index").rglob("documents.npy")
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(IndexFormatError, match="truncated"):
        BM25Index.load(tmp_path / "index")


@pytest.mark.parametrize("name", ["lengths", "offsets", "documents", "frequencies"])
def test_arrays_that_do_not_fit_are_refused(name):
    """Arrays of other lengths, or missing ones, are an IndexFormatError."""
    index = BM25Index()
    index.add(["a", "b"], ["x y", "z"])
    contents = index.contents()
    contents.arrays[name] = contents.arrays[name][:1]
    with pytest.raises(IndexFormatError, match="fit"):
        BM25Index.from_contents(contents)
    del contents.arrays[name]
    with pytest.raises(IndexFormatError, match="incomplete"):
        BM25Index.from_contents(contents)


def test_damaged_settings_are_refused():
    """Params out of range, or a lost list of terms, are an IndexFormatError."""
    index = BM25Index()
    index.add(["a"], ["x"])
    contents = index.contents()
    contents.settings["params"]["b"] = 7
    with pytest.raises(IndexFormatError, match="b=7"):
        BM25Index.from_contents(contents)
    contents = index.contents()
    contents.arrays.pop("terms_blob")
    with pytest.raises(IndexFormatError, match="terms"):
        BM25Index.from_contents(contents)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))])
def test_copies_are_independent(copied):
    """A copy answers alike and is written to on its own."""
    index = BM25Index()
    index.add(["a", "b"], ["x", "x y"])
    twin = copied(index)
    assert twin.search("x") == index.search("x")
    twin.add(["c"], ["x"])
    assert (len(twin), len(index)) == (3, 2)


def test_repr_shows_size():
    """An index shows its size and its settings."""
    assert "0 documents" in repr(BM25Index())
    assert "k1=1.5" in repr(BM25Index())


def test_at_most_eight_bytes_per_posting():
    """At rest a posting takes at most eight bytes."""
    index = BM25Index()
    index.add([str(number) for number in range(500)], [f"a b w{n % 50}" for n in range(500)])
    segment = index._snapshot.parts[0].segment
    held = segment.documents.nbytes + segment.frequencies.nbytes
    assert held / segment.documents.size <= 8
