"""Isolation of framed HTML in a real browser."""

from __future__ import annotations

import subprocess
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from doublecheck.core.frames import framed
from tests import machine
from tests.ports import handled

pytestmark = pytest.mark.once

ATTACKS = [
    "<script>location = '{url}/location'</script>",
    "<meta http-equiv=refresh content='0;url={url}/refresh'>",
    "<a id=a href='{url}/link'>a</a><script>a.click()</script>",
    "<form id=f action='{url}/form'></form><script>f.submit()</script>",
    "<script>fetch('{url}/fetch')</script>",
    "<img src='{url}/image'>",
    "<iframe src='{url}/frame'></iframe>",
    "<style>body {{ background: url({url}/style) }}</style>",
    "<script>try {{ top.document.title = 'taken' }} catch (e) {{}}</script>",
    "<script>try {{ parent.location = '{url}/parent' }} catch (e) {{}}</script>",
]


@pytest.fixture
def chromium_path() -> str:
    return machine.require_browser()


def test_framed_html_sends_no_requests_and_cannot_reach_the_page(
    chromium_path: str, tmp_path: Path
) -> None:
    """The control image of the page itself is fetched."""
    paths: set[str] = set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.add(self.path)
            self.send_response(204)
            self.end_headers()

    page = tmp_path / "page.html"
    with handled(Handler) as url:
        frames = "".join(framed(attack.format(url=url)) for attack in ATTACKS)
        page.write_text(
            f"<title>calm</title>{frames}<img src='{url}/own'>".replace(' loading="lazy"', "")
        )

        result = subprocess.run(
            [
                chromium_path,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                f"--user-data-dir={tmp_path / 'profile'}",
                "--virtual-time-budget=3000",
                "--dump-dom",
                page.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        ).stdout

    assert {"/own"} == paths
    assert "<title>calm</title>" in result
