from __future__ import annotations

import datetime as dt
import json

import pytest

from agentdouble.core import invoke_tool
from agentdouble.core.invoke_tool import ActionEnvelope, RunCode, ToolAddress
from agentdouble.core.signing import Credentials
from agentdouble.errors import EnvelopeError, PlatformError

METADATA = {
    "RequestId": "r1",
    "Action": "InvokeTool",
    "Version": "2025-10-30",
    "Service": "agentkit",
    "Region": "cn-beijing",
}
RESULT = {
    "ToolId": "t-1",
    "UserSessionId": "u-1",
    "SessionId": "s-1",
    "Endpoint": "",
    "InternalEndpoint": "",
    "Result": '{"success": true}',
}


def test_the_body_matches_the_real_client_s() -> None:
    """With all fields given, it has the reference's, the payload as a JSON string."""
    body = RunCode("t-1", "a_u_s", "print(1)", timeout_s=30, ttl_s=1800).body()

    assert {
        "ToolId": "t-1",
        "UserSessionId": "a_u_s",
        "OperationType": "RunCode",
        "OperationPayload": '{"code": "print(1)", "kernel_name": "python3", "timeout": 30}',
        "Ttl": 1800,
    } == body


def test_omitted_fields_are_not_sent() -> None:
    """The platform's defaults apply to timeout and Ttl."""
    body = RunCode("t-1", "a_u_s", "1").body()

    assert {"ToolId", "UserSessionId", "OperationType", "OperationPayload"} == body.keys()
    assert {"code": "1", "kernel_name": "python3"} == json.loads(body["OperationPayload"])


def test_build_returns_a_signed_post_to_the_root() -> None:
    """The query has the action and the version, and the body is JSON."""
    address = ToolAddress("http://double:1", Credentials("AK", "SK"), region="r", service="s")
    when = dt.datetime(2026, 11, 21, tzinfo=dt.timezone.utc)

    request = invoke_tool.build({"a": "ü"}, address, when, action="GetTool")

    assert ("POST", "http://double:1/?Action=GetTool&Version=2025-10-30", b'{"a": "\\u00fc"}') == (
        request.method,
        request.url,
        request.body,
    )
    assert "Credential=AK/20261121/r/s/request" in request.headers["Authorization"]
    assert "double:1" == request.headers["Host"]


def test_read_returns_the_envelope() -> None:
    """Its inner JSON is parsed on request."""
    body = json.dumps({"ResponseMetadata": METADATA, "Result": RESULT}).encode()

    envelope = invoke_tool.read(200, body)

    assert ActionEnvelope("r1", "t-1", "u-1", "s-1", '{"success": true}') == envelope
    assert {"success": True} == envelope.inner()


def test_read_raises_a_platform_error() -> None:
    """The exception has the platform's data."""
    error = {"Code": "InvalidAccessKey", "CodeN": 100009, "Message": "No."}
    body = json.dumps({"ResponseMetadata": {**METADATA, "Error": error}}).encode()

    with pytest.raises(
        PlatformError, match=r"^InvalidAccessKey: No. \(HTTP 401, request r1\)$"
    ) as c:
        invoke_tool.read(401, body)

    assert ("InvalidAccessKey", "No.", 401, "r1") == (
        c.value.code,
        c.value.message,
        c.value.status,
        c.value.request_id,
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>Bad Gateway", "is not JSON .HTTP 502.: '<html>Bad Gateway'"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"", "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b"{}", "no ResponseMetadata"),
        (b'{"ResponseMetadata": null}', "no ResponseMetadata"),
        (b'{"ResponseMetadata": {}}', "no Result.Result"),
        (b'{"ResponseMetadata": {}, "Result": "x"}', "no Result.Result"),
        (b'{"ResponseMetadata": {}, "Result": {"Result": {}}}', "no Result.Result"),
    ],
)
def test_read_refuses_an_invalid_envelope(body: bytes, message: str) -> None:
    """EnvelopeError has the status and the start of the answer."""
    with pytest.raises(EnvelopeError, match=message) as caught:
        invoke_tool.read(502, body)

    assert 502 == caught.value.status


@pytest.mark.parametrize(
    ("result", "message"),
    [("{", "is not JSON"), ("", "is not JSON"), ("[]", "is not a JSON object")],
)
def test_inner_refuses_anything_but_a_json_object(result: str, message: str) -> None:
    """Result.Result must hold a JSON object."""
    with pytest.raises(EnvelopeError, match=message):
        ActionEnvelope("r1", "t-1", "u-1", "s-1", result).inner()
