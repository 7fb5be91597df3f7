"""Chat models that are several chat models."""

from langchain_easyrag.chat_models.resets import StreamResetChunk
from langchain_easyrag.chat_models.routed import RoutedChatModel

__all__ = ["RoutedChatModel", "StreamResetChunk"]
