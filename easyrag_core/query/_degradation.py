"""How every step tells that it goes on without the model's help."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from easyrag_core.errors import OutputParseError
from easyrag_core.events import emit

if TYPE_CHECKING:
    from easyrag_core.events import AttributeValue, EventHandler

__all__ = ["report_degradation"]

_logger = logging.getLogger("easyrag_core.query")


def report_degradation(
    step: str,
    reason: str,
    *,
    raw: str = "",
    error: BaseException | None = None,
    on_event: EventHandler | None = None,
    strict: bool = False,
) -> None:
    """Log a warning and emit `easyrag.query.<step>`; in strict mode raise instead.

    Whoever calls the model uses it too when the call itself fails: hand its error over.

    Args:
        step: `rewrite`, `expansion`, `decomposition`, `intent`, `filters` or `memory`.
        reason: What was wrong, in a word or a few.
        raw: The model's reply.
        error: What the model's call raised.
        on_event: Who listens.
        strict: Raise instead of going on.

    Raises:
        OutputParseError: In strict mode, for a reply.
        BaseException: In strict mode, the given error itself.

    >>> heard = []
    >>> report_degradation("rewrite", "empty", on_event=heard.append)
    >>> heard[0].name, heard[0].attributes["easyrag.query.reason"]
    ('easyrag.query.rewrite', 'empty')
    """
    if strict:
        raise error or OutputParseError(reason, raw)
    # Not the reply: it may hold what does not belong into a log.
    _logger.warning("Query %s goes on without the model: %s", step, reason)
    attributes: dict[str, AttributeValue] = {
        "easyrag.query.step": step,
        "easyrag.query.reason": reason,
    }
    if error is not None:
        attributes["error.type"] = type(error).__name__
    emit(on_event, f"easyrag.query.{step}", attributes)
