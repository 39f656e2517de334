"""What a double offers a notebook: what a session's code says live, and what the tab key offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentdouble.run_code import DEFAULT_AGENT, Invocation
from doublecheck.clients import calls
from doublecheck.clients.admin import PREFIX
from doublecheck.clients.calls import Call
from doublecheck.errors import NotADoubleError
from doublecheck.live import Completion
from doublecheck.target import Target

if TYPE_CHECKING:
    import httpx


def complete(
    target: Target, code: str, cursor: int, language: str, *, user_id: str, session_id: str
) -> Call[Completion]:
    """Return the call that asks a session's kernel what could stand at a place in code.

    Raises NotADoubleError, and CredentialsMissingError where nobody says which tool it is.
    """
    if not target.admin:
        raise NotADoubleError("Completion from a session's kernel", target.url)
    content = calls.json_content(
        {
            "tool_id": target.sandbox_tool(),
            "user_session_id": Invocation(user_id, session_id, DEFAULT_AGENT).user_session_id,
            "language": language,
            "code": code,
            "cursor_pos": cursor,
        }
    )
    request = calls.request(target, "POST", f"{PREFIX}/complete", content=content)
    return Call(request, _read_completion)


def _read_completion(response: httpx.Response) -> Completion:
    found = calls.read_json(response)
    return Completion(tuple(found["matches"]), found["cursor_start"], found["cursor_end"])
