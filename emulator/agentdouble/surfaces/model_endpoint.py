"""The model endpoint, which answers by script.

``/_emulator/model`` controls it: ``GET`` returns its scripts, requests and names, ``POST`` adds a
script (``{"when": {"contains": "..."}, "steps": [{"text": "..."}]}``) or sets the names
(``{"models": [...]}``), and ``DELETE`` removes all scripts. ``/_emulator/model/recording``
starts and returns a recording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from agentdouble.model import PREFIX
from agentdouble.server.guard import Refusal
from agentdouble.surfaces.surface import (
    DataPart,
    LateApp,
    Surface,
    SurfaceContext,
    counted,
    part_of,
)

if TYPE_CHECKING:
    from agentdouble.model.endpoint import ModelService

_MODULE = "agentdouble.model.model_routes"


class ModelEndpoint(Surface):
    """A model in the wire forms of OpenAI and Gemini."""

    name = "Model"
    is_documented = False

    def __init__(self, context: SurfaceContext) -> None:
        super().__init__(context)
        self._app = LateApp(self._make_app, _MODULE)
        self._admin = LateApp(self._make_admin, _MODULE)
        if context.settings.model_scripts:
            self._model.reset()  # raises for a wrong script

    @cached_property
    def _model(self) -> ModelService:
        from agentdouble.model.endpoint import ModelService  # slow: 20 ms

        return ModelService(self.context.settings.model_scripts)

    def paths(self) -> Mapping[str, str]:
        """Return the base URLs of the two wire forms."""
        return {
            f"{PREFIX}/v1": "a scripted model, in OpenAI's wire form",
            f"{PREFIX}/v1beta": "the same model, in Gemini's wire form",
        }

    def state(self) -> str:
        """Return the number of scripts, and of requests that the model has got."""
        if "_model" not in vars(self):
            return "not used yet"
        model = self._model.to_dict()
        scripts, requests = (len(model[name]) for name in ("scripts", "requests"))
        return f"{counted(scripts, 'script')}, {counted(requests, 'request')}"

    def routes(self) -> Sequence[BaseRoute]:
        """Return one route for all."""
        return [Mount(PREFIX, self._app)]

    def admin_routes(self) -> Sequence[BaseRoute]:
        """Return the routes that control the model."""
        return [Route("/model", self._admin), Route("/model/recording", self._admin)]

    def _make_app(self) -> ASGIApp:
        from agentdouble.model.model_routes import endpoint_app  # slow: httpx, 0.1 s

        return endpoint_app(self._model, self.context.clock)

    def _make_admin(self) -> ASGIApp:
        from agentdouble.model.admin_routes import admin_app  # slow: httpx, 0.1 s

        return admin_app(self._model)

    @staticmethod
    def render(connection: HTTPConnection, refusal: Refusal) -> Response:
        """Return a refusal in the wire form of the request."""
        from agentdouble.model.model_routes import render_refusal  # slow: httpx, 0.1 s

        return render_refusal(connection, refusal)

    def parts(self) -> Sequence[DataPart]:
        """Return the model with its scripts and requests."""
        return [part_of("model", self._reset)]

    def _reset(self) -> None:
        if "_model" in vars(self):
            self._model.reset()
