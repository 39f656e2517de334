"""What is asked of a double that has just come up: one request for each way in."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import httpx

from agentdouble import invoke_tool
from agentdouble.signing import Credentials
from tests.agentdouble import mcp_wire

KEYS = Credentials("AKLTstress", "a-secret-of-forty-characters-for-signing")
TOOL = "t-sandbox"
ANSWER = "6042"
SUM = "6000 + 42"
SERVICE = "first"
APPLICATION, DECLARED, AGENT = "second", "declared", "mine"


@dataclass(frozen=True)
class Call:
    """A request, and what the answer has if it is right."""

    request: httpx.Request
    expected: str = ANSWER

    def fault(self, answer: httpx.Response) -> str | None:
        """Return what is wrong with an answer, if anything is."""
        if answer.status_code == 200 and self.expected in answer.text:
            return None
        return f"{self.request.url}: {answer.status_code} {answer.text[:400]}"


@dataclass
class Fresh:
    """A double that has answered nothing but the requests that make what is to be called."""

    url: str
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _service_key: str | None = None

    def control(self, action: str, **body: Any) -> httpx.Request:
        """Return a signed request for an action."""
        now = dt.datetime.now(dt.timezone.utc)
        made = invoke_tool.build(body, invoke_tool.Address(self.url, KEYS), now, action=action)
        return httpx.Request(made.method, made.url, headers=dict(made.headers), content=made.body)

    def act(self, action: str, **body: Any) -> dict[str, Any]:
        """Ask for an action that succeeds and return its Result."""
        answer = mcp_wire.http.send(self.control(action, **body))
        found: dict[str, Any] = answer.json()["Result"]
        return found

    def run(self, language: str) -> Call:
        code = SUM if language == "python3" else f"console.log({SUM})"
        payload = json.dumps({"code": code, "kernel_name": language})
        return Call(self._operation("RunCode", payload))

    def exec_bash(self) -> Call:
        return Call(self._operation("ExecBash", json.dumps({"command": f"echo $(({SUM}))"})))

    def invoke(self, path: str = "/invoke") -> Call:
        headers = {"user_id": "u", "session_id": self._new()}
        return self._post(path, {"prompt": SUM}, headers)

    def agent(self, path: str, app: str = "coder") -> Call:
        """A message to an agent, in a session that is made before."""
        session = self._new()
        made = mcp_wire.http.post(f"{self.url}/apps/{app}/users/u/sessions/{session}", json={})
        assert made.status_code == 200, made.text
        said = {"role": "user", "parts": [{"text": SUM}]}
        whose = {"appName": app, "userId": "u", "sessionId": session}
        return self._post(path, {**whose, "newMessage": said})

    def data(self, path: str, *, has: str = ANSWER, **body: Any) -> Call:
        """A request to the data plane of a session that is made before."""
        made = self.act("CreateSession", ToolId=TOOL, UserSessionId=self._new())
        address, _, query = made["Endpoint"].partition("/?")
        asked = httpx.Request("POST", address + path, params=parse_qsl(query), json=body)
        return Call(asked, has)

    def mcp(self, path: str = "/mcp", key: str | None = None) -> Call:
        asked = mcp_wire.modern("coder", {"prompt": SUM})
        sent = {**mcp_wire.modern_headers(key, "coder"), "user_id": "u", "session_id": self._new()}
        return self._post(path, asked, sent)

    def service(self) -> Call:
        """A call through a service in front of the double's own ``/mcp``."""
        if self._service_key is None:
            self._service_key = self._make_service()
        return self.mcp(f"/mcp/{SERVICE}", self._service_key)

    def a2a(self) -> Call:
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": self._message()}
        return self._post("/", body, {"A2A-Version": "1.0"})

    def a2a_rest(self) -> Call:
        return self._post("/message:send", self._message(), {"A2A-Version": "1.0"})

    def _make_service(self) -> str:
        url = httpx.URL(self.url)
        where = {"Domain": url.host, "Port": url.port, "ProtocolType": "http"}
        made = self.act(
            "CreateMCPService",
            Name=SERVICE,
            Path="/mcp",
            ProtocolType="MCP",
            BackendType="Custom",
            BackendConfiguration={"CustomConfiguration": where},
        )
        shown = self.act("GetMCPService", MCPServiceId=made["MCPServiceId"])["MCPService"]
        inbound = shown["InboundAuthorizerConfiguration"]["Authorizer"]
        key: str = inbound["KeyAuth"]["ApiKeys"][0]["Key"]
        return key

    def _operation(self, operation: str, payload: str) -> httpx.Request:
        return self.control(
            "InvokeTool",
            ToolId=TOOL,
            UserSessionId=self._new(),
            OperationType=operation,
            OperationPayload=payload,
        )

    def _message(self) -> dict[str, Any]:
        said = {"messageId": self._new(), "role": "ROLE_USER", "parts": [{"text": SUM}]}
        return {"message": said}

    def _post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Call:
        return Call(httpx.Request("POST", self.url + path, json=body, headers=dict(headers or {})))

    def _new(self) -> str:
        return f"n{next(self._numbers)}"


WAYS_IN: Mapping[str, Callable[[Fresh], Call]] = {
    "Python": lambda double: double.run("python3"),
    "JavaScript": lambda double: double.run("javascript"),
    "TypeScript": lambda double: double.run("typescript"),
    "bash": lambda double: double.exec_bash(),
    "/invoke": lambda double: double.invoke(),
    "/run": lambda double: double.agent("/run"),
    "/run_sse": lambda double: double.agent("/run_sse"),
    "/run, an agent of one's own": lambda double: double.agent("/run", AGENT),
    "/v1/jupyter": lambda double: double.data("/v1/jupyter/execute", code=SUM),
    "/v1/code": lambda double: double.data("/v1/code/execute", code=SUM, language="python"),
    "/v1/bash": lambda double: double.data("/v1/bash/exec", command=f"echo $(({SUM}))"),
    "/v1/shell": lambda double: double.data("/v1/shell/exec", command=f"echo $(({SUM}))"),
    "/v1/file": lambda double: double.data(
        "/v1/file/write", file="/tmp/f", content="", has='"success":true'
    ),
    "/mcp": lambda double: double.mcp(),
    "a service": lambda double: double.service(),
    "A2A": lambda double: double.a2a(),
    "A2A by REST": lambda double: double.a2a_rest(),
    "a second application": lambda double: double.invoke(f"/runtimes/{APPLICATION}/invoke"),
    "a runtime": lambda double: double.invoke(f"/runtimes/{DECLARED}/invoke"),
}
