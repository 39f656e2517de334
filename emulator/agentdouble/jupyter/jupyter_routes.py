"""The part of Jupyter's REST API that gateways serve, and the WebSocket of a kernel's channels."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from agentdouble.core import strict_json
from agentdouble.core.redaction import hide_in_path
from agentdouble.errors import AgentDoubleError, SandboxError
from agentdouble.jupyter import IN_PATH, PREFIX
from agentdouble.jupyter.kernel_clients import KernelClient
from agentdouble.jupyter.kernelspecs import unknown_error
from agentdouble.jupyter.notebook_sessions import (
    DEFAULT,
    Chosen,
    NewSession,
    NotebookSessions,
    SessionChange,
)
from agentdouble.jupyter.session_kernel import SessionKernel
from agentdouble.jupyter.session_kernels import SessionKernels
from agentdouble.jupyter.websocket_wire import V1, read, write

_SESSION = '{"path": "a.ipynb", "type": "notebook", "kernel": {"name": "python3"}}'
_BAD_DATA, _GOING_AWAY = 1007, 1001
_SERVED = "GET /api, /api/kernelspecs, /api/kernels and /api/sessions, and a kernel's channels"


def jupyter_app(kernels: SessionKernels, version: str) -> Starlette:
    """Return the application below ``/jupyter``."""
    routes = _JupyterRoutes(kernels, version)
    api = [
        Route("/api", routes.version),
        Route("/api/kernelspecs", routes.kernelspecs),
        Route("/api/kernelspecs/{name}", routes.kernelspec),
        Route("/api/kernels", routes.all),
        Route("/api/kernels", routes.create, methods=["POST"]),
        Route("/api/kernels/{id}", routes.show),
        Route("/api/kernels/{id}", routes.delete, methods=["DELETE"]),
        Route("/api/kernels/{id}/{action}", routes.act, methods=["POST"]),
        WebSocketRoute("/api/kernels/{id}/channels", routes.channels),
        Route("/api/sessions", routes.all_sessions),
        Route("/api/sessions", routes.begin_session, methods=["POST"]),
        Route("/api/sessions/{id}", routes.show_session),
        Route("/api/sessions/{id}", routes.change_session, methods=["PATCH"]),
        Route("/api/sessions/{id}", routes.end_session, methods=["DELETE"]),
    ]
    # for clients whose WebSocket has no such header, for example jupyter_server's
    # GatewayKernelClient
    in_path = Mount(f"/{IN_PATH}{{token}}", routes=api)
    handlers: Any = {AgentDoubleError: _refuse, 404: _refuse_path}
    return Starlette(routes=[*api, in_path], exception_handlers=handlers)


async def _refuse_path(request: Request, _error: Exception) -> Response:
    path = f"{request.method} {hide_in_path(request.url.path).removeprefix(PREFIX)}"
    return _refusal(404, f"Jupyter's {path:.100} is not built; there is {_SERVED}.")


async def _refuse(_request: Request, error: Exception) -> Response:
    return _refusal_for(error)


def _refusal_for(error: Exception) -> Response:
    return _refusal(getattr(error, "status", 500), str(error), getattr(error, "code", ""))


def _refusal(status: int, message: str, reason: str = "") -> Response:
    """Return what jupyter_server shows as "[message] reason"."""
    return JSONResponse({"message": message, "reason": reason or "Refused"}, status)


class _JupyterRoutes:
    def __init__(self, kernels: SessionKernels, version: str) -> None:
        self._kernels = kernels
        self._sessions = NotebookSessions(kernels)
        self._version = version

    async def version(self, _request: Request) -> Response:
        """Return the version of the server."""
        return JSONResponse({"version": self._version})

    async def kernelspecs(self, _request: Request) -> Response:
        """Return the languages of the sandbox, and the living sessions."""
        return JSONResponse({"default": "python3", "kernelspecs": self._kernels.specs()})

    async def kernelspec(self, request: Request) -> Response:
        """Return a language or a living session."""
        name, specs = request.path_params["name"], self._kernels.specs()
        if name not in specs:
            raise unknown_error(name)
        return JSONResponse(specs[name])

    async def all(self, _request: Request) -> Response:
        """List the kernels, including those of sessions that agents made."""
        return JSONResponse([kernel.to_dict() for kernel in self._kernels.all()])

    async def create(self, request: Request) -> Response:
        """Make a session with a kernel, or open the kernel of a living session."""
        chosen = await _read(Chosen, request, '{"name": "python3"}')
        kernel = await self._kernels.start(chosen.name or DEFAULT)
        headers = {"Location": f"{PREFIX}/api/kernels/{kernel.id}"}
        return JSONResponse(kernel.to_dict(), 201, headers)

    async def show(self, request: Request) -> Response:
        """Return a kernel."""
        return JSONResponse(self._find(request).to_dict())

    async def delete(self, request: Request) -> Response:
        """End a kernel's session if it was made here; leave it otherwise."""
        await self._kernels.delete(self._find(request))
        return Response(status_code=204)

    async def act(self, request: Request) -> Response:
        """Interrupt or restart a kernel."""
        action, kernel = request.path_params["action"], self._find(request)
        if action == "interrupt":
            await kernel.interrupt()
            return Response(status_code=204)
        if action == "restart":
            await self._kernels.restart(kernel)
            return JSONResponse(kernel.to_dict())
        return _refusal(404, f"A kernel has no {action!r:.80}; it has interrupt and restart.")

    async def all_sessions(self, _request: Request) -> Response:
        """List which notebooks use which kernels."""
        return JSONResponse([session.to_dict() for session in self._sessions.all()])

    async def begin_session(self, request: Request) -> Response:
        """Begin a session of a notebook, with a new kernel or one that runs."""
        new = await _read(NewSession, request, _SESSION)
        session = await self._sessions.begin(new)
        headers = {"Location": f"{PREFIX}/api/sessions/{session.id}"}
        return JSONResponse(session.to_dict(), 201, headers)

    async def show_session(self, request: Request) -> Response:
        """Return a session of a notebook."""
        return JSONResponse(self._sessions.find(request.path_params["id"]).to_dict())

    async def change_session(self, request: Request) -> Response:
        """Change the place, the name or the kernel of a notebook's session."""
        session = self._sessions.find(request.path_params["id"])
        change = await _read(SessionChange, request, _SESSION)
        return JSONResponse((await self._sessions.change(session, change)).to_dict())

    async def end_session(self, request: Request) -> Response:
        """End a notebook's session, with its kernel if Jupyter made it."""
        await self._sessions.end(self._sessions.find(request.path_params["id"]))
        return Response(status_code=204)

    def _find(self, connection: Request | WebSocket) -> SessionKernel:
        return self._kernels.find(connection.path_params["id"])

    async def channels(self, websocket: WebSocket) -> None:
        """Connect a client to a kernel's channels."""
        try:
            kernel = self._find(websocket)
            client = await kernel.client(websocket.query_params.get("session_id", ""))
        except AgentDoubleError as error:
            await websocket.send_denial_response(_refusal_for(error))
            return
        v1 = V1 in websocket.scope["subprotocols"]
        connection = client.connect()
        try:
            await websocket.accept(subprotocol=V1 if v1 else None)
            await _pass_on(websocket, kernel, client, connection, v1=v1)
        finally:
            if connection == client.connection:
                kernel.disconnected(client)


