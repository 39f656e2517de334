"""Checks of InvokeTool on the wire (CTL)."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from agentdouble.signing import Credentials
from doublecheck.client._sync.platform import Platform
from doublecheck.client.doubles import serving_double
from doublecheck.contracts import wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.conftest import START_WITHIN_S
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.verdicts import Verdict
from doublecheck.contracts.wire import Sandbox
from doublecheck.target import pytest_options
from doublecheck.target.facts import variable

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


@pytest.fixture
def answer(platform: Platform, sandbox: Sandbox) -> httpx.Response:
    """The answer to code that prints, and then has a value."""
    return wire.control_plane(platform, wire.body(sandbox, "print('hello')\n6 * 7"))


@clause("CTL-01", writes=True)
def test_the_envelope_is_complete(answer: httpx.Response) -> None:
    """Every field of 2.8 is there and is a string; action and version are the requested ones."""
    metadata, result = wire.envelope(answer)

    assert dict.fromkeys(METADATA, "str") == wire.types(metadata, METADATA)
    assert dict.fromkeys(RESULT, "str") == wire.types(result, RESULT)
    assert ("InvokeTool", "2025-10-30") == (metadata["Action"], metadata["Version"])


@clause("CTL-02", writes=True)
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


@clause("CTL-05", writes=True)
def test_ids_have_their_shape(answer: httpx.Response) -> None:
    """SessionId has the form ``s-<id>`` and ToolId ``t-<id>``."""
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


@clause("CTL-07")
def test_a_key_without_full_access_is_refused(platform: Platform, sandbox: Sandbox) -> None:
    """The signature is right, and the refusal has another reason than for a wrong one."""
    known = platform.target.restricted
    if known is None:
        pytest.skip(
            "needs a key pair without the full-access permission: set "
            f"{variable('restricted_access_key')} and {variable('restricted_secret_key')}"
        )
    body = wire.body(sandbox, "1")
    wrong = replace(known, secret_key=known.secret_key[::-1])

    refusal = wire.refusal(wire.control_plane(platform, body, credentials=known))

    assert refusal != wire.refusal(wire.control_plane(platform, body, credentials=wrong))


@pytest.fixture
def encrypted(platform: Platform, request: pytest.FixtureRequest) -> Iterator[Platform]:
    """The platform over https; if it has none, a second double is started with --tls."""
    address = platform.target.control_plane
    if address.startswith("https"):
        yield platform
        return
    if not pytest_options.plan_of(request.config).in_process:
        pytest.skip(f"{Verdict.NOT_OBSERVABLE.value}: {address} does not speak https")
    with (
        serving_double(tls=True, kernel_start_timeout_s=START_WITHIN_S) as target,
        Platform(target) as other,
    ):
        yield other


@clause("CTL-08", writes=True)
def test_the_oldest_agent_library_can_call(encrypted: Platform, leftovers: Leftovers) -> None:
    """The requests of version 0.2.15 run: over https, without Ttl, with a bare session id."""
    session_id = uuid.uuid4().hex
    leftovers.sandbox(session_id)
    payload = {"code": "print('hello')", "timeout": 30, "kernel_name": "python3"}
    body = {
        "ToolId": encrypted.target.sandbox_tool(),
        "UserSessionId": session_id,
        "OperationType": "RunCode",
        "OperationPayload": json.dumps(payload),
    }

    _, result = wire.envelope(wire.control_plane(encrypted, body))

    _, data = wire.inner(result)
    assert ["hello\n"] == [output.get("text") for output in data["outputs"]]
