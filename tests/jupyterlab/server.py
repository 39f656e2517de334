"""A real JupyterLab on loopback, with a separate folder, settings and token."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from types import MappingProxyType
from typing import IO

import psutil

START_TIMEOUT_S = 300
STOP_TIMEOUT_S = 120
EXIT_TIMEOUT_S = 20
_OPTIONS = (
    "--no-browser",
    "--allow-root",
    "--expose-app-in-browser",  # so that its commands can be awaited
    "--ServerApp.ip=127.0.0.1",
    "--ServerApp.port=0",
    "--ServerApp.terminals_enabled=False",
    "--LabApp.extension_manager=readonly",  # the other one asks a package index
    "--LabApp.news_url=",
    "--KernelManager.transport=ipc",  # a port that was free might be another's by then
)
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/")
_OWN = {
    "JUPYTER_CONFIG_DIR": "config",
    "JUPYTER_DATA_DIR": "data",
    "JUPYTER_RUNTIME_DIR": "runtime",
    "JUPYTERLAB_SETTINGS_DIR": "settings",
    "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    "IPYTHONDIR": "ipython",
}
_SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "completer-extension/manager": {"providerTimeout": 60_000},  # a busy machine takes its time
    # cells out of sight are shown too
    "notebook-extension/tracker": {"windowingMode": "none"},
}


@dataclass(frozen=True)
class Lab:
    """A server that is ready; notebooks in ``folder`` can be opened."""

    url: str
    token: str
    folder: Path

    @property
    def address(self) -> str:
        """Return its address for a browser, with an empty workspace."""
        return f"{self.url}lab?token={self.token}&reset"


@contextmanager
def serving(place: Path, variables: Mapping[str, str] = MappingProxyType({})) -> Iterator[Lab]:
    """Serve ``place/notebooks``; end the server and all its child processes afterwards.

    ``variables`` are added to its environment.
    """
    folder = place / "notebooks"
    folder.mkdir(exist_ok=True)
    _write_settings(place / "settings")
    token = secrets.token_hex(16)
    own = {name: str(place / subfolder) for name, subfolder in _OWN.items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *_OPTIONS, f"--ServerApp.root_dir={folder}"],
        env={**os.environ, **own, "JUPYTER_TOKEN": token, **variables},
        stderr=subprocess.PIPE,
        text=True,
    )
    with process, _told_by(process) as output, _ending(process):
        yield Lab(_url(output), token, folder)


def _write_settings(folder: Path) -> None:
    for name, values in _SETTINGS.items():
        file = folder / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))


@contextmanager
def _told_by(process: subprocess.Popen[str]) -> Iterator[Queue[str]]:
    """Yield a queue that receives the server's address; discard its later output."""
    assert process.stderr is not None
    lines = Queue[str]()
    thread = threading.Thread(target=_read, args=(process.stderr, lines), daemon=True)
    thread.start()
    try:
        yield lines
    finally:
        thread.join(STOP_TIMEOUT_S)  # it reads to the end: that of the server and its kernels


def _url(lines: Queue[str]) -> str:
    address = lines.get(timeout=START_TIMEOUT_S)
    if not address.startswith("http"):
        raise RuntimeError(f"JupyterLab did not start: {address}")
    return address


def _read(stream: IO[str], lines: Queue[str]) -> None:
    output = ""
    for line in stream:
        output += line
        address = _ADDRESS.search(line)
        if address is not None:
            lines.put(address[0])
    lines.put(output)  # it has ended


@contextmanager
def _ending(process: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        server = psutil.Process(process.pid) if process.poll() is None else None
        tree = server.children(recursive=True) if server else []
        process.terminate()
        try:
            process.wait(EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:  # its loop has ended, but threads of AnyIO wait for work
            process.kill()
        _, survivors = psutil.wait_procs(tree, STOP_TIMEOUT_S)
        for survivor in survivors:
            survivor.kill()
        assert [] == [process.cmdline() for process in survivors], "kernels outlived their server"