_Body = TypeVar("_Body", bound=BaseModel)


async def _read(kind: type[_Body], request: Request, example: str) -> _Body:
    """Return the body of a request; none is that of an empty object. Raise SandboxError."""
    raw = await request.body()
    try:
        return kind.model_validate(await strict_json.read(raw) if raw else {})
    except ValidationError as error:
        first = error.errors()[0]
        why = f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")
    except (ValueError, RecursionError) as error:
        why = str(error)
    message = f"The body must be like {example}: {why:.200}."
    raise SandboxError(message, "InvalidParameter", 400)


async def _pass_on(
    websocket: WebSocket, kernel: SessionKernel, client: KernelClient, connection: int, *, v1: bool
) -> None:
    tasks = [
        asyncio.ensure_future(_receive(websocket, kernel, client, v1=v1)),
        asyncio.ensure_future(_write(websocket, client, connection, v1=v1)),
    ]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        await websocket.close(_GOING_AWAY)
    except ValueError as error:
        await websocket.close(_BAD_DATA, str(error)[:120])
    except (WebSocketDisconnect, RuntimeError):  # it is closed already
        pass
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _receive(
    websocket: WebSocket, kernel: SessionKernel, client: KernelClient, *, v1: bool
) -> None:
    while True:
        received = await websocket.receive()
        if received["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(received.get("code", 1000))
        data = received.get("bytes")
        message = read(received["text"] if data is None else data, v1=v1)
        if message.channel == "shell" and not message.is_beside:
            client.code.put_nowait(message)
        else:  # an answer to input() must not wait for the code that asks
            await kernel.send(client, message)


async def _write(websocket: WebSocket, client: KernelClient, connection: int, *, v1: bool) -> None:
    async for message in client.messages(connection):
        try:
            data = write(message, v1=v1)
        except (ValueError, RecursionError):  # code of a session can sign anything
            continue
        if isinstance(data, str):
            await websocket.send_text(data)
        else:
            await websocket.send_bytes(data)
