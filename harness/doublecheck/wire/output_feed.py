"""The routes of a double for notebooks: a session's live outputs, and completions of code."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from agentdouble.code_tool import DEFAULT_AGENT, Invocation
from agentdouble.invoke_tool import RUN_HEADER
from doublecheck.errors import NotADoubleError
from doublecheck.target.target import Target
from doublecheck.values.sandbox import Completion, LiveOutput
from doublecheck.wire import calls
from doublecheck.wire.admin import PREFIX
from doublecheck.wire.calls import Call, Request

if TYPE_CHECKING:
    import httpx

LISTENING = "listening"  # the first event; all outputs after it are sent


@dataclass(frozen=True)
class FeedEvent:
    """An event of an execution: an output, the number of missed outputs, or its end."""

    output: LiveOutput | None = None
    dropped: int = 0
    over: bool = False


def outputs(
    target: Target, *, user_id: str, session_id: str, timeout_s: float | None
) -> Request | None:
    """Return the request that subscribes to a session's outputs, None on a live platform.

    Raises CredentialsMissingError.
    """
    if not target.admin:
        return None
    session = _user_session(user_id, session_id)
    query = urlencode({"tool_id": target.sandbox_tool(), "user_session_id": session})
    return calls.request(target, "GET", f"{PREFIX}/outputs?{query}", timeout_s=timeout_s)


def named(request: Request, run: str) -> Request:
    """Return a request that runs code, with a name that identifies its outputs."""
    return dataclasses.replace(request, headers={**request.headers, RUN_HEADER: run})


def read(kind: str, text: str, run: str) -> FeedEvent | None:
    """Read an event of the feed; return None for one of another execution."""
    data = json.loads(text)
    if data.get("run") != run:
        return None
    if kind == "output":
        return FeedEvent(output=LiveOutput(data["msg_type"], data["content"]))
    return FeedEvent(dropped=data.get("messages", 0), over=kind == "finished")


def complete(
    target: Target, code: str, cursor: int, language: str, *, user_id: str, session_id: str
) -> Call[Completion]:
    """Return the call that completes code in a session's kernel.

    Raises NotADoubleError, and CredentialsMissingError if no tool id is known.
    """
    if not target.admin:
        raise NotADoubleError("Completion from a session's kernel", target.url)
    content = calls.json_content(
        {
            "tool_id": target.sandbox_tool(),
            "user_session_id": _user_session(user_id, session_id),
            "language": language,
            "code": code,
            "cursor_pos": cursor,
        }
    )
    request = calls.request(target, "POST", f"{PREFIX}/complete", content=content)
    return Call(request, _read_completion)


def _user_session(user_id: str, session_id: str) -> str:
    return Invocation(user_id, session_id, DEFAULT_AGENT).user_session_id


def _read_completion(response: httpx.Response) -> Completion:
    found = calls.read_json(response)
    return Completion(tuple(found["matches"]), found["cursor_start"], found["cursor_end"])
