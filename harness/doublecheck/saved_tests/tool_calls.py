"""Calls of tools as statements: code in a sandbox, and the tools of MCP servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentdouble import invoke_tool
from agentdouble.code_tool import DEFAULT_AGENT, DEFAULT_SESSION, DEFAULT_USER, Invocation
from doublecheck.comparing.references import parsed
from doublecheck.errors import RefusedError
from doublecheck.saved_tests.draft import Draft
from doublecheck.saved_tests.literals import INDENT, are_names, call_of, keywords, literal
from doublecheck.saved_tests.recorded import object_of, require, response_of
from doublecheck.wire import mcp, sandbox
from doublecheck.wire.exchanges import Exchange

_IN_PASSING = ("initialize", "notifications/initialized", "ping")


def run_code(draft: Draft, exchange: Exchange) -> Iterator[str]:
    """Yield the statements of code that was run in a sandbox."""
    body = object_of(exchange)
    require(body.get("OperationType") == invoke_tool.RUN_CODE)
    payload = parsed(body["OperationPayload"])
    user, session = _who(body["UserSessionId"])
    named = {"user_id": user, "session_id": session, "timeout_s": payload.get("timeout")}
    defaults = {"user_id": DEFAULT_USER, "session_id": DEFAULT_SESSION, "timeout_s": None}
    given = {name: value for name, value in named.items() if value != defaults[name]}
    language = payload.get("kernel_name", "python3")
    arguments = [
        literal(payload["code"]),
        *([literal(language)] if language != "python3" else []),
    ]
    call = call_of("platform.run_code", [*arguments, *keywords(given)])
    try:
        result = sandbox.read_result(response_of(exchange))
    except RefusedError as error:
        draft.imports.add("RefusedError")
        yield "with pytest.raises(RefusedError) as refused:"
        yield f"{' ' * INDENT}{call}"
        yield from draft.compared(error.code, "refused.value.code")
        return
    name = draft.numbered("result")
    yield f"{name} = {call}"
    yield from draft.compared(result.status, f"{name}.status", of_code=True)
    if result.stdout:
        yield from draft.compared(result.stdout, f"{name}.stdout", of_code=True)
    if result.text is not None:
        yield from draft.compared(result.text, f"{name}.text", of_code=True)
    if result.error is not None:
        draft.imports.add("CodeError")
        if not draft.is_trial:
            yield f"assert isinstance({name}.error, CodeError)"
        yield from draft.compared(result.error.ename, f"{name}.error.ename", of_code=True)
        yield from draft.compared(result.error.evalue, f"{name}.error.evalue", of_code=True)


def _who(user_session_id: str) -> tuple[str, str]:
    """Return the user and the session of an id; an id in another format is only a session."""
    user, _, session = user_session_id.removeprefix(f"{DEFAULT_AGENT}_").partition("_")
    if session and Invocation(user, session, DEFAULT_AGENT).user_session_id == user_session_id:
        return user, session
    return DEFAULT_USER, user_session_id


def mcp_tools(draft: Draft, exchange: Exchange, path: str) -> Iterator[str]:
    """Yield the statements of a call of an MCP server; none if every client makes it itself."""
    if exchange.request.method == "DELETE":
        return
    body = object_of(exchange)
    method, params = body.get("method"), body.get("params", {})
    if method in _IN_PASSING:
        return
    client = "platform.mcp()" if path == mcp.PATH else f"platform.mcp({literal(path)})"
    if method == "tools/list" and params.get("cursor"):
        return  # the client asks for every page itself
    if method == "tools/list":
        page = mcp.read_result(response_of(exchange))
        names = [tool["name"] for tool in page["tools"]]
        first = f"[:{len(names)}]" if page.get("nextCursor") else ""
        expression = f"[tool.name for tool in client.tools(){first}]"
        value: Any = names
    else:
        require(method == "tools/call" and "name" in params)
        given = params.get("arguments") or {}
        require(are_names(given, ()))
        asked = call_of("client.call", [literal(params["name"]), *keywords(given)])
        result = mcp.read_result(response_of(exchange))
        texts = [one["text"] for one in result["content"] if one.get("type") == "text"]
        value, expression = "\n".join(texts), f"{asked}.text"
    yield f"with {client} as client:"
    yield from draft.compared(value, expression, INDENT)
