"""What people look at: text that is safe to show, tables for a terminal and for a notebook."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final
from unicodedata import category, east_asian_width

from easyrag_core.text import grapheme_boundary_before

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "clipped",
    "column",
    "columns",
    "escaped",
    "html_box",
    "html_table",
    "text_table",
    "visible",
]

_REPLACEMENT = "\ufffd"
# C1 controls, surrogates, and what turns the order of everything behind it around.
_UNPRINTABLE = re.compile("[\x80-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"}
_PICTURES[0x7F] = 0x2421

_STYLE: Final = """
.easyrag-table{margin:.5em 0;font-size:13px;color:inherit;overflow-x:auto}
.easyrag-table table{border-collapse:collapse;margin:.3em 0;font-size:1em}
.easyrag-table th,.easyrag-table td{padding:.25em .7em;text-align:left;vertical-align:top;
border-bottom:1px solid rgba(128,128,128,.3);background:none;max-width:48em;
overflow-wrap:break-word}
.easyrag-table th.er-r,.easyrag-table td.er-r{text-align:right;white-space:nowrap;
font-variant-numeric:tabular-nums}
.easyrag-table .er-note{opacity:.75;font-size:.92em}
.easyrag-table .er-fault{color:#d33}
.easyrag-table .er-bar{display:block;height:5px;border-radius:2px;background:rgb(86,180,233);
margin-top:.25em;min-width:1px}
.easyrag-table .er-bar.er-score{background:rgb(240,170,20)}
""".strip()


def visible(text: str) -> str:
    r"""Make control characters visible and lone surrogates printable, one for one.

    A terminal obeys the first, and no page can be encoded with the second. Marks that override
    the direction of a text are shown, too; tabs and line ends stay as they are.

    Args:
        text: Any text.

    Returns:
        A text of the same length.

    >>> visible("a\x1b[0m\ud83d\n")
    'a␛[0m�\n'
    """
    return _UNPRINTABLE.sub(_REPLACEMENT, text).translate(_PICTURES)


def escaped(text: str) -> str:
    """Make a text from outside safe to stand in HTML.

    Args:
        text: Any text.

    Returns:
        The text as `visible` shows it, with HTML's own characters escaped.

    >>> escaped("<b>")
    '&lt;b&gt;'
    """
    return escape(visible(text))


def columns(text: str) -> int:
    r"""Count the columns that a text takes in a terminal.

    Args:
        text: A text of one line.

    Returns:
        Two for each wide character, none for marks that sit on others, else one.

    >>> columns("ab 检索 e\u0301")
    9
    """
    return len(text) if text.isascii() else sum(map(column, text))


def column(char: str) -> int:
    """Count the columns of one character, as `columns` does.

    Args:
        char: One character.

    Returns:
        0, 1 or 2.

    >>> column("检")
    2
    """
    if char < "\u0300":
        return 1
    if category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 1 + (east_asian_width(char) in "WF")


def clipped(text: str, width: int) -> str:
    r"""Bring a text into one line of so many columns at most.

    Args:
        text: Any text.
        width: The most columns, at least 1.

    Returns:
        The text with its blanks joined and control characters shown; cut texts end in `…`.

    >>> clipped("A line  that\ngoes on", 9)
    'A line t…'
    """
    # No more than this can be seen, however long the text is.
    line = visible(" ".join(text[: 8 * width].split()))
    if len(text) <= 8 * width and columns(line) <= width:
        return line
    used = 0
    for at, char in enumerate(line):
        used += column(char)
        if used >= width:
            return f"{line[: grapheme_boundary_before(line, at)].rstrip()}…"
    return f"{line}…"


def text_table(rows: Sequence[Sequence[str]], align: str) -> list[str]:
    r"""Lay cells out in columns for a terminal.

    Args:
        rows: The head, then the rest, all of one length; cells of one line each.
        align: A letter for each column, `l` or `r`.

    Returns:
        A line for each row.

    >>> print("\n".join(text_table([["name", "mean"], ["检索", "0.5"]], "lr")))
    name  mean
    检索   0.5
    """
    widths = [max(map(columns, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(
            _padded(cell, width, side) for cell, width, side in zip(row, widths, align, strict=True)
        ).rstrip()
        for row in rows
    ]


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], align: str) -> str:
    """Write a table in HTML.

    Args:
        head: A text for each column.
        rows: Cells that are HTML already: what comes from outside was escaped.
        align: A letter for each column, `l` or `r`.

    Returns:
        A `table` element.

    >>> html_table(["a"], [["<b>1</b>"]], "l")
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td><b>1</b></td></tr></tbody></table>'
    """
    top = _html_row(map(escaped, head), align, "th")
    body = "".join(_html_row(row, align, "td") for row in rows)
    return f"<table><thead>{top}</thead><tbody>{body}</tbody></table>"


def html_box(parts: Iterable[str]) -> str:
    """Put tables and notes into one element that stands alone in a notebook.

    Args:
        parts: HTML.

    Returns:
        A `div` with its own style, without scripts and outside resources.

    >>> html_box(["<p>x</p>"])[-22:]
    '</style><p>x</p></div>'
    """
    return f'<div class="easyrag-table"><style>{_STYLE}</style>{"".join(parts)}</div>'


def _html_row(cells: Iterable[str], align: str, tag: str) -> str:
    told = (
        f'<{tag} class="er-r">{cell}</{tag}>' if side == "r" else f"<{tag}>{cell}</{tag}>"
        for cell, side in zip(cells, align, strict=True)
    )
    return f"<tr>{''.join(told)}</tr>"


def _padded(cell: str, width: int, side: str) -> str:
    blank = " " * (width - columns(cell))
    return blank + cell if side == "r" else cell + blank
