"""Search by words, ours and the peers' in one process: `python -m tests.benchmarks.lexical`.

Every engine gets the same passages and answers the same queries from text, in turns, so that
other load on the machine falls on all alike; of each query the fastest of several rounds counts.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks._corpora import word_windows
from tests.benchmarks._lexical_engines import ENGINES, words
from tests.benchmarks.speed import machine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.benchmarks._lexical_engines import Engine

__all__ = ["main", "sampled_queries"]

TERMS = (2, 5, 10, 30)
SEARCHES_WITHOUT_HURRY = 0.02
"""Seconds: an engine that needs longer for a query answers fewer of them, once."""


def sampled_queries(texts: Sequence[str], each: int, *, seed: int = 13) -> dict[str, list[str]]:
    """Queries as they are asked: `spanN` are N words in a row, `kwN` N words that are not common.

    Args:
        texts: The passages; words of the first 100,000 are counted.
        each: How many queries of each kind.
        seed: Of the random choice.

    Returns:
        Kind to queries. A word of `kwN` is in less than a tenth of the passages.
    """
    draw = random.Random(seed)
    counted = texts[:100_000]
    holding = Counter(word for text in counted for word in set(words(text)))
    most = max(2, len(counted) // 10)
    kinds: dict[str, list[str]] = {}
    for number in TERMS:
        spans = (_span(words(draw.choice(texts)), number, draw) for _ in range(each))
        kinds[f"span{number}"] = list(spans)
    for number in TERMS:
        keywords = (_keywords(texts, holding, most, number, draw) for _ in range(each))
        kinds[f"kw{number}"] = list(keywords)
    return kinds


def _span(found: list[str], number: int, draw: random.Random) -> str:
    start = draw.randrange(max(1, len(found) - number))
    return " ".join(found[start : start + number])


def _keywords(
    texts: Sequence[str], holding: Mapping[str, int], most: int, number: int, draw: random.Random
) -> str:
    chosen: dict[str, None] = {}
    for _ in range(100):
        if len(chosen) >= number:
            break
        chosen |= dict.fromkeys(w for w in words(draw.choice(texts)) if 0 < holding[w] < most)
    return " ".join(draw.sample(list(chosen), min(number, len(chosen))))


def _seconds(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    call()
    return clock() - start


def built(texts: Sequence[str], names: Sequence[str]) -> tuple[dict[str, Engine], dict[str, float]]:
    """The engines that are installed and can hold so much, and the processor time of each."""
    engines, took = {}, {}
    for name in names:
        engine = ENGINES[name]()
        if len(texts) > engine.most_documents:
            continue
        try:
            took[name] = _seconds(lambda engine=engine: engine.build(texts), time.process_time)
        except ModuleNotFoundError as missing:
            print(f"{name} is left out: {missing.name} is not installed", file=sys.stderr)
            continue
        engines[name] = engine
        print(f"... {name} is built", file=sys.stderr, flush=True)
    return engines, took


def timed(
    engines: Mapping[str, Engine], queries: Sequence[str], rounds: int
) -> dict[str, list[float]]:
    """Seconds of each query for each engine: the least of some rounds, after one to warm up."""
    taken: dict[str, list[float]] = {}
    for name, engine in engines.items():
        for query in queries[:5]:
            engine.search(query)
        once = [_seconds(partial(engine.search, query)) for query in queries[:5]]
        if statistics.median(once) > SEARCHES_WITHOUT_HURRY:
            taken[name] = once
    quick = {name: engine for name, engine in engines.items() if name not in taken}
    for turn in range(rounds + 1):
        for name, engine in quick.items():
            seconds = [_seconds(partial(engine.search, query)) for query in queries]
            if turn:
                before = taken.get(name, seconds)
                taken[name] = list(map(min, before, seconds))
    return taken


def _percentiles(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    return f"{1e3 * ordered[len(ordered) // 2]:.3f}/{1e3 * ordered[int(len(ordered) * 0.95)]:.3f}"


def _print_row(name: str, cells: Sequence[str]) -> None:
    print(f"{name:<22}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


def _optional(call: Callable[[], str]) -> str:
    try:
        return call()
    except NotImplementedError:
        return "-"


def _added(engine: Engine, texts: Sequence[str]) -> str:
    took = [
        _seconds(lambda text=text, at=at: engine.add(text, len(texts) + at), time.process_time)
        for at, text in enumerate(texts[:20])
    ]
    return f"{1e3 * statistics.median(took):.3f} ms"


def _loaded(engine: Engine) -> str:
    with tempfile.TemporaryDirectory() as folder:
        load = engine.reload(Path(folder) / "index")
        return f"{1e3 * min(_seconds(load) for _ in range(3)):.1f} ms"


def _megabytes(nbytes: int | None) -> str:
    return "-" if nbytes is None else f"{nbytes / 1e6:.1f} MB"


def compare(count: int, names: Sequence[str], *, each: int, rounds: int) -> None:
    """Print one table for so many passages."""
    texts = word_windows(count)
    kinds = sampled_queries(texts, each)
    engines, took = built(texts, names)
    print(f"\n{count:,} passages of 60 to 100 words; queries in ms, p50/p95")
    _print_row("", list(engines))
    _print_row("build, passages/s", [f"{count / took[name]:,.0f}" for name in engines])
    _print_row("arrays", [_megabytes(engine.nbytes()) for engine in engines.values()])
    for kind, queries in kinds.items():
        taken = timed(engines, queries, rounds)
        _print_row(kind, [_percentiles(taken[name]) for name in engines])
    _print_row("load", [_optional(lambda e=e: _loaded(e)) for e in engines.values()])
    _print_row("add of one", [_optional(lambda e=e: _added(e, texts)) for e in engines.values()])


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Search by words, ours and the peers'.")
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--queries", type=int, default=100, help="of each kind")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="seconds: whether it runs at all")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; an engine that is not installed is said and left out."""
    asked = _parsed(arguments)
    sizes, each, rounds = asked.documents, asked.queries, asked.rounds
    if asked.small:
        sizes, each, rounds = [200], 3, 1
    for count in sizes:
        compare(count, asked.engines, each=each, rounds=rounds)
    print("\n" + ", ".join(f"{name} {told}" for name, told in machine().items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
