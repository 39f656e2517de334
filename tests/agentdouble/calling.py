"""Send signed requests to a double and read its answers."""

from __future__ import annotations

import datetime as dt
import json
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import httpx

from agentdouble import Emulator
from agentdouble.core.invoke_tool import HttpRequest, RunCode, ToolAddress, build
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.surfaces.sandbox import Sandbox

T = TypeVar("T")

TIMEOUT_S = 60
PAUSE_S = 0.005  # between two looks: what is waited for needs the processor

TOKEN = "a-token-of-the-double-s-own-routes-in-tests"


def with_token(request: httpx.Request) -> None:
    """Add the token to a request to the double's own routes."""
    if request.url.path.startswith("/_emulator/"):
        request.headers.setdefault("Authorization", f"Bearer {TOKEN}")


# One client for all: each new one would read the machine's certificates first (20 ms).
http = httpx.Client(
    timeout=TIMEOUT_S,
    trust_env=False,
    verify=False,
    limits=httpx.Limits(max_keepalive_connections=0),
    event_hooks={"request": [with_token]},
)


def address(double: Emulator) -> ToolAddress:
    return ToolAddress(double.url, double.credentials)


def sessions_of(double: Emulator) -> SandboxSessions:
    """Return the sessions of a double, for details that no answer shows."""
    return double._platform.context.surface(Sandbox).sessions


def signed(double: Emulator, body: Any, *, action: str = "InvokeTool") -> HttpRequest:
    return build(body, address(double), dt.datetime.now(dt.timezone.utc), action=action)


def send(request: HttpRequest) -> httpx.Response:
    return http.request(
        request.method,
        request.url,
        headers=dict(request.headers),
        content=request.body,
    )


def act(double: Emulator, action: str, **body: Any) -> dict[str, Any]:
    """Call an action that succeeds and return its Result."""
    response = send(signed(double, body, action=action))
    assert response.status_code == 200, response.text
    result: dict[str, Any] = response.json()["Result"]
    return result


def act_on_session(double: Emulator, action: str, session_id: str, **body: Any) -> dict[str, Any]:
    """Call an action on a session of the double's tool and return its Result."""
    return act(double, action, ToolId=double.tool_id, SessionId=session_id, **body)


def refusal(double: Emulator, action: str, **body: Any) -> tuple[int, str, str]:
    """Call an action that is refused and return status, code and message."""
    error = error_of(send(signed(double, body, action=action)))
    return error["status"], error["Code"], error["Message"]


def call(double: Emulator, body: Any) -> httpx.Response:
    """Send a signed InvokeTool request with this body."""
    return send(signed(double, body))


def body_of(double: Emulator, code: str, session: str = "s1", **fields: Any) -> dict[str, Any]:
    return RunCode(double.tool_id, session, code, **fields).body()


def result(double: Emulator, code: str, session: str = "s1", **fields: Any) -> dict[str, Any]:
    """Run code in a session and return the Result of the envelope."""
    response = call(double, body_of(double, code, session, **fields))
    assert response.status_code == 200, response.text
    result: dict[str, Any] = response.json()["Result"]
    return result


def run(double: Emulator, code: str, session: str = "s1", **fields: Any) -> dict[str, Any]:
    """Run code in a session and return the JSON of section 2.7."""
    inner: dict[str, Any] = json.loads(result(double, code, session, **fields)["Result"])
    return inner


def text(double: Emulator, code: str, session: str = "s1", **fields: Any) -> str:
    """Run code that succeeds and return its stdout."""
    inner = run(double, code, session, **fields)
    assert inner["data"]["status"] == "ok", inner
    return "".join(o["text"] for o in inner["data"]["outputs"] if o["name"] == "stdout")


def text_by_id(double: Emulator, code: str, session_id: str) -> str:
    """Run code that succeeds in the session with that SessionId and return its stdout."""
    body = {**body_of(double, code), "UserSessionId": None, "SessionId": session_id}
    inner = json.loads(call(double, body).json()["Result"]["Result"])
    assert inner["data"]["status"] == "ok", inner
    return "".join(o["text"] for o in inner["data"]["outputs"] if o["name"] == "stdout")


def error_of(response: httpx.Response) -> dict[str, Any]:
    """Return the status and the error of a control-plane answer."""
    error: Mapping[str, Any] = response.json()["ResponseMetadata"]["Error"]
    return {"status": response.status_code, **error}


def background(function: Callable[[], T]) -> Future[T]:
    """Run a blocking call in a thread."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future


def eventually(read: Callable[[], T], done: Callable[[T], object]) -> T:
    """Read repeatedly until the value is acceptable, and return it."""
    until = time.monotonic() + 2 * TIMEOUT_S
    while not done(value := read()):
        assert time.monotonic() < until, value
        time.sleep(PAUSE_S)
    return value


def output(output_type: str, **fields: Any) -> dict[str, Any]:
    """Return an output with all nine keys."""
    nothing: dict[str, Any] = {
        "name": None,
        "text": None,
        "data": None,
        "metadata": {},
        "execution_count": None,
        "ename": None,
        "evalue": None,
        "traceback": None,
    }
    assert fields.keys() <= nothing.keys()
    return {"output_type": output_type, **nothing, **fields}


def has_gone(pid: int, timeout_s: float) -> bool:
    """Wait until a process has ended, even as a zombie."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()  # select() takes no descriptor above 1023
        poll.register(pidfd, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))
    finally:
        os.close(pidfd)


