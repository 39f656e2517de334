"""Platform: everything a platform answers, for people, notebooks and tests.

It is thin, and so is AsyncPlatform: what a request looks like and how its answer is read
stands in ``clients``, once. Only the sending differs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Generator, Mapping
from types import TracebackType
from typing import Any, TypeVar

import httpx
from httpx_sse import EventSource

from agentdouble.run_code import DEFAULT_SESSION, DEFAULT_USER
from doublecheck import sending
from doublecheck.clients import admin, application, calls, sandbox
from doublecheck.clients.calls import Call, Request
from doublecheck.results import CodeResult, JournalEntry, Session, StreamEvent
from doublecheck.target import Target

T = TypeVar("T")

TIMEOUT_S = 60.0


class Platform:
    """A platform, its double or the real one; use it in a with statement, or ``close()`` it.

    It blocks, and so it also works inside a running event loop. ``timeout_s`` is how long it
    waits for the application; run_code waits as long as its code may run. Every method raises
    UnreachableError, NoAnswerError, and RefusedError or AnswerError for an answer that is not
    what was asked for.
    """

    def __init__(
        self,
        target: Target,
        *,
        timeout_s: float = TIMEOUT_S,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self.target = target
        self.clock = PlatformClock(self)
        self._http = httpx.Client(**sending.options(target, timeout_s))
        self._on_close = on_close

    @property
    def url(self) -> str:
        """Where the application answers."""
        return self.target.url

    def invoke(
        self,
        prompt: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Any:
        """Invoke the application and return its value; ``fields`` go into the payload (INV-01)."""
        request = application.invocation(
            self.target,
            prompt,
            fields,
            user_id=user_id,
            session_id=session_id,
            request_id=request_id,
            headers=headers,
        )
        return self._call(Call(request, application.read_value))

    def stream(
        self,
        prompt: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Generator[StreamEvent]:
        """Invoke a streaming application and yield its events as they arrive (INV-05).

        The invocation begins with the first event that is asked for.
        """
        request = application.invocation(
            self.target,
            prompt,
            fields,
            user_id=user_id,
            session_id=session_id,
            request_id=request_id,
            headers=headers,
        )
        arguments = sending.arguments(request)
        with sending.translated(request.url), self._http.stream(**arguments) as response:
            if not response.is_success or not application.streams(response):
                response.read()
                application.refuse_no_stream(response)
            for event in EventSource(response).iter_sse():
                yield StreamEvent(event.data)

    def ping(self) -> str:
        """Return the text of ``/ping`` (PRB-01)."""
        return self._call(application.probe(self.target, "ping"))

    def health(self) -> str:
        """Return the status of ``/health`` (PRB-02)."""
        return self._call(application.probe(self.target, "health"))

    def readiness(self) -> str:
        """Return the result of ``/readiness`` (PRB-03)."""
        return self._call(application.probe(self.target, "readiness"))

    def liveness(self) -> str:
        """Return the result of ``/liveness`` (PRB-04)."""
        return self._call(application.probe(self.target, "liveness"))

    def run_code(
        self,
        code: str,
        language: str = "python3",
        *,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
        timeout_s: int | None = None,
        ttl_s: int | None = None,
    ) -> CodeResult:
        """Run code in the sandbox of a user's session and return what it came to.

        Code that raises is a result, whose ``error`` says what. ``ttl_s`` is the validity of
        the session's instance, if this call is what makes it. Raises CredentialsMissingError.
        """
        return self._call(
            sandbox.run_code(
                self.target,
                code,
                language,
                user_id=user_id,
                session_id=session_id,
                timeout_s=timeout_s,
                ttl_s=ttl_s,
                when=sending.wall(),
            )
        )

    def journal(self) -> tuple[JournalEntry, ...]:
        """Return the requests that a double served, oldest first; raise NotADoubleError."""
        return self._call(admin.journal(self.target))

    def sessions(self) -> tuple[Session, ...]:
        """Return a double's living session instances; raise NotADoubleError."""
        return self._call(admin.sessions(self.target))

    def reset(self) -> None:
        """Destroy a double's sessions, empty its journal, set its clock back.

        Raises NotADoubleError.
        """
        self._call(admin.reset(self.target))

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        timeout_s: float | None = None,
    ) -> httpx.Response:
        """Send any request to the application and return the answer as it came."""
        return self.send(
            calls.request(
                self.target, method, path, headers=headers, content=content, timeout_s=timeout_s
            )
        )

    def send(self, request: Request) -> httpx.Response:
        """Send a request that a client built and return the answer as it came."""
        with sending.translated(request.url):
            return self._http.request(**sending.arguments(request))

    def close(self) -> None:
        """Close every connection, and stop the double if ``connect()`` started it."""
        self._http.close()
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()

    def _call(self, call: Call[T]) -> T:
        return call.read(self.send(call.request))

    def __enter__(self) -> Platform:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Platform {self.target.kind} at {self.url}>"


class PlatformClock:
    """A double's clock; on a live platform every method raises NotADoubleError."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    def now(self) -> dt.datetime:
        """Return the platform's time, in UTC."""
        return self._platform._call(admin.now(self._platform.target))

    def advance(
        self, by: dt.timedelta | None = None, *, seconds: float = 0, minutes: float = 0
    ) -> dt.datetime:
        """Move the platform's time forward; return it when what became due is destroyed."""
        return self._platform._call(
            admin.advance(self._platform.target, admin.duration(by, seconds, minutes))
        )
