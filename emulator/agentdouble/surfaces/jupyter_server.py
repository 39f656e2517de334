"""Jupyter's REST and WebSocket API over the sessions of the sandbox, below ``/jupyter``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from starlette.routing import BaseRoute, Mount
from starlette.types import ASGIApp

from agentdouble.jupyter import PREFIX
from agentdouble.openapi.operation import Served
from agentdouble.surfaces.sandbox import Sandbox
from agentdouble.surfaces.surface import Context, LateApp, Surface

if TYPE_CHECKING:
    from agentdouble.jupyter.session_kernels import SessionKernels


class JupyterServer(Surface):
    """Sessions of the sandbox as kernels of a Jupyter server."""

    name = "Jupyter"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._app = LateApp(self._make_app, "agentdouble.jupyter.jupyter_routes")

    @cached_property
    def _kernels(self) -> SessionKernels:
        from agentdouble.jupyter.session_kernels import SessionKernels  # slow: zmq, 0.2 s

        context = self.context
        instances = context.surface(Sandbox).instances
        return SessionKernels(instances, context.settings.tool_id, context.clock)

    def _make_app(self) -> ASGIApp:
        from agentdouble.jupyter.jupyter_routes import jupyter_app  # slow: zmq, 0.2 s

        return jupyter_app(self._kernels, self.context.version)

    def paths(self) -> Mapping[str, str]:
        """Return the address for ``jupyter lab --gateway-url``."""
        return {PREFIX: "sessions as kernels: jupyter lab --gateway-url"}

    def routes(self) -> Sequence[BaseRoute]:
        """Return one route for all."""
        return [Mount(PREFIX, self._app)]

    async def operations(self) -> Sequence[Served]:
        """Return nothing, because the document describes only the platform."""
        return ()

    def begin_shutdown(self) -> None:
        if "_kernels" in vars(self):
            self._kernels.close()
