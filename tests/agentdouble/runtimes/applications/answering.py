"""A program for runtimes: it echoes each request, or does what the path says."""

from __future__ import annotations

import json
import os
import queue
import secrets
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PROCESS = secrets.randbits(32)  # pids are of each instance's own counting
notes: queue.Queue[str] = queue.Queue()  # what happened without an answer that says so


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        path = urlsplit(self.path).path
        getattr(self, "on_" + path.strip("/").replace("-", "_"), self.on_anything)()

    do_GET = do_POST = do_HEAD = respond  # noqa: N815

    def say(self, raw: bytes) -> None:
        self.wfile.write(raw)
        self.wfile.flush()

    def answer(self, body: bytes, *headers: tuple[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def pieces(self) -> Iterator[bytes]:
        """Yield the request's body in its pieces."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            yield self.rfile.read(int(self.headers.get("Content-Length", 0)))
            return
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def on_told(self) -> None:
        """Return the next recorded event."""
        self.answer(notes.get(timeout=30).encode())

    def on_anything(self) -> None:
        body = b"".join(self.pieces())
        facts = {
            "line": self.requestline,
            "headers": [[name.lower(), value] for name, value in self.headers.items()],
            "body": body.decode("latin-1"),
            "process": PROCESS,
            "port": self.client_address[1],
        }
        self.answer(json.dumps(facts).encode(), ("Content-Type", "application/json"))

    def on_count(self) -> None:
        """Read a body of any length and return its length."""
        self.answer(b"%d" % sum(map(len, self.pieces())))

    def on_echo(self) -> None:
        """Echo each piece before the next arrives."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in self.pieces():
            self.say(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.say(b"0\r\n\r\n")

    def on_event(self) -> None:
        """Send one event, then nothing until the caller disconnects."""
        self.say(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n")
        self.wait_for_the_end()

    def on_silent(self) -> None:
        notes.put("begun")
        self.wait_for_the_end()

    def wait_for_the_end(self) -> None:
        self.close_connection = True
        self.rfile.read(1)
        notes.put("gone")

    def on_headers(self) -> None:
        self.answer(
            b"hi",
            *(("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("X-Own", "kept")),
            *(("Connection", "keep-alive, X-Hop"), ("X-Hop", "1"), ("Keep-Alive", "timeout=5")),
        )

    def on_empty(self) -> None:
        self.say(b"HTTP/1.1 204 No Content\r\nx-own: kept\r\n\r\n")

    def on_unchanged(self) -> None:
        self.say(b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\netag: x\r\n\r\n")

    def on_redirect(self) -> None:
        to = self.headers["X-To"]
        self.answer(b"", ("Location", to), status=307)

    def on_large_head(self) -> None:
        self.say(b"HTTP/1.1 200 OK\r\n" + b"x-large: %b\r\n" % (b"x" * 1000) * 1000)
        self.say(b"content-length: 0\r\n\r\n")

    def on_nonsense(self) -> None:
        self.say(b"what?\r\n\r\n")
        self.close_connection = True

    def on_strange_status(self) -> None:
        self.answer(b"", status=999)

    def on_drop(self) -> None:
        self.close_connection = True

    def on_half(self) -> None:
        self.say(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
        self.close_connection = True

    def on_half_chunked(self) -> None:
        self.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n")
        self.close_connection = True

    def on_die(self) -> None:
        os._exit(1)

    def on_die_amid(self) -> None:
        self.say(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
        os._exit(1)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def handle_error(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
