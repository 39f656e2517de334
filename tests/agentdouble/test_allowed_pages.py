"""Web pages that may call, with an API key: what their browsers ask, and what they may read."""

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
    """A double with a key that lets a page, or every page, call."""
    with Emulator(api_key=KEY, allow_origins=[request.param], body_limit=BODY_LIMIT) as double:
        yield double


def readable(response: httpx.Response) -> bool:
    """Whether the browser lets the page read an answer."""
    return response.headers.get("access-control-allow-origin") in (PAGE, "*")


@pytest.mark.parametrize("path", PATHS)
def test_a_browser_that_asks_first_needs_no_key(shared_double: Emulator, path: str) -> None:
    """It shows none before it knows that the page may call."""
    answer = http.options(shared_double.url + path, headers={**PREFLIGHT, "Origin": PAGE})

    assert answer.status_code == 200
    assert readable(answer)
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert "authorization" in answer.headers["access-control-allow-headers"].lower()


def test_a_page_with_the_key_is_answered(shared_double: Emulator) -> None:
    """What it asked for, readable."""
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
    """Without the header the page is told of a network error."""
    sent_headers = {"Origin": PAGE, **headers}

    answer = http.post(f"{shared_double.url}/invoke", headers=sent_headers, content=body)

    assert (status, True) == (answer.status_code, readable(answer))


def test_a_body_that_grows_too_large_is_refused_readably(shared_double: Emulator) -> None:
    """Also where no length was announced."""
    headers = {"Origin": PAGE, "Authorization": f"Bearer {KEY}"}
    chunks = iter([b"x" * BODY_LIMIT, b"x"])

    answer = http.post(f"{shared_double.url}/invoke", headers=headers, content=chunks)

    assert (413, True) == (answer.status_code, readable(answer))


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://page.example"])
@pytest.mark.parametrize("method", ["OPTIONS", "POST", "GET"])
def test_a_foreign_page_is_told_nothing(method: str, origin: str) -> None:
    """403 with or without the key, and no header of CORS."""
    headers = {**PREFLIGHT, "Origin": origin, "Authorization": f"Bearer {KEY}"}
    with Emulator(api_key=KEY, allow_origins=[PAGE]) as double:
        answer = http.request(method, f"{double.url}/invoke", headers=headers)

    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]
