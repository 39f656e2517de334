"""``/_emulator/reset`` and ``/_emulator/snapshots``: routes that reset a double and return it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble.surfaces.resetting import Parts


def reset_routes(parts: Parts) -> list[Route]:
    """Return the routes, relative to the double's own prefix."""
    routes = _Routes(parts)
    return [
        Route("/reset", routes.reset, methods=["POST"]),
        Route("/snapshots", routes.all),
        Route("/snapshots", routes.take, methods=["POST"]),
        Route("/snapshots/{id}", routes.forget, methods=["DELETE"]),
        Route("/snapshots/{id}/restore", routes.restore, methods=["POST"]),
    ]


class _Routes:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def reset(self, request: Request) -> Response:
        """Reset the double, except for the parts that ``keep`` names, separated by commas.

        With ``wait=false`` it does not wait for the processes of sessions to end.
        """
        query = request.query_params
        keep = query.get("keep")
        named = None if keep is None else [one for one in keep.split(",") if one]
        await self._parts.reset(query.get("wait") != "false", named)
        return JSONResponse({"status": "reset"})

    async def all(self, _request: Request) -> Response:
        """Return the ids of the snapshots."""
        return JSONResponse({"snapshots": list(self._parts.snapshots())})

    async def take(self, _request: Request) -> Response:
        """Take a snapshot."""
        snapshot = await self._parts.snapshot()
        return JSONResponse({"id": snapshot.id, "parts": list(snapshot.returns)}, 201)

    async def restore(self, request: Request) -> Response:
        """Return to a snapshot."""
        id_ = request.path_params["id"]
        await self._parts.restore(id_)
        return JSONResponse({"id": id_, "status": "restored"})

    async def forget(self, request: Request) -> Response:
        """Forget a snapshot."""
        id_ = request.path_params["id"]
        self._parts.forget(id_)
        return JSONResponse({"id": id_, "status": "forgotten"})
