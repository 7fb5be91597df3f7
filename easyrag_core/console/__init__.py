"""Search a folder from the command line, through the parts of a framework."""

from easyrag_core.console._main import Adapter, run
from easyrag_core.console._models import EmbeddingModel

__all__ = ["Adapter", "EmbeddingModel", "run"]