def pid_of(double: Emulator, code: str = "os.getpid()", session: str = "s1") -> int:
    """Return the pid on this machine of a process whose id session code prints."""
    inside = int(text(double, f"import os; print({code})", session))
    return pid_outside(inside, pids_of(double, session)[0])


def pids_of(double: Emulator, session: str = "s1") -> list[int]:
    """Return the pids on this machine of a living session's processes."""
    sessions = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    pids: list[int] = next(s["pids"] for s in sessions if s["UserSessionId"] == session)
    return pids


def pid_outside(inside: int, neighbour: int) -> int:
    """Return the pid on this machine of a process known by another namespace's pid."""
    if sys.platform != "linux":
        return inside
    namespace = Path(f"/proc/{neighbour}/ns/pid").readlink()
    if namespace == Path("/proc/self/ns/pid").readlink():
        return inside
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            status = (entry / "status").read_text() if entry.name.isdecimal() else ""
            names = status.partition("NSpid:")[2].partition("\n")[0].split()
            if names[-1:] == [str(inside)] and (entry / "ns/pid").readlink() == namespace:
                return int(entry.name)
    raise ProcessLookupError(f"no process is {inside} beside {neighbour}")


def home_of(double: Emulator, session: str) -> Path:
    """Return the directory of a living session on this machine."""
    sessions = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    return Path(next(s["home"] for s in sessions if s["UserSessionId"] == session))


def ended(double: Emulator) -> dict[str, str]:
    """Return why the sessions ended, once none is alive."""
    listed = eventually(
        lambda: http.get(f"{double.url}/_emulator/sessions").json(),
        lambda listing: not listing["sessions"],
    )
    return {session["UserSessionId"]: session["reason"] for session in listed["ended"]}


class Begun:
    """Code that has begun in a session and waits for permission to go on."""

    def __init__(self, double: Emulator, session: str, following: str, **fields: Any) -> None:
        text(double, "import os; os.mkfifo('begun'); os.mkfifo('go')", session)
        self._home = home_of(double, session)
        code = f"open('begun', 'w').close()\nopen('go').close()\n{following}"
        self.future = background(lambda: run(double, code, session, **fields))
        self._open("begun", "r")

    def go(self) -> None:
        self._open("go", "w")

    def _open(self, name: str, mode: str) -> None:
        """Open a pipe; the code opens its other side, unless it has ended."""
        background(lambda: (self._home / name).open(mode)).result(TIMEOUT_S).close()


@dataclass(frozen=True)
class DataPlane:
    """The data plane of a session, reached through its Endpoint."""

    url: str
    query: Mapping[str, str]

    def post(self, path: str, /, **body: Any) -> httpx.Response:
        return http.post(self.url + path, params=self.query, json=body)

    def get(self, path: str, /, **query: str) -> httpx.Response:
        return http.get(self.url + path, params={**self.query, **query})

    def data(self, path: str, /, **body: Any) -> Any:
        """Return the data of an operation that succeeds."""
        answer = self.post(path, **body).json()
        assert answer["success"], answer
        return answer["data"]

    def refusal(self, path: str, /, **body: Any) -> str:
        """Return the message of an operation that fails."""
        answer = self.post(path, **body).json()
        assert not answer["success"], answer
        message: str = answer["message"]
        return message

    def bash(self, command: str, session_id: str = "b", **fields: Any) -> dict[str, Any]:
        data: dict[str, Any] = self.data(
            "/v1/bash/exec", command=command, session_id=session_id, **fields
        )
        return data

    def pid_outside(self, inside: int) -> int:
        """Return the pid on this machine of a process of the session."""
        sessions = http.get(f"{self.url}/_emulator/sessions").json()["sessions"]
        own = self.query["faasInstanceName"]
        return pid_outside(inside, next(s["pids"][0] for s in sessions if s["SessionId"] == own))


def exec_bash(double: Emulator, command: str, session: str = "s1", **fields: Any) -> dict[str, Any]:
    """Run a command through InvokeTool and return the inner envelope."""
    payload = {"command": command, **fields}
    body = {
        "ToolId": double.tool_id,
        "UserSessionId": session,
        "OperationType": "ExecBash",
        "OperationPayload": json.dumps(payload),
    }
    response = call(double, body)
    assert response.status_code == 200, response.text
    envelope: dict[str, Any] = json.loads(response.json()["Result"]["Result"])
    return envelope


def data_plane(double: Emulator, session: str = "s1") -> DataPlane:
    """Return the data plane of a session, creating the session if needed."""
    request = {"ToolId": double.tool_id, "UserSessionId": session}
    response = send(signed(double, request, action="CreateSession"))
    address, _, query = response.json()["Result"]["Endpoint"].partition("/?")
    return DataPlane(address, dict(parse_qsl(query)))
