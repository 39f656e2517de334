"""The browser's routes: info, screenshots and the CDP endpoint."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from operator import not_
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from agentdouble import Emulator
from agentdouble.sandbox.browser import front_page
from tests.agentdouble.calling import (
    DataPlane,
    act,
    data_plane,
    eventually,
    http,
    text,
)
from tests.agentdouble.sandbox.browser.browsing import (
    Page,
    client_of,
    data_url,
)

pytestmark = pytest.mark.once

PLAYWRIGHT = """
import sys
from playwright.sync_api import sync_playwright

with sync_playwright() as playwright:
    browser = playwright.chromium.connect_over_cdp(sys.argv[1])
    page = browser.contexts[0].new_page()
    page.goto("data:text/html,<title>before</title><button>go</button>")
    page.evaluate("document.querySelector('button').onclick = () => document.title = 'after'")
    page.get_by_role("button").click()
    print(page.title())
    page.close()
    browser.close()
"""
SERVES_A_PAGE = """
import http.server, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<title>of the session's own</title>")
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port)
"""


@pytest.fixture(scope="module")
def plane(browsing: Emulator) -> DataPlane:
    return data_plane(browsing, "routes")


def read_png(picture: bytes) -> tuple[int, int, bytes]:
    """Return the width, the height and the colour of the first pixel, which no filter changes."""
    chunks, data = {}, picture[8:]
    while data:
        (length,) = struct.unpack(">I", data[:4])
        kind, content = data[4:8], data[8 : 8 + length]
        chunks[kind] = chunks.get(kind, b"") + content
        data = data[12 + length :]
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    return width, height, zlib.decompress(chunks[b"IDAT"])[1:4]


def info(plane: DataPlane) -> dict[str, Any]:
    info: dict[str, Any] = plane.get("/v1/browser/info").json()["data"]
    return info


def test_info_describes_the_browser_and_its_cdp_address(plane: DataPlane) -> None:
    """SBX-11: the session's token opens the CDP address; there is no screen."""
    answer = plane.get("/v1/browser/info")

    document = answer.json()
    data = document["data"]
    agent, size = data.pop("user_agent"), data.pop("page_viewport")
    query = "&".join(f"{name}={value}" for name, value in plane.query.items())
    assert "HeadlessChrome/" in agent
    assert 1280 == size["width"]
    assert {
        "success": True,
        "message": "Operation successful",
        "data": {
            "cdp_url": f"{plane.url.replace('http', 'ws')}/v1/browser/cdp?{query}",
            "vnc_url": "",
            "cdp_ui_url": None,
            "viewport": size,
        },
        "hint": None,
    } == document


def test_playwright_connects_from_another_process(plane: DataPlane) -> None:
    """It uses the address from the browser's info."""
    command = [sys.executable, "-c", PLAYWRIGHT, info(plane)["cdp_url"]]

    done = subprocess.run(command, capture_output=True, text=True, timeout=180)

    assert ("after\n", "") == (done.stdout, done.stderr)


def test_a_screenshot_shows_the_front_page(plane: DataPlane) -> None:
    """It defaults to JPEG (U-BROWSER-FORMAT), in the size of the viewport."""
    with client_of(plane) as client:
        client.page().go(data_url("<body style='background: rgb(0, 128, 255)'>"))
        default = plane.get("/v1/browser/screenshot")
        png = plane.get("/v1/browser/screenshot", format="png")
        coarse = plane.get("/v1/browser/screenshot", format="jpeg", quality="1")
        size = info(plane)["viewport"]

    assert ["image/jpeg", "image/png", "image/jpeg"] == [
        image.headers["content-type"] for image in (default, png, coarse)
    ]
    assert (size["width"], size["height"], b"\x00\x80\xff") == read_png(png.content)
    assert b"\xff\xd8\xff" == default.content[:3]
    assert len(coarse.content) < len(default.content)


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ({"format": "gif"}, ["query", "format"]),
        ({"quality": "101"}, ["query", "quality"]),
        ({"quality": "best"}, ["query", "quality"]),
    ],
)
def test_invalid_screenshot_parameters_are_refused(
    plane: DataPlane, query: dict[str, str], where: list[str]
) -> None:
    """The error names the field."""
    answer = plane.get("/v1/browser/screenshot", **query)

    assert (422, [where]) == (answer.status_code, [item["loc"] for item in answer.json()["detail"]])


