"""Measure what requests pass through, and what users meet: ``python .ci/measure.py``.

A request's way is the functions and files of the double that are entered while it answers a request
that it has answered before. The caps are in ``house.toml``; the check fails above one.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx
import tomllib
from typer.main import get_command

from agentdouble import Emulator, Settings
from agentdouble.cli.app import app as agentdouble_app
from agentdouble.core.invoke_tool import Address, RunCode, build
from doublecheck.cli import app as doublecheck_app

ROOT = Path(__file__).parents[1]
REPEATED = 10
RECORDER = """
import atexit, os, sys, threading
entered = set()
def profile(frame, event, arg):
    if event == "call" and frame.f_code.co_name[0] != "<":
        entered.add(frame.f_code.co_filename)
threading.setprofile(profile)
sys.setprofile(profile)
@atexit.register
def write():
    sys.setprofile(None)
    with open(os.path.join(os.environ["MEASURED"], str(os.getpid())), "w") as file:
        file.write("\\n".join(list(entered)))
"""


class Recorder:
    """Record the project's functions that are entered in threads that start later."""

    def __init__(self) -> None:
        self.recording = False
        self.entered: set[CodeType] = set()
        threading.setprofile(self._profile)

    def _profile(self, frame: FrameType, event: str, _arg: object) -> None:
        if self.recording and event == "call" and frame.f_code.co_name[0] != "<":
            self.entered.add(frame.f_code)

    def way(self, http: httpx.Client, make: Callable[[], httpx.Request]) -> tuple[int, int]:
        """Return how many functions and files of the double a repeated request enters.

        The least of some requests counts, because work in the background is sometimes due.
        """
        double = str(ROOT / "emulator")
        ways = []
        for request in [make() for _ in range(REPEATED)]:
            self.entered.clear()
            self.recording = True
            http.send(request).raise_for_status()
            self.recording = False
            own = {code for code in self.entered if code.co_filename.startswith(double)}
            ways.append((len(own), len({code.co_filename for code in own})))
        return min(ways)


def main() -> int:
    """Print each measure with its cap; return 1 if one is above it."""
    caps = tomllib.loads((ROOT / "house.toml").read_text("utf-8"))["measures"]
    above = 0
    for name, value in measures().items():
        above += value > caps[name]
        print(f"{name:42}{value:7} of {caps[name]:6}{'  too many' * (value > caps[name])}")
    if above:
        print("Remove as many elsewhere, or raise the cap in house.toml and say why in the commit.")
    return int(above > 0)


def measures() -> dict[str, int]:
    """Return the measures by name."""
    recorder = Recorder()
    with Emulator() as double, httpx.Client(base_url=double.url) as http:
        (app, *_) = http.get("/list-apps").raise_for_status().json()
        session = http.post(f"/apps/{app}/users/u/sessions", json={}).raise_for_status().json()
        invoke = recorder.way(http, lambda: invoke_tool(double, http))
        run = recorder.way(http, lambda: run_sse(http, session))
        surfaces = double._platform.context.surfaces
        routes = [route for surface in surfaces for route in surface.admin_routes()]
    return {
        "functions of a warm InvokeTool": invoke[0],
        "files of a warm InvokeTool": invoke[1],
        "files of /run_sse": run[1],
        "files of doublecheck run -k PRB-01": one_check(),
        "settings": len(Settings.model_fields),
        "commands": sum(
            len(commands(get_command(app))) for app in (agentdouble_app, doublecheck_app)
        ),
        "routes below /_emulator": len(routes),
        "exception classes": sum(exceptions(ROOT / room) for room in ("emulator", "harness")),
    }


def invoke_tool(double: Emulator, http: httpx.Client) -> httpx.Request:
    """Return a signed request that runs code in a session."""
    address, now = Address(double.url, double.credentials), dt.datetime.now(dt.timezone.utc)
    request = build(RunCode(double.tool_id, "ways", "1 + 1").body(), address, now)
    return http.build_request(
        request.method, request.url, headers=request.headers, content=request.body
    )


def run_sse(http: httpx.Client, session: dict[str, Any]) -> httpx.Request:
    """Return a request that runs the shipped agent, which finds no code to run."""
    body = {
        "appName": session["appName"],
        "userId": session["userId"],
        "sessionId": session["id"],
        "newMessage": {"role": "user", "parts": [{"text": " "}]},
    }
    return http.build_request("POST", "/run_sse", json=body)


def one_check() -> int:
    """Return how many files of the project one contract check enters."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(RECORDER, "utf-8")
        command = [sys.executable, "-m", "doublecheck", "run", "-k", "PRB-01"]
        environment = {**os.environ, "PYTHONPATH": folder, "MEASURED": folder}
        subprocess.run(command, check=True, cwd=folder, env=environment, capture_output=True)
        entered = {
            line
            for record in Path(folder).iterdir()
            if record.name.isdigit()
            for line in record.read_text("utf-8").splitlines()
        }
    rooms = (str(ROOT / "emulator"), str(ROOT / "harness"))
    return sum(name.startswith(rooms) for name in entered)


def commands(command: Any) -> list[str]:
    """Return the names of the commands that do something, below groups as well."""
    if not hasattr(command, "commands"):
        return [command.name]
    return [name for inner in command.commands.values() for name in commands(inner)]


def exceptions(room: Path) -> int:
    """Return how many exception classes a room defines."""
    sources = (path.read_text("utf-8") for path in room.rglob("*.py"))
    return sum(
        len(re.findall(r"^class \w+(?:Error|Exception|Warning)\b", s, re.M)) for s in sources
    )


if __name__ == "__main__":
    sys.exit(main())
