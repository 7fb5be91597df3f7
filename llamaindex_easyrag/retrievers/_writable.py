"""Nodes behind a lock, in a retriever that can be copied and pickled all the same."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Any, Self

from llama_index.core.schema import BaseNode

from easyrag_core import InvalidParameterError

__all__ = ["Writable", "nodes_by_id"]


class Writable:
    """Holds nodes by id and the lock that their writers take."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Start without nodes; all arguments are for the retriever."""
        super().__init__(*args, **kwargs)
        self._nodes: dict[str, BaseNode] = {}
        self._writing = Lock()

    def __copy__(self) -> Self:
        """Share nodes and lock: a shallow copy shares the index, too."""
        made = type(self).__new__(type(self))
        vars(made).update(vars(self))
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock behind; the nodes are those between two writes."""
        with self._writing:
            state = {key: value for key, value in vars(self).items() if key != "_writing"}
            return {**state, "_nodes": dict(self._nodes)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a new lock."""
        vars(self).update(state)
        self._writing = Lock()


def nodes_by_id(nodes: Any) -> dict[str, BaseNode]:
    """Order nodes by id; of several with one id the last counts.

    Args:
        nodes: The nodes.

    Returns:
        Node id to node.

    Raises:
        InvalidParameterError: It is no list of nodes.
    """
    # A node can be iterated too: over its fields.
    given = list(nodes) if isinstance(nodes, Iterable) and not isinstance(nodes, BaseNode) else None
    wrong = nodes if given is None else [one for one in given if not isinstance(one, BaseNode)][:1]
    if given is None or wrong:
        raise InvalidParameterError("nodes", wrong, "give a list of nodes")
    return {node.node_id: node for node in given}
