"""The routes of the model endpoint, and those below ``/_emulator/model`` that control it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from types import ModuleType
from typing import Any

from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from agentdouble.core import strict_json
from agentdouble.core.clock import Clock
from agentdouble.errors import ModelError
from agentdouble.model import PREFIX, chat_completions, gemini, responses_api
from agentdouble.model.conversation import Body, ConversationRequest, ModelAnswer
from agentdouble.model.endpoint import ModelService
from agentdouble.model.recording import ModelRecording
from agentdouble.server.disconnects import EventStreamResponse
from agentdouble.server.guard import Refusal

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
}
_METHODS = ("generateContent", "streamGenerateContent")
_SERVED = (
    "POST /v1/chat/completions, POST /v1/responses, GET /v1/models, and Gemini's generateContent"
)


def render_refusal(connection: HTTPConnection, refusal: Refusal) -> Response:
    """Return a refusal as OpenAI's or Gemini's error."""
    error: dict[str, Any] = {"message": refusal.message}
    if _is_gemini(connection):
        error |= {"code": refusal.status, "status": _STATUS.get(refusal.status, "INTERNAL")}
    else:
        kind = "server_error" if refusal.status >= 500 else "invalid_request_error"
        error |= {"type": kind, "param": None, "code": refusal.kind}
    return JSONResponse({"error": error}, refusal.status)


def endpoint_app(model: ModelService, clock: Clock) -> Router:
    """Return the application below ``/model``."""
    routes = _Endpoint(model, clock)
    return Router(
        [
            Route("/v1/chat/completions", routes.chat, methods=["POST"]),
            Route("/v1/responses", routes.responses, methods=["POST"]),
            Route("/v1/models", routes.models),
            Route("/v1beta/models", routes.models),
            Route("/{version}/models/{call:path}", routes.gemini, methods=["POST"]),
        ],
        default=_not_served,
    )


async def _not_served(scope: Any, receive: Any, send: Any) -> None:
    request = Request(scope)
    path = f"{request.method} {request.url.path.removeprefix(PREFIX)}"
    refusal = Refusal(404, "not_found", f"The model has no {path:.100}. It has {_SERVED}.")
    await render_refusal(request, refusal)(scope, receive, send)


class _Endpoint:
    def __init__(self, model: ModelService, clock: Clock) -> None:
        self._model = model
        self._clock = clock

    async def chat(self, request: Request) -> Response:
        """Answer a request in the form of chat completions."""
        return await self._openai(request, chat_completions)

    async def responses(self, request: Request) -> Response:
        """Answer a request in the form of responses."""
        return await self._openai(request, responses_api)

    async def _openai(self, request: Request, form: ModuleType) -> Response:
        created = int(self._clock.now().timestamp())
        return await self._respond(
            request,
            form.read,
            lambda read, answer: JSONResponse(form.whole(read, answer, created)),
            lambda read, answer: _events(form.stream(read, answer, created)),
        )

    async def gemini(self, request: Request) -> Response:
        """Answer a request in the form of generateContent."""
        name, _, method = request.path_params["call"].rpartition(":")
        is_sse = request.query_params.get("alt") == "sse"
        kind = "text/event-stream" if is_sse else "application/json"

        def read(body: Body) -> ConversationRequest:
            if method not in _METHODS:
                text = f"{method[:100]!r} is not supported; use {' or '.join(_METHODS)}."
                raise ModelError(text, status=501, code="not_supported")
            return gemini.read(body, name, stream=method == _METHODS[1])

        return await self._respond(
            request,
            read,
            lambda read, answer: JSONResponse(gemini.whole(read, answer)),
            lambda read, answer: _events(gemini.stream(read, answer, events=is_sse), kind),
        )

    async def _respond(
        self,
        request: Request,
        read: Callable[[Body], ConversationRequest],
        whole: Callable[[ConversationRequest, ModelAnswer], Response],
        stream: Callable[[ConversationRequest, ModelAnswer], Response],
    ) -> Response:
        try:
            body, raw = await _body(request)
            sent = read(body)
            self._model.note(sent, len(raw))
            if self._model.recording is not None:
                return await _recorded(self._model.recording, request, body, raw)
            answer = self._model.answer(sent)
            return (stream if sent.stream else whole)(sent, answer)
        except ModelError as error:
            return render_refusal(request, Refusal(error.status, error.code, str(error)))

    async def models(self, request: Request) -> Response:
        """List the models that requests may name."""
        names = self._model.names or ("scripted",)
        if _is_gemini(request):
            methods = {"supportedGenerationMethods": list(_METHODS)}
            return JSONResponse({"models": [{"name": f"models/{n}", **methods} for n in names]})
        fixed = {"object": "model", "created": 0, "owned_by": "agentdouble"}
        return JSONResponse({"object": "list", "data": [{"id": name, **fixed} for name in names]})


def _is_gemini(connection: HTTPConnection) -> bool:
    path: str = connection.scope["path"]
    return path.startswith(f"{PREFIX}/v1beta/") or ":" in path  # some clients use v1


async def _recorded(
    recording: ModelRecording, request: Request, body: Body, raw: bytes
) -> Response:
    provider, base = ("gemini", PREFIX) if _is_gemini(request) else ("openai", f"{PREFIX}/v1")
    query = f"?{request.url.query}" if request.url.query else ""
    target = request.url.path.removeprefix(base) + query
    reply = await recording.reply(provider, target, body, raw)
    return EventStreamResponse(reply.pieces, reply.status, media_type=reply.content_type)


async def _body(request: Request) -> tuple[dict[str, Any], bytes]:
    raw = await request.body()
    try:
        document = await strict_json.read(raw)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"The body is not JSON: {error}.") from None
    if not isinstance(document, dict):
        raise ModelError(f"The body must be a JSON object, not {document!r:.80}.")
    return document, raw


def _events(pieces: Iterable[bytes], media_type: str = "text/event-stream") -> Response:
    """Return a stream; make every piece first, so that errors are raised before it starts."""
    complete = list(pieces)

    async def stream() -> AsyncIterator[bytes]:
        for piece in complete:
            yield piece

    return EventStreamResponse(stream(), media_type=media_type)


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
        body, _ = await _body(request)
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
        body, _ = await _body(request)
        self._model.recording = await asyncio.to_thread(ModelRecording.read, body)
        return JSONResponse({"exchanges": len(self._model.recording.exchanges)}, 201)
