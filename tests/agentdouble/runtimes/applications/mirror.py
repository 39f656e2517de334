"""A server that answers with the received request; it uses the standard library alone."""

from __future__ import annotations

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Mirror(BaseHTTPRequestHandler):
    """Answer every request as ``tell`` says; give ``initialize`` an MCP session."""

    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(length)
        facts = {
            "path": self.path,
            "headers": [[name.lower(), value] for name, value in self.headers.items()],
            "body": body.decode(),
        }
        answer = json.dumps(facts).encode()
        if b'"tell"' in body:
            answer = json.loads(body)["tell"].encode()
        self.send_response(200)
        if b"initialize" in body:
            self.send_header("Mcp-Session-Id", json.loads(body)["id"])
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815

    def log_message(self, *args: object) -> None:
        """Print nothing."""


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Mirror).serve_forever()
