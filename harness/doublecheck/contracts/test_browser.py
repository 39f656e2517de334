"""Check that a session has a browser that can be driven (SBX-11)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest

from doublecheck.client._sync.browser import Browser
from doublecheck.contracts import cdp
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.examples import Examples
from doublecheck.contracts.sandboxes import Sandbox
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import RefusedError

_PAGE = "data:text/html," + quote(
    "<title>checked</title><body style='margin: 0'>"
    "<input style='position: absolute; left: 0; top: 0; width: 300px; height: 100px'>"
    "<button style='position: absolute; left: 0; top: 200px; width: 300px; height: 100px' "
    'onclick=\'document.title += " and clicked"; document.body.style.background = "red"\'>'
)
# a double without Chromium reports that, with the command that installs it
_LACKING = re.compile(r'"message":\s*"([^"]+ is not installed\. Install it: [^"]+)"')
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")


@clause("SBX-11", writes=True)
def test_a_page_is_driven_by_its_protocol(sandbox: Sandbox, examples: Examples) -> None:
    """It is clicked and typed on, pictures of it are taken, and no other session's browser has it.

    A second browser takes seconds to start: with a single example only the first is asked.
    """
    browser = _browser(sandbox)
    sessions = [sandbox.with_session("other")] if examples.count > 1 else []
    with _offered():
        info = browser.info()
        with cdp.opened(info.cdp_url.reveal(), _PAGE) as page:
            before = browser.screenshot()
            page.click(100, 250)
            page.click(100, 50)
            page.call("Input.insertText", text="typed")
            after = browser.screenshot()
            seen = page.evaluate("[document.title, document.querySelector('input').value]")
            own = page.pages()
            theirs = [page for other in map(_browser, sessions) for page in _pages(other)]

    assert ["checked and clicked", "typed"] == seen
    for picture in (before, after):
        assert picture.startswith(_PICTURES), picture[:20]
    assert before != after, "the pictures of two different pages are the same"
    assert "Mozilla/" in info.user_agent
    assert _PAGE in own
    assert _PAGE not in theirs, "another session's browser has the page"


def _pages(browser: Browser) -> list[str]:
    with cdp.opened(browser.info().cdp_url.reveal(), "about:blank") as page:
        return page.pages()


def _browser(sandbox: Sandbox) -> Browser:
    sandbox.run("pass")
    return sandbox.platform.browser(user_id=sandbox.user_id, session_id=sandbox.session_id)


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
