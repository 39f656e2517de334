"""run_code, the agent-side tool (section 4.5): it takes code and returns the result of section 2.7.

It looks up each name first in the tool context, then in the double that hosts the running
application, then in the environment. So an application in a double does not call the real platform
only because a shell has keys for it.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agentdouble.core import environment, invoke_tool, ledger, model_calls, request_cause
from agentdouble.core.imports import import_now
from agentdouble.core.signing import Credentials
from agentdouble.core.urls import is_https
from agentdouble.errors import (
    CredentialsMissingError,
    PlatformError,
    PlatformUnreachableError,
    ToolIdMissingError,
)

DEFAULT_AGENT = "agent"
DEFAULT_USER = "anonymous"
DEFAULT_SESSION = "default"
_CONNECT_TIMEOUT_S = 10.0
_READ_MARGIN_S = 30.0
_LARGEST_TIMEOUT_S = 300
_UNUSUAL = re.compile(r"[^A-Za-z0-9_-]")  # the platform's session ids have none of these
_LONG = 100

_invocation: ContextVar[Invocation | None] = ContextVar("agentdouble_invocation", default=None)
_hosting: ContextVar[Mapping[str, str] | None] = ContextVar("agentdouble_hosting", default=None)


@dataclass(frozen=True)
class Invocation:
    """Who invoked the running application; this selects the sandbox instance (INV-09)."""

    user_id: str = DEFAULT_USER
    session_id: str = DEFAULT_SESSION
    agent: str = DEFAULT_AGENT

    @property
    def user_session_id(self) -> str:
        """The tool-user session id (U-USER-SESSION-ID, SBX-12)."""
        if ledger.choose("U-USER-SESSION-ID") == "session":
            return self.session_id
        return f"{self.agent}_{self.user_id}_{self.session_id}"


def is_refused_for_its_id(error: PlatformError, invocation: Invocation) -> bool:
    """Return whether the platform refused the session id because of the caller's ids.

    run_code makes the session id from the caller's user and session ids, and from the agent's
    name, which the caller does not choose.
    """
    refused = error.code == "InvalidParameter" and "UserSessionId" in error.message
    sent = invocation.user_id + invocation.session_id
    return refused and (_UNUSUAL.search(sent) is not None or len(sent) > _LONG)


@contextmanager
def invoked_by(invocation: Invocation) -> Iterator[None]:
    """Make run_code use the session of this invocation inside the context.

    Requests to the double's model name their cause there.
    """
    model_calls.name_their_cause(_host)
    token = _invocation.set(invocation)
    try:
        yield
    finally:
        _invocation.reset(token)


@contextmanager
def hosted_by(variables: Mapping[str, str]) -> Iterator[None]:
    """Inside the context, make run_code prefer these variables to the environment's."""
    token = _hosting.set(variables)
    try:
        yield
    finally:
        _hosting.reset(token)


def run_code(
    code: str,
    language: str = "python3",
    tool_context: Any = None,
    *,
    timeout_s: int | None = None,
) -> str:
    """Run code in the session's sandbox and return the JSON of section 2.7 as a string (RUN-01).

    ``tool_context`` is a mapping, or an object with a ``state`` mapping. It may hold
    ``PLATFORM_ACCESS_KEY``, ``PLATFORM_SECRET_KEY`` and the other PLATFORM_ names
    (U-TOOL-CONTEXT). It may also hold ``user_id``, ``session_id`` and ``agent``, which are used if
    no application is being invoked. The function blocks: in a coroutine, call ``await
    asyncio.to_thread(run_code, ...)``.

    Raises ToolIdMissingError (RUN-02), CredentialsMissingError (RUN-03), PlatformUnreachableError,
    PlatformError for an error envelope, and EnvelopeError for an answer that is not an envelope.
    """
    import_now("httpx", "httpcore")
    import httpx  # slow: 0.1 s

    state = _state(tool_context)
    address = _address(state)
    call = invoke_tool.RunCode(
        tool_id=_tool_id(state),
        user_session_id=_who(state).user_session_id,
        code=code,
        language=language,
        timeout_s=timeout_s,
        ttl_s=_ttl_s(state),
    )
    request = invoke_tool.build(call.body(), address, dt.datetime.now(dt.timezone.utc))
    read_s = (timeout_s or _LARGEST_TIMEOUT_S) + _READ_MARGIN_S
    try:
        response = httpx.request(
            request.method,
            request.url,
            headers={**request.headers, **request_cause.headers()},
            content=request.body,
            timeout=httpx.Timeout(read_s, connect=_CONNECT_TIMEOUT_S),
            verify=_verify(state, address.url),
            trust_env=not _is_loopback(address.url),  # a proxy cannot reach it
        )
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise PlatformUnreachableError(address.url, str(error) or type(error).__name__) from error
    return invoke_tool.read(response.status_code, response.content).result


