"""Versions and malformed requests (sections 3.6, 5.4, 9.5 and 11.6 of the protocol)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.apps.a2a.protocol.bindings import VERSION, Binding, Refused, Rest
from tests.agentdouble.apps.a2a.protocol.ordinary import message
from tests.agentdouble.calling import http

WHOLE = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("hello")}


def posted(double: Emulator, content: bytes, path: str = "/", **headers: str) -> Any:
    """Post a body verbatim."""
    sent_headers = {"Content-Type": "application/json", **VERSION, **headers}
    return http.post(double.url + path, content=content, headers=sent_headers)


@pytest.mark.parametrize("version", ["1.0", "1", "1.0.7"])
def test_version_1_0_is_accepted(wire: Binding, version: str) -> None:
    """With any patch number (3.6)."""
    assert ["task"] == list(wire.call("SendMessage", message("hello"), **{"A2A-Version": version}))


@pytest.mark.parametrize("version", ["", "0.3", "0.2", "2.0", "99.0", "one", "1.0.x", "-1"])
@pytest.mark.parametrize("operation", ["SendMessage", "GetTask", "ListTasks"])
def test_other_versions_are_refused(wire: Binding, operation: str, version: str) -> None:
    """By major and minor number (3.6.2); none means 0.3, which has other operations."""
    params = message("hello") if operation == "SendMessage" else {"id": "x"}
    response = wire.call(operation, params, **{"A2A-Version": version})

    assert Refused("VERSION_NOT_SUPPORTED") == response


@pytest.mark.parametrize("body", [b"{", b"", b"hello", b"\xff\xfe", b'{"jsonrpc": "2.0"'])
def test_body_that_is_not_json_is_a_parse_error(ordinary_double: Emulator, body: bytes) -> None:
    """-32700, with no id."""
    answer = posted(ordinary_double, body)

    assert (200, "application/json") == (answer.status_code, answer.headers["content-type"])
    assert ("2.0", None, -32700) == (
        answer.json()["jsonrpc"],
        answer.json()["id"],
        answer.json()["error"]["code"],
    )


@pytest.mark.parametrize(
    "body",
    [
        None,
        3,
        "hello",
        [],
        [WHOLE],
        {},
        {**WHOLE, "jsonrpc": "1.0"},
        {**WHOLE, "jsonrpc": 2.0},
        {name: value for name, value in WHOLE.items() if name != "jsonrpc"},
        {name: value for name, value in WHOLE.items() if name != "method"},
        {**WHOLE, "method": 3},
        {**WHOLE, "method": ""},
        {**WHOLE, "method": ["SendMessage"]},
        {**WHOLE, "method": "rpc.discover"},
        {**WHOLE, "id": 1.5},
        {**WHOLE, "id": True},
        {**WHOLE, "id": {}},
        {**WHOLE, "params": 3},
        {**WHOLE, "params": "hello"},
    ],
    ids=repr,
)
def test_json_that_is_not_a_request_is_invalid(ordinary_double: Emulator, body: object) -> None:
    """-32600; nothing is done."""
    answer = posted(ordinary_double, json.dumps(body).encode())

    assert (200, -32600) == (answer.status_code, answer.json()["error"]["code"])


@pytest.mark.parametrize("id_", [7, "seven", None])
def test_unknown_method_is_not_found(ordinary_double: Emulator, id_: object) -> None:
    """-32601, with the id of the request (9.5)."""
    for method in ("Nope", "sendMessage", "message/nope", "tasks/list", "SendMessage ", "__init__"):
        body = {**WHOLE, "id": id_, "method": method}
        answer = http.post(ordinary_double.url, json=body).json()

        assert (id_, -32601) == (answer["id"], answer["error"]["code"])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/message:send"),
        ("GET", "/message:stream"),
        ("POST", "/tasks"),
        ("DELETE", "/tasks/x"),
        ("POST", "/tasks/x:nope"),
        ("GET", "/tasks/x/nope"),
    ],
)
def test_unknown_rest_operation_is_an_error(
    ordinary_double: Emulator, method: str, path: str
) -> None:
    """In the shape of every REST error (11.6)."""
    answer = http.request(method, ordinary_double.url + path, headers=VERSION)
    error = answer.json()["error"]

    assert answer.status_code in (404, 405)
    assert (answer.status_code, f"{method} {path} is not an operation of the protocol.") == (
        error["code"],
        error["message"],
    )


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("place", ["data", "metadata"])
def test_number_outside_json_is_refused(
    wire: Binding, ordinary_double: Emulator, place: str, number: str
) -> None:
    """Once stored, it could not be sent."""
    part = {"data": {"n": 77}} if place == "data" else {"text": "a", "metadata": {"n": 77}}
    params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [part]}}
    body = params if isinstance(wire, Rest) else {**WHOLE, "params": params}
    content = json.dumps(body).replace("77", number).encode()
    answer = posted(ordinary_double, content, "/message:send" if isinstance(wire, Rest) else "/")

    assert answer.json()["error"]["code"] in (-32700, 400)
    assert isinstance(wire.call("ListTasks", {}), dict)
