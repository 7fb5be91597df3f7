"""The tree of topics: checked once, asked often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from easyrag_core.errors import InvalidParameterError, check_count, check_text
from easyrag_core.index import BM25Index, BM25Params, StandardAnalyzer
from easyrag_core.query.intent._node import INTENT_LEVELS, IntentNode, node_from_dict

__all__ = ["IntentTree"]

_PARENT: Final = "parent_id"
_STEM: Final = 5
_WORDS: Final = StandardAnalyzer()


class IntentTree:
    """Domains with their categories and topics; leaves are what a question is matched to.

    >>> tree = IntentTree.from_rows(
    ...     [
    ...         {"id": "hr", "name": "Human resources", "parent_id": None},
    ...         {"id": "leave", "name": "Leave", "parent_id": "hr"},
    ...     ]
    ... )
    >>> [leaf.id for leaf in tree.leaves], tree.domain_of("leave").id, tree.node("leave").level
    (['leave'], 'hr', 'category')
    """

    def __init__(self, nodes: Iterable[IntentNode] = ()) -> None:
        """Check the nodes and index the leaves.

        Args:
            nodes: The widest ones, usually domains, with their children inside.

        Raises:
            InvalidParameterError: For ids that come twice, a child that is not of a narrower
                level than its parent, or values that are no nodes.
        """
        self._parents: dict[str, str | None] = {}
        self._nodes: dict[str, IntentNode] = {}
        self._roots = tuple(self._placed(node, None) for node in _checked(nodes))
        for root in self._roots:
            self._keep(root)
        self._leaves = tuple(node for node in self._nodes.values() if not node.children)
        self._spread = self._spread_leaves()
        self._index = BM25Index(BM25Params.short_text(), analyzer=_leaf_terms)
        self._index.add([leaf.id for leaf in self._leaves], list(map(self._text, self._leaves)))

    @classmethod
    def from_dicts(cls, data: Iterable[Mapping[str, Any]]) -> IntentTree:
        """Build the tree from nested mappings, as JSON or YAML give them.

        Args:
            data: Mappings with the fields of `IntentNode`; `children` is a list of such.

        Returns:
            The tree.

        Raises:
            InvalidParameterError: For cycles, unknown keys, ids that come twice, and all that
                the constructor refuses.
        """
        return cls(_from_dict(each, ()) for each in _listed("nodes", data))

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> IntentTree:
        """Build the tree from flat rows, as a table gives them.

        Args:
            rows: Mappings with the fields of `IntentNode` and `parent_id`, `None` or missing for
                the widest. The order of rows is the order of children.

        Returns:
            The tree.

        Raises:
            InvalidParameterError: For orphans, cycles, ids that come twice, and all that the
                constructor refuses.
        """
        return cls(_from_rows(_listed("rows", rows)))

    def _placed(self, node: IntentNode, parent: IntentNode | None) -> IntentNode:
        """Register a node and return it with the level of its depth, its children likewise."""
        if node.id in self._parents:
            raise InvalidParameterError("id", node.id, "give every node an id of its own")
        self._parents[node.id] = None if parent is None else parent.id
        placed = replace(node, level=_level(node, parent))
        below = tuple(self._placed(child, placed) for child in node.children)
        return replace(placed, children=below)

    def _keep(self, node: IntentNode) -> None:
        self._nodes[node.id] = node
        for child in node.children:
            self._keep(child)

    @property
    def roots(self) -> tuple[IntentNode, ...]:
        """The widest nodes, in the order given."""
        return self._roots

    @property
    def leaves(self) -> tuple[IntentNode, ...]:
        """The nodes without children, from first to last."""
        return self._leaves

    def __len__(self) -> int:
        """Count the nodes."""
        return len(self._nodes)

    def __iter__(self) -> Iterator[IntentNode]:
        """Go through all nodes, each before its children."""
        return iter(self._nodes.values())

    def __contains__(self, id_: object) -> bool:
        """Whether a node with this id is here."""
        return id_ in self._nodes

    def __repr__(self) -> str:
        """Show the size."""
        return f"<IntentTree of {len(self)} nodes, {len(self._leaves)} leaves>"

    def node(self, id_: str) -> IntentNode:
        """Return a node.

        Args:
            id_: Its id.

        Returns:
            The node.

        Raises:
            InvalidParameterError: There is no such node.
        """
        if id_ not in self._nodes:
            raise InvalidParameterError("id_", id_, "give the id of a node of this tree")
        return self._nodes[id_]

    def path(self, id_: str) -> list[IntentNode]:
        """Return a node with all that stand above it, the widest first.

        Args:
            id_: The node's id.

        Returns:
            At least the node itself.

        Raises:
            InvalidParameterError: There is no such node.
        """
        path = [self.node(id_)]
        while (parent := self._parents[path[-1].id]) is not None:
            path.append(self._nodes[parent])
        return path[::-1]

    def domain_of(self, id_: str) -> IntentNode:
        """Return the widest node above a node.

        Args:
            id_: The node's id.

        Returns:
            The first node of its path.

        Raises:
            InvalidParameterError: There is no such node.
        """
        return self.path(id_)[0]

    def label(self, id_: str) -> str:
        """Return the names along a node's path, for a reader.

        Args:
            id_: The node's id.

        Returns:
            Names joined by ` / `.

        Raises:
            InvalidParameterError: There is no such node.
        """
        return " / ".join(node.name for node in self.path(id_))

    def candidates(self, questions: Iterable[str], limit: int = 40) -> list[IntentNode]:
        """Return the leaves that a model should choose among.

        All of a small tree. Of a large one those that share the most with the questions by BM25
        over names, descriptions and examples; each question has its turn, best first. Places
        that no leaf earned by its words go to a few leaves of every category: a question may
        be in another language than the tree.

        Args:
            questions: One or several.
            limit: The most leaves.

        Returns:
            Leaves, in the order of the tree.

        Raises:
            InvalidParameterError: For a limit below 1.
        """
        check_count("limit", limit, minimum=1)
        if len(self._leaves) <= limit:
            return list(self._leaves)
        hits = self._index.search_batch(list(questions), limit)
        turns = [(hit.rank, hit.id) for ranking in hits for hit in ranking]
        chosen = dict.fromkeys(id_ for _, id_ in sorted(turns, key=lambda turn: turn[0]))
        kept = set(list({**chosen, **self._spread})[:limit])
        return [leaf for leaf in self._leaves if leaf.id in kept]

    def _spread_leaves(self) -> dict[str, None]:
        """Order the leaves so that every category comes once before any comes twice."""
        seen: Counter[str | None] = Counter()
        turns = []
        for leaf in self._leaves:
            parent = self._parents[leaf.id]
            turns.append((seen[parent], leaf.id))
            seen[parent] += 1
        return dict.fromkeys(id_ for _, id_ in sorted(turns, key=lambda turn: turn[0]))

    def _text(self, leaf: IntentNode) -> str:
        return "\n".join([self.label(leaf.id), leaf.description, *leaf.examples])


def _leaf_terms(text: str) -> list[str]:
    """Words, and the beginnings of Latin ones: "rotate" finds "Rotating" without a stemmer."""
    words = _WORDS(text)
    return [*words, *(_beginning(word) for word in words if word.isascii() and word.isalpha())]


def _beginning(word: str) -> str:
    return f"{word[:_STEM]}*" if len(word) > _STEM else f"{word.removesuffix('s')}*"


def _checked(nodes: Any) -> list[IntentNode]:
    several = _listed("nodes", nodes)
    for node in several:
        if not isinstance(node, IntentNode):
            raise InvalidParameterError("nodes", node, "give IntentNodes")
    return several


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise InvalidParameterError(name, values, "give a list")
    return list(values)


def _level(node: IntentNode, parent: IntentNode | None) -> str:
    above = -1 if parent is None or parent.level is None else INTENT_LEVELS.index(parent.level)
    level = above + 1 if node.level is None else INTENT_LEVELS.index(node.level)
    if not above < level < len(INTENT_LEVELS):
        told = "no level" if parent is None else f"{parent.level} {parent.id!r}"
        allowed = f"below {told} stands a narrower one of {', '.join(INTENT_LEVELS)}"
        raise InvalidParameterError("level", node.level or f"below {told}", allowed)
    return INTENT_LEVELS[level]


def _from_dict(data: Any, above: tuple[int, ...]) -> IntentNode:
    if id(data) in above or len(above) >= len(INTENT_LEVELS):
        # A cycle is a tree without end; both are caught before they are walked.
        raise InvalidParameterError("children", data, "nodes may be nested three deep, no cycles")
    children = data.get("children") or () if isinstance(data, Mapping) else ()
    below = [_from_dict(child, (*above, id(data))) for child in _listed("children", children)]
    return node_from_dict(data, tuple(below))


def _from_rows(rows: list[Any]) -> list[IntentNode]:
    below: dict[str | None, list[Any]] = {}
    ids = set()
    for row in rows:
        if not isinstance(row, Mapping) or "id" not in row or "children" in row:
            raise InvalidParameterError("rows", row, "give mappings with id and without children")
        id_, parent = row["id"], row.get(_PARENT) or None
        for name, value in (("id", id_), (_PARENT, parent or id_)):
            check_text(name, value)
        if id_ in ids:
            raise InvalidParameterError("id", id_, "give every node an id of its own")
        ids.add(id_)
        below.setdefault(parent, []).append(row)
    if orphans := [parent for parent in below if parent is not None and parent not in ids]:
        raise InvalidParameterError(_PARENT, orphans, "give the id of another row, or None")
    built: list[str] = []
    roots = [_from_row(row, below, built, 0) for row in below.get(None, ())]
    if len(built) < len(rows):
        lost = sorted(ids - set(built))
        raise InvalidParameterError(_PARENT, lost, "the rows must not form a cycle")
    return roots


def _from_row(row: Any, below: dict[Any, list[Any]], built: list[str], depth: int) -> IntentNode:
    if depth >= len(INTENT_LEVELS):
        raise InvalidParameterError(_PARENT, row[_PARENT], "nodes may be nested three deep")
    built.append(row["id"])
    children = tuple(
        _from_row(child, below, built, depth + 1) for child in below.get(row["id"], ())
    )
    data = {key: value for key, value in row.items() if key != _PARENT}
    return node_from_dict(data, children)
