"""An HTTP API that reports the requests it gets, and its Swagger definition.

It serves as a backend of services. Every answer except those of ``failThing`` and ``removeThing``
is a JSON object with the ``number`` of the request, its ``method``, ``path`` (the decoded
segments), ``query`` (names and values), ``trace`` (the header X-Trace) and ``body``.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

FAILED = "no ü: "
_ENDS_WITHIN_S = 0.02


class Api(ThreadingHTTPServer):
    """The server. ``asked`` holds the requests it has answered."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[dict[str, Any]] = []
        self.numbers = itertools.count(1)

    @property
    def address(self) -> str:
        """The host and the port."""
        return f"{self.server_address[0]!s}:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Answers every request."""

    server: Api

    def _tell(self) -> None:
        """Report the request. A path that begins with ``failures`` names the status."""
        path = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        request: dict[str, Any] = {
            "number": next(self.server.numbers),
            "method": self.command,
            "path": [unquote(part) for part in path.path.split("/")[2:]],
            "query": parse_qs(path.query, keep_blank_values=True),
            "trace": self.headers.get("X-Trace"),
            "body": json.loads(body) if body else None,
        }
        self.server.asked.append(request)
        if request["path"][0] == "failures":
            self._answer(int(request["path"][1]), {"error": FAILED + request["path"][1]})
        elif self.command == "DELETE":
            self._answer(204, None)
        else:
            self._answer(201 if self.command == "POST" else 200, request)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _tell  # noqa: N815

    def log_message(self, *_arguments: Any) -> None:
        """Log nothing."""

    def _answer(self, status: int, document: Any) -> None:
        content = b"" if document is None else json.dumps(document, ensure_ascii=False).encode()
        self.send_response(status)
        if document is not None:
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serving() -> Iterator[Api]:
    """Serve the API in a thread, at a free port of this machine."""
    with Api() as api:
        thread = threading.Thread(target=api.serve_forever, args=(_ENDS_WITHIN_S,), daemon=True)
        thread.start()
        try:
            yield api
        finally:
            api.shutdown()
            thread.join()


def definition(address: str) -> dict[str, Any]:
    """Return the Swagger definition of the API at a host and port."""
    return {
        "swagger": "2.0",
        "info": {"title": "things", "version": "1"},
        "host": address,
        "basePath": "/v1",
        "schemes": ["http"],
        "consumes": ["application/json"],
        "produces": ["application/json"],
        "paths": {
            "/things": {"get": _FIND, "post": _operation("addThing", _BODY)},
            "/things/{thing}": {
                "put": _operation("changeThing", _path("thing"), _BODY),
                "patch": _operation("correctThing", _path("thing"), _BODY),
                "delete": _operation("removeThing", _path("thing")),
            },
            "/things/{thing}/parts/{part}": {
                "get": _operation("findPart", _path("thing"), _path("part", "integer"))
            },
            "/failures/{status}": {"get": _operation("failThing", _path("status", "integer"))},
        },
    }


def _operation(name: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    answers = {"200": {"description": "The request."}}
    return {"operationId": name, "parameters": list(parameters), "responses": answers}


def _path(name: str, kind: str = "string") -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "type": kind}


def _query(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", **fields}


def _list(kind: str, form: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": kind}, "collectionFormat": form}


_BODY = {"name": "body", "in": "body", "required": True, "schema": {"type": "object"}}
_FIND = _operation(
    "findThings",
    _query("word", type="string", required=True),
    _query("tags", **_list("string", "multi")),
    _query("sizes", **_list("integer", "csv")),
    _query("count", type="integer"),
    _query("exact", type="boolean"),
    {"name": "X-Trace", "in": "header", "type": "string"},
)
