"""``/_emulator/faults``: routes that arm faults, show their states and disarm them."""

from __future__ import annotations

import asyncio
import functools
import operator
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from agentdouble import strict_json
from agentdouble.errors import FaultError
from agentdouble.faults.kinds import KINDS, schemas
from agentdouble.faults.plan import Faults
from agentdouble.openapi import Answer, operation
from agentdouble.threads import run_in_thread

LONGEST_WAIT_S = 60.0
_ANY_KIND: Any = functools.reduce(operator.or_, KINDS.values())


def fault_routes(faults: Faults) -> list[Route]:
    """Return the routes, relative to the double's own prefix; they raise FaultError."""
    routes = _Routes(faults)
    return [
        Route("/faults", routes.show),
        Route("/faults", routes.arm, methods=["POST"]),
        Route("/faults", routes.clear, methods=["DELETE"]),
        Route("/faults/kinds", routes.kinds),
        Route("/faults/{id}", routes.wait),
        Route("/faults/{id}", routes.disarm, methods=["DELETE"]),
        Route("/faults/{id}/release", routes.release, methods=["POST"]),
    ]


class ShownFault(BaseModel):
    """An armed fault: its own fields, and what has happened."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    id: str
    kind: str
    operation: str
    nth: int
    every: int
    times: int | str
    described: str
    calls: int
    met: int
    fired: int


class ShownFaults(TypedDict):
    """The armed faults, and the operations that were called meanwhile."""

    faults: list[ShownFault]
    seen: dict[str, int]


class Kinds(TypedDict):
    """The JSON Schema of each kind of fault, by its name."""

    kinds: dict[str, dict[str, Any]]


class WaitQuery(TypedDict, total=False):
    """How long to wait for a fault."""

    fired: Annotated[int, Field(ge=0, lt=1e6, description="How often it must have happened.")]
    within_s: Annotated[float, Field(ge=0, lt=1e6, description="The longest wait, in seconds.")]


class _Routes:
    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    @operation(ShownFaults)
    async def show(self, _request: Request) -> Response:
        """Return the armed faults, and the operations that were called meanwhile."""
        return JSONResponse(self._shown())

    @operation(Answer(ShownFault, 201), body=_ANY_KIND)
    async def arm(self, request: Request) -> Response:
        """Arm a fault."""
        try:
            document = await strict_json.read(await request.body())
        except (ValueError, RecursionError) as error:
            raise FaultError(f"The body is not JSON: {error}.") from None
        return JSONResponse(self._faults.arm_document(document).to_dict(), 201)

    @operation(Kinds)
    async def kinds(self, _request: Request) -> Response:
        """Return the JSON Schema of each kind of fault, from which a form can be made."""
        return JSONResponse({"kinds": await run_in_thread(schemas)})

    @operation(ShownFaults)
    async def clear(self, _request: Request) -> Response:
        """Disarm every fault and return the last state of each."""
        shown = self._shown()
        self._faults.clear()
        return JSONResponse(shown)

    @operation(ShownFault, errors=(404,))
    async def disarm(self, request: Request) -> Response:
        """Disarm a fault and return its last state."""
        return JSONResponse(self._faults.disarm(request.path_params["id"]).to_dict())

    @operation(ShownFault, errors=(404,))
    async def release(self, request: Request) -> Response:
        """Release the calls that a fault holds."""
        return JSONResponse(self._faults.release(request.path_params["id"]).to_dict())

    @operation(ShownFault, query=WaitQuery, errors=(404,))
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
