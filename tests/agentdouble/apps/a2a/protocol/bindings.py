"""The protocol's two bindings as raw requests, with results and errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Union

import httpx

from tests.agentdouble.calling import http

VERSION = {"A2A-Version": "1.0"}
DOMAIN = "a2a-protocol.org"
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"

# reason: JSON-RPC code, HTTP status, canonical status (section 5.4)
ERRORS = {
    "TASK_NOT_FOUND": (-32001, 404, "NOT_FOUND"),
    "TASK_NOT_CANCELABLE": (-32002, 400, "FAILED_PRECONDITION"),
    "PUSH_NOTIFICATION_NOT_SUPPORTED": (-32003, 400, "FAILED_PRECONDITION"),
    "UNSUPPORTED_OPERATION": (-32004, 400, "FAILED_PRECONDITION"),
    "CONTENT_TYPE_NOT_SUPPORTED": (-32005, 400, "INVALID_ARGUMENT"),
    "INVALID_AGENT_RESPONSE": (-32006, 500, "INTERNAL"),
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": (-32007, 400, "FAILED_PRECONDITION"),
    "EXTENSION_SUPPORT_REQUIRED": (-32008, 400, "FAILED_PRECONDITION"),
    "VERSION_NOT_SUPPORTED": (-32009, 400, "FAILED_PRECONDITION"),
    "INVALID_PARAMS": (-32602, 400, "INVALID_ARGUMENT"),
    "INVALID_REQUEST": (-32600, 400, "INVALID_ARGUMENT"),
    "INTERNAL_ERROR": (-32603, 500, "INTERNAL"),
}


@dataclass(frozen=True)
class Refused:
    """An error; only its reason is compared, codes are checked where it is parsed."""

    reason: str
    message: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refused) and self.reason == other.reason

    __hash__ = None  # type: ignore[assignment]


Answer = Union[dict[str, Any], Refused]  # noqa: UP007 (evaluated, also on Python 3.10)


class Binding(Protocol):
    """Calls operations by the names of the protocol's section 3."""

    def call(self, operation: str, params: Mapping[str, Any], **headers: str) -> Answer: ...

    def stream(self, operation: str, params: Mapping[str, Any]) -> Any: ...


class JsonRpc:
    """JSON-RPC 2.0 (section 9)."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(self, operation: str, params: Mapping[str, Any], **headers: str) -> Answer:
        """Return the result, or the error."""
        answer = http.post(
            self.url, json=self._request(operation, params), headers={**VERSION, **headers}
        )
        return self._read(answer)

    @contextmanager
    def stream(self, operation: str, params: Mapping[str, Any]) -> Iterator[Iterator[Answer]]:
        """Open a stream and yield its events."""
        body = self._request(operation, params)
        with http.stream("POST", self.url, json=body, headers=VERSION) as answer:
            if not answer.headers["content-type"].startswith("text/event-stream"):
                answer.read()
                yield iter([self._read(answer)])
            else:
                yield (self._result(json.loads(data)) for data in _data(answer))

    def _request(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": f"id-{operation}", "method": operation, "params": params}

    def _read(self, answer: httpx.Response) -> Answer:
        assert 200 == answer.status_code, answer.text
        assert "application/json" == answer.headers["content-type"]
        return self._result(answer.json())

    def _result(self, envelope: dict[str, Any]) -> Answer:
        assert "2.0" == envelope.pop("jsonrpc")
        assert str(envelope.pop("id")).startswith("id-")
        ((kind, value),) = envelope.items()
        if kind == "result":
            return value or {}
        assert {"code", "message", "data"} == set(value)
        reason = _reason(value["data"])
        assert ERRORS[reason][0] == value["code"]
        return Refused(reason, value["message"])


class Rest:
    """HTTP+JSON (section 11)."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(self, operation: str, params: Mapping[str, Any], **headers: str) -> Answer:
        """Return the response's body, or the error."""
        answer = http.send(self._request(operation, params, headers))
        return self._read(answer)

    @contextmanager
    def stream(self, operation: str, params: Mapping[str, Any]) -> Iterator[Iterator[Answer]]:
        """Open a stream and yield its events."""
        answer = http.send(self._request(operation, params, {}), stream=True)
        try:
            if not answer.headers["content-type"].startswith("text/event-stream"):
                answer.read()
                yield iter([self._read(answer)])
            else:
                yield (self._event(json.loads(data)) for data in _data(answer))
        finally:
            answer.close()

    def _request(
        self, operation: str, params: Mapping[str, Any], headers: Mapping[str, str]
    ) -> httpx.Request:
        arguments = dict(params)
        method, path = _PLACES[operation]
        ids = {name: arguments.pop(name) for name in ("taskId", "id") if f"{{{name}}}" in path}
        return http.build_request(
            method,
            self.url + path.format(**ids),
            headers={**VERSION, **headers},
            **({"json": arguments} if method == "POST" else {"params": arguments}),  # type: ignore[arg-type]
        )

    def _read(self, answer: httpx.Response) -> Answer:
        body: dict[str, Any] = answer.json()
        if answer.status_code == 200:
            assert "application/a2a+json" == answer.headers["content-type"]
            return body
        assert "application/json" == answer.headers["content-type"]
        assert answer.status_code == body["error"]["code"]
        return self._event(body)

    def _event(self, body: dict[str, Any]) -> Answer:
        if "error" not in body:
            return body
        error = body["error"]
        assert {"code", "status", "message", "details"} == set(error)
        reason = _reason(error["details"])
        assert ERRORS[reason][1:] == (error["code"], error["status"])
        return Refused(reason, error["message"])


_PLACES = {
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "GetTask": ("GET", "/tasks/{id}"),
    "ListTasks": ("GET", "/tasks"),
    "CancelTask": ("POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": ("POST", "/tasks/{id}:subscribe"),
    "CreateTaskPushNotificationConfig": ("POST", "/tasks/{taskId}/pushNotificationConfigs"),
    "GetTaskPushNotificationConfig": ("GET", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "ListTaskPushNotificationConfigs": ("GET", "/tasks/{taskId}/pushNotificationConfigs"),
    "DeleteTaskPushNotificationConfig": (
        "DELETE",
        "/tasks/{taskId}/pushNotificationConfigs/{id}",
    ),
    "GetExtendedAgentCard": ("GET", "/extendedAgentCard"),
}


def _reason(details: list[dict[str, Any]]) -> str:
    (info,) = (detail for detail in details if detail["@type"] == ERROR_INFO)
    assert DOMAIN == info["domain"]
    return str(info["reason"])


def _data(answer: httpx.Response) -> Iterator[str]:
    for line in answer.iter_lines():
        if line.startswith("data: "):
            yield line.removeprefix("data: ")
