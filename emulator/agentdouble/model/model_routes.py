"""The routes of the model endpoint; ``admin_routes`` has those that control it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import Receive, Scope, Send

from agentdouble.core import strict_json
from agentdouble.core.clock import Clock
from agentdouble.errors import ModelError
from agentdouble.model import PREFIX, chat_completions, embeddings, gemini, responses_api
from agentdouble.model.conversation import Body, ConversationRequest, ModelAnswer
from agentdouble.model.endpoint import ModelService
from agentdouble.model.recording import ModelRecording
from agentdouble.model.vendors import render_error, vendor_of
from agentdouble.server.disconnects import EventStreamResponse
from agentdouble.server.guard import Refusal

_OPENAI = (
    "POST /v1/chat/completions, POST /v1/responses (and GET and DELETE of a response, its "
    "input_items and cancel), POST /v1/embeddings, and GET /v1/models"
)
_GEMINI = (
    f"GET /v1beta/models, and POST /v1beta/models/NAME: with {', '.join(gemini.METHODS)}; and the "
    "same below /v1 and /v1alpha, and in Vertex AI's paths below publishers/google"
)
_HINTS = {  # of an address that is nearly right
    "anthropic": "Anthropic's wire form is not built: reach the model in OpenAI's, for example by "
    "litellm with the model openai/NAME.",
    "gemini": "The base URL of Gemini's clients ends with /model, without a version.",
    "openai": "The base URL of OpenAI's clients ends with /model/v1.",
}


def render_refusal(connection: HTTPConnection, refusal: Refusal) -> Response:
    """Return a refusal of the guard or a fault as the vendor's error."""
    return render_error(connection, refusal.status, refusal.kind, refusal.message)


def endpoint_app(model: ModelService, clock: Clock) -> Router:
    """Return the application below ``/model``."""
    routes = _Endpoint(model, clock)
    served = [
        Route("/v1/chat/completions", routes.chat, methods=["POST"]),
        Route("/v1/responses", routes.responses, methods=["POST"]),
        Route("/v1/embeddings", routes.embeddings, methods=["POST"]),
        Route("/v1/responses/{id}", routes.stored_response, methods=["GET", "DELETE"]),
        Route("/v1/responses/{id}/cancel", routes.stored_response, methods=["POST"]),
        Route("/v1/responses/{id}/input_items", routes.stored_response),
        *_model_routes("", routes),
        *_model_routes("/publishers/google", routes),
        *_model_routes("/projects/{project}/locations/{location}/publishers/google", routes),
    ]
    return Router([*served, Route("/{path:path}", _NotServed(served))])


def _model_routes(parent: str, routes: _Endpoint) -> Iterator[BaseRoute]:
    """Yield the routes of models; OpenAI has those that only read in v1, Gemini all of them."""
    for version in ("v1", "v1beta", "v1alpha", "v1beta1"):
        models = f"/{version}{parent}/models"
        yield Route(models, routes.models)
        yield Route(f"{models}/{{call:path}}", routes.gemini, methods=["POST"])
        yield Route(f"{models}/{{name:path}}", routes.model)


class _NotServed:
    """What answers requests to any other route: it says which routes there are."""

    def __init__(self, served: Sequence[BaseRoute]) -> None:
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        path = request.url.path.removeprefix(PREFIX)
        vendor = vendor_of(request)
        listed = _GEMINI if vendor == "gemini" else _OPENAI
        text = f"The model has no {request.method} {path:.100}. It has {listed}. {_HINTS[vendor]}"
        inner = {**scope, "path_params": {}}
        partial = [r for r in self._served if r.matches(inner)[0] is Match.PARTIAL]
        methods = {name for route in partial for name in getattr(route, "methods", None) or ()}
        response = render_error(request, 405 if methods else 404, "not_found", text)
        if methods:
            response.headers["Allow"] = ", ".join(sorted(methods))
        await response(scope, receive, send)


