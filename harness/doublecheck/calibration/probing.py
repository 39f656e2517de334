"""The tools of a probe: requests to each surface, and the removal of what it created.

A probe is a small exchange that finds out which alternative of the ledger a platform implements.
``doublecheck calibrate`` runs them on a deployment; the tests of the alternatives run the same
probes on a double with each answer in turn.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent import futures
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from agentdouble.core import invoke_tool
from doublecheck.core.notebook_repr import visible
from doublecheck.errors import DoubleCheckError
from doublecheck.target.facts import Surface
from doublecheck.wire import calls, control_plane

if TYPE_CHECKING:
    import httpx

    from doublecheck.client._sync.platform import Platform

T = TypeVar("T")

REFERENCE_AGENT = "doublecheck_reference"
TTL_S = 120  # seconds; a resource that is not removed expires soon
WITHIN_S = 30.0
_ANSWERED_WITHIN_S = 1.5
_OTHERS = 3
_JSON = {"Content-Type": "application/json"}


class NotSettledError(Exception):
    """The answer does not show which alternative the platform implements. The message says why."""


@dataclass(frozen=True)
class ProbePatience:
    """How a probe lets time pass: by moving a clock or by waiting, ``real_s`` of real time."""

    wait: Callable[[float], object]
    moves_clock: bool

    @classmethod
    def of(cls, platform: Platform) -> ProbePatience:
        """Return a double's clock, or a live platform's time."""
        if platform.target.admin:
            return cls(lambda seconds: platform.clock.advance(seconds=seconds), True)
        return cls(time.sleep, False)

    def real_s(self, seconds: float) -> float:
        """Return how long a wait takes in real time."""
        return 0.0 if self.moves_clock else seconds


@dataclass(frozen=True)
class ActionAnswer:
    """An answer of the control plane: its status, and its Result or its Error."""

    status: int
    result: Mapping[str, Any]
    error: Mapping[str, Any]

    def ok(self) -> Mapping[str, Any]:
        """Return the Result; raise NotSettledError for a refusal."""
        if self.error or self.status != 200:
            refusal = f"{self.error.get('Code')}: {self.error.get('Message')}"
            raise NotSettledError(f"the control plane refuses (HTTP {self.status}): {refusal}")
        return self.result


@dataclass
class Probing:
    """A platform during a probe; leaving the context removes what the probe created."""

    platform: Platform
    patience: ProbePatience
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    _cleanup: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Probing:
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def finally_(self, undo: Callable[[], object]) -> None:
        """Register a function to call at the end, newest first. Its refusals are ignored."""

        def undone() -> None:
            with suppress(DoubleCheckError, NotSettledError):
                undo()

        self._cleanup.callback(undone)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        surface: Surface | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a request, with a JSON body if given, and return the raw response."""
        return self.platform.request(
            method,
            path,
            surface=surface,
            headers={**({} if body is None else _JSON), **(headers or {})},
            content=b"" if body is None else calls.json_content(body),
            timeout_s=WITHIN_S,
        )

    def act(self, action: str, **body: Any) -> ActionAnswer:
        """Call an action of the control plane with a signature."""
        target = self.platform.target
        request = control_plane.signed(target, body, action=action, timeout_s=10 * WITHIN_S)
        return _answer(self.platform.send(request))

    def run(self, code: str, language: str = "python3", **fields: Any) -> ActionAnswer:
        """Run code in this probe's session; ``fields`` are further fields of RunCode."""
        operation = invoke_tool.RunCode(
            tool_id=self.tool_id,
            user_session_id=self.session,
            code=code,
            language=language,
            **{"ttl_s": TTL_S, **fields},
        )
        answer = self.act(invoke_tool.ACTION, **operation.body())
        session_id = answer.result.get("SessionId")
        if session_id:
            self.finally_(
                lambda: self.act("DeleteSession", ToolId=self.tool_id, SessionId=session_id)
            )
        return answer

    def begin(self) -> str:
        """Create this probe's session and return its SessionId."""
        session_id: str = self.run("0").ok()["SessionId"]
        return session_id

    @property
    def session(self) -> str:
        """The tool-user session id of this probe."""
        return f"doublecheck_{self.token}"

    @property
    def tool_id(self) -> str:
        """The id of the sandbox tool."""
        return self.platform.target.sandbox_tool()


def inner(answer: ActionAnswer) -> dict[str, Any]:
    """Return the JSON of 2.7 in an InvokeTool answer. Raise NotSettledError if it has none."""
    return json_of(str(answer.ok().get("Result")))


def printed(answer: ActionAnswer) -> str:
    """Return the output of code or a command."""
    data = inner(answer).get("data") or {}
    if "stdout" in data:
        return str(data["stdout"]).strip()
    return "".join(str(output.get("text") or "") for output in data.get("outputs", ())).strip()


def json_of(text: str) -> dict[str, Any]:
    """Parse a text as a JSON object. Raise NotSettledError if it is not one."""
    document = calls.json_or_none(text)
    if not isinstance(document, dict):
        raise NotSettledError(f"the answer is not a JSON object: {text[:100]!r}")
    return document


def legible(text: str, subject: str) -> str:
    """Decode a platform's text. Raise NotSettledError if it is not UTF-8."""
    if "\ufffd" in text or visible(text) != text:
        raise unlike(subject, text)
    return text


def unlike(subject: str, value: object) -> NotSettledError:
    """Return the error for an answer that matches none of the alternatives."""
    return NotSettledError(f"{subject}, which matches none of the alternatives: {value!s:.200}")


def one_of(answers: Mapping[Any, str], value: Any, subject: str) -> str:
    """Return the alternative for a value. Raise NotSettledError if none matches."""
    if value not in answers:
        raise unlike(subject, value)
    return answers[value]


def background(function: Callable[[], T]) -> Future[T]:
    """Run a blocking call in a separate thread."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future


def answered_meanwhile(call: Future[Any], ask: Callable[[], object]) -> bool:
    """Whether a call is answered before something else is released.

    If it is not answered soon, ``ask`` is called several times for something that does not wait: a
    busy machine would delay that as well.
    """
    futures.wait({call}, _ANSWERED_WITHIN_S)
    for _ in range(_OTHERS):
        if call.done():
            break
        ask()
    return call.done()


def _answer(response: httpx.Response) -> ActionAnswer:
    document = calls.json_or_none(response.content)
    if not isinstance(document, dict):
        raise NotSettledError(f"the control plane: HTTP {response.status_code} without JSON")
    metadata = document.get("ResponseMetadata")
    error = metadata.get("Error") if isinstance(metadata, dict) else None
    return ActionAnswer(response.status_code, document.get("Result") or {}, error or {})
