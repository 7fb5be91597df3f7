"""Language models."""

from llamaindex_easyrag.llms.routed import RoutedLLM

__all__ = ["RoutedLLM"]
