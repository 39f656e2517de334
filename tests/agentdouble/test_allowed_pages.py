"""Access of web pages: refused by default (AUT-01), CORS for allowed ones, also with an API key."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http

KEY = "local-key"
PAGE = "http://page.example:3000"
BODY_LIMIT = 2000
PREFLIGHT = {  # as Chromium sends it before a POST of JSON with a key
    "Accept": "*/*",
    "Access-Control-Request-Headers": "authorization,content-type",
    "Access-Control-Request-Method": "POST",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Dest": "empty",
}
PATHS = ["/invoke", "/run", "/mcp", "/v1/bash/exec", "/?Action=InvokeTool&Version=2025-10-30"]


@pytest.fixture(scope="module", params=[PAGE, "*"])
def shared_double(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """A double with a key that allows one page or every page."""
    with Emulator(api_key=KEY, allow_origins=[request.param], body_limit=BODY_LIMIT) as double:
        yield double


def readable(response: httpx.Response) -> bool:
    """Return whether the browser lets the page read an answer."""
    return response.headers.get("access-control-allow-origin") in (PAGE, "*")


@pytest.mark.parametrize("path", PATHS)
def test_a_preflight_needs_no_key(shared_double: Emulator, path: str) -> None:
    """Browsers send no key before they know that the page may call."""
    answer = http.options(shared_double.url + path, headers={**PREFLIGHT, "Origin": PAGE})

    assert answer.status_code == 200
    assert readable(answer)
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert "authorization" in answer.headers["access-control-allow-headers"].lower()


def test_a_page_with_the_key_can_read_the_answer(shared_double: Emulator) -> None:
    headers = {"Origin": PAGE, "Authorization": f"Bearer {KEY}"}

    answer = http.get(f"{shared_double.url}/ping", headers=headers)

    assert (200, True) == (answer.status_code, readable(answer))


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (401, {}, b"{}"),
        (401, {"Authorization": "Bearer wrong"}, b"{}"),
        (403, {"Host": "other.example"}, b"{}"),
        (413, {"Authorization": f"Bearer {KEY}"}, b"x" * (BODY_LIMIT + 1)),
    ],
    ids=["no key", "wrong key", "foreign host", "large"],
)
def test_a_page_can_read_why_it_is_refused(
    shared_double: Emulator, status: int, headers: dict[str, str], body: bytes
) -> None:
    """Without the header it would see only a network error."""
    sent_headers = {"Origin": PAGE, **headers}

    answer = http.post(f"{shared_double.url}/invoke", headers=sent_headers, content=body)

    assert (status, True) == (answer.status_code, readable(answer))


def test_a_page_can_read_that_its_body_is_too_large(shared_double: Emulator) -> None:
    """Even without a Content-Length."""
    headers = {"Origin": PAGE, "Authorization": f"Bearer {KEY}"}
    chunks = iter([b"x" * BODY_LIMIT, b"x"])

    answer = http.post(f"{shared_double.url}/invoke", headers=headers, content=chunks)

    assert (413, True) == (answer.status_code, readable(answer))


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://page.example"])
@pytest.mark.parametrize("method", ["OPTIONS", "POST", "GET"])
def test_a_foreign_page_is_refused(method: str, origin: str) -> None:
    """It gets 403 with or without the key, and no CORS headers."""
    headers = {**PREFLIGHT, "Origin": origin, "Authorization": f"Bearer {KEY}"}
    with Emulator(api_key=KEY, allow_origins=[PAGE]) as double:
        answer = http.request(method, f"{double.url}/invoke", headers=headers)

    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("headers", [{"Origin": PAGE}, {"Host": "page.example"}])
def test_foreign_origin_or_host_is_refused(shared: Emulator, headers: dict[str, str]) -> None:
    """By Origin, and by a Host rebound to this machine; also for reads."""
    assert 403 == http.get(f"{shared.url}/list-apps", headers=headers).status_code


@pytest.mark.parametrize("origin", [PAGE, "*"])
def test_setting_allows_an_origin(origin: str) -> None:
    """CORS as the real server's --allow_origins: a preflight, and the header on each answer."""
    with Emulator(allow_origins=(origin,)) as double:
        preflight = http.options(f"{double.url}/run", headers={**PREFLIGHT, "Origin": PAGE})
        answer = http.get(f"{double.url}/list-apps", headers={"Origin": PAGE})
        stranger = http.get(f"{double.url}/list-apps", headers={"Origin": "http://other.example"})

    assert (200, "OK") == (preflight.status_code, preflight.text)
    assert (200, origin) == (answer.status_code, answer.headers["access-control-allow-origin"])
    assert (200 if origin == "*" else 403) == stranger.status_code
