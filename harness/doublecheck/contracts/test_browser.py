"""Check that a session has a browser that can be driven (SBX-11)."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from doublecheck.browser import Browser
from doublecheck.contracts import cdp
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.wire import Sandbox
from doublecheck.errors import RefusedError
from doublecheck.results import BrowserInfo

_PAGE = "data:text/html," + quote(
    "<title>checked</title><body style='margin: 0'>"
    "<input style='position: absolute; left: 0; top: 0; width: 300px; height: 100px'>"
    "<button style='position: absolute; left: 0; top: 200px; width: 300px; height: 100px' "
    "onclick='document.title += \" and clicked\"'>"
)
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")


@clause("SBX-11", writes=True)
def test_a_page_is_driven_by_its_protocol_mouse_and_keyboard(sandbox: Sandbox) -> None:
    """A page that the protocol opens is clicked and written on, and a picture is taken of it."""
    sandbox.run("pass")
    browser = sandbox.platform.browser(user_id=sandbox.user_id, session_id=sandbox.session_id)
    info = _info(browser)
    with cdp.opened(info.cdp_url.reveal(), _PAGE) as page:
        browser.act("CLICK", x=100, y=250)
        browser.act("CLICK", x=100, y=50)
        browser.act("TYPING", text="typed")
        browser.act("PRESS", key="backspace")
        picture = browser.screenshot()
        seen = page.evaluate("[document.title, document.querySelector('input').value]")

    assert ["checked and clicked", "type"] == seen
    assert picture.startswith(_PICTURES), picture[:20]
    assert "Mozilla/" in info.user_agent


def _info(browser: Browser) -> BrowserInfo:
    try:
        return browser.info()
    except RefusedError as error:
        if error.status == 503 and "is not installed" in error.body:
            pytest.skip(f"not run: {error.body}")
        raise
