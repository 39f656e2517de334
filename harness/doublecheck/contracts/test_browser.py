"""Check that a session has a browser that clients can control (SBX-11)."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from doublecheck.client._sync.browser import Browser
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.engine import Examples
from doublecheck.contracts.sandboxes import CheckSandbox
from doublecheck.contracts.sentences import short
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import RefusedError

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

_PATIENCE_S = 30.0


@contextmanager
def opened(cdp_url: str, page_url: str) -> Iterator[Page]:
    """Open a page in the browser at a WebSocket URL. Close it afterwards."""
    client = pytest.importorskip("websockets.sync.client", reason="not run: needs websockets")
    with client.connect(cdp_url, max_size=None) as connection:
        browser = Page(connection)
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        page = Page(connection, attached["sessionId"], browser.numbers)
        try:
            page.call("Page.navigate", url=page_url)
            page.evaluate(_LOADED)
            yield page
        finally:
            browser.call("Target.closeTarget", targetId=target)


@dataclass
class Page:
    """A page of a browser, or the browser itself, which has no session."""

    connection: ClientConnection
    session: str | None = None
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def call(self, method: str, **params: Any) -> Any:
        """Call a method and return its result."""
        message: dict[str, Any] = {"id": next(self.numbers), "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        self.connection.send(json.dumps(message))
        while True:
            answer = json.loads(self.connection.recv(_PATIENCE_S))
            if answer.get("id") == message["id"]:
                assert "error" not in answer, f"{method} is refused: {short(answer['error'])}"
                return answer["result"]

    def pages(self) -> list[str]:
        """Return the addresses of all pages of the browser."""
        browser = replace(self, session=None)
        return [str(info["url"]) for info in browser.call("Target.getTargets")["targetInfos"]]

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        options = {"returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", expression=expression, **options)
        return answer["result"].get("value")


_PAGE = "data:text/html," + quote(
    "<title>checked</title><input autofocus>"
    "<button onclick='document.body.style.background = document.title = \"red\"'>"
)
_LOADED = """new Promise(done => {
    if (document.readyState === "complete") done(true);
    else addEventListener("load", () => done(true));
})"""
# a double without Chromium reports this, with the install command
_LACKING = re.compile(r'"message":\s*"([^"]+ is not installed\. Install it: [^"]+)"')
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")


@clause("SBX-11", writes=True)
def test_a_page_is_driven_by_its_protocol(sandbox: CheckSandbox, examples: Examples) -> None:
    """A client can click, type and take screenshots; another session's browser is separate.

    A second browser takes seconds to start, so with a single example only the first is checked.
    """
    browser = _browser(sandbox)
    sessions = [sandbox.with_session("other")] if examples.count > 1 else []
    with _offered():
        info = browser.info()
        with opened(info.cdp_url.reveal(), _PAGE) as page:
            before = browser.screenshot()
            page.evaluate("document.querySelector('button').click()")
            page.evaluate("document.querySelector('input').focus()")
            page.call("Input.insertText", text="typed")
            after = browser.screenshot()
            state = page.evaluate("[document.title, document.querySelector('input').value]")
            own_pages = page.pages()
            other_pages = [page for browser in map(_browser, sessions) for page in _pages(browser)]

    assert ["red", "typed"] == state, f"after a click and typing, the page has {short(state)}"
    for picture in (before, after):
        assert picture.startswith(_PICTURES), f"a screenshot is no picture: {picture[:20]!r}"
    assert before != after, "the screenshots of two different pages are the same"
    assert "Mozilla/" in info.user_agent, f"the user agent is {short(info.user_agent)}"
    assert _PAGE in own_pages, "the page is not among those of its browser"
    assert _PAGE not in other_pages, "another session's browser has the page"


def _pages(browser: Browser) -> list[str]:
    with opened(browser.info().cdp_url.reveal(), "about:blank") as page:
        return page.pages()


def _browser(sandbox: CheckSandbox) -> Browser:
    sandbox.run("pass")
    return sandbox.browser


@contextmanager
def _offered() -> Iterator[None]:
    """Skip the check if the sandbox reports that the browser is not installed."""
    try:
        yield
    except RefusedError as error:
        lacking = _LACKING.search(error.body)
        if error.status != 503 or lacking is None:
            raise
        pytest.skip(f"{Verdict.NOT_OFFERED.value}: {lacking[1]}")
