"""Access checks of the console; each case is refused by exactly one of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from agentdouble import Emulator
from tests.agentdouble.calling import http, run

pytestmark = pytest.mark.once

REFUSED: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "no token": (401, {"authorization": ""}),
    "a wrong token": (401, {"authorization": "Bearer wrong"}),
    "a token that is no ASCII": (401, {"authorization": "Bearer ä"}),
    "a name bound anew": (403, {"host": "evil.example"}),
    "the page of another origin": (403, {"origin": "http://evil.example"}),
    "a page of the double's own port": (403, {"origin": "http://127.0.0.1:1"}),
    "a page without an origin": (403, {"origin": "null"}),
    "a link on a page of another site": (403, {"sec-fetch-site": "cross-site"}),
    "a link on a page of another port": (403, {"sec-fetch-site": "same-site"}),
}


@pytest.mark.parametrize("path", ["/api/sessions", "/api/console/connection"])
@pytest.mark.parametrize("name", REFUSED)
def test_requests_with_one_bad_header_are_refused(double: Emulator, name: str, path: str) -> None:
    status, header = REFUSED[name]

    answer = http.get(address(double, path), headers=_encoded({**token(double), **header}))

    assert status == answer.status_code
    assert "SessionId" not in answer.text


@pytest.mark.parametrize("name", [name for name in REFUSED if "token" not in name])
def test_other_origins_cannot_load_the_shell(double: Emulator, name: str) -> None:
    """It has no data and needs no token."""
    status, header = REFUSED[name]

    assert status == http.get(address(double, "/"), headers=header).status_code


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_forms_cannot_write(double: Emulator, kind: str) -> None:
    """The token does not change this."""
    headers = {**token(double), "content-type": kind}

    answer = http.post(address(double, "/api/clock"), headers=headers, content='{"advance_s": 60}')

    assert (415, 0) == (answer.status_code, double.clock.offset.total_seconds())


def test_answers_equal_those_of_the_double(double: Emulator) -> None:
    run(double, "1", "listed")
    own = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    listed = http.get(address(double, "/api/sessions"), headers=token(double)).json()["sessions"]

    assert "listed" in {session["UserSessionId"] for session in listed}
    assert [(s.keys(), s["SessionId"]) for s in own] == [(s.keys(), s["SessionId"]) for s in listed]


def test_application_answers_are_not_pages(double: Emulator) -> None:
    """They are sandboxed, whatever their content type."""
    headers = {**token(double), "user_id": "ann", "session_id": "s0"}

    answer = http.post(
        address(double, "/api/served/invoke"),
        json={"prompt": "print(6 * 7)"},
        headers=headers,
        timeout=60,
    )

    assert (200, "42") == (answer.status_code, answer.text.strip().strip('"')[:2])
    assert answer.headers["content-security-policy"].startswith("sandbox")
    number = answer.headers["x-agentdouble-request"]
    (entry,) = (entry for entry in double.journal.entries() if str(entry.id) == number)
    assert "/invoke" == entry.url.removeprefix(double.url)


@pytest.mark.parametrize(("app", "status"), [("failing", 500), ("nobody", 404)])
def test_an_answer_names_its_request(double: Emulator, app: str, status: int) -> None:
    """This includes errors, so that a page can link the request."""
    path = address(double, "/api/served")
    http.post(f"{path}/apps/failing/users/u/sessions/s", json={}, headers=token(double))
    message = {"role": "user", "parts": [{"text": "x"}]}
    body = {"appName": app, "userId": "u", "sessionId": "s", "newMessage": message}

    answer = http.post(f"{path}/run", json=body, headers=token(double), timeout=60)

    entry = double.journal.entries()[-1]
    assert (status, str(entry.id)) == (answer.status_code, answer.headers["x-agentdouble-request"])


@pytest.mark.parametrize("path", ["/api/served/", "/api/events"])
def test_websockets_are_refused(double: Emulator, path: str) -> None:
    """Browsers cannot send the token with them, and any origin may open them."""
    url = address(double, path).replace("http", "ws", 1)

    with pytest.raises(InvalidStatus) as refused, connect(url, additional_headers=token(double)):
        pass

    assert 404 == refused.value.response.status_code


def test_reads_of_the_console_leave_no_trace(double: Emulator) -> None:
    """The journal and the counts of faults are for the user's clients."""
    double.reset(keep=())
    double.faults.arm("fail", "GET /list-apps")
    double.faults.arm("fail", "ListTools")

    apps = http.get(address(double, "/api/served/list-apps"), headers=token(double))
    tools = http.post(
        address(double, "/api/console/actions/ListTools"), json={}, headers=token(double)
    )

    assert (200, 200, ()) == (apps.status_code, tools.status_code, double.journal.entries())
    assert [0, 0] == [state.calls for state in double.faults.states()]
    double.faults.clear()


def test_actions_are_signed_by_the_console(double: Emulator) -> None:
    """The page has no secret key. An invalid body is refused."""
    response = http.post(
        address(double, "/api/console/actions/ListTools"), json={}, headers=token(double)
    )
    bad = http.post(
        address(double, "/api/console/actions/ListTools"), json=[], headers=token(double)
    )

    assert double.tool_id in [tool["ToolId"] for tool in response.json()["Result"]["Tools"]]
    assert (400, "The body of an action is a JSON object.") == (
        bad.status_code,
        bad.json()["error"]["message"],
    )


