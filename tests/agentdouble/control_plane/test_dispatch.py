from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from agentdouble.control_plane.action_names import OF_THE_PLATFORM
from agentdouble.core import signing
from agentdouble.core.invoke_tool import HttpRequest, ToolAddress, build
from agentdouble.core.signing import Credentials
from agentdouble.sandbox.sessions import SandboxSessions
from tests.agentdouble import client_signer
from tests.agentdouble.calling import body_of, error_of, http, send, signed

pytestmark = pytest.mark.smoke

VERSION = "2025-10-30"


def refused(request: HttpRequest) -> tuple[int, str, int | None]:
    error = error_of(send(request))
    return error["status"], error["Code"], error.get("CodeN")


def changed(request: HttpRequest, **headers: str | None) -> HttpRequest:
    renamed = {name.replace("_", "-"): value for name, value in headers.items()}
    merged = {**request.headers, **renamed}
    return replace(request, headers={k: v for k, v in merged.items() if v is not None})


def test_error_has_the_full_envelope(shared: Emulator) -> None:
    """ResponseMetadata has five fields, Error has three, and there is no Result."""
    response = http.post(f"{shared.url}/?Action=InvokeTool&Version={VERSION}", json={})

    metadata = response.json()["ResponseMetadata"]
    assert 401 == response.status_code
    assert {
        "ResponseMetadata": {
            "RequestId": metadata["RequestId"],
            "Action": "InvokeTool",
            "Version": VERSION,
            "Service": "agentkit",
            "Region": "cn-beijing",
            "Error": {
                "Code": "MissingAuthenticationToken",
                "CodeN": 100003,
                "Message": "Request is missing Authentication Token.",
            },
        }
    } == response.json()


def test_wrong_signature_is_refused(shared: Emulator) -> None:
    """CTL-03."""
    other = Credentials(shared.credentials.access_key, "another secret")
    body = body_of(shared, "1")

    request = build(body, ToolAddress(shared.url, other), dt.datetime.now(dt.timezone.utc))

    assert (401, "SignatureDoesNotMatch", 100010) == refused(request)


def test_unknown_access_key_is_refused(shared: Emulator) -> None:
    """CTL-03."""
    unknown = ToolAddress(shared.url, Credentials("AKLTunknown", shared.credentials.secret_key))

    request = build(body_of(shared, "1"), unknown, dt.datetime.now(dt.timezone.utc))

    assert (401, "InvalidAccessKey", 100009) == refused(request)


@pytest.mark.parametrize("minutes", [-16, 16])
def test_old_signature_is_refused(shared: Emulator, minutes: int) -> None:
    """A recorded request cannot be replayed a quarter of an hour later."""
    when = dt.datetime.now(dt.timezone.utc) + dt.timedelta(minutes=minutes)

    request = build(body_of(shared, "1"), ToolAddress(shared.url, shared.credentials), when)

    assert (400, "InvalidTimestamp", 100006) == refused(request)


def test_platform_clock_does_not_age_signatures(double: Emulator) -> None:
    """advance() moves the platform's clock, not the wall clock used for signatures."""
    double.clock.advance(dt.timedelta(hours=1))

    assert 404 == send(signed(double, {**body_of(double, "1"), "ToolId": "t-x"})).status_code


@pytest.mark.parametrize("variant", ["veadk", "SDK"])
def test_headers_of_real_clients_verify(shared: Emulator, variant: str) -> None:
    """An unsigned token (veadk) and a signed context with a signed token (SDK) both pass."""
    request = signed(shared, {**body_of(shared, "1"), "ToolId": "t-x"})
    request = {"veadk": as_veadk, "SDK": as_sdk}[variant](shared, request)

    assert (404, "InvalidResource.NotFound", None) == refused(request)


def as_veadk(_double: Emulator, request: HttpRequest) -> HttpRequest:
    return changed(request, X_Security_Token="token", User_Agent="python-requests/2.34.2")


def as_sdk(double: Emulator, request: HttpRequest) -> HttpRequest:
    """Sign every X- header unchanged, like the SDK."""
    sent = changed(
        request,
        X_Custom_Request_Context="agentkit-sdk-python/0.9.1  (schema=v1; entry=sdk)",
        X_Security_Token="token",
        Authorization=None,
    )
    headers = {name.lower(): value for name, value in sent.headers.items()}
    signed = ";".join(sorted(headers))
    scope = f"{headers['x-date'][:8]}/cn-beijing/agentkit/request"
    canonical = client_signer.canonical(signed, headers, request.body)
    to_sign = client_signer.string_to_sign(canonical, headers["x-date"], scope)
    signature = client_signer.signature(to_sign, double.credentials.secret_key, scope)
    key = double.credentials.access_key
    return changed(sent, Authorization=client_signer.authorization(key, signed, signature, scope))


UNBUILT = "is part of the platform, but this version of agentdouble has not built it yet."