class _Endpoint:
    def __init__(self, model: ModelService, clock: Clock) -> None:
        self._model = model
        self._clock = clock

    async def chat(self, request: Request) -> Response:
        """Answer a request in the form of chat completions."""
        created = self._now()
        return await self._respond(
            request,
            chat_completions.read,
            lambda read, answer: JSONResponse(chat_completions.whole(read, answer, created)),
            lambda read, answer: _events(chat_completions.stream(read, answer, created)),
        )

    async def responses(self, request: Request) -> Response:
        """Answer a request in the form of responses, and keep the response."""
        created, stored = self._now(), self._model.responses

        def keep(read: ConversationRequest, answer: ModelAnswer) -> dict[str, Any]:
            document = responses_api.whole(read, answer, created)
            stored.keep(read.body, document, int(request.headers.get("content-length", 0)))
            return responses_api.queued(document) if read.body.get("background") else document

        def stream(read: ConversationRequest, answer: ModelAnswer) -> Response:
            keep(read, answer)
            return _events(responses_api.stream(read, answer, created))

        return await self._respond(
            request,
            lambda body: responses_api.read(body, stored),
            lambda read, answer: JSONResponse(keep(read, answer)),
            stream,
        )

    async def embeddings(self, request: Request) -> Response:
        """Return the vectors of texts, in OpenAI's form."""

        def embed(body: Body) -> dict[str, Any]:
            answer = embeddings.openai(body)
            self._model.require(answer["model"])
            return answer

        return await self._compute(request, embed)

    async def stored_response(self, request: Request) -> Response:
        """Return, delete or list the input of a response that is kept."""
        name, stored = request.path_params["id"], self._model.responses
        try:
            if request.method == "DELETE":
                stored.delete(name)
                return JSONResponse({"id": name, "object": "response", "deleted": True})
            if request.url.path.endswith("/input_items"):
                return JSONResponse(stored.input_items(name, request.query_params))
            document = stored.get(name)
            if request.method == "POST":
                raise ModelError(
                    f"Response {name!r} is {document['status']}; it cannot be cancelled."
                )
            if request.query_params.get("stream") == "true":
                raise ModelError(
                    "stream is not supported here: ask for it with the response itself."
                )
            return JSONResponse(document)
        except ModelError as error:
            return _render(request, error)

    def _now(self) -> int:
        return int(self._clock.now().timestamp())

    async def gemini(self, request: Request) -> Response:
        """Answer a request in the form of generateContent."""
        name, _, method = request.path_params["call"].rpartition(":")
        is_sse = request.query_params.get("alt") == "sse"
        kind = "text/event-stream" if is_sse else "application/json"
        if method == gemini.COUNT:
            return await self._compute(request, lambda body: gemini.tokens(body, name))
        if method in embeddings.METHODS:

            def embed(body: Body) -> dict[str, Any]:
                self._model.require(name)
                return embeddings.gemini(body, method)

            return await self._compute(request, embed)

        def read(body: Body) -> ConversationRequest:
            if method not in gemini.METHODS:
                text = f"{method[:100]!r} is not supported; use {', '.join(gemini.METHODS)}."
                raise ModelError(text, status=501, code="not_supported")
            return gemini.read(body, name, stream=method == gemini.STREAM)

        return await self._respond(
            request,
            read,
            lambda read, answer: JSONResponse(gemini.whole(read, answer)),
            lambda read, answer: _events(gemini.stream(read, answer, events=is_sse), kind),
        )

    async def _compute(
        self, request: Request, compute: Callable[[Body], dict[str, Any]]
    ) -> Response:
        """Answer a request that needs no script, or from the recording."""
        try:
            body, raw = await read_body(request)
            if self._model.recording is not None:
                return await _recorded(self._model.recording, request, body, raw)
            return JSONResponse(await asyncio.to_thread(compute, body))
        except ModelError as error:
            return _render(request, error)

    async def _respond(
        self,
        request: Request,
        read: Callable[[Body], ConversationRequest],
        whole: Callable[[ConversationRequest, ModelAnswer], Response],
        stream: Callable[[ConversationRequest, ModelAnswer], Response],
    ) -> Response:
        try:
            body, raw = await read_body(request)
            recording = self._model.recording
            if recording is not None:  # the real endpoint knows fields that a script does not
                with suppress(ModelError):
                    self._model.note(read(body), len(raw))
                return await _recorded(recording, request, body, raw)
            sent = read(body)
            self._model.note(sent, len(raw))
            answer = self._model.answer(sent)
            return (stream if sent.stream else whole)(sent, answer)
        except ModelError as error:
            return _render(request, error)

    async def models(self, request: Request) -> Response:
        """List the models that requests may name."""
        names = self._model.names or ("scripted",)
        if vendor_of(request) == "gemini":
            key = "publisherModels" if "/publishers/" in request.url.path else "models"
            return JSONResponse({key: [gemini.model(name) for name in names]})
        return JSONResponse({"object": "list", "data": [chat_completions.model(n) for n in names]})

    async def model(self, request: Request) -> Response:
        """Describe one model; without names that a test set, every name is a model."""
        name = request.path_params["name"]
        try:
            self._model.require(name)
        except ModelError as error:
            return _render(request, error)
        form = gemini if vendor_of(request) == "gemini" else chat_completions
        return JSONResponse(form.model(name))


def _render(request: Request, error: ModelError) -> Response:
    return render_error(request, error.status, error.code, str(error), error.param)


async def _recorded(
    recording: ModelRecording, request: Request, body: Body, raw: bytes
) -> Response:
    provider, base = vendor_of(request), PREFIX
    if provider == "openai":
        base = f"{PREFIX}/v1"
    query = f"?{request.url.query}" if request.url.query else ""
    target = request.url.path.removeprefix(base) + query
    reply = await recording.reply(provider, target, body, raw)
    return EventStreamResponse(reply.pieces, reply.status, media_type=reply.content_type)


async def read_body(request: Request) -> tuple[dict[str, Any], bytes]:
    """Return the object of JSON in a request, and its bytes. Raise ModelError for another body."""
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
