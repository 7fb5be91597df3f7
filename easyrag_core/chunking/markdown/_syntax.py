"""What a line of Markdown may begin: the patterns of CommonMark and of GFM tables.

All of them read lines that end at line feeds; `_blocks` sees to that.
"""

from __future__ import annotations

import re

__all__ = [
    "BLANK_AHEAD",
    "CODE_INDENT",
    "EVENT",
    "FENCE_ENDS",
    "HEAD",
    "LINE",
    "STARTS",
    "TABLE_STOP",
    "atx_title",
    "fence_ends",
    "html_end",
    "is_delimiter_row",
    "item_number_is_one",
    "past_definitions",
]

_EOL = r"(?=\n|\Z)"
CODE_INDENT = r"(?:[ ]{4}|[ ]{0,3}\t)"
"""Indentation of four columns or more."""

# Possessive repeats (`++`) keep every pattern linear: no line is read twice.
_STOPS = rf"""
      (?P<atx>[#]{{1,6}}+)(?=[ \t\n]|\Z)
    | (?P<fence>`{{3,}}+(?=[^`\n]*+{_EOL})|~{{3,}}+)
    | (?P<quote>>)
    | (?P<rule>(?:\*[ \t]*+){{3,}}+{_EOL}|(?:_[ \t]*+){{3,}}+{_EOL}|(?:-[ \t]*+){{3,}}+{_EOL})
    | (?P<item>(?:[-+*]|[0-9]{{1,9}}+[.)])(?=[ \t\n]|\Z))
    | (?P<html><(?=[A-Za-z/!?]))
"""
STARTS = rf"""
    (?P<under>=++[ \t]*+{_EOL}|-++[ \t]*+{_EOL}) | {_STOPS}
    | (?P<delimiters>[|:\-][|:\-\ \t]*+{_EOL})
"""
"""What a line that is more than the text of a paragraph may begin with, behind its indentation."""

LINE = re.compile(rf"[ ]{{0,3}}+(?:{STARTS})|(?P<code>{CODE_INDENT}[ \t]*+[^ \t\n])", re.VERBOSE)
"""Matches a line that is more than the text of a paragraph; the group says what it may be."""

# Each alternative begins with a character, which is what makes the search fast: most lines begin
# with a letter. Lists, rules and underlines are told apart by `LINE`; the rest stands for itself.
_MARKS = rf"""[ ]{{0,3}}+()(?:
      [#][#]{{0,5}}+(?=[ \t\n]|\Z)
    | ````*+(?=[^`\n]*+{_EOL})
    | ~~~~*+
    | >
    | <(?=[A-Za-z/!?])
    | -(?:(?=[ \t\n]|\Z)|[|:\-\ \t]*+{_EOL})
    | [*](?:(?=[ \t\n]|\Z)|[*\ \t]*+{_EOL})
    | [+](?=[ \t\n]|\Z)
    | [0-9][0-9]{{0,8}}+[.)](?=[ \t\n]|\Z)
    | [|:][|:\-\ \t]*+{_EOL}
    | ==*+[ \t]*+{_EOL}
    | _[_\ \t]*+{_EOL}"""
_CODE = rf"(){CODE_INDENT}[ \t]*+[^ \t\n]"

EVENT = re.compile(rf"\n{_MARKS} | \n{_CODE} | [ \t]++\n{_CODE})", re.VERBOSE)
"""Finds the next such line; indented code only behind a blank line, elsewhere it is text.

The first group is where its first character stands; where it is code, another one where the
line starts.
"""

HEAD = re.compile(rf"{_MARKS} | \n{_CODE} | [ \t]++\n{_CODE}) | {_CODE}", re.VERBOSE)
"""As `EVENT`, for the line at which it is matched, which may be code as it is."""

TABLE_STOP = re.compile(
    rf"\n(?:[ \t]*+(?:\n|\Z)|{CODE_INDENT}|[ ]{{0,3}}+(?:{_STOPS}))", re.VERBOSE
)
"""Finds the line before which a table may end."""

BLANK_AHEAD = re.compile(r"\n[ \t]*+(?:\n|\Z)")
"""Finds a line end with a blank line behind it."""

FENCE_ENDS = {
    "`": re.compile(r"\n {0,3}+(`{3,}+)[ \t]*+(?=\n|\Z)"),
    "~": re.compile(r"\n {0,3}+(~{3,}+)[ \t]*+(?=\n|\Z)"),
}
"""By the fence's character: a line that closes fences of up to the group's length."""

_RAW_TAGS = frozenset(("script", "pre", "style", "textarea"))
_BLOCK_NAMES = (
    "address article aside base basefont blockquote body caption center col colgroup dd details "
    "dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 "
    "head header hr html iframe legend li link main menu menuitem nav noframes ol optgroup option "
    "p param search section summary table tbody td tfoot th thead title tr track ul"
)
_BLOCK_TAGS = frozenset(_BLOCK_NAMES.split())
_ATTRIBUTE_VALUE = r"""(?:[^"'=<>`\x00-\x20]++|'[^'\n]*+'|"[^"\n]*+")"""
_ATTRIBUTES = rf"(?:[ \t]++[a-zA-Z_:][a-zA-Z0-9:._-]*+(?:[ \t]*+=[ \t]*+{_ATTRIBUTE_VALUE})?+)*+"
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*+)(/?>)?")
_LONE_TAG = re.compile(
    rf"(?:<[A-Za-z][A-Za-z0-9-]*+{_ATTRIBUTES}[ \t]*+/?>|</[A-Za-z][A-Za-z0-9-]*+[ \t]*+>)"
    rf"[ \t]*+{_EOL}"
)
_MARKUP_ENDS = (
    ("<!--", re.compile("-->")),
    ("<?", re.compile(r"\?>")),
    ("<![CDATA[", re.compile(r"\]\]>")),
)
_RAW_END = re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE | re.ASCII)
_DECLARATION = re.compile(r"<![A-Za-z]")
_DECLARATION_END = re.compile(">")

