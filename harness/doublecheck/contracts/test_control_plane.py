"""Checks of InvokeTool on the wire (CTL)."""

from __future__ import annotations

import re
import uuid

import httpx
import pytest

from agentdouble.signing import Credentials
from doublecheck.contracts import wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.wire import Sandbox
from doublecheck.platform import Platform

METADATA = ("RequestId", "Action", "Version", "Service", "Region")
RESULT = ("ToolId", "UserSessionId", "SessionId", "Endpoint", "InternalEndpoint", "Result")
DATA = {
    "kernel_name": "str",
    "session_id": "str",
    "status": "str",
    "execution_count": "int",
    "outputs": "list",
    "code": "str",
    "msg_id": "str",
}
OUTPUT = (
    "output_type",
    "name",
    "text",
    "data",
    "metadata",
    "execution_count",
    "ename",
    "evalue",
    "traceback",
)


@pytest.fixture(scope="module")
def answer(platform: Platform) -> httpx.Response:
    """The answer to code that prints, and then has a value."""
    session = Sandbox(platform, user_id="doublecheck", session_id=uuid.uuid4().hex)
    return wire.control_plane(platform, wire.body(session, "print('hello')\n6 * 7"))


@clause("CTL-01")
def test_the_envelope_is_complete(answer: httpx.Response) -> None:
    """Every field of 2.8 is there and is a string; action and version are those asked for."""
    metadata, result = wire.envelope(answer)

    assert dict.fromkeys(METADATA, "str") == wire.types(metadata, METADATA)
    assert dict.fromkeys(RESULT, "str") == wire.types(result, RESULT)
    assert ("InvokeTool", "2025-10-30") == (metadata["Action"], metadata["Version"])


@clause("CTL-02")
def test_the_inner_json_is_complete(answer: httpx.Response) -> None:
    """Result.Result is a string of JSON with every field of 2.7 and nine keys an output."""
    _, result = wire.envelope(answer)
    inner, data = wire.inner(result)

    assert {"success": "bool", "message": "str"} == wire.types(inner, ("success", "message"))
    assert DATA == wire.types(data, DATA)
    kinds = [output.get("output_type") for output in data["outputs"]]
    assert ["stream", "execute_result"] == kinds
    assert [set(), set()] == [set(OUTPUT) - set(output) for output in data["outputs"]]


@clause("CTL-03")
def test_credentials_are_required(platform: Platform, sandbox: Sandbox) -> None:
    """An unknown access key, a wrong secret and no signature at all are each refused."""
    known = platform.target.address().credentials
    wrong = (Credentials("AKLTnobody", known.secret_key), Credentials(known.access_key, "wrong"))
    body = wire.body(sandbox, "1")

    for credentials in wrong:
        assert wire.refusal(wire.control_plane(platform, body, credentials=credentials))
    assert wire.refusal(wire.control_plane_unsigned(platform, body))


@clause("CTL-04")
def test_an_unknown_tool_is_refused(platform: Platform, sandbox: Sandbox) -> None:
    """A tool id that does not exist runs nothing."""
    body = {**wire.body(sandbox, "1"), "ToolId": "t-doublecheck-nobody-has-this"}

    assert wire.refusal(wire.control_plane(platform, body))


@clause("CTL-05")
def test_ids_have_their_shape(answer: httpx.Response) -> None:
    """SessionId reads ``s-<id>`` and ToolId ``t-<id>``."""
    _, result = wire.envelope(answer)

    assert re.fullmatch(r"s-[\w-]+", str(result.get("SessionId"))), result
    assert re.fullmatch(r"t-[\w-]+", str(result.get("ToolId"))), result


@clause("CTL-06")
@pytest.mark.parametrize(
    ("action", "version"),
    [("NoSuchAction", "2025-10-30"), ("InvokeTool", "1999-12-31")],
    ids=["action", "version"],
)
def test_another_action_or_version_is_refused(
    platform: Platform, sandbox: Sandbox, action: str, version: str
) -> None:
    """The error names the action and the version that it refuses."""
    body = wire.body(sandbox, "1")

    refusal = wire.refusal(wire.control_plane(platform, body, action=action, version=version))

    assert [] == [word for word in (action, version) if word not in refusal], refusal
