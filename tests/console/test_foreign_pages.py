"""Foreign pages and code of sessions and runtimes cannot use the console."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import text
from tests.agentdouble.runtimes.asking import ask, asking_table
from tests.console.foreign import got

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.once

PAGE = b"<!doctype html><title>foreign</title><p>a page of somebody else"


class _Foreign(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def foreign_port() -> Iterator[int]:
    """The port of an unrelated web server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Foreign) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def hosting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """A double with a console and a runtime that serves a page on the double's port."""
    served = tmp_path_factory.mktemp("served")
    (served / "page.html").write_bytes(PAGE)
    command = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "$PORT"]
    files = {"name": "files", "directory": str(served), "command": command}
    tables = [files, asking_table("asking", tmp_path_factory.mktemp("asking"))]
    with Emulator(console=True, pool_size=0, runtimes=tables) as double:
        yield double


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:PORT/", "http://localhost:PORT/", "data:text/html,foreign", "RUNTIME"],
)
def test_a_foreign_page_cannot_read_or_write(
    browser: Browser, hosting: Emulator, foreign_port: int, address: str
) -> None:
    """Not even a known token helps."""
    hosting.reset(keep=("runtimes",))
    url, token = parts(hosting)
    runtime_s = f"{hosting.url}/runtimes/files/page.html"
    context = browser.new_context()
    page = context.new_page()
    page.goto(address.replace("PORT", str(foreign_port)).replace("RUNTIME", runtime_s))

    results = [got(page, url, token), got(page, url, "unknown")]

    windows = [window for window in context.pages if window is not page]
    for window in windows:
        window.wait_for_load_state()
    counts = [window.get_by_text("Connected").count() for window in windows]
    context.close()
    assert [{}, {}] == results
    assert [0, 0] == counts
    assert 0 == hosting.clock.offset.total_seconds()
    own = ("page.html", "favicon.ico")  # what a browser requests by itself
    assert not [entry for entry in hosting.journal.entries() if not entry.url.endswith(own)]


def test_the_attempts_succeed_on_the_console_page(browser: Browser, hosting: Emulator) -> None:
    """This shows that the attempts themselves work."""
    url, token = parts(hosting)
    page = browser.new_page()
    page.goto(f"{url}/#token={token}")
    page.get_by_text("Connected").wait_for()

    results = got(page, url, token)

    page.context.close()
    moved = hosting.clock.offset.total_seconds()
    assert 60 == moved
    assert {"fetch", "fetch the shell", "import", "picture", "style", "window", "write"} == {
        name for name, result in results.items() if '"error"' not in str(result)
    }


ASK = """
import json, urllib.error, urllib.request
def ask(path, data=None):
    request = urllib.request.Request(URL + path, data, {"Content-Type": "application/json"})
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code
paths = ("/api/sessions", "/api/console/connection", "/api/served/ping", "/api/events")
found = [*map(ask, paths), ask("/api/console/actions/ListTools", b"{}"), ask("/api/clock", b"{}")]
"""


def test_code_of_sessions_and_runtimes_is_refused(hosting: Emulator) -> None:
    url, _ = parts(hosting)
    code = ASK.replace("URL", repr(url))

    of_session = json.loads(text(hosting, f"{code}\nprint(json.dumps(found))"))
    space = f"(lambda space: [exec({json.dumps(code)}, space), space['found']][1])({{}})"

    assert [401] * 6 == of_session
    assert [401] * 6 == ask(hosting, "asking", space)


def parts(double: Emulator) -> tuple[str, str]:
    """Return the URL of a double's console and its token."""
    url, _, token = (double.console_url or "").partition("/#token=")
    return url, token
