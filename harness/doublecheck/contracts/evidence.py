"""Find out whether the surfaces of a target exist and answer; each check depends on this.

Without this evidence, a server that knows none of the paths would pass each check that expects a
refusal, because the 404 of a missing route looks like one. So a live platform must first give an
answer that only the surface gives. For texts and statuses, the answer must differ from the answer
to an unused path. A check of sessions, runs, tools or tasks also needs an answer of their routes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest

from agentdouble.core import invoke_tool
from doublecheck.client import preflight
from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import wire
from doublecheck.contracts.clauses import Clause
from doublecheck.contracts.failure_report import route
from doublecheck.contracts.losses import Patience
from doublecheck.contracts.mcp_servers import open_session
from doublecheck.contracts.verdicts import SMOKE, Verdict
from doublecheck.errors import (
    AbsentSurfaceError,
    AnswerError,
    DoubleCheckError,
    NoAnswerError,
    RefusedError,
    UnreachableError,
)
from doublecheck.target.facts import Surface, variable
from doublecheck.target.target import Target
from doublecheck.wire import a2a, api_server, calls, mcp
from doublecheck.wire.calls import Request

Shows = Callable[["httpx.Response"], bool]

ANSWER_WITHIN_S = 10.0
_INVOKE = "invocation"
_NOBODY = "doublecheck"
_CARD_KEYS = {"skills", "capabilities", "supportedInterfaces", "defaultInputModes", "url"}
_UNCLEAR = (401, 403, 407, 408, 425, 429, 500, 502, 503, 504)
_WITHOUT_EVIDENCE: frozenset[Surface] = frozenset({"library", "services", "runtimes"})
# routes that the checks of some clauses need, by surface
_ROUTES = {
    "sessions": ("api_server", "API-02 API-03 API-04 API-05 API-06 API-13 API-17 API-18"),
    "runs": ("api_server", "API-07 API-08 API-09 API-10 API-11 API-12 API-16"),
    "/run": ("api_server", ""),
    "/run_sse": ("api_server", ""),
    "tools": ("mcp", "MCP-03 MCP-04 MCP-05 MCP-06"),
    "messages": ("a2a", "A2A-02 A2A-03"),
    "tasks": ("a2a", "A2A-04"),
}
_NO_ROUTE, _NO_METHOD = (404, 405, 501), -32601
# surfaces whose answers may look like any server's
_OF_ANY_TEXT = ("application", _INVOKE, "sessions", "runs", "/run", "/run_sse")
_JSON = {"Content-Type": "application/json"}
_NOWHERE = "/doublecheck-nobody-has-this-path"
_NAMES: dict[str, str] = {
    "application": "an application with probes",
    _INVOKE: "an application with /invoke",
    "api_server": "an API server",
    "control_plane": "a control plane",
    "mcp": "an MCP server",
    "a2a": "an A2A application",
}


def require(platform: Platform, surface: str) -> None:
    """Raise AbsentSurfaceError if no answer of the platform shows the surface, or the routes.

    Raises RefusedError if the surface may exist but answers only with errors, or needs other
    credentials.
    """
    answers = []
    for request, shows in _questions(platform, surface):
        answer = platform.send(replace(request, timeout_s=ANSWER_WITHIN_S))
        if shows(answer) and (
            surface not in _OF_ANY_TEXT or _is_its_own(platform, request, answer)
        ):
            _end_session(platform, answer)
            return
        answers.append(answer)
    if surface == "control_plane" and _notice_signatures(answers):
        return
    unclear = next((answer for answer in answers if answer.status_code in _UNCLEAR), None)
    if unclear is not None:
        status = unclear.status_code
        name = _NAMES.get(surface, surface)
        message = f"{_route(unclear)} answers HTTP {status}, so {name} cannot be checked."
        if status in (401, 403):
            message += f" If it needs a key, set {variable('api_key')}."
        raise RefusedError(message, status=status, body=unclear.text)
    statuses = [
        f"{_route(it)} answers HTTP {it.status_code}{' with something else' * it.is_success}"
        for it in answers
    ]
    at: Any = "application" if surface == _INVOKE else _ROUTES.get(surface, (surface,))[0]
    name = f"{_NAMES[at]} with {surface}" if surface in _ROUTES else _NAMES[surface]
    raise AbsentSurfaceError(platform.target.at(at), name, statuses)


def _questions(platform: Platform, surface: str) -> Iterator[tuple[Request, Shows]]:
    """Yield requests, each with a function that decides whether its answer shows the surface."""
    target = platform.target
    if surface == "application":
        for path in ("/ping", "/readiness", "/liveness"):
            yield calls.request(target, "GET", path), _is_probe
    elif surface == _INVOKE:
        yield calls.request(target, "GET", "/invoke"), _has_route
        # the body is not JSON, so nothing runs
        yield calls.request(target, "POST", "/invoke", headers=_JSON, content=b"{"), _has_route
    elif surface == "api_server":
        yield calls.request(target, "GET", "/list-apps"), _lists
        sessions = api_server.sessions_path(_NOBODY, _NOBODY)
        yield calls.request(target, "GET", sessions), _lists
    elif surface == "control_plane":
        query = f"Action={invoke_tool.ACTION}&Version={invoke_tool.VERSION}"
        yield Request("POST", f"{target.control_plane}/?{query}", _JSON, b"{}"), _has_metadata
        if target.credentials is not None:
            yield wire.signed(platform, {}), _has_metadata
    elif surface == "mcp":
        server = mcp.McpServer.at(target, mcp.PATH, None, None)
        yield mcp.initialize(server).request, _agrees
    elif surface == "a2a":
        card = calls.request(target, "GET", a2a.CARD)
        yield card, lambda it: it.is_success and not _CARD_KEYS.isdisjoint(wire.object_in(it))
    elif surface == "sessions":
        sessions = api_server.sessions_path((platform.agents.list_apps() or (_NOBODY,))[0], _NOBODY)
        yield calls.request(target, "GET", sessions), _has_sessions
    elif surface in ("runs", "/run", "/run_sse"):
        for path in ("/run", "/run_sse") if surface == "runs" else (surface,):
            run = calls.request(target, "POST", path, headers=_JSON, content=b"{}")
            yield run, lambda it: it.status_code not in (405, 501)
    elif surface == "tools":
        server = mcp.McpServer.at(target, mcp.PATH, None, None)
        session = open_session(platform, server)
        yield mcp.ask(server, session, "tools/list", {}).request, _knows_method
        platform.send(mcp.end(server, session).request)
    else:
        agent = wire.send(platform, a2a.card(target, a2a.PATH))
        method = "task" if surface == "tasks" else "send"
        yield a2a.request(agent, method, {"id": _NOBODY}), _knows_method


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


class SurfaceStates:
    """Whether the surfaces of a target exist and answer.

    If a check gets no answer, its surface is in doubt: one request before the next check of this
    surface finds out whether it still answers. So a platform that hangs during the run does not
    cost a timeout per remaining check. On a live platform, an answer must show that a surface
    exists before its first check.
    """

    def __init__(self, target: Target, patience: Patience) -> None:
        self._target = target
        self._patience = patience
        self._problems: dict[Surface, DoubleCheckError] = dict(target.problems)
        self._doubted: set[Surface] = set()
        self._evidence: dict[str, DoubleCheckError | None] = {}

    def is_silent(self, surface: Surface, error: BaseException) -> bool:
        """Whether a surface stopped answering, after a check of it failed with this error."""
        if not isinstance(error, (NoAnswerError, UnreachableError)):
            return False
        self._doubted.add(preflight.probed(surface))
        try:
            self.require(surface)
        except DoubleCheckError:
            return True
        return False

    def require(self, surface: Surface) -> None:
        """Raise the problem that prevents checks of a surface."""
        probed = preflight.probed(surface)
        if probed in self._doubted:
            self._doubted.discard(probed)
            problem = preflight.problem(self._target, probed)
            if problem is not None:
                self._problems[probed] = problem
        if probed in self._problems:
            raise self._problems[probed]

    def require_evidence(
        self, platform: Platform, clause: Clause, surface: Surface, routes: Sequence[str] = ()
    ) -> None:
        """Raise an error if nothing shows that a live platform has the surface of a check.

        A surface that was only assumed then counts as not offered, unless none of them exists. The
        routes of the clause, and those in ``routes``, are needed as well; if a declared surface
        lacks them, the check fails.
        """
        if self._target.kind == "double" or surface in _WITHOUT_EVIDENCE:
            return
        # probes exist without an entrypoint
        needed = _INVOKE if clause.id.startswith("INV") else preflight.probed(surface)
        routes = [*routes, *(name for name, (_, ids) in _ROUTES.items() if clause.id in ids)]
        for name in (needed, *routes):
            problem = self._problem(platform, name)
            if not isinstance(problem, AbsentSurfaceError):
                if problem is None or name in routes:
                    continue
                raise problem
            assumed = self._target.offers_assumed
            if assumed and (name in routes or not self._nothing_there(platform)):
                pytest.skip(f"{Verdict.NOT_OFFERED.value}: {problem}")
            problem.offered = not assumed and (name in routes or self._target.level == SMOKE)
            raise problem

    def _problem(self, platform: Platform, surface: str) -> DoubleCheckError | None:
        """Return why there is no evidence of a surface, or None."""
        if surface not in self._evidence:
            self._evidence[surface] = None
            try:
                self._patience.repeat(lambda _: require(platform, surface), (DoubleCheckError,))
            except DoubleCheckError as error:
                self._evidence[surface] = error
        return self._evidence[surface]

    def _nothing_there(self, platform: Platform) -> bool:
        """Whether none of the platform's surfaces can be checked."""
        probed = {preflight.probed(name) for name in self._target.offered - _WITHOUT_EVIDENCE}
        return all(self._problem(platform, name) for name in sorted(probed - self._problems.keys()))
