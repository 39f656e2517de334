"""Pages of runtimes in a real browser: what they can reach of their double."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http
from tests.console.driving import launched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ATTACK = """
async () => {
  const json = {method: "POST", headers: {"Content-Type": "application/json"}}
  const ask = async (path, options) => {
    try { return (await fetch(path, options)).status } catch { return "blocked" }
  }
  return {
    journal: await ask("/_emulator/journal"),
    cached: await ask("/_emulator/journal", {cache: "force-cache"}),
    unnamed: await ask("/_emulator/sessions", {referrerPolicy: "no-referrer"}),
    clock: await ask("/_emulator/clock", {...json, body: '{"advance_s": 60}'}),
    faults: await ask("/_emulator/faults", {...json, body: "{}"}),
    reset: await ask("/_emulator/reset", {method: "POST"}),
  }
}
"""
PAGE = "<!doctype html><title>Own</title><script>localStorage.setItem('kept', 'yes')</script>"
PROGRAM = """
import http.server, os

class Pages(http.server.SimpleHTTPRequestHandler):
    def end_headers(self):
        self.send_header("Service-Worker-Allowed", "/")
        super().end_headers()

http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Pages).serve_forever()
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """This machine's Chromium; without one, tests are skipped, or fail in CI."""
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """A double with a runtime that serves a directory."""
    pages = tmp_path_factory.mktemp("pages")
    (pages / "index.html").write_text(PAGE)
    (pages / "own.json").write_text('{"own": true}')
    (pages / "worker.js").write_text("addEventListener('fetch', () => {})")
    (pages / "serve.py").write_text(PROGRAM)
    tables = [{"name": "pages", "command": "python serve.py", "directory": str(pages)}]
    with Emulator(runtimes=tables) as double:
        yield double


@pytest.fixture
def page(browser: Browser, double: Emulator) -> Iterator[Page]:
    """A page served by the runtime."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{double.url}/runtimes/pages/index.html")
        yield page


def test_a_runtime_page_cannot_control_the_double(page: Page, double: Emulator) -> None:
    """It has the double's origin, but not its token."""
    before = http.get(f"{double.url}/_emulator/clock").json()["offset_s"]
    outcome: dict[str, Any] = page.evaluate(ATTACK)

    assert dict.fromkeys(outcome, 401) == outcome
    assert before == http.get(f"{double.url}/_emulator/clock").json()["offset_s"]
    assert http.get(f"{double.url}/_emulator/journal").json()["entries"]


def test_a_runtime_page_can_use_its_own_runtime(page: Page) -> None:
    """It can request its own paths and use storage."""
    own = page.evaluate("async () => (await fetch('own.json')).json()")
    page.reload()

    assert {"own": True} == own
    assert "yes" == page.evaluate("() => localStorage.getItem('kept')")


def test_a_foreign_page_reaches_nothing(page: Page, double: Emulator) -> None:
    other = double.url.replace("127.0.0.1", "localhost")
    page.goto(f"{other}/runtimes/pages/index.html")
    ask = f"async () => {{ try {{ return (await fetch('{double.url}/ping')).status }} catch {{ return 'blocked' }} }}"

    assert "blocked" == page.evaluate(ask)
