"""The one access point: finds the runtime of a request and passes it to one of its instances."""

from __future__ import annotations

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble.errors import RuntimeStartError
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.proxying import Proxy
from agentdouble.runtimes.runtimes import Runtimes

PREFIX = "/runtimes/"


class Gateway:
    """An ASGI application below ``PREFIX``: ``/runtimes/<name>/<path>``."""

    def __init__(self, runtimes: Runtimes, proxy: Proxy, monitor: Monitor) -> None:
        self._runtimes = runtimes
        self._proxy = proxy
        self._monitor = monitor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = HTTPConnection(scope)
        name, _, path = connection.url.path.removeprefix(PREFIX).partition("/")
        runtime = self._runtimes.find(name)
        if runtime is None:
            await _refusal(404, "NotFound", f"There is no runtime {name[:100]!r}.")(
                scope, receive, send
            )
            return
        session = connection.headers.get("session_id")
        with self._monitor.request(name) as observed:

            async def note_status(message: Message) -> None:
                if message["type"] == "http.response.start":
                    observed.status = message["status"]
                await send(message)

            try:
                async with runtime.lease(session) as instance:
                    observed.leased(instance.name)
                    await self._proxy.pass_on(instance, f"/{path}", scope, receive, note_status)
            except RuntimeStartError as error:
                observed.error = "start"
                refusal = _refusal(502, "RuntimeStartError", str(error))
                await refusal(scope, receive, note_status)


def _refusal(status: int, kind: str, message: str) -> ASGIApp:
    return JSONResponse({"error": {"message": message, "type": kind}}, status)
