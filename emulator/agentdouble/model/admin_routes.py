"""The routes below ``/_emulator/model``, which control the model."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from agentdouble.errors import ModelError
from agentdouble.model.endpoint import ModelService
from agentdouble.model.model_routes import read_body
from agentdouble.model.recording import ModelRecording


def admin_app(model: ModelService) -> Router:
    """Return the application for ``/_emulator/model``; it raises ModelError."""
    routes = _Admin(model)
    return Router(
        [
            Route("/model", routes.show),
            Route("/model", routes.change, methods=["POST"]),
            Route("/model", routes.clear, methods=["DELETE"]),
            Route("/model/recording", routes.show_recording),
            Route("/model/recording", routes.start_recording, methods=["POST"]),
        ]
    )


class _Admin:
    def __init__(self, model: ModelService) -> None:
        self._model = model

    async def show(self, _request: Request) -> Response:
        """Return the scripts, the requests and the names of models."""
        return JSONResponse(self._model.to_dict())

    async def change(self, request: Request) -> Response:
        """Add the script in the body, or set the names of its ``models``."""
        body, _ = await read_body(request)
        if "models" in body:
            names = body["models"]
            if not isinstance(names, list) or not all(isinstance(n, str) and n for n in names):
                raise ModelError(f"models must be a list of names, not {names!r:.80}.")
            self._model.names = tuple(names)
        else:
            self._model.scripts.add(body)
        return JSONResponse(self._model.to_dict(), 201)

    async def clear(self, _request: Request) -> Response:
        """Remove every script."""
        self._model.scripts.clear()
        return JSONResponse(self._model.to_dict())

    async def show_recording(self, _request: Request) -> Response:
        """Return what has been recorded."""
        recording = self._model.recording
        return JSONResponse({"exchanges": [] if recording is None else recording.complete()})

    async def start_recording(self, request: Request) -> Response:
        """Record from the ``upstreams`` in the body, or replay its ``exchanges``."""
        body, _ = await read_body(request)
        self._model.recording = await asyncio.to_thread(ModelRecording.read, body)
        return JSONResponse({"exchanges": len(self._model.recording.exchanges)}, 201)
