"""A real HTTP API for the tools to call: it echoes requests, and misbehaves on request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio.lowlevel
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

PNG = b"\x89PNG\r\n\x1a\n\x00"
METHODS = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"]


async def echo(request: Request) -> Response:
    """Answer with the request as received."""
    target = request.scope["raw_path"].decode()
    if request.scope["query_string"]:
        target += "?" + request.scope["query_string"].decode()
    received = {"method": request.method, "target": target, "headers": dict(request.headers)}
    return JSONResponse({**received, **await _body(request)})


async def _body(request: Request) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0]
    if kind == "multipart/form-data":
        async with request.form() as form:
            return {"parts": [[name, await _part(value)] for name, value in form.multi_items()]}
    body = await request.body()
    if kind.endswith("json") and body:
        return {"json": json.loads(body)}
    return {"body": body.decode("latin-1")}


async def _part(part: UploadFile | str) -> Any:
    if isinstance(part, str):
        return part
    content = (await part.read()).decode("latin-1")
    return [part.filename, part.content_type, content]


async def refuse(request: Request) -> Response:
    """Answer with the status of the path and the body of the query."""
    status = int(request.path_params["status"])
    return PlainTextResponse(request.query_params.get("body", ""), status)


async def typed(request: Request) -> Response:
    """Answer with the requested body and media type."""
    query = request.query_params
    content = bytes.fromhex(query["hex"]) if "hex" in query else query.get("text", "").encode()
    answer = Response(content * int(query.get("times", "1")))
    if "type" in query:
        answer.headers["content-type"] = query["type"]
    return answer


async def login(_request: Request) -> Response:
    answer = Response()
    answer.set_cookie("session", "of this caller")
    return answer


async def redirect(request: Request) -> Response:
    return RedirectResponse(request.query_params["to"], int(request.query_params["status"]))


async def hang(request: Request) -> Response:
    """Answer only after the caller has given up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return Response()


async def endless(_request: Request) -> Response:
    async def stream() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65536
            await anyio.lowlevel.checkpoint()  # else nobody hears that the client has gone

    return StreamingResponse(stream(), media_type="text/plain")


async def who(request: Request) -> Response:
    """Answer with an error that quotes the headers and the query."""
    received = {**request.headers, "query": request.url.query}
    return PlainTextResponse(json.dumps(received), 401)


def app() -> Starlette:
    return Starlette(
        routes=[
            Route("/refuse/{status}", refuse),
            Route("/typed", typed),
            Route("/login", login),
            Route("/redirect", redirect, methods=["GET", "POST"]),
            Route("/hang", hang),
            Route("/endless", endless),
            Route("/who", who),
            Route("/{rest:path}", echo, methods=METHODS),
        ]
    )
