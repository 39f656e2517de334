"""Servers with one surface of a platform or none; each answers only its own paths."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

from tests.ports import handled

NO_METHOD = {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "no such method"}}
NO_TASK = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "no such task"}}
TOOL = {"name": "add", "description": "Add.", "inputSchema": {"type": "object"}}
CARD = {"name": "a", "description": "b", "version": "1", "skills": [{}], "url": "http://a"}

Answer = tuple[int, Any]
Answers = Callable[[str, str, bytes], Answer]


@dataclass
class Server:
    """A server's URL and the requests it received."""

    url: str
    requests: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def serving(answers: Answers) -> Iterator[Server]:
    """Serve on this machine until the context ends."""
    server: Server

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length") or 0))
            server.requests.append((self.command, self.path))
            status, body = answers(self.command, urlsplit(self.path).path, content)
            sent = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            kind = "text/html" if isinstance(body, str) and body[:1] == "<" else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_POST = do_DELETE = do_GET  # noqa: N815 (http.server's names)

    with handled(Handler) as url:
        server = Server(url)
        yield server


def of(routes: Mapping[tuple[str, str], Answer]) -> Answers:
    """Answer these routes; other methods get 405 and other paths 404."""

    def answers(method: str, path: str, _: bytes) -> Answer:
        if (method, path) in routes:
            return routes[method, path]
        is_known = path in {route for _, route in routes}
        return (405, {"detail": "no"}) if is_known else (404, {"detail": "no"})

    return answers


APPLICATION = of(
    {
        **{("GET", f"/{key}"): (200, "ok") for key in ("ping", "health", "readiness", "liveness")},
        ("POST", "/invoke"): (400, {"error": "not JSON"}),
    }
)


def api_server(method: str, path: str, _: bytes) -> Answer:
    """Answer as an API server with a health page."""
    fixed = {"/list-apps": ["a"], "/health": {"status": "ok"}, "/version": {"version": "1.0"}}
    if method == "GET" and path in fixed:
        return 200, fixed[path]
    return (200, []) if path.endswith("/sessions") else (404, {"detail": "Not Found"})


def mcp(method: str, path: str, content: bytes) -> Answer:
    """Answer as an MCP server without a key."""
    if path != "/mcp":
        return 404, {"detail": "Not Found"}
    if method != "POST":
        return 405, {"detail": "Method Not Allowed"}
    message = json.loads(content)
    results = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}},
        "tools/list": {"tools": [TOOL]},
    }
    if message["method"] in results:
        result = results[message["method"]]
        return 200, {"jsonrpc": "2.0", "id": message["id"], "result": result}
    return (202, None) if "id" not in message else (200, NO_METHOD)


def a2a(method: str, path: str, content: bytes) -> Answer:
    """Answer as an A2A application of version 0.3."""
    if (method, path) == ("GET", "/.well-known/agent-card.json"):
        return 200, CARD
    if (method, path) != ("POST", "/"):
        return 404, {"detail": "Not Found"}
    called = json.loads(content).get("method") if content != b"{}" else None
    return 200, NO_TASK if called == "tasks/get" else NO_METHOD


def json_rpc(*_: object) -> Answer:
    """Answer every path as a server of another JSON-RPC protocol."""
    return 200, NO_METHOD


def web_site(method: str, path: str, _: bytes) -> Answer:
    """Answer as a static web server."""
    if method != "GET":
        return 501, "<html>Unsupported method</html>"
    return (200, "<html>Welcome</html>") if path == "/" else (404, "<html>Not Found</html>")


def failing(*_: object) -> Answer:
    """Answer with errors only."""
    return 503, {"detail": "Service Unavailable"}


def closed(*_: object) -> Answer:
    """Refuse every request for missing credentials."""
    return 401, {"detail": "Unauthorized"}
