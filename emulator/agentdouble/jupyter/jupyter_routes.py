"""The part of Jupyter's REST API that gateways serve, and the WebSocket of a kernel's channels."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from agentdouble.core import strict_json
from agentdouble.core.redaction import hide_in_path
from agentdouble.errors import AgentDoubleError
from agentdouble.jupyter import IN_PATH, PREFIX
from agentdouble.jupyter.kernel_clients import KernelClient
from agentdouble.jupyter.session_kernels import SessionKernel, SessionKernels
from agentdouble.jupyter.websocket_wire import V1, read, write
from agentdouble.sandbox import languages

_BAD_DATA, _GOING_AWAY = 1007, 1001
_LANGUAGES = {"python3": "python", "javascript": "javascript"}
_SERVED = "GET /api, /api/kernelspecs and /api/kernels, and a kernel's channels"


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
    return _refusal(getattr(error, "status", 500), str(error))


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"message": message, "reason": message}, status)


class _JupyterRoutes:
    def __init__(self, kernels: SessionKernels, version: str) -> None:
        self._kernels = kernels
        self._version = version

    async def version(self, _request: Request) -> Response:
        """Return the version of the server."""
        return JSONResponse({"version": self._version})

    async def kernelspecs(self, _request: Request) -> Response:
        """Return the languages of the sandbox."""
        specs = {name: _spec(name) for name in _LANGUAGES}
        return JSONResponse({"default": "python3", "kernelspecs": specs})

    async def kernelspec(self, request: Request) -> Response:
        """Return one language."""
        name = request.path_params["name"]
        if name not in _LANGUAGES:
            return _refusal(
                404, f"There is no kernel spec {name!r}; there are {', '.join(_LANGUAGES)}."
            )
        return JSONResponse(_spec(name))

    async def all(self, _request: Request) -> Response:
        """List the kernels, including those of sessions that agents made."""
        return JSONResponse([kernel.to_dict() for kernel in self._kernels.all()])

    async def create(self, request: Request) -> Response:
        """Make a session with a kernel."""
        raw = await request.body()
        try:
            body = await strict_json.read(raw) if raw else {}
            name = body.get("name") or "python3"
        except (ValueError, RecursionError, AttributeError) as error:
            return _refusal(400, f'The body must be {{"name": "python3"}}: {error}.')
        kernel = await self._kernels.create(str(name))
        headers = {"Location": f"{PREFIX}/api/kernels/{kernel.id}"}
        return JSONResponse(kernel.to_dict(), 201, headers)

    async def show(self, request: Request) -> Response:
        """Return a kernel."""
        return JSONResponse(self._find(request).to_dict())

    async def delete(self, request: Request) -> Response:
        """End a kernel's session if it was made here."""
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

    def _find(self, connection: Request | WebSocket) -> SessionKernel:
        return self._kernels.find(connection.path_params["id"])

    async def channels(self, websocket: WebSocket) -> None:
        """Connect a client to a kernel's channels."""
        try:
            kernel = self._find(websocket)
            client = await kernel.client(websocket.query_params.get("session_id", ""))
        except AgentDoubleError as error:
            refusal = _refusal(getattr(error, "status", 500), str(error))
            await websocket.send_denial_response(refusal)
            return
        v1 = V1 in websocket.scope["subprotocols"]
        connection = client.connect()
        try:
            await websocket.accept(subprotocol=V1 if v1 else None)
            await _pass_on(websocket, kernel, client, connection, v1=v1)
        finally:
            if connection == client.connection:
                kernel.disconnected(client)


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


def _spec(name: str) -> dict[str, Any]:
    spec = {
        "argv": [],
        "env": {},
        "display_name": f"{languages.find(name).display_name} (sandbox)",
        "language": _LANGUAGES[name],
        "interrupt_mode": "signal",
        "metadata": {},
    }
    return {"name": name, "spec": spec, "resources": {}}
