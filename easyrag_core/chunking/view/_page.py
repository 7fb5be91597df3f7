"""A view as HTML: one element that stands alone, without scripts and outside resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from easyrag_core._shown import escaped
from easyrag_core.chunking.view._segments import shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from easyrag_core.chunking.view._segments import Picture, Segment

__all__ = ["page"]

_COLOURS: Final = ("86,180,233", "240,170,20", "40,185,135", "215,135,185")
"""Red, green, blue. After Okabe and Ito's palette for colour-blind readers; laid thinly over
whatever the page's own background is, so that its own text colour stays readable."""

_STYLE: Final = (
    """
.easyrag-view{margin:.5em 0;font-size:14px;line-height:1.85;color:inherit;text-align:start}
.easyrag-view .er-head{display:flex;flex-wrap:wrap;gap:.1em 1.2em;align-items:baseline}
.easyrag-view .er-title{font-weight:600;font-size:1.15em;overflow-wrap:anywhere}
.easyrag-view .er-facts,.easyrag-view .er-rest{opacity:.75;font-size:.92em}
.easyrag-view .er-box{max-height:44em;overflow:auto;resize:vertical;margin:.35em 0;
border:1px solid rgba(128,128,128,.4);border-radius:6px}
.easyrag-view .er-source{position:relative;padding:.8em 1.1em;white-space:pre-wrap;tab-size:4;
overflow-wrap:anywhere;unicode-bidi:plaintext}
.easyrag-view .er-code{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.92em}
.easyrag-view .er-wide{padding-left:15.2em;
background:linear-gradient(rgba(128,128,128,.4),rgba(128,128,128,.4)) 14.1em 0/1px 100% no-repeat}
.easyrag-view .er-path{position:absolute;left:1em;width:12.4em;font:12.5px/1.4 system-ui,sans-serif;
padding-top:.35em;user-select:none}
.easyrag-view .er-path>span{display:block;white-space:nowrap;overflow:hidden;
text-overflow:ellipsis}
.easyrag-view .er-above{opacity:.75}
.easyrag-view .er-own{font-weight:600}
.easyrag-view .er-chunk{background-color:rgba(var(--a),.27);border-radius:2px;padding:.16em 0;
-webkit-box-decoration-break:clone;box-decoration-break:clone}
.easyrag-view .er-chunk:hover{background-color:rgba(var(--a),.42)}
.easyrag-view .er-several,.easyrag-view .er-several:hover{background:repeating-linear-gradient(
135deg,rgba(var(--a),.42) 0 5px,rgba(var(--b),.42) 5px 10px);
box-shadow:inset 0 -2px rgba(128,128,128,.9)}
.easyrag-view .er-parent{--a:128,128,128}
.easyrag-view .er-lost{border-bottom:2px dashed #d33;opacity:.8}
.easyrag-view [data-opens]::before{content:attr(data-opens);
font:600 10.5px/1 ui-monospace,Menlo,Consolas,monospace;vertical-align:.22em;color:#000;
background:rgb(var(--n,var(--a)));border-radius:3px;padding:.15em .4em;margin-right:.35em}
.easyrag-view [data-closes]::after{content:"";border-right:3px solid rgb(var(--a))}
.easyrag-view .er-code{padding-left:4em}
.easyrag-view .er-code [data-opens]::before{position:absolute;left:.6em;margin-top:.5em}
.easyrag-view .er-key{display:inline-block;min-width:2.2em;text-align:center;line-height:1.3;
margin-right:.4em;padding:0 .3em}
@media (max-width:640px){.easyrag-view .er-wide{padding-left:1.1em;background:none}
.easyrag-view .er-path{position:static;display:block;width:auto}}
""".strip()
    + "\n"
    + "\n".join(
        f".easyrag-view .er-a{at}{{--a:{rgb}}}.easyrag-view .er-b{at}{{--b:{rgb};--n:{rgb}}}"
        for at, rgb in enumerate(_COLOURS)
    )
)


