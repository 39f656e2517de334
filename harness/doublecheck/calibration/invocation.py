"""Probes of the simple application: /invoke and the four probes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentdouble.core.event_stream import data_of
from doublecheck.calibration.probe import probe
from doublecheck.calibration.probing import (
    NotSettledError,
    Probing,
    json_of,
    legible,
    one_of,
    unlike,
)
from doublecheck.wire.calls import json_content, json_or_none

if TYPE_CHECKING:
    import httpx

_BARE = "/runtimes/reference-bare"
_CALLER = {"user_id": "doublecheck", "session_id": "doublecheck"}


@probe("U-INVOKE-HEADERS", "application", writes=True)
def headers(at: Probing) -> str:
    """Invoke with the headers, and without them."""
    complete, bare = (_invoke(at, {"prompt": "hello"}, sent) for sent in (_CALLER, {}))
    if complete.status_code >= 400:
        raise NotSettledError(
            f"an invocation with both headers returned HTTP {complete.status_code}"
        )
    legible(complete.text, "the invocation succeeds")
    if bare.status_code == 400:
        return "enforced"
    if bare.is_success:
        return "not-enforced"
    raise unlike("without the headers the answer is", f"HTTP {bare.status_code}")


@probe("U-INVOKE-ENVELOPE", "application", writes=True)
def envelope(at: Probing) -> str:
    """Look at the envelope of a returned value."""
    answer = _invoke(at, {"prompt": "hello", "do": "say"})
    try:
        value = answer.json()
    except ValueError:
        raise NotSettledError(f"the answer is not JSON: {answer.text[:100]!r}") from None
    if not answer.is_success:
        raise NotSettledError(f"the invocation returned HTTP {answer.status_code}")
    return "object" if isinstance(value, dict) and value.keys() == {"response"} else "bare"


@probe("U-INVOKE-ERROR", "application", reference=True)
def error(at: Probing) -> str:
    """Make the entrypoint raise an error."""
    answer = _invoke(at, {"do": "fail", "prompt": "boom"})
    if answer.is_success:
        raise NotSettledError("the application did not raise: it is not the reference application")
    try:
        problem = answer.json().get("error")
    except (ValueError, AttributeError):
        return "text"
    if isinstance(problem, dict) and {"message", "type"} <= problem.keys():
        return "json"
    raise unlike("the body is", answer.text)


@probe("U-INVOKE-STREAM-ERROR", "application", reference=True)
def stream_error(at: Probing) -> str:
    """Make the entrypoint raise an error in a stream."""
    last = _data(_invoke(at, {"do": "fail_late", "chunks": ["a"], "prompt": "boom"}))[-1]
    fields = json.loads(last).keys()
    if fields == {"error"}:
        return "error-only"
    if {"error", "error_type", "message"} <= fields:
        return "detailed"
    raise unlike("the object is", last)


@probe("U-INVOKE-SSE-CHUNK", "application", reference=True)
def chunk(at: Probing) -> str:
    """Make the entrypoint yield a word."""
    first = _data(_invoke(at, {"do": "stream", "chunks": ["word"]}))[0]
    return one_of({"word": "raw", '"word"': "json"}, first, "the event is")


@probe("U-PROBE-BODIES", "application")
def probe_bodies(at: Probing) -> str:
    """Request /ping."""
    text = legible(at.ask("GET", "/ping").text, "/ping answers")
    try:
        document = json.loads(text)
    except ValueError:
        return "text"
    if isinstance(document, str):
        return "json-string"
    if isinstance(document, dict) and "status" in document:
        return "object"
    raise unlike("the body of /ping is", text)


@probe("U-PROBE-ERROR", "application", reference=True)
def probe_error(at: Probing) -> str:
    """Request /ping of the reference application without a ping function."""
    invocation = at.ask("POST", f"{_BARE}/invoke", {"prompt": "hello"}, headers=_CALLER)
    if not invocation.is_success:
        raise NotSettledError(f"the application without a ping function is not at {_BARE}")
    answer = at.ask("GET", f"{_BARE}/ping")
    if answer.status_code == 404:
        return "absent-404"
    if answer.is_success:
        return "default-function"
    raise unlike("the answer is", f"HTTP {answer.status_code}")


@probe("U-HEALTH-CLASH", "application", "api_server")
def health_clash(at: Probing) -> str:
    """Request /health, which both modes define."""
    target = at.platform.target
    if target.api_server != target.url:
        raise NotSettledError("both modes have separate addresses")
    document = json_or_none(legible(at.ask("GET", "/health").text, "/health answers"))
    return "api-server" if document == {"status": "ok"} else "simple-first"


@probe("U-USER-SESSION-ID", "application", "sandbox", reference=True, writes=True)
def user_session_id(at: Probing) -> str:
    """Run code for two users whose sessions have the same name."""
    for user, code in (("a", f"mark = {at.token!r}"), ("b", "globals().get('mark')")):
        caller = {"user_id": f"{user}{at.token}", "session_id": at.token}
        answer = _invoke(at, {"do": "run_code", "prompt": code}, caller)
        if not answer.is_success:
            raise NotSettledError(f"run_code in the application: HTTP {answer.status_code}")
    return "session" if at.token in answer.text else "agent-user-session"


def _invoke(at: Probing, payload: dict[str, Any], sent: dict[str, str] | None = None) -> Any:
    if sent == {}:  # also without a Content-Type
        return at.platform.request("POST", "/invoke", content=json_content(payload))
    return at.ask("POST", "/invoke", payload, headers=sent or _CALLER)


def _data(answer: httpx.Response) -> list[str]:
    events = data_of(answer.content)
    if not events:
        raise NotSettledError(f"the answer is not an event stream: {answer.text[:100]!r}")
    return events


_CARD = "/.well-known/agent-card.json"


@probe("U-A2A-TASK", "a2a")
def task(at: Probing) -> str:
    """Read the versions in the card."""
    card = json_of(at.ask("GET", _CARD).text)
    versions = [entry.get("protocolVersion", "") for entry in card.get("supportedInterfaces", ())]
    if any(version.startswith("1.") for version in versions):
        return "both"
    if str(card.get("protocolVersion", "")).startswith("0.3"):
        return "0.3"
    raise unlike("the card names the versions", [*versions, card.get("protocolVersion")])


@probe("U-WEBHOOKS", "a2a")
def webhooks(at: Probing) -> str:
    """Look for push notifications in the card."""
    capabilities = json_of(at.ask("GET", _CARD).text).get("capabilities") or {}
    return "a2a-push" if capabilities.get("pushNotifications") else "none"


@probe("U-MCP-ARGUMENTS", "mcp", reference=True)
def arguments(at: Probing) -> str:
    """Call a tool with an argument that is not one of its parameters."""
    with at.platform.mcp() as mcp:
        if not any(tool.name == "add" for tool in mcp.tools()):
            raise NotSettledError("the MCP server is not the reference application's")
        return "refused" if mcp.call("add", a=1, b=2, c=3).is_error else "ignored"


@probe("U-MCP-UNAUTHORIZED", "control_plane", "mcp", writes=True)
def unauthorized(at: Probing) -> str:
    """Call a service without its key."""
    url = _service(at)["Path"]
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    status = at.ask("POST", url, ping, surface="services").status_code
    return one_of({401: "401", 403: "403"}, status, "the request returns HTTP")


def _service(at: Probing) -> dict[str, Any]:
    """Create a service for the platform's own MCP server; it is deleted at the end."""
    backend = urlsplit(at.platform.target.mcp)
    port = backend.port or (443 if backend.scheme == "https" else 80)
    where = {"Domain": backend.hostname, "Port": port, "ProtocolType": backend.scheme}
    service_id = at.act(
        "CreateMCPService",
        Name=f"dc-{at.token[:12]}",
        Path="/mcp",
        ProtocolType="MCP",
        BackendType="Custom",
        BackendConfiguration={"CustomConfiguration": where},
    ).ok()["MCPServiceId"]
    at.finally_(lambda: at.act("DeleteMCPService", MCPServiceId=service_id))
    service: dict[str, Any] = at.act("GetMCPService", MCPServiceId=service_id).ok()["MCPService"]
    return service
