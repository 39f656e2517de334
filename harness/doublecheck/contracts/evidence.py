"""What shows that a surface of a target exists; each check depends on it.

Without this evidence, a server that knows none of the paths would pass each check that expects a
refusal, because the 404 of a missing route looks like one. So a live platform must first give an
answer that only the surface gives. For texts and statuses, the answer must differ from the answer
to an unused path. A check of sessions, runs, tools or tasks also needs an answer of their routes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import httpx

from agentdouble.core import invoke_tool
from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import wire
from doublecheck.contracts.agent_users import JSON, ROUTES
from doublecheck.contracts.failure_report import route
from doublecheck.contracts.mcp_servers import open_session
from doublecheck.errors import AbsentSurfaceError, AnswerError, RefusedError
from doublecheck.target.facts import Surface, variable
from doublecheck.wire import a2a, api_server, calls, mcp
from doublecheck.wire.calls import Request

Requests = Callable[[Platform], Iterable[Request]]

ANSWER_WITHIN_S = 10.0
_NOBODY = "doublecheck"
_CARD_KEYS = {"skills", "capabilities", "supportedInterfaces", "defaultInputModes", "url"}
_UNCLEAR = (401, 403, 407, 408, 425, 429, 500, 502, 503, 504)
_NO_ROUTE, _NO_METHOD = (404, 405, 501), -32601
_NOT_MADE = (405, 501)
_NOWHERE = "/doublecheck-nobody-has-this-path"


@dataclass(frozen=True)
class SurfaceEvidence:
    """What shows a surface, or routes of it: requests, and whether an answer is one of its own.

    An answer ``of_any_server`` must also differ from the answer to an unused path.
    """

    surface: Surface
    name: str
    requests: Requests
    shows: Callable[[httpx.Response], bool]
    of_any_server: bool = False


def require(platform: Platform, name: str) -> None:
    """Raise AbsentSurfaceError if no answer of the platform shows the surface, or the routes.

    Raises RefusedError if it may exist but answers only with errors, or needs other credentials.
    """
    evidence, answers = _EVIDENCE[name], []
    for request in evidence.requests(platform):
        answer = platform.send(replace(request, timeout_s=ANSWER_WITHIN_S))
        if evidence.shows(answer) and (
            not evidence.of_any_server or _is_its_own(platform, request, answer)
        ):
            _end_session(platform, answer)
            return
        answers.append(answer)
    if name == "control_plane" and _notice_signatures(answers):
        return
    unclear = next((answer for answer in answers if answer.status_code in _UNCLEAR), None)
    if unclear is not None:
        status = unclear.status_code
        message = f"{_route(unclear)} answers HTTP {status}, so {evidence.name} cannot be checked."
        if status in (401, 403):
            message += _advice(platform, evidence.surface)
        raise RefusedError(message, status=status, body=unclear.text)
    statuses = [
        f"{_route(it)} answers HTTP {it.status_code}{' with something else' * it.is_success}"
        for it in answers
    ]
    raise AbsentSurfaceError(platform.target.at(evidence.surface), evidence.name, statuses)


def _advice(platform: Platform, surface: Surface) -> str:
    """Return what to do about a refusal, as further sentences."""
    if surface == "control_plane":
        return " Is this the address of the control plane, and is the key pair right?"
    if platform.target.key_of(surface):
        return " It refuses the API key."
    return f" If it needs a key, set {variable('api_key')}."


def _gets(*paths: str) -> Requests:
    return lambda platform: [calls.request(platform.target, "GET", path) for path in paths]


def _posts(content: bytes, *paths: str) -> Requests:
    return lambda platform: [
        calls.request(platform.target, "POST", path, headers=JSON, content=content)
        for path in paths
    ]


def _invocations(platform: Platform) -> Iterator[Request]:
    yield from _gets("/invoke")(platform)
    yield from _posts(b"{", "/invoke")(platform)  # not JSON, so nothing runs


def _sessions_of_nobody(platform: Platform) -> Iterable[Request]:
    app = (platform.agents.list_apps() or (_NOBODY,))[0]
    return _gets(api_server.sessions_path(app, _NOBODY))(platform)


def _tool_invocations(platform: Platform) -> Iterator[Request]:
    query = f"Action={invoke_tool.ACTION}&Version={invoke_tool.VERSION}"
    yield Request("POST", f"{platform.target.control_plane}/?{query}", JSON, b"{}")
    if platform.target.credentials is not None:
        yield wire.signed(platform, {})


def _handshakes(platform: Platform) -> Iterator[Request]:
    yield mcp.initialize(mcp.McpServer.at(platform.target, mcp.PATH, None, None)).request


def _lists_of_tools(platform: Platform) -> Iterator[Request]:
    server = mcp.McpServer.at(platform.target, mcp.PATH, None, None)
    session = open_session(platform, server)
    yield mcp.ask(server, session, "tools/list", {}).request
    platform.send(mcp.end(server, session).request)


def _of_an_agent(method: str) -> Requests:
    """Return the requests of a method of A2A, with parameters that it refuses."""

    def requests(platform: Platform) -> Iterator[Request]:
        agent = wire.send(platform, a2a.card(platform.target, a2a.PATH))
        yield a2a.request(agent, method, {"id": _NOBODY})

    return requests


def _notice_signatures(answers: Sequence[httpx.Response]) -> bool:
    """Whether an unsigned and a signed request are refused with different statuses."""
    statuses = {answer.status_code for answer in answers}
    return len(statuses) > 1 and all(answer.is_client_error for answer in answers)


def _is_its_own(platform: Platform, request: Request, answer: httpx.Response) -> bool:
    """Whether an answer differs from the answer to an unknown path."""
    unused = platform.send(replace(request, url=platform.target.url + _NOWHERE))
    if answer.status_code != unused.status_code:
        return True
    texts = {re.sub(r"\d", "", it.text.replace(it.request.url.path, "")) for it in (answer, unused)}
    return (answer.is_success or answer.status_code == 404) and len(texts) > 1


def _end_session(platform: Platform, answer: httpx.Response) -> None:
    """End the MCP session that a handshake opened. A server may refuse."""
    if session := answer.headers.get("mcp-session-id"):
        sent = {**answer.request.headers, "mcp-session-id": session}
        passed_on = ("authorization", "mcp-session-id")
        headers = {name: value for name, value in sent.items() if name in passed_on}
        platform.send(Request("DELETE", str(answer.request.url), headers))


def _is_probe(answer: httpx.Response) -> bool:
    """Whether an answer is a text, or JSON that is not an error (U-PROBE-BODIES)."""
    if not answer.is_success or answer.text.lstrip()[:1] == "<":  # a page
        return False
    return bool(wire.words_of(answer)) and not wire.error_in(answer)


def _has_route(answer: httpx.Response) -> bool:
    return answer.status_code not in (404, 501, *_UNCLEAR)


def _has_run(answer: httpx.Response) -> bool:
    return answer.status_code not in _NOT_MADE


def _has_card(answer: httpx.Response) -> bool:
    return answer.is_success and not _CARD_KEYS.isdisjoint(wire.object_in(answer))


def _lists(answer: httpx.Response) -> bool:
    """Whether an answer is a list, or an object that contains one under any name."""
    listed = api_server.list_in(calls.json_or_none(answer.text))
    return answer.is_success and listed is not None and not wire.error_in(answer)


def _has_sessions(answer: httpx.Response) -> bool:
    return _lists(answer) or not (answer.is_success or answer.status_code in _NO_ROUTE)


def _knows_method(answer: httpx.Response) -> bool:
    """Whether a JSON-RPC method exists: its errors are about something else."""
    try:
        errors = [it["error"] for it in mcp.messages(answer) if it.get("error")]
    except (AnswerError, AttributeError):
        errors = []
    missing = answer.status_code in _NO_ROUTE and not errors
    return not missing and _NO_METHOD not in [error.get("code") for error in errors]


def _has_metadata(answer: httpx.Response) -> bool:
    return isinstance(wire.object_in(answer).get("ResponseMetadata"), dict)


def _agrees(answer: httpx.Response) -> bool:
    try:
        return isinstance(mcp.read_result(answer).get("protocolVersion"), str)
    except (AnswerError, ValueError, AttributeError):
        return False


def _route(answer: httpx.Response) -> str:
    called = re.search(rb'"method": ?"(\w+/?\w+)"', answer.request.content)
    named = f" {called[1].decode()}" if called else ""
    return route(answer.request.method, str(answer.request.url)) + named


_EVIDENCE: Mapping[str, SurfaceEvidence] = {
    "application": SurfaceEvidence(
        "application",
        "an application with probes",
        _gets("/ping", "/readiness", "/liveness"),
        _is_probe,
        of_any_server=True,
    ),
    "invocation": SurfaceEvidence(
        "application",
        "an application with /invoke",
        _invocations,
        _has_route,
        of_any_server=True,
    ),
    "api_server": SurfaceEvidence(
        "api_server",
        "an API server",
        _gets("/list-apps", api_server.sessions_path(_NOBODY, _NOBODY)),
        _lists,
    ),
    "sessions": SurfaceEvidence(
        "api_server",
        "an API server with sessions",
        _sessions_of_nobody,
        _has_sessions,
        of_any_server=True,
    ),
    **{
        name: SurfaceEvidence(
            "api_server",
            f"an API server with {name}",
            _posts(b"{}", *paths),
            _has_run,
            of_any_server=True,
        )
        for name, paths in {"runs": ROUTES, **{route: (route,) for route in ROUTES}}.items()
    },
    "control_plane": SurfaceEvidence(
        "control_plane", "a control plane", _tool_invocations, _has_metadata
    ),
    "mcp": SurfaceEvidence("mcp", "an MCP server", _handshakes, _agrees),
    "tools": SurfaceEvidence("mcp", "an MCP server with tools", _lists_of_tools, _knows_method),
    "a2a": SurfaceEvidence("a2a", "an A2A application", _gets(a2a.CARD), _has_card),
    "messages": SurfaceEvidence(
        "a2a", "an A2A application with messages", _of_an_agent("send"), _knows_method
    ),
    "tasks": SurfaceEvidence(
        "a2a", "an A2A application with tasks", _of_an_agent("task"), _knows_method
    ),
}
