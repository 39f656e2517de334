from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

import agentdouble
from agentdouble import A2AApp, Emulator, SimpleApp
from tests.agentdouble.calling import act, http

BROWSER = {
    "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
    "Sec-Fetch-Site": "none",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Dest": "document",
}


class AtTheRoot(SimpleApp):
    """An application with a route at ``/``."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/":
            await PlainTextResponse("the application's")(scope, receive, send)
            return
        await super().__call__(scope, receive, send)


def paths_of(document: Mapping[str, Any]) -> dict[str, list[str]]:
    return {surface["name"]: list(surface["paths"]) for surface in document["surfaces"]}


def test_the_root_lists_all_surfaces_as_json(double: Emulator) -> None:
    """It has name, version and the paths of each surface."""
    answer = http.get(f"{double.url}/")
    document = answer.json()

    assert "application/json" == answer.headers["content-type"]
    assert ("agentdouble", agentdouble.__version__) == (document["name"], document["version"])
    assert {
        "Control plane": ["/?Action=InvokeTool&Version=2025-10-30"],
        "Applications": ["/invoke", "/mcp", "/ping"],
        "A2A applications": ["/.well-known/agent-card.json", "/"],
        "OpenAPI": ["/openapi.json"],
        "API server": ["/list-apps", "/apps/<agent>/users/<user>/sessions", "/run"],
        "The double's own": [
            "/_emulator/health",
            "/_emulator/surfaces",
            "/_emulator/clock",
            "/_emulator/journal",
            "/_emulator/unknowns",
            "/_emulator/unknowns/catalogue",
            "/_emulator/faults",
            "/_emulator/sessions",
            "/_emulator/runtimes",
            "/_emulator/metrics",
        ],
        "MCP services": ["/mcp/<name>"],
        "Runtimes": ["/runtimes/<name>"],
        "Sessions of the sandbox": ["/v1/..."],
        "Jupyter": ["/jupyter"],
        "Model": ["/model/v1", "/model/v1beta"],
    } == paths_of(document)


def test_the_root_is_a_page_for_browsers(double: Emulator) -> None:
    """The HTML supports light and dark and loads nothing."""
    answer = http.get(f"{double.url}/", headers=BROWSER)

    assert "text/html; charset=utf-8" == answer.headers["content-type"]
    policy = answer.headers["content-security-policy"]
    assert ("default-src 'none'; style-src 'unsafe-inline'", "Accept") == (
        policy,
        answer.headers["vary"],
    )
    assert f"<h1>agentdouble {agentdouble.__version__}</h1>" in answer.text
    assert '<meta name="color-scheme" content="light dark">' in answer.text
    assert [] == re.findall(r"<script|<link|<img|https?:|url\(|@import|\son\w+=", answer.text)


def test_the_page_shows_no_secrets() -> None:
    """It has no key of the double and nothing of its sessions and services."""
    with Emulator(SimpleApp("any"), api_key="the-api-key") as double:
        act(double, "CreateSession", ToolId=double.tool_id, UserSessionId="somebody-s")
        headers = {"X-Api-Key": "the-api-key"}
        texts = [
            http.get(f"{double.url}/", headers={**headers, "Accept": kind}).text
            for kind in ("text/html", "application/json")
        ]

    hidden = ("the-api-key", double.credentials.access_key, double.credentials.secret_key)
    assert [] == [name for name in (*hidden, "somebody-s") if any(name in text for text in texts)]


def test_the_page_requires_access(double: Emulator) -> None:
    """A foreign Host or Origin is refused, and so is a missing key."""
    url = f"{double.url}/"
    with Emulator(SimpleApp("any"), api_key="key") as keyed:
        refused = {
            "host": http.get(url, headers={"Host": "evil.example"}),
            "page": http.get(url, headers={"Origin": "https://evil.example"}),
            "image": http.get(url, headers={"Sec-Fetch-Site": "cross-site"}),
            "no key": http.get(f"{keyed.url}/"),
        }

    assert {
        "host": (403, "ForbiddenHost"),
        "page": (403, "ForbiddenOrigin"),
        "image": (403, "ForbiddenOrigin"),
        "no key": (401, "Unauthorized"),
    } == {
        name: (answer.status_code, answer.json()["error"]["type"])
        for name, answer in refused.items()
    }


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_application_can_use_the_root(method: str) -> None:
    """The page is only a fallback."""
    with Emulator(AtTheRoot("mine")) as double:
        answer = http.request(method, f"{double.url}/", headers={"Accept": "text/html"})

    assert (200, "text/plain; charset=utf-8") == (
        answer.status_code,
        answer.headers["content-type"],
    )


def test_an_a2a_application_keeps_posts_to_the_root() -> None:
    """POST / is its JSON-RPC, GET / is the page."""
    with Emulator(A2AApp("agent", runner="coder")) as double:
        posted = http.post(f"{double.url}/", json={"jsonrpc": "2.0", "id": 1, "method": "none"})
        page = http.get(f"{double.url}/").json()

    assert -32601 == posted.json()["error"]["code"]
    assert "the application agent, by POST" in str(page["surfaces"])
