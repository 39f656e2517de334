from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import httpx
import pytest

from agentdouble import A2AApp, Emulator, MCPApp, SimpleApp
from tests.agentdouble.calling import body_of, error_of, http, result, send, signed

pytestmark = pytest.mark.smoke

KEY = "local-key"
LIMIT = 2000
SURFACES = [
    ("GET", "/ping"),
    ("GET", "/health"),
    ("GET", "/readiness"),
    ("GET", "/liveness"),
    ("POST", "/invoke"),
    ("POST", "/"),
    ("GET", "/?Action=InvokeTool&Version=2025-10-30"),
    ("POST", "/invoke?Action=InvokeTool&Version=2025-10-30"),
    ("GET", "/list-apps"),
    ("POST", "/run"),
    ("GET", "/nothing/here"),
    ("GET", "/runtimes/second/ping"),
]


WRONG: list[dict[str, str]] = [
    {},
    {"Authorization": "Bearer wrong"},
    {"Authorization": "Bearer"},
    {"Authorization": f"Basic {KEY}"},
    {"Authorization": f"Bearer {KEY}x"},
    {"Authorization": "Bearer \xe9"},
    {"X-Api-Key": "wrong"},
]

QUERIES = (
    "api_key",
    "key",
    "token",
    "access_token",
    "Authorization",
    "x-api-key",
    "x-goog-api-key",
)
WAYS: dict[str, tuple[dict[str, str], str]] = {  # headers, and what is behind the path
    "bearer": ({"Authorization": f"bEARER {KEY}"}, ""),
    "X-API-Key": ({"X-API-Key": KEY}, ""),
    "X-API-Key beside Basic": ({"Authorization": "Basic eDp5", "X-API-Key": KEY}, ""),
    "x-goog-api-key": ({"X-Goog-Api-Key": KEY}, ""),
    "Token": ({"Authorization": f"Token {KEY}"}, ""),
    "Api-Key": ({"Api-Key": KEY}, ""),
    "no scheme": ({"Authorization": KEY}, ""),
    "empty bearer": ({"Authorization": "Bearer"}, ""),
    "empty X-API-Key": ({"X-API-Key": ""}, ""),
    "upper case": ({"Authorization": f"Bearer {KEY.upper()}"}, ""),
    "two words": ({"Authorization": f"Bearer {KEY} {KEY}"}, ""),
    "cookie": ({"Cookie": f"token={KEY}; api_key={KEY}"}, ""),
    **{f"?{name}": ({}, f"?{name}={KEY}") for name in QUERIES},
}
OPEN = {"bearer", "X-API-Key", "X-API-Key beside Basic"}
MODEL = {*OPEN, "x-goog-api-key", "Api-Key", "?key"}  # the places of four vendors' clients


@pytest.fixture(scope="module")
def keyed() -> Iterator[Emulator]:
    """A double with an API key and a small body limit."""
    app = SimpleApp("first")

    @app.entrypoint
    async def never_reached(payload: object, headers: object) -> str:
        return "reached"

    apps = (app, SimpleApp("second"), MCPApp("tools"), MCPApp("more-tools"), A2AApp("agent"))
    with Emulator(*apps, api_key=KEY, token="t0ken", body_limit=LIMIT) as double:
        yield double


def kind(response: httpx.Response) -> tuple[int, str]:
    error = response.json()["error"]
    return response.status_code, error.get("data", error)["type"]  # JSON-RPC has it in data


@pytest.fixture(scope="module")
def own() -> Iterator[Mapping[str | None, Emulator]]:
    """Doubles without and with an API key, both with the token KEY."""
    with Emulator(token=KEY) as plain, Emulator(token=KEY, api_key="the API key") as keyed:
        yield {None: plain, "the API key": keyed}


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "10.0.0.1", "", "[::2]"]
)
@pytest.mark.parametrize("path", ["/ping", "/_emulator/health", "/nothing"])
def test_a_foreign_host_is_refused(shared: Emulator, path: str, host: str) -> None:
    """DNS rebinding reaches nothing, including the double's own routes."""
    assert (403, "ForbiddenHost") == kind(http.get(shared.url + path, headers={"Host": host}))


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8000"])
def test_loopback_names_are_allowed(shared: Emulator, host: str) -> None:
    """Any port is fine, since it may be forwarded."""
    assert 200 == http.get(f"{shared.url}/ping", headers={"Host": host}).status_code