def page(picture: Picture, title: str | None) -> str:
    """Draw a picture.

    Args:
        picture: What to show.
        title: Stands above it.

    Returns:
        A style and one `div`; everything from outside is escaped.
    """
    name = f'<span class="er-title">{_escaped(title)}</span>' if title else ""
    rest = picture.rest()
    advice = ": max_chars=None shows all."
    note = f'<div class="er-rest">… {rest}{advice}</div>' if rest else ""
    kinds = ["er-source"]
    if any(chunk.heading_path for chunk in picture.chunks):
        kinds.append("er-wide")
    elif sum(chunk.kind == "code" for chunk in picture.chunks) * 2 > len(picture.chunks):
        kinds.append("er-code")
    return (
        f'<div class="easyrag-view"><style>{_STYLE}</style><div class="er-head">{name}'
        f'<span class="er-facts">{_escaped(picture.facts())}</span>{_legend(picture)}</div>'
        f'<div class="er-box"><div class="{" ".join(kinds)}">{"".join(_marked(picture))}'
        f"</div></div>{note}</div>"
    )


def _legend(picture: Picture) -> str:
    """Explain the marks that occur and do not explain themselves."""
    keys = []
    if any(segment.depth > 1 for segment in picture.segments):
        keys.append(("er-chunk er-several er-a0 er-b1", "in several chunks"))
    if any(segment.parents and not segment.depth for segment in picture.segments):
        keys.append(("er-chunk er-parent", "in a parent alone"))
    if any(map(picture.is_lost, picture.segments)):
        keys.append(("er-lost", "in no chunk"))
    return "".join(
        f'<span class="er-facts"><span class="er-key {kinds}">abc</span>{words}</span>'
        for kinds, words in keys
    )


def _marked(picture: Picture) -> Iterator[str]:
    path: tuple[str, ...] = ()
    for segment in picture.segments:
        for at in segment.opening:
            if picture.chunks[at].heading_path != path:
                path = picture.chunks[at].heading_path
                yield _margin(path)
        yield _stretch(picture, segment)


def _margin(path: tuple[str, ...]) -> str:
    above, own = shown_path(path)
    over = f'<span class="er-above">{_escaped(above)}</span>' if above else ""
    return (
        f'<span class="er-path" title="{_escaped(" > ".join(path))}">{over}'
        f'<span class="er-own">{_escaped(own)}</span></span>'
    )


def _stretch(picture: Picture, segment: Segment) -> str:
    text = _lines(picture.text[segment.start : segment.end], picture.text[segment.end :][:1])
    told = [picture.told(at) for at in (*segment.holders, *segment.parents)]
    if segment.depth > 1:
        told.insert(0, f"in {segment.depth} chunks")
    if told:
        kinds, title = _kinds(segment), "\n\n".join(told)
    elif picture.is_lost(segment):
        length = segment.end - segment.start
        kinds = "er-lost"
        title = f"in no chunk\ncharacters {segment.start}-{segment.end}\nlength {length}"
    else:
        return text
    numbers = " ".join(map(picture.name, segment.opening[:3]))
    numbers += "…" * (len(segment.opening) > 3)
    opens = f' data-opens="{numbers}"' if numbers else ""
    closes = ' data-closes=""' if segment.closing else ""
    return f'<span class="{kinds}"{opens}{closes} title="{_escaped(title)}">{text}</span>'


def _kinds(segment: Segment) -> str:
    """Choose colours: neighbours in the list differ."""
    if not segment.holders:
        return "er-chunk er-parent"
    first = segment.holders[0] % len(_COLOURS)
    if len(segment.holders) == 1:
        return f"er-chunk er-a{first}"
    second = segment.holders[1] % len(_COLOURS)
    return f"er-chunk er-several er-a{first} er-b{second}"


def _lines(text: str, following: str) -> str:
    """Escape a piece of the source; a lone carriage return breaks the line, as it does to us."""
    if "\r" not in text:
        return _escaped(text)
    first, *pieces = text.split("\r")
    behind = [*pieces[:-1], pieces[-1] + following]
    breaks = ("" if piece.startswith("\n") else "<br>" for piece in behind)
    return _escaped(first) + "".join(
        f"&#13;{line_break}{_escaped(piece)}"
        for line_break, piece in zip(breaks, pieces, strict=True)
    )


def _escaped(text: str) -> str:
    return escaped(text).replace("\r", "&#13;")
