"""The one access point: finds the runtime of a request and passes it to one of its instances."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble.errors import AccessError, RuntimeStartError
from agentdouble.runtimes.authentication import Gatekeeper, render
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.proxying import Proxy
from agentdouble.runtimes.runtimes import Runtimes

PREFIX = "/runtimes/"


class Gateway:
    """An ASGI application below ``PREFIX``: ``/runtimes/<name>/<path>``."""

    def __init__(
        self, runtimes: Runtimes, gatekeeper: Gatekeeper, proxy: Proxy, monitor: Monitor
    ) -> None:
        self._runtimes = runtimes
        self._gatekeeper = gatekeeper
        self._proxy = proxy
        self._monitor = monitor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name, path = _named(scope), _path(scope)
        runtime = self._runtimes.find(name)
        if runtime is None:
            await _refusal(404, "NotFound", f"There is no runtime {name[:100]!r}.")(
                scope, receive, send
            )
            return
        session = HTTPConnection(scope).headers.get("session_id")
        with self._monitor.request(name) as observed:

            async def note_status(message: Message) -> None:
                if message["type"] == "http.response.start":
                    observed.status = message["status"]
                await send(message)

            try:
                admitted = await self._gatekeeper.admit(runtime, path, scope, receive, note_status)
                async with runtime.lease(session) as instance:
                    observed.leased(instance)
                    await self._proxy.pass_on(
                        instance, path, admitted.scope, admitted.receive, admitted.send
                    )
            except AccessError as error:
                observed.error = "access"
                await render(error, path)(scope, receive, note_status)
            except RuntimeStartError as error:
                observed.error = "start"
                refusal = _refusal(502, "RuntimeStartError", str(error))
                await refusal(scope, receive, note_status)

    def authenticates(self, scope: Scope) -> bool:
        """Whether a request is for a runtime that asks who calls by itself."""
        path: str = scope["path"]
        runtime = self._runtimes.find(_named(scope)) if path.startswith(PREFIX) else None
        return runtime is not None and runtime.definition.authorizer is not None


def _named(scope: Scope) -> str:
    """Return the name in a path; not of a URL, which a Host header can bend."""
    path: str = scope["path"]
    return path.removeprefix(PREFIX).partition("/")[0]


def _path(scope: Scope) -> str:
    """Return the path below a runtime as it came, percent-encoded."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    below = raw.partition(b"?")[0].decode("latin-1").split("/", 3)[3:]
    return "/" + "".join(below)


def _refusal(status: int, kind: str, message: str) -> ASGIApp:
    return JSONResponse({"error": {"message": message, "type": kind}}, status)