def test_clients_are_isolated_from_each_other(plane: DataPlane) -> None:
    """What a client creates is removed with it; everything else stays."""
    with client_of(plane) as first, client_of(plane) as other:
        before = set(other.pages())
        context = first.call("Target.createBrowserContext")["browserContextId"]
        target = first.call("Target.createTarget", url="about:blank", browserContextId=context)
        page = Page(first, target["targetId"])
        stolen = other.call("Runtime.evaluate", page.session, expression="1")
        contexts = other.call("Target.getBrowserContexts")["browserContextIds"]
        first.socket.close()

        assert {"code": -32001, "message": "Session with given id not found."} == stolen
        assert [context] == contexts
        eventually(lambda: set(other.pages()), lambda pages: pages == before)
        eventually(lambda: other.call("Target.getBrowserContexts")["browserContextIds"], not_)


def test_a_page_served_by_session_code_is_reachable(browsing: Emulator, plane: DataPlane) -> None:
    """Code and browser share the network and the files."""
    port = text(browsing, SERVES_A_PAGE, "routes").strip()
    text(browsing, "open('/home/gem/page.html', 'w').write('<title>a file</title>')", "routes")
    with client_of(plane) as client:
        page = client.page()
        page.go(f"http://127.0.0.1:{port}/")
        served = page.evaluate("document.title")
        page.go("file:///home/gem/page.html")
        read = page.evaluate("document.title")

    assert ("of the session's own", "a file") == (served, read)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"Authorization": "wrong"}, 403),
        ({"Authorization": ""}, 401),
        ({"faasInstanceName": "s-none"}, 404),
    ],
)
def test_browser_routes_require_the_token(
    plane: DataPlane, query: dict[str, str], status: int
) -> None:
    """Neither requests nor connections work without it."""
    wrong = {**plane.query, **query}
    url = httpx.URL(f"{plane.url.replace('http', 'ws')}/v1/browser/cdp", params=wrong)

    answers = [
        http.get(f"{plane.url}/v1/browser/{path}", params=wrong).status_code
        for path in ("info", "screenshot")
    ]
    with pytest.raises(InvalidStatus) as refused, connect(str(url), proxy=None):
        pass

    assert [status] * 3 == [*answers, refused.value.response.status_code]


def test_a_foreign_origin_may_not_connect(plane: DataPlane) -> None:
    """It is refused even with the right token."""
    url = info(plane)["cdp_url"]

    with (
        pytest.raises(InvalidStatus) as refused,
        connect(url, proxy=None, origin="http://evil.example"),
    ):
        pass

    assert 403 == refused.value.response.status_code


def test_unsupported_routes_are_refused_by_name(plane: DataPlane) -> None:
    answer = plane.post("/v1/browser/restart")

    assert (501, False) == (answer.status_code, answer.json()["success"])
    assert answer.json()["message"].startswith("This route of a session's browser is part of")


def test_a_connection_ends_with_its_session(browsing: Emulator) -> None:
    """The close frame carries the reason."""
    plane = data_plane(browsing, "ends")
    with client_of(plane) as client:
        client.call("Browser.getVersion")
        act(browsing, "DeleteSession", SessionId=plane.query["faasInstanceName"])
        with pytest.raises(ConnectionClosed) as closed:
            client.call("Browser.getVersion")

    received = closed.value.rcvd
    assert received is not None
    assert (1001, "deleted by caller") == (received.code, received.reason)


def test_the_front_page_is_the_newest_visible_one(plane: DataPlane) -> None:
    """Closing a newer page uncovers the previous one."""

    def colour() -> bytes:
        return read_png(plane.get("/v1/browser/screenshot", format="png").content)[2]

    with client_of(plane) as client:
        client.page().go(data_url("<body style='background: rgb(0, 128, 255)'>"))
        red = data_url("<body style='background: rgb(255, 0, 0)'>")
        second = client.call("Target.createTarget", url=red)["targetId"]
        eventually(colour, lambda pixel: pixel == b"\xff\x00\x00")
        client.call("Target.closeTarget", targetId=second)
        eventually(colour, lambda pixel: pixel == b"\x00\x80\xff")


def test_a_screenshot_of_a_busy_page_times_out(
    plane: DataPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operation fails, and the error names the limit."""
    monkeypatch.setattr(front_page, "TIMEOUT_S", 0.5)
    with client_of(plane) as client:
        page = client.page()
        page.go("about:blank")
        number = client.send("Runtime.evaluate", page.session, expression="for (;;);")
        answer = plane.get("/v1/browser/screenshot").json()
        client.call("Runtime.terminateExecution", page.session)
        client.answer(number)

    assert not answer["success"]
    assert "it did not answer within 0.5 s" in answer["message"]