# A link reference definition up to its destination, and what may follow: a title, a line end.
_DEFINITION = re.compile(
    r"""[ \t]*+\[(?=[^\]]*[^\s\]])(?:[^\[\]\\]|\\.){1,999}+\]:[ \t]*+\n?+[ \t]*+
        (?:<(?:[^<>\n\\]|\\[^\n])*+>|(?P<bare>[^\s<\x00-\x1f\x7f][^\s\x00-\x1f\x7f]*+))""",
    re.VERBOSE | re.DOTALL,
)
_TITLE = re.compile(
    r"""(?:[ \t]++|[ \t]*+\n[ \t]*+)
        (?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\))[ \t]*+(?:\n|\Z)""",
    re.VERBOSE | re.DOTALL,
)
_LINE_END = re.compile(r"[ \t]*+(?:\n|\Z)")
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_INDENTED = re.compile(CODE_INDENT)
_DELIMITER = re.compile(r":?-++:?")


def atx_title(rest: str) -> str:
    """Return the title of an ATX heading, without its closing hashes.

    Args:
        rest: The line behind the opening hashes.

    Returns:
        The title as it is written; empty for a heading without one.

    >>> atx_title(" C# in depth ##"), atx_title(" #")
    ('C# in depth', '')
    """
    title = rest.rstrip(" \t")
    bare = title.rstrip("#")
    if bare != title and (not bare or bare[-1] in " \t"):
        title = bare
    return title.strip()


def fence_ends(line: str, first: int, mark: str, length: int) -> bool:
    """Whether a line closes a fence.

    Args:
        line: The line.
        first: Where its content begins; at most three columns in.
        mark: The fence's character.
        length: How many of them opened it.

    Returns:
        Whether it does.
    """
    content = line[first:].rstrip(" \t")
    return len(content) >= length and content == mark * len(content)


def html_end(text: str, position: int, *, in_paragraph: bool) -> re.Pattern[str] | None:
    """Return what ends the HTML block that begins here.

    Args:
        text: The text or line.
        position: Where `<` stands.
        in_paragraph: A lone tag of any other name than a block's begins no block inside one.

    Returns:
        A pattern to search from `position`, `BLANK_AHEAD` where a blank line ends the block; or
        `None` if no block begins.
    """
    tag = _TAG.match(text, position)
    if tag is None:
        for opening, end in _MARKUP_ENDS:
            if text.startswith(opening, position):
                return end
        return _DECLARATION_END if _DECLARATION.match(text, position) else None
    closing, name, bracket = tag.groups()
    if bracket is not None or tag.end() == len(text) or text[tag.end()] in " \t\n":
        name = name.lower()
        if name in _RAW_TAGS and not closing and bracket != "/>":
            return _RAW_END
        if name in _BLOCK_TAGS:
            return BLANK_AHEAD
    return BLANK_AHEAD if not in_paragraph and _LONE_TAG.match(text, position) else None


def item_number_is_one(marker: str) -> bool:
    """Whether a list item may interrupt a paragraph: a bullet, or the number one.

    Args:
        marker: The marker, such as `-` or `12.`.

    Returns:
        Whether it may.
    """
    return len(marker) == 1 or int(marker[:-1]) == 1


def is_delimiter_row(row: str, header: str) -> bool:
    """Whether a line of dashes and pipes makes a table of the line above.

    Args:
        row: The line of dashes, pipes and colons.
        header: The line above.

    Returns:
        Whether both have the same number of cells.

    >>> is_delimiter_row("|---|:-:|", "| a | b |"), is_delimiter_row("---|---", "one cell")
    (True, False)
    """
    if "|" not in header or _INDENTED.match(header):
        return False
    cells = [cell.strip(" \t") for cell in row.split("|")]
    cells = cells[not cells[0] : len(cells) - (not cells[-1])]
    if not all(map(_DELIMITER.fullmatch, cells)):
        return False
    titles = _ESCAPED.sub("", header).strip(" \t").split("|")
    return 0 < len(cells) == len(titles) - (not titles[0]) - (not titles[-1])


def past_definitions(paragraph: str) -> int:
    r"""Return where a paragraph's own text begins, behind link reference definitions.

    Args:
        paragraph: Whole lines of a paragraph.

    Returns:
        An offset; the paragraph's length when it consists of definitions.

    >>> past_definitions("[a]: /url 'title'\nText\n")
    18
    """
    position = 0
    while (match := _DEFINITION.match(paragraph, position)) is not None:
        bare = match["bare"]
        if bare is not None and not _is_balanced(bare):
            break
        end = _TITLE.match(paragraph, match.end()) or _LINE_END.match(paragraph, match.end())
        if end is None:
            break
        position = end.end()
        if position == len(paragraph):
            break
    return position


def _is_balanced(destination: str) -> bool:
    """Whether the parentheses of a bare link destination come in pairs."""
    depth = 0
    for char in _ESCAPED.sub("", destination):
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return depth == 0
