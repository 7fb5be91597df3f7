"""One text of source code on its way into chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from easyrag_core.chunking._measured import measured
from easyrag_core.chunking.code._description import add_description
from easyrag_core.chunking.code._frame import CodeFrame
from easyrag_core.chunking.code._grammars import grammar_of
from easyrag_core.chunking.code._line_windows import (
    CharacterLineRuler,
    MeasuringLineRuler,
    walk_lines,
)
from easyrag_core.chunking.code._lines import Lines
from easyrag_core.chunking.code._symbols import CODE_BLOCK, symbol_of
from easyrag_core.chunking.document import ChunkNames
from easyrag_core.types import Chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from easyrag_core.chunking.code._line_windows import LineRuler
    from easyrag_core.types import LengthFunction

__all__ = ["CodePiece", "CodeSettings"]

# The part of the limit that is kept free for a summary and keywords.
_DESCRIPTION = 8


class CodeSettings(NamedTuple):
    """The settings of a `CodeChunker`, already checked; see there."""

    size: int
    overlap: int
    length_function: LengthFunction
    template: str
    describe: Callable[[Chunk], Mapping[str, Any]] | None
    id_factory: Callable[[Chunk], str] | None


class CodePiece:
    """A text, its language and path, and where it stands in its document."""

    def __init__(
        self,
        settings: CodeSettings,
        text: str,
        *,
        path: str | None,
        language: str,
        offset: int = 0,
        line: int = 1,
    ) -> None:
        """Look at the text as a whole.

        Args:
            settings: Of the chunker.
            text: The code.
            path: Its path.
            language: Its language, as GitHub writes it.
            offset: Where the text begins in the document.
            line: The number of its first line.
        """
        self._settings = settings
        self._path = path
        self._language = language
        self._offset = offset
        self._first_line = line
        self._grammar = grammar_of(language)
        self._lines = Lines(text)
        # No line has a longer number than this; to count the lines would take longer than to cut.
        last = line + self._lines.end
        self._longest_facts = _facts("", last, last, CODE_BLOCK, "")
        self._frame = CodeFrame.within(
            settings.template,
            settings.size,
            lambda frame: self._length(frame, 0, 0),
            language=language,
            file=(path or "").replace("\\", "/"),
            described=settings.describe is not None,
            facts=self._longest_facts,
        )

    def chunks(self, document_id: str, metadata: Mapping[str, Any]) -> Iterator[Chunk]:
        """Yield the chunks.

        Args:
            document_id: The document's id.
            metadata: What each chunk gets a copy of.

        Yields:
            The chunks in order.

        Raises:
            InvalidParameterError: The length function fails.
        """
        id_factory, describe = self._settings.id_factory, self._settings.describe
        name_of = ChunkNames(document_id, context=f"{self._language}\0{self._path or ''}").name
        text, view, offset, grammar = (
            self._lines.text,
            self._lines.view,
            self._offset,
            self._grammar,
        )
        common = dict(metadata) if self._path is None else {"file_path": self._path, **metadata}
        frame, usual = self._frame, self._frame.is_usual
        count, last, counted = view.count, self._first_line, 0
        for index, (start, own, end, whole) in enumerate(walk_lines(self._ruler())):
            # From the last chunk's end on, or back over the overlap.
            gap = count("\n", counted, start) if start > counted else -count("\n", start, counted)
            first = last + gap
            last += count("\n", counted, end)
            counted = end
            code = text[start:end]
            kind, name = symbol_of(view, own, end, grammar) if whole else (CODE_BLOCK, "")
            if usual:
                embedded = frame.usual_text(kind, f"{first}-{last}", code)
            else:
                embedded = frame.text(_facts(code, first, last, kind, name))
            chunk = Chunk(
                "" if id_factory else name_of(code),
                document_id,
                index,
                code,
                offset + start,
                offset + end,
                first,
                last,
                (),
                embedded,
                None,
                "code",
                self._language,
                common.copy(),
            )
            if kind != CODE_BLOCK:
                chunk.metadata |= {"symbol_type": kind, "symbol": name}
            if describe:
                self._describe(chunk, _facts(code, first, last, kind, name))
            if id_factory:
                chunk.id = id_factory(chunk)
            yield chunk

    def _ruler(self) -> LineRuler:
        size, overlap = self._settings.size, self._settings.overlap
        if self._settings.describe:
            size -= size // _DESCRIPTION
        # Of a CRLF only one character would count.
        simple = self._frame.is_even and self._lines.view is self._lines.text
        if simple and self._settings.length_function is len:
            size -= len(self._frame.text(self._longest_facts))
            return CharacterLineRuler(self._lines, self._grammar, size=size, overlap=overlap)
        return MeasuringLineRuler(
            self._lines,
            self._grammar,
            size=size,
            overlap=overlap,
            measure_window=self._window_measure(),
            measure=lambda start, end: self._length(self._lines.text[start:end], start, end),
        )

    def _window_measure(self) -> Callable[[int, int, int], int]:
        view = self._lines.view
        line_at = _LineCounter(view, self._first_line).line_at

        def measure(start: int, own: int, end: int) -> int:
            code = self._lines.text[start:end]
            symbol = symbol_of(view, own, end, self._grammar)
            facts = _facts(code, line_at(start), line_at(end), *symbol)
            return self._length(self._frame.text(facts), start, end)

        return measure

    def _length(self, text: str, start: int, end: int) -> int:
        if self._settings.length_function is len:
            return len(text)
        offset = self._offset
        return measured(
            self._settings.length_function, text, start=offset + start, end=offset + end
        )

    def _describe(self, chunk: Chunk, facts: dict[str, str]) -> None:
        def embed(summary: str, keywords: str) -> str:
            return self._frame.text({**facts, "summary": summary, "keywords": keywords})

        start, end = chunk.start - self._offset, chunk.end - self._offset
        describe = self._settings.describe
        if describe:
            add_description(
                chunk,
                describe,
                embed,
                lambda text: self._length(text, start, end) <= self._settings.size,
            )


class _LineCounter:
    """Numbers lines, at little cost for positions near the last one asked for."""

    def __init__(self, view: str, first: int) -> None:
        self._view = view
        self._position = 0
        self._line = first

    def line_at(self, position: int) -> int:
        """Return the number of the line that holds a position."""
        if position >= self._position:
            self._line += self._view.count("\n", self._position, position)
        else:
            self._line -= self._view.count("\n", position, self._position)
        self._position = position
        return self._line


def _facts(code: str, first: int, last: int, kind: str, name: str) -> dict[str, str]:
    return {
        "code": code,
        "lines": f"{first}-{last}",
        "start_line": str(first),
        "end_line": str(last),
        "symbol_type": kind,
        "symbol": name,
        "summary": "",
        "keywords": "",
    }
