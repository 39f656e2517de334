"""Questions to a kernel, such as an expression's value: requests without output or count."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from agentdouble.sandbox.execution import settle

_NAME = "asked"


class ExpressionError(Exception):
    """A kernel could not evaluate an expression."""


class Question:
    """A request whose reply is the answer; ``finished`` is done when the reply has arrived."""

    def __init__(self) -> None:
        self.msg_id = ""
        self.answer: Mapping[str, Any] = {}
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_iopub(self, _msg_type: str, _content: Mapping[str, Any]) -> None:
        """Ignore the outputs."""

    def on_reply(self, content: Mapping[str, Any]) -> None:
        self.answer = content
        settle(self.finished)

    def on_no_reply(self) -> None:
        """Do nothing, because the caller has given up already."""


def expression_request(expression: str) -> dict[str, Any]:
    """Return the content of an execute_request that only evaluates an expression."""
    return {
        "code": "",
        "silent": True,
        "store_history": False,
        "user_expressions": {_NAME: expression},
        "allow_stdin": False,
        "stop_on_error": False,
    }


def value_of(answer: Mapping[str, Any]) -> str:
    """Return the text of the expression's value; raise ExpressionError if it has none."""
    result = answer.get("user_expressions", {}).get(_NAME, {})
    if result.get("status") != "ok":
        raise ExpressionError(f"{result.get('ename')}: {result.get('evalue')}")
    return str(result["data"]["text/plain"])