@pytest.mark.parametrize(
    "path", ["/api/../invoke", "/api/%2e%2e/invoke", "/api//invoke", "/invoke"]
)
def test_only_console_routes_are_served(double: Emulator, path: str) -> None:
    """They are all below /api."""
    sent = httpx.Request(
        "POST", address(double, "/"), headers={**token(double), "content-type": "application/json"}
    )
    sent.url = sent.url.copy_with(raw_path=path.encode())
    with httpx.Client() as client:
        assert 400 <= client.send(sent).status_code < 500


def test_every_answer_has_security_headers(double: Emulator) -> None:
    """This includes refusals."""
    for path in ("/", "/api/sessions", "/static/main.js"):
        headers = http.get(address(double, path)).headers

        assert "require-trusted-types-for 'script'" in headers["content-security-policy"]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "no-store" == headers["cache-control"]
        assert "same-origin" == headers["cross-origin-resource-policy"]
        assert "same-origin" == headers["cross-origin-opener-policy"]
        assert "nosniff" == headers["x-content-type-options"]
        assert "no-referrer" == headers["referrer-policy"]


def test_the_frame_of_outputs_has_no_origin_and_no_network(double: Emulator) -> None:
    """The header enforces it as well as the attribute."""
    policy = http.get(address(double, "/frame")).headers["content-security-policy"]

    assert policy.startswith("sandbox allow-scripts; default-src 'none'; img-src data:;")


def test_the_page_needs_no_api_key() -> None:
    """The token replaces it."""
    with Emulator(console=True, pool_size=0, api_key="k" * 20) as double:
        assert 401 == http.get(f"{double.url}/list-apps").status_code
        answer = http.get(address(double, "/api/sessions"), headers=token(double))

    assert 200 == answer.status_code


def test_two_doubles_have_separate_consoles(double: Emulator) -> None:
    with Emulator(console=True, pool_size=0) as other:
        assert 401 == http.get(address(other, "/api/health"), headers=token(double)).status_code
        assert 200 == http.get(address(other, "/api/health"), headers=token(other)).status_code
    assert 200 == http.get(address(double, "/api/health"), headers=token(double)).status_code


def test_the_token_is_the_consoles_own_and_new_at_each_start() -> None:
    """Also if the double's stays: neither opens what the other does."""
    tokens = []
    for _ in range(2):
        with Emulator(console=True, pool_size=0, token="permanent") as double:
            own = {"authorization": "Bearer permanent"}
            tokens.append(token(double)["authorization"])
            statuses = [
                http.get(url, headers=headers).status_code
                for url in (address(double, "/api/sessions"), f"{double.url}/_emulator/sessions")
                for headers in (token(double), own)
            ]
            assert [200, 401, 401, 200] == statuses
            assert "permanent" not in str(double.console_url)

    assert 2 == len(set(tokens))


def test_the_console_is_off_by_default() -> None:
    with Emulator(pool_size=0) as double:
        assert None is double.console_url


def test_the_token_is_not_logged(double: Emulator, caplog: pytest.LogCaptureFixture) -> None:
    """It is not in the journal or in reprs, either."""
    caplog.set_level(logging.DEBUG)
    secret = token(double)["authorization"].partition(" ")[2]

    http.get(address(double, "/api/sessions"), headers=token(double))
    journal = http.get(f"{double.url}/_emulator/journal?bodies=true").text

    assert secret not in caplog.text + journal + repr(double._console)


def test_a_request_is_repeated(double: Emulator) -> None:
    """The repeat is a new journal entry with a new signature."""
    http.post(
        f"{double.url}/invoke", json={"prompt": "print(6 * 7)"}, headers={"session_id": "again"}
    )
    action = next(entry for entry in double.journal.entries() if "InvokeTool" in entry.url)

    answer = http.post(
        address(double, f"/api/console/repeat/{action.id}"), headers=token(double), json={}
    ).json()

    again = double.journal.find(answer["id"])
    assert (200, True) == (answer["status"], answer["id"] > action.id)
    assert again is not None
    assert action.request_body == again.request_body


def test_a_refused_request_is_not_repeated_with_a_valid_signature(double: Emulator) -> None:
    """Otherwise a click would sign a stranger's request with the user's key."""
    headers = {
        "authorization": "HMAC-SHA256 Credential=AKLTx/20260101/cn-beijing/agentkit/request, "
        f"SignedHeaders=host, Signature={'0' * 64}",
        "x-date": "20260101T000000Z",
    }
    refused = http.post(
        f"{double.url}/?Action=ListTools&Version=2025-10-30", headers=headers, json={}
    )
    entry = double.journal.entries()[-1]

    answer = http.post(
        address(double, f"/api/console/repeat/{entry.id}"), headers=token(double), json={}
    )

    assert (401, 409) == (refused.status_code, answer.status_code)
    assert entry is double.journal.entries()[-1]


def address(double: Emulator, path: str) -> str:
    assert double.console_url is not None
    return double.console_url.partition("/#")[0] + path


def token(double: Emulator) -> dict[str, str]:
    assert double.console_url is not None
    return {"authorization": f"Bearer {double.console_url.partition('=')[2]}"}


def _encoded(headers: Mapping[str, str]) -> dict[str, bytes]:
    return {name: value.encode() for name, value in headers.items()}
