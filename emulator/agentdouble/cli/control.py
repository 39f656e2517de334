"""The control plane of a running double, and its sessions; ``connections.connect`` finds it."""

from __future__ import annotations

import datetime as dt
import os
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import httpx_sse

from agentdouble.core import environment, invoke_tool, running_doubles
from agentdouble.core.environment import DoubleConnection
from agentdouble.core.invoke_tool import HttpRequest, ToolAddress
from agentdouble.core.signing import Credentials
from agentdouble.core.urls import is_https
from agentdouble.errors import AgentDoubleError, PlatformUnreachableError

_CONNECT_S = 10
_PAGE = 100
_UNREAD = "x-agentdouble-unread"


class ControlPlaneClient:
    """A client of the control plane that signs its calls."""

    def __init__(self, connection: DoubleConnection) -> None:
        self.connection = connection
        self.tool_id = connection.tool_id
        self.url = connection.url
        self.ca_file = connection.ca_file or os.environ.get(environment.CA_FILE)
        credentials = Credentials(connection.access_key, connection.secret_key)
        self._address = ToolAddress(connection.url, credentials, connection.region)

    def call(self, action: str, **body: Any) -> Mapping[str, Any]:
        """Call an action and return its Result; fields that are None are omitted.

        Raises PlatformError, PlatformUnreachableError if there is no answer, and AgentDoubleError
        without a key pair.
        """
        return self.call_and_note(action, body)[0]

    def call_and_note(self, action: str, body: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
        """Return the Result of an action, and the fields that the double did not use."""
        request = self.signed(action, body)
        with self._reached(), httpx.Client(**self._options()) as client:
            answer = client.request(
                request.method, request.url, headers=dict(request.headers), content=request.body
            )
        result = invoke_tool.read_result(answer.status_code, answer.content)[1]
        return result, answer.headers.get(_UNREAD, "")

    def signed(self, action: str, body: Mapping[str, Any]) -> HttpRequest:
        """Return the signed request of an action; raise AgentDoubleError without a key pair."""
        self.require_keys()
        fields = {name: value for name, value in body.items() if value is not None}
        now = dt.datetime.now(dt.timezone.utc)
        return invoke_tool.build(fields, self._address, now, action=action)

    def require_keys(self) -> None:
        """Raise AgentDoubleError if there is no key pair, and say what is at the address."""
        if self.connection.access_key and self.connection.secret_key:
            return
        names = f"{environment.ACCESS_KEY} and {environment.SECRET_KEY}"
        if self._is_double():
            raise AgentDoubleError(_elsewhere(self.url, names))
        raise AgentDoubleError(
            f"A platform answers at {self.url}, for which you need keys: set {names}."
        )

    def _is_double(self) -> bool:
        with self._reached(), httpx.Client(**self._options()) as client:
            answer = client.get(f"{self.url}/_emulator/health")
        try:
            return "version" in answer.json()
        except (ValueError, TypeError):
            return False

    def send(
        self, method: str, url: str, headers: Mapping[str, str], body: Any = None
    ) -> httpx.Response:
        """Send a request to a surface of the double; ``body`` is sent as JSON."""
        with self._reached(), httpx.Client(**self._options()) as client:
            return client.request(method, url, headers=headers, json=body)

    def admin(
        self, path: str, query: Mapping[str, str], *, method: str = "GET", body: Any = None
    ) -> httpx.Response:
        """Call a route below ``/_emulator`` and return the response; raise AgentDoubleError.

        ``body`` is sent as JSON.
        """
        with self._reached(), httpx.Client(**self._options()) as client:
            url = self.url + path
            headers = self._key()
            return self._accepted(
                client.request(method, url, params=query, headers=headers, json=body)
            )

    @asynccontextmanager
    async def admin_events(
        self, path: str, query: Mapping[str, str]
    ) -> AsyncIterator[httpx_sse.EventSource]:
        """Yield the event stream of a route below ``/_emulator``; raise AgentDoubleError."""
        with self._reached():
            async with (
                httpx.AsyncClient(**self._options()) as client,
                client.stream("GET", self.url + path, params=query, headers=self._key()) as answer,
            ):
                if not answer.is_success:
                    await answer.aread()
                yield httpx_sse.EventSource(self._accepted(answer))

    def _key(self) -> Mapping[str, str]:
        """Return the token as a header for the double's own routes."""
        token = self.connection.token
        return {"X-API-Key": token} if token else {}

    def _options(self) -> dict[str, Any]:
        return {
            "timeout": httpx.Timeout(None, connect=_CONNECT_S),
            "verify": self._verify(),
            "trust_env": not running_doubles.is_here(
                urlsplit(self.url).hostname
            ),  # no proxy to this machine
        }

    def _verify(self) -> ssl.SSLContext | bool:
        """Return how httpx verifies the server; plain http needs no certificate store."""
        if not is_https(self.url) or self.ca_file is None:
            return is_https(self.url)
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:  # also an ssl.SSLError: the file holds no certificate
            reason = f"the certificate file {self.ca_file} cannot be read: {error}"
            raise PlatformUnreachableError(self.url, reason, advice=advice()) from None

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise PlatformUnreachableError(self.url, reason, advice=advice()) from None

    def _accepted(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_success:
            return answer
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            refused = f"{self.url} does not accept the token or key in {environment.TOKEN}."
            told = refused if self.connection.token else _elsewhere(self.url, environment.TOKEN)
            raise AgentDoubleError(told)
        try:
            message = str(answer.json()["error"]["message"])
        except (ValueError, KeyError, TypeError):
            message = (
                f"{self.url} answers, but not as a double: {answer.url.path} gave "
                f"{answer.status_code}."
            )
        raise AgentDoubleError(message)

    def all(self, action: str, items: str, **query: Any) -> Iterator[Mapping[str, Any]]:
        """Yield the items of all pages of a List action."""
        token = None
        while token != "":
            page = self.call(action, MaxResults=_PAGE, NextToken=token, **query)
            yield from page[items]
            token = page.get("NextToken") or ""

    def sessions(self, tool_id: str | None = None) -> list[dict[str, Any]]:
        """Return the sessions of one tool or of all tools, each with its ToolId."""
        tools = [tool_id] if tool_id else [t["ToolId"] for t in self.all("ListTools", "Tools")]
        return [
            {"ToolId": tool, **session}
            for tool in tools
            for session in self.all("ListSessions", "SessionInfos", ToolId=tool)
        ]

    def asleep(
        self, sessions: Iterable[Mapping[str, Any]], tool_id: str | None = None
    ) -> list[Mapping[str, Any]]:
        """Return the snapshots of sessions that are asleep, of one tool or of all, latest first.

        ``sessions`` are those that live.
        """
        tools = [tool_id] if tool_id else [t["ToolId"] for t in self.all("ListTools", "Tools")]
        living = {session["SessionId"] for session in sessions}
        snapshots = [
            snapshot
            for tool in tools
            for snapshot in self.all(
                "ListSessionSnapshots", "Snapshots", ToolId=tool, SnapshotType="Automatic"
            )
            if snapshot["Status"] != "Failed" and snapshot["SessionId"] not in living
        ]
        return sorted(snapshots, key=lambda snapshot: snapshot["SnapshotId"], reverse=True)

    def session(self, name: str, tool_id: str | None = None) -> dict[str, Any]:
        """Return the living session with that SessionId or UserSessionId.

        Raises AgentDoubleError if there is none, or if several tools have such a session.
        """
        ids = ("SessionId", "UserSessionId")
        matches = [s for s in self.sessions(tool_id) if name in (s[key] for key in ids)]
        if len(matches) > 1:
            tools = ", ".join(session["ToolId"] for session in matches)
            raise AgentDoubleError(
                f"Several tools have a session {name!r}: choose one with --tool: {tools}."
            )
        if not matches:
            raise AgentDoubleError(f"No living session {name!r}. See: agentdouble session list")
        return matches[0]


def advice() -> str:
    """Return what to do if nothing answers: the doubles that run, or how to start one."""
    urls = [double.url for double in running_doubles.doubles()]
    return f"Running doubles: {', '.join(urls)}." if urls else "Start one: agentdouble serve"


def _elsewhere(url: str, names: str) -> str:
    return (
        f"{url} is a double, but you did not start it here: set {names}, as 'agentdouble env' "
        "prints where it runs."
    )