def _state(tool_context: Any) -> Mapping[str, Any]:
    if tool_context is None:
        return {}
    state = getattr(tool_context, "state", tool_context)
    if isinstance(state, Mapping):
        return state
    if hasattr(state, "to_dict"):  # Google ADK's State is not a Mapping
        converted: Mapping[str, Any] = state.to_dict()
        return converted
    raise TypeError(
        f"tool_context must be a mapping or an object with a state mapping, not {tool_context!r}."
    )


def _look_up(state: Mapping[str, Any], name: str) -> str | None:
    for source in (state, _hosting.get() or {}, os.environ):
        value = source.get(name)
        if value:
            return str(value)
    return None


def _host() -> str | None:
    return _look_up({}, environment.TOOL_HOST)


def _tool_id(state: Mapping[str, Any]) -> str:
    tool_id = _look_up(state, environment.TOOL_ID)
    if tool_id is None:
        raise ToolIdMissingError(
            f"run_code needs the id of a sandbox tool: set {environment.TOOL_ID}. "
            "A running double prints its own; 'agentdouble env' shows it again."
        )
    return tool_id


def _address(state: Mapping[str, Any]) -> invoke_tool.ToolAddress:
    credentials = _credentials(state)
    region = _look_up(state, environment.TOOL_REGION) or invoke_tool.DEFAULT_REGION
    scheme = _look_up(state, environment.TOOL_SCHEME) or "https"
    host = _look_up(state, environment.TOOL_HOST) or ""
    if not host:
        raise PlatformUnreachableError(
            f"{scheme}://", f"{environment.TOOL_HOST} is not set; it is host or host:port"
        )
    return invoke_tool.ToolAddress(f"{scheme}://{host}", credentials, region)


def _verify(state: Mapping[str, Any], url: str) -> ssl.SSLContext | bool:
    """Return how httpx verifies the server; plain http needs no certificate store."""
    trusted = _look_up(state, environment.CA_FILE)
    if not is_https(url) or trusted is None:
        return is_https(url)
    try:
        return ssl.create_default_context(cafile=trusted)
    except OSError as error:  # also an ssl.SSLError, if the file contains no certificate
        reason = f"{environment.CA_FILE} names {trusted}, which cannot be read: {error}"
        raise PlatformUnreachableError(url, reason) from None


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


def _credentials(state: Mapping[str, Any]) -> Credentials:
    """Return the first complete key pair: context, hosting platform, environment (RUN-03)."""
    for source in (state, _hosting.get() or {}, os.environ):
        access, secret = source.get(environment.ACCESS_KEY), source.get(environment.SECRET_KEY)
        if access and secret:
            return Credentials(str(access), str(secret))
    raise CredentialsMissingError(
        f"run_code needs credentials: put {environment.ACCESS_KEY} and {environment.SECRET_KEY} "
        "into the tool context's state or into the environment."
    )


def _who(state: Mapping[str, Any]) -> Invocation:
    current = _invocation.get()
    if current is not None:
        return current
    return Invocation(
        user_id=str(state.get("user_id") or DEFAULT_USER),
        session_id=str(state.get("session_id") or DEFAULT_SESSION),
        agent=str(state.get("agent") or DEFAULT_AGENT),
    )


def _ttl_s(state: Mapping[str, Any]) -> int | None:
    ttl = _look_up(state, environment.TOOL_TTL)
    if ttl is None:
        return None
    if not ttl.isdecimal():
        raise ValueError(f"{environment.TOOL_TTL} must be a number of seconds, not {ttl!r}.")
    return int(ttl)