@pytest.mark.parametrize("path", ["/ping", "/_emulator/health", "/?Action=InvokeTool"])
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "http://127.0.0.1", "https://127.0.0.1:1"]
)
def test_a_foreign_origin_is_refused(shared: Emulator, path: str, origin: str) -> None:
    """A foreign web page reaches nothing."""
    response = http.get(shared.url + path, headers={"Origin": origin})

    assert (403, "ForbiddenOrigin") == kind(response)


def test_names_can_be_allowed() -> None:
    """A CI service can reach the double by its service name."""
    with Emulator(allow_hosts=("Double.local",)) as double:
        allowed = http.get(f"{double.url}/ping", headers={"Host": "double.LOCAL:80"})
        refused = http.get(f"{double.url}/ping", headers={"Host": "other.local"})

    assert [200, 403] == [allowed.status_code, refused.status_code]


def test_ip_addresses_are_allowed_beyond_loopback() -> None:
    """On every interface, any IP address is a valid Host, but no foreign name."""
    with Emulator(host="0.0.0.0", api_key=KEY) as double:
        bearer = {"Authorization": f"Bearer {KEY}"}
        by_address = http.get(f"{double.url}/ping", headers={"Host": "192.0.2.7:80", **bearer})
        by_name = http.get(f"{double.url}/ping", headers={"Host": "evil.example", **bearer})

    assert [200, 403] == [by_address.status_code, by_name.status_code]


@pytest.mark.parametrize(("method", "path"), SURFACES)
@pytest.mark.parametrize(
    "headers",
    WRONG,
    ids=str,
)
def test_every_surface_requires_the_key(
    keyed: Emulator, method: str, path: str, headers: dict[str, str]
) -> None:
    raw = {name: value.encode("latin-1") for name, value in headers.items()}

    response = http.request(method, keyed.url + path, headers=raw)

    assert (401, "Unauthorized") == kind(response)
    assert "Bearer" == response.headers["www-authenticate"]


@pytest.mark.parametrize("headers", [{"Authorization": f"bearer {KEY}"}, {"X-Api-Key": KEY}])
@pytest.mark.parametrize("path", ["/ping", "/runtimes/second/ping"])
def test_the_key_opens_every_surface(keyed: Emulator, path: str, headers: dict[str, str]) -> None:
    """It can be a bearer token or in X-Api-Key."""
    assert 200 == http.get(keyed.url + path, headers=headers).status_code


@pytest.mark.parametrize(
    ("path", "ways"),
    [
        ("/ping", OPEN),
        ("/list-apps", OPEN),
        ("/nothing/here", OPEN),
        ("/.well-known/agent-card.json", OPEN),
        ("/runtimes/second/ping", OPEN),
        ("/runtimes/nobody/ping", OPEN),
        ("/_emulator/clock", OPEN),
        ("/mcp", {"bearer"}),
        ("/runtimes/more-tools/mcp", {"bearer"}),
        ("/model/v1/models", MODEL),
        ("/model/token/local-key/v1/models", MODEL),
        ("/jupyter/api", {"bearer", "Token", "?token"}),
        ("/jupyter/token/local-key/api", WAYS.keys()),
        ("/jupyter/token/LOCAL-KEY/api", {"bearer", "Token", "?token"}),
    ],
)
def test_each_surface_reads_the_key_at_its_own_places(
    keyed: Emulator, path: str, ways: Collection[str]
) -> None:
    """A bearer token everywhere, and for MCP nothing else (MCP-02)."""
    statuses = {
        way: http.get(keyed.url + path + query, headers=headers).status_code
        for way, (headers, query) in WAYS.items()
    }

    assert {*ways} == {way for way, status in statuses.items() if status != 401}


