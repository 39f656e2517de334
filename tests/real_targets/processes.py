"""Programs of other interpreters, each served on its port inside a context."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

START_WITHIN_S = 120.0


@contextlib.contextmanager
def serving(
    python: str, *arguments: str, folder: Path, environ: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield the address of a program that listens at HOST and PORT, once it does.

    ``{port}`` in an argument is the port. What it prints is told if it ends too early.
    """
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [python, "-W", "ignore", *(word.replace("{port}", str(port)) for word in arguments)],
            cwd=folder,
            env={
                **os.environ,
                **(environ or {}),
                "HOST": "127.0.0.1",
                "PORT": str(port),
                "URL": url,
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            if not _listens(process, port):
                log.seek(0)
                raise RuntimeError(f"{arguments} did not start: {log.read().decode()[-2000:]}")
            yield url
        finally:
            process.terminate()
            process.wait(timeout=60)


def version(python: str, package: str) -> str:
    """Return the version of a package in an interpreter."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    ended = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return ended.stdout.strip()


def doublecheck(*words: str) -> str:
    """Run doublecheck and return what it prints; raise RuntimeError if it prints nothing."""
    ended = subprocess.run(
        [sys.executable, "-c", "from doublecheck.cli import main; main()", *words],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if not ended.stdout:
        raise RuntimeError(f"doublecheck {' '.join(words)}: {ended.stderr[-2000:]}")
    return ended.stdout


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _listens(process: subprocess.Popen[bytes], port: int) -> bool:
    until = time.monotonic() + START_WITHIN_S
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{port}/", timeout=10, trust_env=False)
            return True
    return False
