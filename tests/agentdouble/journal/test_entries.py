from __future__ import annotations

import json
from typing import Any

import pytest

from agentdouble import Clock, Emulator, SimpleApp
from agentdouble.journal import request_subjects
from agentdouble.journal.entries import BODY_LIMIT, Entry, Journal, Start
from tests.agentdouble.calling import http, send, signed

pytestmark = pytest.mark.smoke


def test_a_curl_line_can_be_pasted_into_a_shell() -> None:
    """Quotes are escaped, and curl's own headers are left out."""
    start = Start()
    start.add(b"it's")
    entry = Entry(
        id=1,
        at=Clock().now(),
        method="POST",
        url="http://h/?a=1&b=2",
        request_head=[(b"host", b"h"), (b"content-length", b"3"), (b"user_id", b"o'neill")],
        request_start=start,
    )

    assert (
        "curl -X POST 'http://h/?a=1&b=2' -H 'user_id: o'\"'\"'neill' --data-raw 'it'\"'\"'s'"
    ) == entry.curl()


def test_the_journal_keeps_the_last_requests() -> None:
    """Ids continue, even after the journal is cleared."""
    scope = {"method": "GET", "path": "/", "query_string": b"", "scheme": "http", "headers": []}
    journal = Journal(2, Clock())

    ids = [journal.open(scope).id for _ in range(3)]
    before = [entry.id for entry in journal.entries()]
    journal.clear()

    assert ([1, 2, 3], [2, 3], ()) == (ids, before, journal.entries())
    assert 4 == journal.open(scope).id


def test_an_entry_has_the_request_and_its_answer(double: Emulator) -> None:
    """It lists the unknowns that the answer relied on."""
    response = http.post(f"{double.url}/invoke?q=1", json={"prompt": ""}, headers={"user_id": "u"})

    (entry,) = double.journal.entries()
    assert ("POST", f"{double.url}/invoke?q=1", '{"prompt":""}', 200, response.text) == (
        entry.method,
        entry.url,
        entry.request_body,
        entry.status,
        entry.response_body,
    )
    assert "u" == dict(entry.request_headers)["user_id"]
    assert "application/json" == dict(entry.response_headers)["content-type"]
    assert ["U-INVOKE-ENVELOPE", "U-INVOKE-HEADERS"] == entry.unknowns
    assert entry.duration_ms is not None


def test_the_answer_names_the_unknowns_it_relied_on(double: Emulator) -> None:
    """A response header lists them."""
    response = http.get(f"{double.url}/ping")

    assert "U-PROBE-BODIES, U-PROBE-ERROR" == response.headers["x-agentdouble-unknowns"]


def test_no_secret_reaches_the_journal(double: Emulator) -> None:
    """No field holds a signature, key, token or cookie."""
    secrets = ["s3cret-bearer", "s3cret-key", "s3cret-token", "s3cret-cookie"]
    headers = {
        "Authorization": f"Bearer {secrets[0]}",
        "X-Api-Key": secrets[1],
        "X-Security-Token": secrets[2],
        "Cookie": f"a={secrets[3]}",
    }
    http.get(f"{double.url}/ping", headers=headers)
    http.get(f"{double.url}/ping?faasInstanceName=s-1&Authorization=s3cret-endpoint&x=1")
    secrets.append("s3cret-endpoint")
    request = signed(double, {})
    send(request)
    secrets.append(request.headers["Authorization"].partition("Signature=")[2])

    written = str([entry.to_dict() for entry in double.journal.entries()])

    assert [] == [secret for secret in secrets if secret in written]


def test_no_application_secret_reaches_the_journal(double: Emulator) -> None:
    """Names mark them in headers, query and bodies; similar names are kept."""
    body = {
        "api_key": "s3cret",
        "password": "s3cret",
        "max_tokens": 77,
        "key": "shown",
        "code": "1+1",
    }
    headers = {"X-Auth-Token": "s3cret", "api-key": "s3cret", "X-Amz-Security-Token": "s3cret"}
    http.post(f"{double.url}/invoke?sig=s3cret&n=88", json=body, headers=headers)

    written = str([entry.to_dict() for entry in double.journal.entries()])

    assert [True] * 4 == [secret in written for secret in ("77", "88", "shown", "1+1")]
    assert "s3cret" not in written


