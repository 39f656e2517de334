"""Foreign pages and code of sessions and runtimes cannot use the console."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import text
from tests.agentdouble.runtimes.asking import ask, asking_table
from tests.ports import handled

pytestmark = pytest.mark.once

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


PAGE = b"<!doctype html><title>foreign</title><p>a page of somebody else"


class _Foreign(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE)


@pytest.fixture(scope="module")
def foreign_port() -> Iterator[str]:
    """The port of an unrelated web server."""
    with handled(_Foreign) as url:
        yield url.rpartition(":")[2]


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


TRIES = {
    "fetch": "(await fetch(url + '/api/sessions', { headers })).text()",
    "fetch without headers": "(await fetch(url + '/api/console/connection')).text()",
    "fetch no-cors": "(await fetch(url + '/api/sessions', { mode: 'no-cors', headers })).text()",
    "fetch the shell": "(await fetch(url + '/')).text()",
    "import": "Object.keys(await import(url + '/static/lib/format.js'))",
    "script": "element('script', 'src', '/static/lib/format.js')",
    "script of data": "element('script', 'src', '/api/sessions?token=' + token)",
    "picture": "element('img', 'src', '/static/icon.svg')",
    "style": "element('link', 'href', '/static/console.css', { rel: 'stylesheet' })",
    "frame": "framed('/')",
    "frame with the token": "framed('/#token=' + token)",
    "frame of outputs": "framed('/frame')",
    "window": "opened('/#token=' + token)",
    "EventSource": "heard(new EventSource(url + '/api/events?token=' + token), 'open')",
    "WebSocket": "heard(new WebSocket(url.replace('http', 'ws') + '/api/events'), 'open')",
    "write": "(await fetch(url + '/api/clock', { method: 'POST', body, headers:"
    " { ...headers, 'Content-Type': 'application/json' } })).text()",
    "write no-cors": "(await fetch(url + '/api/clock', { method: 'POST', body, mode: 'no-cors' })).text()",
    "write as a file": "(await fetch(url + '/api/clock', { method: 'POST', mode: 'no-cors',"
    " body: new Blob([body], { type: 'application/octet-stream' }) })).text()",
    "delete": "(await fetch(url + '/api/journal', { method: 'DELETE', headers })).text()",
    "form": "sent('text/plain')",
    "form urlencoded": "sent('application/x-www-form-urlencoded')",
    "form multipart": "sent('multipart/form-data')",
}
_TRIED = """async ({ url, token, what }) => {
  const headers = { Authorization: `Bearer ${token}` };
  const body = '{"advance_s": 60}';
  const heard = (one, event) => new Promise((resolve) => {
    one.addEventListener(event, () => resolve(event));
    one.addEventListener("error", () => resolve(null));
  });
  const put = (one, parts) => document.documentElement.append(Object.assign(one, parts));
  const element = (tag, name, path, more = {}) => {
    const one = document.createElement(tag);
    put(one, { ...more, [name]: url + path });
    return heard(one, "load");
  };
  const framed = async (path) => {
    const one = document.createElement("iframe");
    const loaded = heard(one, "load");
    put(one, { src: url + path });
    await loaded;
    return one.contentDocument?.body.innerText ?? null;
  };
  const opened = async (path) => {
    const one = window.open(url + path); // closed where it is not ours to hold
    await framed(path);
    while (!one.closed && !one.document.body?.innerText) await new Promise(requestAnimationFrame);
    return one.closed ? null : one.document.body.innerText;
  };
  const sent = async (enctype) => {
    const frame = document.createElement("iframe"), form = document.createElement("form");
    put(frame, { name: `to-${Math.random()}` });
    put(form, { method: "post", action: url + "/api/clock", target: frame.name, enctype });
    const input = document.createElement("input");
    form.append(Object.assign(input, { name: '{"advance_s": 60, "a": "', value: '"}' }));
    const loaded = heard(frame, "load");
    const refused = new Promise((resolve) =>
      addEventListener("securitypolicyviolation", () => resolve(null), { once: true }));
    form.submit();
    await Promise.race([loaded, refused]);
    return frame.contentDocument?.body.innerText || null;
  };
  try { return (await EXPRESSION) || null; } catch { return null; }
}"""


def got(page: Page, url: str, token: str) -> dict[str, Any]:
    """Return what a foreign page gets from the console at this URL."""
    arguments = {"url": url, "token": token, "what": ""}
    results = {
        name: page.evaluate(_TRIED.replace("EXPRESSION", expression), arguments)
        for name, expression in TRIES.items()
    }
    return {name: result for name, result in results.items() if result is not None}


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


# url is the console's address, token its token or a wrong one
