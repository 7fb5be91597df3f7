"""Why each passage was found: for people, in a notebook and in a terminal."""

from easyrag_core.explanation._explanation import Explanation, FellOut, Retrieved, explain
from easyrag_core.explanation._facts import hit_of_facts, known_channels

__all__ = ["Explanation", "FellOut", "Retrieved", "explain", "hit_of_facts", "known_channels"]
