"""The client of a session's workbench: its process and its HTTP routes, as the double sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from agentdouble.core.unmocked_http import AsyncClient, AsyncTransport
from agentdouble.errors import WorkbenchError
from agentdouble.processes.launcher import launch
from agentdouble.processes.workspace import Workspace
from agentdouble.sandbox.languages import Language
from agentdouble.sandbox.session_process import SessionProcess
from agentdouble.server.sockets import open_unix_socket

if TYPE_CHECKING:
    from agentdouble.processes.launcher import ForkPlan, StartedProcess

SOCKET = "workbench.sock"  # next to the session's directories, so its code cannot reach it
# No connection is kept, because it may be closed just when it is used again. That call would fail.
_LIMITS = httpx.Limits(max_keepalive_connections=0)
_END_REPORTED_S = 1.0  # a process's end is reported a moment after it stops answering


PROGRAM = Language(  # it is started in the same way as a kernel
    name="workbench",
    display_name="workbench",
    kernel="workbench",
    config={},
    memory="commands",  # the limit applies to its commands, not to the server
)


class Workbench(SessionProcess):
    """A workbench whose process has been started."""

    language = PROGRAM

    def __init__(self, process: StartedProcess, socket: Path) -> None:
        super().__init__(process)
        self.socket = socket
        self.http = AsyncClient(
            transport=AsyncTransport(uds=str(socket), verify=False, limits=_LIMITS),
            base_url="http://workbench",
            timeout=None,
            trust_env=False,
        )

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Post JSON and return the envelope of the answer; raise WorkbenchError if it has ended."""
        try:
            response = await self.http.post(path, json=body)
        except httpx.TransportError as error:
            raise await self.ended_error(error) from error
        document: dict[str, Any] = response.json()
        if "detail" not in document:
            return document
        # a body was refused; "Value error, " is pydantic's prefix
        reasons = (f"{detail['loc'][-1]}: {detail['msg']}" for detail in document["detail"])
        message = "; ".join(reasons).replace("Value error, ", "")
        return {"success": False, "message": message, "data": None, "hint": None}

    async def _end(self) -> None:
        await super()._end()
        await self.http.aclose()

    async def ended_error(self, error: Exception) -> WorkbenchError:
        """Return the error that says why a call of the workbench failed with ``error``."""
        await asyncio.wait({self.died}, timeout=_END_REPORTED_S)
        # The fork server reports the end late, because it first ends the processes that are left.
        if self._process.has_ended():
            await asyncio.wait({self.died})
        if self.alive:
            return WorkbenchError(f"it broke off: {str(error) or type(error).__name__}", lives=True)
        return WorkbenchError(self.how_it_ended())


async def start(
    plan: ForkPlan | None, workspace: Workspace, run: Path, memory_limit: int
) -> Workbench:
    """Start a workbench in a session; raise OSError or ForkServerGoneError.

    ``run`` is a directory for this workbench only. ``memory_limit`` (bytes) applies to each process
    that the workbench starts.
    """
    path = workspace.home.parent / SOCKET
    confinement = None if plan is None else plan.confinement
    mapped = confinement is None or confinement["namespaces"] is None
    config = _config(workspace, mapped=mapped, memory_limit=memory_limit)
    with open_unix_socket(path) as listener:
        descriptors = (listener.fileno(),)
        process = await launch(
            *(PROGRAM.kernel, plan, workspace, run),
            config=config,
            descriptors=descriptors,
            ends_with_stdin=True,
        )
    return Workbench(process, path)


def _config(workspace: Workspace, *, mapped: bool, memory_limit: int) -> dict[str, Any]:
    """Return the configuration of a workbench; ``mapped`` if it shares the file system view."""
    config: dict[str, Any] = {"memory_limit": memory_limit}
    if mapped:
        config |= {"home": str(workspace.home), "tmp": str(workspace.tmp)}
    return {"Workbench": config}