@pytest.mark.parametrize("headers", WRONG, ids=str)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/_emulator/reset"),
        ("GET", "/_emulator/journal"),
        ("GET", "/_emulator/nothing"),
    ],
)
@pytest.mark.parametrize("api_key", [None, "the API key"])
def test_own_routes_require_the_token(
    own: Mapping[str | None, Emulator],
    api_key: str | None,
    method: str,
    path: str,
    headers: dict[str, str],
) -> None:
    """The error says where the token is."""
    sent = {name: value.encode("latin-1") for name, value in headers.items()}

    response = httpx.request(method, own[api_key].url + path, headers=sent)

    assert (401, "Unauthorized") == kind(response)
    assert "agentdouble env shows it as AGENTDOUBLE_TOKEN" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("api_key", "secret"), [(None, KEY), ("the API key", KEY), ("the API key", "the API key")]
)
def test_the_token_or_the_key_opens_own_routes(
    own: Mapping[str | None, Emulator], api_key: str | None, secret: str
) -> None:
    """As a bearer token or in X-API-Key."""
    url = f"{own[api_key].url}/_emulator/clock"

    for headers in ({"Authorization": f"Bearer {secret}"}, {"X-API-Key": secret}):
        assert 200 == httpx.get(url, headers=headers).status_code


def test_health_needs_neither_key_nor_token(own: Mapping[str | None, Emulator]) -> None:
    for double in own.values():
        assert 200 == httpx.get(f"{double.url}/_emulator/health").status_code


def test_the_token_is_not_the_api_key(own: Mapping[str | None, Emulator]) -> None:
    """It opens no other route."""
    headers = {"Authorization": f"Bearer {KEY}"}

    assert 401 == httpx.get(f"{own['the API key'].url}/ping", headers=headers).status_code


def test_session_code_cannot_read_the_token(shared: Emulator) -> None:
    """Neither in its environment nor without credentials."""
    code = (
        "import os, urllib.request\n"
        f"page = urllib.request.urlopen('{shared.url}/').read().decode()\n"
        "str(dict(os.environ)) + page"
    )
    output = result(shared, code, "token")

    assert "agentdouble" in str(output)
    assert shared.token not in str(output)


def test_a_signed_request_needs_no_key(keyed: Emulator) -> None:
    """The control plane's own rules apply to it."""
    wrong_tool = {**body_of(keyed, "1"), "ToolId": "t-other"}
    request = signed(keyed, wrong_tool)

    assert "InvalidResource.NotFound" == error_of(send(request))["Code"]
    assert "MissingAuthenticationToken" == error_of(http.post(request.url))["Code"]


def test_an_unsigned_control_plane_requires_the_key() -> None:
    with Emulator(api_key=KEY, check_signatures=False) as double:
        url = f"{double.url}/?Action=InvokeTool&Version=2025-10-30"
        body = body_of(double, "1")
        without = http.post(url, json=body)
        with_key = http.post(url, json={**body, "ToolId": "t-x"}, headers={"X-Api-Key": KEY})

    assert (401, "Unauthorized") == (without.status_code, error_of(without)["Code"])
    assert (404, "InvalidResource.NotFound") == (with_key.status_code, error_of(with_key)["Code"])


def test_a_host_header_cannot_bypass_the_key(keyed: Emulator) -> None:
    """Only the request line determines the path."""
    host = keyed.url.removeprefix("http://")

    response = http.get(f"{keyed.url}/ping?Action=X", headers={"Host": f"{host}/?"})

    assert (400, "BadHost") == kind(response)


@pytest.mark.parametrize(
    ("path", "announced"),
    [
        ("/invoke", True),
        ("/invoke", False),
        ("/_emulator/clock", True),
        ("/_emulator/clock", False),
        ("/run", True),
    ],
)
def test_a_body_over_the_limit_is_refused(keyed: Emulator, path: str, announced: bool) -> None:
    """413 names the limit, even without a Content-Length."""
    response = http.post(keyed.url + path, content=big_body(announced), headers={"X-Api-Key": KEY})

    assert (413, "BodyTooLarge") == kind(response)
    assert "larger than 2000 bytes" in response.json()["error"]["message"]


def big_body(announced: bool) -> bytes | Iterator[bytes]:
    size = LIMIT + 1
    return b"x" * size if announced else iter([b"x" * LIMIT, b"x" * (size - LIMIT)])
