"""Whether the surfaces of a target are there and answer, which each check needs to know first.

Without evidence, a server that knows none of the paths would pass each check that something is
refused, as a 404 of a missing route looks like a refusal, and the health page of one surface would
pass for the probe of another. So one answer is needed that only this surface gives: for text and
statuses, another one than an unused path gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from agentdouble import invoke_tool
from doublecheck.client import preflight
from doublecheck.contracts.verdicts import SMOKE, Verdict
from doublecheck.errors import (
    AbsentSurfaceError,
    AnswerError,
    BrokenOfferError,
    DoubleCheckError,
    NoAnswerError,
    RefusedError,
    UnreachableError,
)
from doublecheck.target.facts import variable
from doublecheck.wire import api_server, application, calls, mcp
from doublecheck.wire.calls import Request

if TYPE_CHECKING:
    import httpx

    from doublecheck.client._sync.platform import Platform
    from doublecheck.contracts.clauses import Clause
    from doublecheck.target.facts import Surface
    from doublecheck.target.target import Target

ANSWER_WITHIN_S = 10.0
_INVOKE = "invocation"
_NOBODY = "doublecheck"
_CARD = "/.well-known/agent-card.json"
_CARD_KEYS = {"skills", "capabilities", "supportedInterfaces", "defaultInputModes", "url"}
_NOWHERE = "/doublecheck-nobody-has-this-path"
_UNCLEAR = (401, 403, 407, 408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Question:
    """A request, and the function that says whether its answer shows the surface.

    ``nowhere`` is a request that differs in its path alone, which nobody has: if it is given, the
    answer to it must be another one.
    """

    request: Request
    shows: Callable[[httpx.Response], bool]
    nowhere: Request | None = None


def require(platform: Platform, surface: str) -> None:
    """Raise AbsentSurfaceError if no answer of the platform shows the surface.

    Raises RefusedError if it may be there, but answers errors alone or wants other credentials.
    """
    answers = []
    for question in _questions(platform.target, surface):
        answer = platform.send(question.request)
        if question.shows(answer) and _is_its_own(platform, question, answer):
            _end_session(platform, answer)
            return
        answers.append(answer)
    if not answers:
        return
    unclear = next((one for one in answers if _is_unclear(one)), None)
    if unclear is not None:
        raise _unusable(unclear, surface)
    told = [f"{_asked(one)} is HTTP {one.status_code}{_other(one)}" for one in answers]
    raise AbsentSurfaceError(_address(platform.target, surface), _NAMES[surface], told)


def _is_its_own(platform: Platform, question: Question, answer: httpx.Response) -> bool:
    """Whether an answer is another one than a path gets that nobody has."""
    if question.nowhere is None:
        return True
    other = platform.send(question.nowhere)
    same = answer.status_code == other.status_code
    return not same or (answer.is_success and answer.content != other.content)


def _end_session(platform: Platform, answer: httpx.Response) -> None:
    """End the MCP session that a handshake has opened; a server may refuse to."""
    session = answer.headers.get("mcp-session-id")
    if session is not None:
        sent = {**answer.request.headers, "mcp-session-id": session}
        wanted = ("authorization", "mcp-session-id")
        headers = {name: value for name, value in sent.items() if name in wanted}
        platform.send(Request("DELETE", str(answer.request.url), headers))


def surface_asked(clause_id: str, surface: str) -> str:
    """Return what to ask evidence of for a clause: probes are there without an entrypoint."""
    return _INVOKE if clause_id.startswith("INV") else surface


def _questions(target: Target, surface: str) -> Iterator[Question]:
    for path, shows in _PATHS.get(surface, ()):
        yield Question(_get(target, path, surface), shows)
    if surface == "application":
        nowhere = _get(target, _NOWHERE, surface)
        for path in ("/ping", "/readiness", "/liveness"):
            yield Question(_get(target, path, surface), _is_probe, nowhere)
    elif surface == _INVOKE:
        for make in (_get, _broken):
            nowhere = make(target, _NOWHERE, "application")
            yield Question(make(target, "/invoke", "application"), _has_route, nowhere)
    elif surface == "control_plane":
        yield Question(_unsigned(target), _has_metadata)
    elif surface == "mcp":
        yield Question(_handshake(target), _agrees)


def _get(target: Target, path: str, surface: Any) -> Request:
    return calls.request(target, "GET", path, surface=surface, timeout_s=ANSWER_WITHIN_S)


def _broken(target: Target, path: str, surface: Any) -> Request:
    """Return an invocation that runs nothing, because its body is not JSON."""
    headers = {"Content-Type": "application/json"}
    return calls.request(
        target,
        "POST",
        path,
        surface=surface,
        headers=headers,
        content=b"{",
        timeout_s=ANSWER_WITHIN_S,
    )


def _unsigned(target: Target) -> Request:
    query = f"Action={invoke_tool.ACTION}&Version={invoke_tool.VERSION}"
    headers = {"Content-Type": "application/json"}
    url = f"{target.control_plane}/?{query}"
    return Request("POST", url, headers, b"{}", timeout_s=ANSWER_WITHIN_S)


def _handshake(target: Target) -> Request:
    request = mcp.initialize(mcp.McpServer.at(target, mcp.PATH, None, None)).request
    return Request(request.method, request.url, request.headers, request.content, ANSWER_WITHIN_S)


def _is_probe(answer: httpx.Response) -> bool:
    """Whether an answer is a text, a JSON string or an object with a status (U-PROBE-BODIES)."""
    if not answer.is_success or _is_page(answer):
        return False
    try:
        document = answer.json()
    except ValueError:
        return bool(application.read_probe(answer).strip())
    return isinstance(document, str) or (isinstance(document, dict) and "status" in document)


def _has_route(answer: httpx.Response) -> bool:
    return answer.status_code not in (404, 501) and not _is_unclear(answer)


def _lists_apps(answer: httpx.Response) -> bool:
    document = _json(answer)
    apps = document.get("apps") if isinstance(document, dict) else document
    return answer.is_success and isinstance(apps, list)


def _lists_sessions(answer: httpx.Response) -> bool:
    document = _json(answer)
    return answer.is_success and (
        isinstance(document, list) or (isinstance(document, dict) and "sessions" in document)
    )


def _is_card(answer: httpx.Response) -> bool:
    document = _json(answer)
    return answer.is_success and isinstance(document, dict) and not _CARD_KEYS.isdisjoint(document)


def _has_metadata(answer: httpx.Response) -> bool:
    document = _json(answer)
    return isinstance(document, dict) and isinstance(document.get("ResponseMetadata"), dict)


def _agrees(answer: httpx.Response) -> bool:
    try:
        return isinstance(mcp.read_result(answer).get("protocolVersion"), str)
    except (AnswerError, ValueError, AttributeError):
        return False


def _is_unclear(answer: httpx.Response) -> bool:
    """Whether an answer says neither that the surface is there nor that it is not."""
    return answer.status_code in _UNCLEAR


def _unusable(answer: httpx.Response, surface: str) -> RefusedError:
    told = f"{_asked(answer)} is HTTP {answer.status_code}, so {_NAMES[surface]} cannot be asked."
    if answer.status_code in (401, 403):
        told += f" If it wants a key, set {variable('api_key')}."
    return RefusedError(told, status=answer.status_code, body=answer.text)


def _asked(answer: httpx.Response) -> str:
    return f"{answer.request.method} {str(answer.request.url).partition('?')[0]}"


def _other(answer: httpx.Response) -> str:
    return " with something else" if answer.is_success else ""


def _address(target: Target, surface: Any) -> str:
    return target.at("application" if surface == _INVOKE else surface)


def _is_page(answer: httpx.Response) -> bool:
    return str(answer.headers.get("content-type", "")).startswith("text/html")


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


_PATHS: dict[str, tuple[tuple[str, Callable[[httpx.Response], bool]], ...]] = {
    "api_server": (
        ("/list-apps", _lists_apps),
        (api_server.sessions_path(_NOBODY, _NOBODY), _lists_sessions),
    ),
    "a2a": ((_CARD, _is_card),),
}
_NAMES = {
    "application": "an application with probes",
    _INVOKE: "an application with /invoke",
    "api_server": "an API server",
    "control_plane": "a control plane",
    "mcp": "an MCP server",
    "a2a": "an A2A application",
}


_WITHOUT_EVIDENCE: frozenset[Surface] = frozenset({"library", "services", "runtimes"})


class SurfaceStates:
    """Whether the surfaces of a target answer, and are there.

    If a check gets no answer, its surface is in doubt: before the next check of this surface, one
    request finds out whether the surface answers at all. So a platform that hangs during the run
    does not cost a time limit for each remaining check. Before the first check of a surface of a
    live platform, an answer must show that it is there.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._problems: dict[Surface, DoubleCheckError] = dict(target.problems)
        self._doubted: set[Surface] = set()
        self._looked: dict[str, DoubleCheckError | None] = {}

    def doubt(self, surface: Surface, error: BaseException) -> None:
        """Record the result of a check of a surface."""
        if isinstance(error, (NoAnswerError, UnreachableError)):
            self._doubted.add(preflight.probed(surface))

    def is_silent(self, surface: Surface) -> bool:
        """Whether a surface that is in doubt does not answer at all."""
        if preflight.probed(surface) not in self._doubted:
            return False
        try:
            self.require(surface)
        except DoubleCheckError:
            return True
        return False

    def require(self, surface: Surface) -> None:
        """Raise the problem that prevents checks of a surface."""
        asked = preflight.probed(surface)
        if asked in self._doubted:
            self._doubted.discard(asked)
            found = preflight.problem(self._target, asked)
            if found is not None:
                self._problems[asked] = found
        if asked in self._problems:
            raise self._problems[asked]

    def require_evidence(self, platform: Platform, clause: Clause, surface: Surface) -> None:
        """Raise an error if nothing shows that a live platform has the surface of a check.

        A surface that was only assumed is not offered then, unless none of them is there.
        """
        if self._target.kind == "double" or surface in _WITHOUT_EVIDENCE:
            return
        found = self._look(platform, surface_asked(clause.id, preflight.probed(surface)))
        if found is None:
            return
        if not isinstance(found, AbsentSurfaceError):
            raise found
        if self._target.offers_assumed and not self._nothing_there(platform):
            pytest.skip(f"{Verdict.NOT_OFFERED.value}: {found}")
        raise BrokenOfferError(found) if self._breaks_an_offer else found

    @property
    def _breaks_an_offer(self) -> bool:
        return self._target.level == SMOKE and not self._target.offers_assumed

    def _look(self, platform: Platform, asked: str) -> DoubleCheckError | None:
        """Return why a surface cannot be checked, or None."""
        if asked not in self._looked:
            try:
                require(platform, asked)
                self._looked[asked] = None
            except DoubleCheckError as error:
                self._looked[asked] = error
        return self._looked[asked]

    def _nothing_there(self, platform: Platform) -> bool:
        """Whether no surface of the platform can be asked anything."""
        asked = {preflight.probed(one) for one in self._target.offered - _WITHOUT_EVIDENCE}
        return all(self._look(platform, one) for one in sorted(asked - self._problems.keys()))