def test_no_secret_in_another_form_reaches_the_journal(double: Emulator) -> None:
    """A query, headers, a multipart form, XML, and code in a signed request."""
    url, jwt = f"{double.url}/invoke", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.s3cret"
    headers = {"X-JWT-Assertion": "s3cret", "X-Amzn-Oidc-Data": "s3cret", "X-Any": jwt}
    code = 'API_KEY = "s3cret"\n!curl -u ann:s3cret http://shown'
    http.post(f"{url}?client_assertion=s3cret&SAMLResponse=s3cret&any={jwt}", headers=headers)
    http.post(url, data={"user": "shown", "password": "s3cret"}, files={"file": b"shown"})
    http.post(url, content="<a><user>shown</user><password>s3cret</password></a>")
    body = {"OperationPayload": json.dumps({"code": code}), "Cookie": "s3cret", "pass": "s3cret"}
    send(signed(double, body, action="InvokeTool"))

    entries = [entry.to_dict() for entry in double.journal.entries()]

    assert 4 == len(entries)
    assert [True] * 3 == ["shown" in entry["request_body"] for entry in entries[1:]]
    assert "s3cret" not in str(entries)


def test_no_action_secret_reaches_the_journal(double: Emulator) -> None:
    """Its other fields are kept."""
    body = {
        "Name": "a name",
        "ToolType": "CodeEnv",
        "LarkAppSecret": "s3cret-app",
        "AuthorizerConfiguration": {"KeyAuth": {"ApiKey": "s3cret-key", "ApiKeyName": "shown"}},
        "TosMountConfig": {"Credentials": {"SecretAccessKey": 's3cret-"quoted'}},
        "Envs": [
            {"Key": "LEVEL", "Value": "debugging"},
            {"Key": "MODEL_API_KEY", "Value": "s3cret-value"},
            {"Value": "s3cret-token", "Key": "auth_token"},
        ],
    }
    send(signed(double, body, action="CreateTool"))

    written = str([entry.to_dict() for entry in double.journal.entries()])

    assert [True] * 3 == [secret in written for secret in ("a name", "shown", "debugging")]
    assert "s3cret" not in written


def test_long_bodies_are_truncated() -> None:
    """64 KiB are kept, with the missing size."""
    app = SimpleApp()

    @app.entrypoint
    async def echo(payload: dict[str, str], headers: dict[str, str]) -> str:
        return payload["prompt"]

    with Emulator(app) as double:
        http.post(f"{double.url}/invoke", json={"prompt": "x" * BODY_LIMIT})
        (entry,) = double.journal.entries()

    frame = len('{"prompt":""}')
    assert f"{entry.request_body[:BODY_LIMIT]}... ({frame} more bytes)" == entry.request_body
    assert f"{entry.response_body[:BODY_LIMIT]}... (2 more bytes)" == entry.response_body


def test_the_double_s_own_routes_are_not_recorded(double: Emulator) -> None:
    http.get(f"{double.url}/_emulator/journal")

    assert () == double.journal.entries()


@pytest.mark.parametrize(
    ("body", "caller", "subject"),
    [
        ({"prompt": "first\nsecond"}, "ann s1", "first"),
        ({"method": "tools/call", "params": {"name": "weather"}}, "ann s1", "weather"),
        ({"method": "tools/list"}, "ann s1", "tools/list"),
        ({"userId": "bob", "newMessage": {"parts": [{"text": "hi"}]}}, "ann s1", "hi"),
        ({"UserSessionId": "app_ann_s1"}, "app_ann_s1", ""),
        ({"OperationPayload": json.dumps({"command": "ls"})}, "ann s1", "ls"),
        ({"params": {"message": {"parts": [{"text": "hello"}]}}}, "ann s1", "hello"),
        ({"messages": [{"content": "a"}, {"role": "user", "content": "b"}]}, "ann s1", "b"),
        ({"messages": [{"content": [{"type": "text", "text": "c"}]}]}, "ann s1", "c"),
        ({"input": "d"}, "ann s1", "d"),
        ({"input": [{"type": "function_call_output", "output": "e"}]}, "ann s1", "e"),
        ({"contents": [{"parts": [{"text": "f"}]}]}, "ann s1", "f"),
        (
            {"contents": [{"parts": [{"functionResponse": {"name": "g", "response": {}}}]}]},
            "ann s1",
            "result of g",
        ),
        ({"contents": [], "messages": [1], "input": {}}, "ann s1", ""),
        ({"messages": [{"content": [None]}]}, "ann s1", ""),
        ([1], "ann s1", ""),
    ],
)
def test_a_request_names_its_caller_and_subject(body: Any, caller: str, subject: str) -> None:
    text = json.dumps(body)
    headers = {"user_id": "ann", "session_id": "s1"}

    assert {"caller": caller, "subject": subject} == request_subjects.described(
        "http://h/", headers, text
    )


def test_a_session_is_named_by_its_path() -> None:
    url = "http://127.0.0.1/apps/echo/users/ann/sessions/s1"

    assert "ann s1" == request_subjects.described(url, {}, "")["caller"]
