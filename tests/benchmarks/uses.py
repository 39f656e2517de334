"""What users do with a double, each in a few requests: clients that end, and clients that leave."""

from __future__ import annotations

import contextlib
import itertools
import json
from http.client import HTTPConnection, HTTPMessage
from typing import Any
from urllib.parse import urlsplit

from websockets.sync.client import connect

from tests.agentdouble import mcp_wire
from tests.agentdouble.jupyter.notebook_client import V1, Notebook
from tests.benchmarks.conftest import Caller
from tests.benchmarks.served import Served

USERS = 50
JSON = {"Content-Type": "application/json"}
A2A = {**JSON, "A2A-Version": "1.0"}
MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
NEW_MESSAGE = {"role": "user", "parts": [{"text": "hello"}]}
ADD = {"a": 1, "b": 2}
_numbers = itertools.count()


class User:
    """A caller of a double over a connection that lasts; ``key`` is that of its MCP service."""

    def __init__(self, double: Served, key: str = "") -> None:
        self.double, self.key = double, key
        self.kernel = ""  # a kernel of Jupyter, once it is made
        self.caller = Caller(double)
        self._lasting = self.connection()

    def connection(self) -> HTTPConnection:
        return HTTPConnection(urlsplit(self.double.url).netloc, timeout=60)

    def post(self, path: str, body: Any, headers: dict[str, str] = JSON) -> bytes:
        return self.ask("POST", path, body, headers)[1]

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] = JSON,
        over: HTTPConnection | None = None,
    ) -> tuple[HTTPMessage, bytes]:
        connection = over or self._lasting
        content = None if body is None else json.dumps(body).encode()
        connection.request(method, path, content, headers)
        answer = connection.getresponse()
        read = answer.read()
        assert answer.status < 300, (method, path, answer.status, read)
        return answer.headers, read

    def cut(self, method: str, path: str, body: Any, headers: dict[str, str]) -> None:
        """Send a request over a connection of its own, and leave when the answer begins."""
        with contextlib.closing(self.connection()) as own:
            content = None if body is None else json.dumps(body).encode()
            own.request(method, path, content, headers)
            answer = own.getresponse()
            assert answer.status == 200, (method, path, answer.status)
            answer.close()

    def close(self) -> None:
        self._lasting.close()
        self.caller.close()


def mcp_client(user: User, path: str, *, ends: bool) -> None:
    """Open a session over a connection of its own, call a tool, and end the session or leave."""
    with contextlib.closing(user.connection()) as own:

        def send(message: Any, session: str | None = None) -> tuple[HTTPMessage, bytes]:
            headers = mcp_wire.headers(user.key or None, session)
            return user.ask("POST", path, message, headers, own)

        session = send(mcp_wire.INITIALIZE)[0]["mcp-session-id"]
        send({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
        call = mcp_wire.message("tools/call", {"name": "add", "arguments": ADD})
        assert b'"result":3' in send(call, session)[1]
        headers = mcp_wire.headers(user.key or None, session)
        if ends:
            user.ask("DELETE", path, None, headers, own)
        else:
            user.cut("GET", path, None, headers)  # it listens to its session until it leaves


def mcp_call(user: User) -> None:
    """Call a tool with the protocol version that has no sessions."""
    call, headers = mcp_wire.modern("add", ADD), mcp_wire.modern_headers(None, "add")
    assert b'"result":3' in user.post("/mcp", call, headers)


def a2a_task(user: User) -> None:
    """Send a message and get the completed task."""
    call = mcp_wire.message("SendMessage", {"message": MESSAGE})
    assert b"TASK_STATE_COMPLETED" in user.post("/", call, A2A)


def a2a_stream(user: User) -> None:
    """Send a message, and leave before its task is completed."""
    user.cut("POST", "/", mcp_wire.message("SendStreamingMessage", {"message": MESSAGE}), A2A)


def agent_stream(user: User) -> None:
    """Create a session, leave while the agent answers, and delete the session."""
    at = "/apps/streamer/users/ann/sessions"
    session = json.loads(user.post(at, {}))["id"]
    names = {"appName": "streamer", "userId": "ann", "sessionId": session, "streaming": True}
    user.cut("POST", "/run_sse", {**names, "newMessage": NEW_MESSAGE}, JSON)
    user.ask("DELETE", f"{at}/{session}")


def notebook(user: User) -> None:
    """Connect to the same kernel as before as a new client, run a cell, and leave."""
    key = {"Authorization": f"token {user.double.token}"}
    if not user.kernel:
        made = user.post("/jupyter/api/kernels", {"name": "python3"}, {**JSON, **key})
        user.kernel = json.loads(made)["id"]
    url = user.double.url.replace("http", "ws", 1)
    channels = f"{url}/jupyter/api/kernels/{user.kernel}/channels?session_id={next(_numbers)}"
    with connect(channels, additional_headers=key, subprotocols=[V1], proxy=None) as socket:  # type: ignore[list-item]
        assert Notebook(socket).text("print(1)") == "1\n"


def agent_session(user: User, *, runs: int, ends: bool) -> None:
    """Create a session, let the agent answer some times, and delete the session or leave it."""
    user_id = f"u{next(_numbers) % USERS}"
    at = f"/apps/echo/users/{user_id}/sessions"
    session = json.loads(user.post(at, {}))["id"]
    names = {"appName": "echo", "userId": user_id, "sessionId": session}
    for _ in range(runs):
        assert b"hello" in user.post("/run", {**names, "newMessage": NEW_MESSAGE})
    if ends:
        user.ask("DELETE", f"{at}/{session}")


def code(user: User) -> None:
    """Run code in the same session as before."""
    user.caller.run("1 + 1", "warm")


def sandbox(user: User) -> None:
    """Run code in a new session, and destroy it."""
    session = user.double.platform.sandbox(session_id=f"s{next(_numbers)}")
    session.run("1 + 1", check=True)
    session.destroy()
