"""Isolation of framed HTML in a real browser."""

from __future__ import annotations

import http.server
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentdouble.sandbox.browser import chromium
from doublecheck.core.markup import framed

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


class Asked(http.server.ThreadingHTTPServer):
    """A server that records the requested paths."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.paths: set[str] = set()


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Asked)
        self.server.paths.add(self.path)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def chromium_path() -> str:
    executable = chromium.find(None)
    if executable is None:
        lacking = pytest.fail if "CI" in os.environ else pytest.skip
        lacking(f"needs Chromium: {chromium.INSTALL}")
    return executable


@pytest.fixture
def requests() -> Iterator[Asked]:
    with Asked() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_framed_html_sends_no_requests_and_cannot_reach_the_page(
    chromium_path: str, requests: Asked, tmp_path: Path
) -> None:
    """The control image of the page itself is fetched."""
    url = f"http://127.0.0.1:{requests.server_port}"
    frames = "".join(framed(attack.format(url=url)) for attack in ATTACKS)
    page = tmp_path / "page.html"
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

    assert {"/own"} == requests.paths
    assert "<title>calm</title>" in result
