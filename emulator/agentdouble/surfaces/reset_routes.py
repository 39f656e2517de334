"""``/_emulator/reset`` and ``/_emulator/snapshots``: routes that reset a double and return it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from agentdouble.openapi import Answer, operation
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


class ResetQuery(TypedDict, total=False):
    """The query of a reset."""

    keep: Annotated[str, Field(description="The parts to keep, separated by commas.")]
    wait: Annotated[bool, Field(description="Whether to wait for processes to end.")]


class Done(TypedDict):
    """A reset."""

    status: Literal["reset"]


class Snapshots(TypedDict):
    """The ids of the snapshots."""

    snapshots: list[str]


class Taken(TypedDict):
    """A snapshot, and the parts of the double that it has."""

    id: str
    parts: list[str]


class Changed(TypedDict):
    """What was done with a snapshot."""

    id: str
    status: Literal["restored", "forgotten"]


class _Routes:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @operation(Done, query=ResetQuery)
    async def reset(self, request: Request) -> Response:
        """Reset the double, except for the parts that ``keep`` names, separated by commas.

        With ``wait=false`` it does not wait for the processes of sessions to end.
        """
        query = request.query_params
        keep = query.get("keep")
        named = None if keep is None else [one for one in keep.split(",") if one]
        await self._parts.reset(query.get("wait") != "false", named)
        return JSONResponse({"status": "reset"})

    @operation(Snapshots)
    async def all(self, _request: Request) -> Response:
        """Return the ids of the snapshots."""
        return JSONResponse({"snapshots": list(self._parts.snapshots())})

    @operation(Answer(Taken, 201))
    async def take(self, _request: Request) -> Response:
        """Take a snapshot."""
        snapshot = await self._parts.snapshot()
        return JSONResponse({"id": snapshot.id, "parts": list(snapshot.returns)}, 201)

    @operation(Changed, errors=(404,))
    async def restore(self, request: Request) -> Response:
        """Return to a snapshot."""
        id_ = request.path_params["id"]
        await self._parts.restore(id_)
        return JSONResponse({"id": id_, "status": "restored"})

    @operation(Changed, errors=(404,))
    async def forget(self, request: Request) -> Response:
        """Forget a snapshot."""
        id_ = request.path_params["id"]
        self._parts.forget(id_)
        return JSONResponse({"id": id_, "status": "forgotten"})
