"""Who may ask the console: each check is the only one that refuses its request."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from agentdouble import Emulator
from tests.agentdouble.calling import http

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
def test_it_refuses(double: Emulator, name: str, path: str) -> None:
    """Each of these requests has all that is needed, but for one header."""
    status, header = REFUSED[name]

    answer = http.get(address(double, path), headers=_encoded({**token(double), **header}))

    assert status == answer.status_code
    assert "SessionId" not in answer.text


@pytest.mark.parametrize("name", [name for name in REFUSED if "token" not in name])
def test_the_shell_is_for_the_user_s_browser_as_well(double: Emulator, name: str) -> None:
    """It has no data and needs no token, and no other page has a use for it."""
    status, header = REFUSED[name]

    assert status == http.get(address(double, "/"), headers=header).status_code


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_form_cannot_write(double: Emulator, kind: str) -> None:
    """What a form of any page can send changes nothing, even with the token."""
    headers = {**token(double), "content-type": kind}

    answer = http.post(address(double, "/api/clock"), headers=headers, content='{"advance_s": 60}')

    assert (415, 0) == (answer.status_code, double.clock.offset.total_seconds())


def test_it_answers_as_the_double_s_own_routes_do(double: Emulator) -> None:
    """The same routes answer both, so the same comes of a page and of a command."""
    own = http.get(f"{double.url}/_emulator/sessions").json()

    assert own == http.get(address(double, "/api/sessions"), headers=token(double)).json()


def test_what_the_double_serves_is_data_here(double: Emulator) -> None:
    """An application's answer is no page of the console's origin, whatever it says of itself."""
    headers = {**token(double), "user_id": "ann", "session_id": "s0"}

    answer = http.post(
        address(double, "/api/served/invoke"),
        json={"prompt": "print(6 * 7)"},
        headers=headers,
        timeout=60,
    )

    assert (200, "42") == (answer.status_code, answer.text.strip().strip('"')[:2])
    assert answer.headers["content-security-policy"].startswith("sandbox")
    entry = double.journal.entries()[0]
    assert ("/invoke", str(entry.id)) == (
        entry.url.removeprefix(double.url),
        answer.headers["x-agentdouble-request"],
    )


@pytest.mark.parametrize(("app", "status"), [("failing", 500), ("nobody", 404)])
def test_an_answer_names_its_request(double: Emulator, app: str, status: int) -> None:
    """Also an error, so that a page can show what was asked."""
    path = address(double, "/api/served")
    http.post(f"{path}/apps/failing/users/u/sessions/s", json={}, headers=token(double))
    message = {"role": "user", "parts": [{"text": "x"}]}
    body = {"appName": app, "userId": "u", "sessionId": "s", "newMessage": message}

    answer = http.post(f"{path}/run", json=body, headers=token(double), timeout=60)

    entry = double.journal.entries()[-1]
    assert (status, str(entry.id)) == (answer.status_code, answer.headers["x-agentdouble-request"])


@pytest.mark.parametrize("path", ["/api/served/", "/api/events"])
def test_it_has_no_websockets(double: Emulator, path: str) -> None:
    """A page of any origin could open them, and the token is no header of theirs."""
    url = address(double, path).replace("http", "ws", 1)

    with pytest.raises(InvalidStatus) as refused, connect(url, additional_headers=token(double)):
        pass

    assert 404 == refused.value.response.status_code


def test_what_a_page_looks_at_leaves_no_trace(double: Emulator) -> None:
    """Neither in the journal nor in the counts of faults, which are about the user's clients."""
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


def test_an_action_is_signed_by_the_console(double: Emulator) -> None:
    """The page has no secret key; a body that is none is told."""
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
def test_nothing_else_of_the_double_is_behind_it(double: Emulator, path: str) -> None:
    """Only the double's own routes are, and only below /api."""
    sent = httpx.Request(
        "POST", address(double, "/"), headers={**token(double), "content-type": "application/json"}
    )
    sent.url = sent.url.copy_with(raw_path=path.encode())
    with httpx.Client() as client:
        assert 400 <= client.send(sent).status_code < 500


def test_each_answer_says_what_the_page_may_do(double: Emulator) -> None:
    """Also an answer that refuses."""
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
    """Whatever stands in it: the header says so as well as the attribute."""
    policy = http.get(address(double, "/frame")).headers["content-security-policy"]

    assert policy.startswith("sandbox allow-scripts; default-src 'none'; img-src data:;")


def test_a_double_of_an_api_key_needs_none_in_the_page() -> None:
    """The token stands for it."""
    with Emulator(console=True, pool_size=0, api_key="k" * 20) as double:
        assert 401 == http.get(f"{double.url}/list-apps").status_code
        answer = http.get(address(double, "/api/sessions"), headers=token(double))

    assert 200 == answer.status_code


def test_two_doubles_have_two_consoles(double: Emulator) -> None:
    """Neither token opens the other's, and the end of one does not end the other."""
    with Emulator(console=True, pool_size=0, token="another") as other:
        assert 401 == http.get(address(other, "/api/health"), headers=token(double)).status_code
        assert 200 == http.get(address(other, "/api/health"), headers=token(other)).status_code
    assert 200 == http.get(address(double, "/api/health"), headers=token(double)).status_code


def test_without_being_asked_for_there_is_none() -> None:
    """No socket is open, and the double has no address to say."""
    with Emulator(pool_size=0) as double:
        assert None is double.console_url


def test_the_token_is_in_no_log(double: Emulator, caplog: pytest.LogCaptureFixture) -> None:
    """Neither of this module's requests, nor in the journal, nor where objects are shown."""
    caplog.set_level(logging.DEBUG)
    secret = token(double)["authorization"].partition(" ")[2]

    http.get(address(double, "/api/sessions"), headers=token(double))
    journal = http.get(f"{double.url}/_emulator/journal?bodies=true").text

    assert secret not in caplog.text + journal + repr(double._console)


def test_a_request_is_asked_again(double: Emulator) -> None:
    """It is a new request of the journal with the same answer; its signature is made anew."""
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


def test_no_signature_is_lent_to_a_request_that_was_refused(double: Emulator) -> None:
    """Else a click would give the user's key to whoever sent it."""
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
