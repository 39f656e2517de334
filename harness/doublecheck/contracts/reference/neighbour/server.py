"""The neighbour of the reference application: hides a secret, and reports where it is.

It is a separate runtime in a separate folder. It has the secret in its environment,
``DOUBLECHECK_SECRET``, and in files. ``POST /invoke`` reports all of this, and with
``{"do": "forget"}`` removes the files. It needs only the standard library:
``python server.py`` serves it at ``HOST`` and ``PORT``.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SECRET = os.environ.get("DOUBLECHECK_SECRET", "nothing was hidden")


def hide() -> list[str]:
    """Write the secret to files in the working and the temporary folder; return their paths."""
    return [str(file) for file in _places() if _written(file)]


def forget() -> list[str]:
    """Remove the files."""
    for file in _places():
        with contextlib.suppress(OSError):
            file.unlink()
    return []


def _places() -> list[Path]:
    folders = (Path.cwd(), Path(tempfile.gettempdir()))
    return [folder / f"doublecheck-{SECRET[:8]}.txt" for folder in folders]


def _written(file: Path) -> bool:
    try:
        file.write_text(SECRET)
    except OSError:  # the folder may not be writable
        return False
    return True


def _start_time() -> str:
    """Return the start time of this process in clock ticks, or "" if it cannot be read."""
    try:
        return Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


class Handler(BaseHTTPRequestHandler):
    """Answers every request."""

    def do_GET(self) -> None:
        """Answer that the application is running."""
        self._answer({"status": "here"})

    def do_POST(self) -> None:
        """Return where the secret is."""
        order = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        files = forget() if order.get("do") == "forget" else hide()
        self._answer({"pid": os.getpid(), "begun": _start_time(), "secret": SECRET, "files": files})

    def _answer(self, document: dict[str, Any]) -> None:
        content = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Neighbour:
    """An application object, served like other applications."""

    def run(self, host: str, port: int) -> None:
        """Serve until the process ends."""
        ThreadingHTTPServer((host, port), Handler).serve_forever()


app = Neighbour()


if __name__ == "__main__":
    app.run(os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000")))  # noqa: S104
