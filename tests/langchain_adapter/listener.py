"""What the tests of routed models share: a sum over a stream, and a handler that listens."""

from __future__ import annotations

from functools import reduce
from operator import add

from langchain_core.callbacks import BaseCallbackHandler

__all__ = ["Listener", "total"]


def total(chunks):
    """The sum over a stream, as a consumer takes it."""
    return reduce(add, chunks)


class Listener(BaseCallbackHandler):
    """A handler that knows nothing of trees: writes down what it hears."""

    def __init__(self):
        self.starts = []
        self.tokens = []
        self.ends = []
        self.errors = []
        self.custom = []

    def on_chat_model_start(self, serialized, messages, *, run_id, parent_run_id=None, **kwargs):
        told = {"run": run_id, "parent": parent_run_id, **kwargs}
        self.starts.append(told)

    def on_llm_new_token(self, token, **kwargs):
        self.tokens.append(token)

    def on_llm_end(self, response, *, run_id, **kwargs):
        self.ends.append((run_id, response.generations[0][0].message))

    def on_llm_error(self, error, *, run_id, **kwargs):
        self.errors.append((run_id, error))

    def on_custom_event(self, name, data, *, run_id, **kwargs):
        self.custom.append((name, data, run_id))
