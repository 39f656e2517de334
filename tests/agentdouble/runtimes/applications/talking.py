"""A server of the standard library that prints on request and echoes headers.

``POST /`` executes the body, ``GET /`` returns the request's headers.
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # head and body in one write: two would wait for each other

    def do_GET(self) -> None:
        status = int(self.headers.get("status", "200"))
        self._answer(status, json.dumps(dict(self.headers)).encode())

    def do_POST(self) -> None:
        exec(self.rfile.read(int(self.headers["content-length"])), {"os": os, "sys": sys})
        self._answer(200, b"done")

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