@pytest.mark.parametrize(
    ("payload", "status", "code", "message"),
    [
        (
            ("ListUsers",),
            *(404, ("InvalidActionOrVersion", 100008)),
            f"Could not find operation ListUsers for version {VERSION}.",
        ),
        (
            ("InvokeTool", "2025-10-31"),
            *(404, ("InvalidActionOrVersion", 100008)),
            "Could not find operation InvokeTool for version 2025-10-31.",
        ),
        (
            ("CreateSkill",),
            *(501, ("NotImplemented", None)),
            f"The action CreateSkill {UNBUILT}",
        ),
        (
            ("ListThings", "2018-01-01", "id"),
            *(501, ("NotImplemented", None)),
            f"The action ListThings of the service id {UNBUILT}",
        ),
    ],
)
def test_unavailable_actions_are_refused_by_name(
    shared: Emulator, payload: Any, status: int, code: tuple[str, int | None], message: str
) -> None:
    """CTL-06: unknown, another version, not implemented, another service."""
    error = error_of(post(shared, *payload))

    assert (status, *code, message) == (
        *(error["status"], error["Code"], error.get("CodeN"), error["Message"]),
    )


def post(
    double: Emulator,
    action: str,
    version: str = VERSION,
    service: str = "agentkit",
    content: bytes = b"{}",
) -> httpx.Response:
    url = httpx.URL(double.url, params={"Action": action, "Version": version})
    headers = signing.sign(
        "POST",
        str(url),
        content,
        credentials=double.credentials,
        region="cn-beijing",
        service=service,
        when=dt.datetime.now(dt.timezone.utc),
    )
    return http.post(url, content=content, headers=headers)


@pytest.mark.parametrize(
    ("body", "message"),
    [(b"{", "is not JSON"), (b"[" * 200_000, "is not JSON"), (b"[]", "is not a JSON object")],
    ids=lambda value: str(value[:20]),
)
def test_body_that_is_not_a_json_object_is_refused(
    shared: Emulator, body: bytes, message: str
) -> None:
    """The answer is always an error envelope."""
    error = error_of(post(shared, "InvokeTool", content=body))
    assert (400, "InvalidParameter") == (error["status"], error["Code"])
    assert message in error["Message"]


def test_credentials_from_the_settings_are_checked() -> None:
    """A fixed key pair works, and another double's is refused."""
    with Emulator(access_key="AK", secret_key="SK") as double:
        assert Credentials("AK", "SK") == double.credentials
        assert 404 == send(signed(double, {**body_of(double, "1"), "ToolId": "t-x"})).status_code


def test_crashing_action_answers_with_the_envelope(
    double: Emulator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug in the double is logged and answered with an InternalError that names it."""

    async def broken(*_args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(SandboxSessions, "get_or_create", broken)

    error = error_of(send(signed(double, body_of(double, "1"))))

    assert (500, "InternalError") == (error["status"], error["Code"])
    message, _, reference = error["Message"].rstrip(".").partition(" Its log says more, at ")
    assert "The double failed: OSError: disk full." == message
    assert f"The action InvokeTool failed: {reference}" in caplog.text


def test_every_implemented_action_is_a_platform_action() -> None:
    """Faults and refusals look actions up in ``action_names.py``."""

    async def actions_of(double: Emulator) -> set[str]:  # on its loop, where they are made
        surfaces = double._platform.context.surfaces
        return {name for surface in surfaces for name in surface.actions()}

    with Emulator() as double:
        built = double._call(actions_of(double))

    assert set() == built - OF_THE_PLATFORM, "add these to control_plane/action_names.py"


def test_every_platform_action_is_known() -> None:
    """Actions that are not implemented are refused by name."""
    with Emulator(check_signatures=False) as double:
        metadata = {
            action: http.post(
                f"{double.url}/?Action={action}&Version={VERSION}", content=b"{}"
            ).json()["ResponseMetadata"]
            for action in sorted(OF_THE_PLATFORM)
        }

    codes = {action: answer.get("Error", {}).get("Code") for action, answer in metadata.items()}
    assert 99 == len(codes), "action_names.py has changed: put its new count here"
    assert {None, "MissingParameter", "NotImplemented"} == set(codes.values())
    assert ["ListMCPServices", "ListRuntimes", "ListTools"] == [
        action for action, code in codes.items() if code is None
    ]


def test_get_request_for_an_action_gets_a_hint(shared: Emulator) -> None:
    """Browsers send such requests."""
    answer = http.get(f"{shared.url}/?Action=ListTools&Version={VERSION}")

    error = answer.json()["ResponseMetadata"]["Error"]
    assert (405, "POST") == (answer.status_code, answer.headers["Allow"])
    assert ("MethodNotAllowed", True) == (
        error["Code"],
        "Send actions by POST" in error["Message"],
    )
