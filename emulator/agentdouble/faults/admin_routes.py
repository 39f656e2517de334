"""``/_emulator/faults``: routes that arm faults, show their states and disarm them."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble.core import strict_json
from agentdouble.core.threads import run_in_thread
from agentdouble.errors import FaultError
from agentdouble.faults.parsing import schemas
from agentdouble.faults.plan import Faults

LONGEST_WAIT_S = 60.0


def fault_routes(faults: Faults) -> list[Route]:
    """Return the routes, relative to the double's own prefix; they raise FaultError."""
    routes = _FaultRoutes(faults)
    return [
        Route("/faults", routes.show),
        Route("/faults", routes.arm, methods=["POST"]),
        Route("/faults", routes.clear, methods=["DELETE"]),
        Route("/faults/kinds", routes.kinds),
        Route("/faults/{id}", routes.wait),
        Route("/faults/{id}", routes.disarm, methods=["DELETE"]),
        Route("/faults/{id}/release", routes.release, methods=["POST"]),
    ]


class _FaultRoutes:
    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    async def show(self, _request: Request) -> Response:
        """Return the armed faults, and the operations that were called meanwhile."""
        return JSONResponse(self._shown())

    async def arm(self, request: Request) -> Response:
        """Arm a fault."""
        try:
            document = await strict_json.read(await request.body())
        except (ValueError, RecursionError) as error:
            raise FaultError(f"The body is not JSON: {error}.") from None
        return JSONResponse(self._faults.arm_document(document).to_dict(), 201)

    async def kinds(self, _request: Request) -> Response:
        """Return the JSON Schema of each kind of fault, from which a form can be made."""
        return JSONResponse({"kinds": await run_in_thread(schemas)})

    async def clear(self, _request: Request) -> Response:
        """Disarm every fault and return the last state of each."""
        document = self._shown()
        self._faults.clear()
        return JSONResponse(document)

    async def disarm(self, request: Request) -> Response:
        """Disarm a fault and return its last state."""
        return JSONResponse(self._faults.disarm(request.path_params["id"]).to_dict())

    async def release(self, request: Request) -> Response:
        """Release the calls that a fault holds."""
        return JSONResponse(self._faults.release(request.path_params["id"]).to_dict())

    async def wait(self, request: Request) -> Response:
        """Return a fault when it has happened ``fired`` times, or after ``within_s`` seconds."""
        query = request.query_params
        fired = int(_number(query.get("fired", "0"), "fired"))
        within_s = min(_number(query.get("within_s", "0"), "within_s"), LONGEST_WAIT_S)
        state = await asyncio.to_thread(
            self._faults.wait, request.path_params["id"], fired=fired, timeout_s=within_s
        )
        return JSONResponse(state.to_dict())

    def _shown(self) -> dict[str, Any]:
        states = [state.to_dict() for state in self._faults.states()]
        return {"faults": states, "seen": self._faults.seen()}


def _number(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:  # also for text that is not a number
        raise FaultError(f"{name} must be a number, 0 or more, not {text[:40]!r}.", name)
    return number
