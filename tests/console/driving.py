"""Drive the console as a user does, in a real Chromium."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from agentdouble import Emulator
from tests import machine
from tests.agentdouble.calling import act, http

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE_MS = 15_000
DEFINITION: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "http://127.0.0.1:9"}],
    "paths": {
        "/pets": {
            "get": {
                "operationId": "pets",
                "parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer"}}],
                "responses": {"200": {"description": "d"}},
            }
        }
    },
}


@contextmanager
def launched() -> Iterator[Browser]:
    """Launch a headless Chromium, if there is one."""
    if importlib.util.find_spec("playwright") is None:
        machine.lack("needs Playwright: pip install 'agentdouble[emulator,test]'")
    path = machine.require_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # its own sandbox needs what containers and root do not have
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def console_page(
    browser: Browser, double: Emulator, *, refused: Collection[int] = (), **options: Any
) -> Iterator[Page]:
    """Show the console and check that the page logs no errors and sends no requests elsewhere.

    ``refused`` are the error statuses that its requests may get, because the browser logs each.
    """
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    errors: list[str] = []
    urls: list[str] = []
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: urls.append(request.url))
    assert double.console_url is not None
    page.goto(double.console_url)
    page.get_by_text("Connected").wait_for()
    yield page
    context.close()
    noted = [f"the server responded with a status of {status} " for status in refused]
    errors = [error for error in errors if not any(note in error for note in noted)]
    origin = double.console_url.partition("/#")[0]
    assert ([], []) == (
        errors,
        [url for url in urls if not url.startswith((origin, "data:", "blob:"))],
    )


def go(page: Page, path: str) -> None:
    """Navigate to another console page, as its links do."""
    page.evaluate(
        "(path) => { history.pushState(null, '', path);"
        " dispatchEvent(new PopStateEvent('popstate')); }",
        path,
    )
    page.locator("main:not([aria-busy])").wait_for()


def barriers(page: Page) -> list[tuple[str, list[str]]]:
    """Return the violations of WCAG 2.1 A and AA and of best practices that axe finds.

    A rule that axe does not apply by itself is among them: a label contains the text that is seen,
    so that people who speak to their computer can say it.

    The page's context needs ``bypass_csp``, because axe evaluates text as a script, which the
    console's policy forbids.
    """
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs the extra test"
    )
    options = {"rules": {"label-content-name-mismatch": {"enabled": True}}}
    broken = axe.Axe().run(page, options=options).response["violations"]
    return [(rule["id"], [node["html"][:200] for node in rule["nodes"]]) for rule in broken]


def ask(double: Emulator, session: str = "s0", code: str = "print(6 * 7)") -> None:
    """Have the built-in coder run code in a session."""
    headers = {"user_id": "ann", "session_id": session}
    answer = http.post(f"{double.url}/invoke", json={"prompt": code}, headers=headers, timeout=60)
    answer.raise_for_status()


def run_turn(double: Emulator, agent: str, session: str, text: str = "one two") -> None:
    """Start an API-server session and run one turn of its agent."""
    path = f"{double.url}/apps/{agent}/users/ann/sessions/{session}"
    http.post(path, json={}).raise_for_status()
    message = {"role": "user", "parts": [{"text": text}]}
    body = {"appName": agent, "userId": "ann", "sessionId": session, "newMessage": message}
    http.post(f"{double.url}/run_sse", json=body, timeout=60).raise_for_status()


def create_api(double: Emulator, name: str) -> str:
    """Create an MCP service from an OpenAPI definition and return its id."""
    definition = {"Configuration": json.dumps(DEFINITION), "Type": "Swagger"}
    api = {"HttpApiConfiguration": definition}
    return create_service(double, name, ProtocolType="HTTP", ProtocolConfiguration=api)


def create_service(double: Emulator, name: str, **fields: Any) -> str:
    """Create an MCP service and return its id."""
    body = {"Name": name, "Path": "/", "BackendType": "Custom", **fields}
    return str(act(double, "CreateMCPService", **body)["MCPServiceId"])


def session_id(double: Emulator) -> str:
    sessions = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    return str(sessions[0]["SessionId"])


def open_session(page: Page, double: Emulator) -> None:
    page.locator("body").press("2")
    page.get_by_role("link", name="coder_ann_s0").click()
    page.get_by_role("textbox", name="Code").wait_for()
