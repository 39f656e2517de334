"""The overview and the requests page, restarts of the double and invalid tokens."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import act, act_on_session, data_plane
from tests.console.driving import PATIENCE_MS, ask, create_service, go, session_id

pytestmark = pytest.mark.once

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route


def test_an_empty_double_shows_how_to_begin(opened: Page, double: Emulator) -> None:
    """The first request replaces the instructions."""
    opened.get_by_text("Send a first request").wait_for()

    ask(double)

    opened.get_by_role("link", name="/invoke").wait_for()
    opened.get_by_role("link", name="coder_ann_s0").wait_for()
    assert "token" not in opened.url


def test_time_is_advanced(opened: Page, double: Emulator) -> None:
    """The page asks before sessions end, and announces them."""
    ask(double)
    ask(double, "s1")
    act_on_session(double, "SetSessionTtl", session_id(double), Ttl=60, TtlUnit="second")
    opened.get_by_role("link", name="coder_ann_s1").wait_for()

    opened.get_by_role("button", name="Advance the time by 5 min").click()
    opened.get_by_text("1 session will end.").wait_for()
    assert 0 == double.clock.offset.total_seconds()
    opened.get_by_role("button", name="Advance", exact=True).click()

    opened.get_by_text("1 session ended.").wait_for(state="attached")
    opened.get_by_role("link", name="coder_ann_s0").wait_for(state="detached")
    assert 300 <= double.clock.offset.total_seconds() < 301


def test_an_unknown_name_in_a_filter_is_reported(opened: Page, double: Emulator) -> None:
    ask(double)
    opened.locator("body").press("3")

    opened.get_by_label("Filter requests").fill("agent:coder")

    opened.get_by_text("There is no filter agent:.").wait_for()


def test_reset_asks_for_confirmation(opened: Page, double: Emulator) -> None:
    ask(double)
    opened.get_by_role("link", name="/invoke").wait_for()
    opened.get_by_role("button", name="Reset").click()
    opened.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert double.journal.entries()
    opened.get_by_role("button", name="Reset").click()

    opened.get_by_role("dialog").get_by_role("button", name="Reset").click()

    opened.get_by_text("Send a first request").wait_for()


def test_the_secret_key_is_hidden_until_requested(opened: Page, double: Emulator) -> None:
    opened.get_by_role("button", name="Connect").click()
    dialog = opened.get_by_role("dialog")
    dialog.get_by_text("export ").wait_for()
    assert double.credentials.secret_key not in (dialog.text_content() or "")

    dialog.get_by_role("button", name="Show the secret").click()

    dialog.get_by_text(double.credentials.secret_key).wait_for()


def test_requests_by_keyboard(opened: Page, double: Emulator) -> None:
    """Filter, open and repeat one, and see its unknowns."""
    ask(double)
    opened.locator("body").press("3")
    opened.get_by_role("table", name="Requests", exact=True).get_by_role(
        "link", name="InvokeTool"
    ).wait_for()
    opened.keyboard.press("/")
    opened.keyboard.type("op:InvokeTool status:2xx")
    opened.get_by_text("1 request", exact=True).wait_for()
    opened.get_by_role("cell", name="coder_ann_s0").wait_for()
    opened.get_by_role("cell", name="print(6 * 7)").wait_for()
    opened.keyboard.press("Escape")
    opened.keyboard.press("j")

    opened.get_by_role("heading", name="InvokeTool").wait_for()
    opened.get_by_text("U-KERNEL-NAMES", exact=True).wait_for()
    opened.get_by_role("button", name="Repeat").press("Enter")
    opened.get_by_text("2 requests", exact=True).wait_for()
    address = opened.url
    opened.reload()

    opened.get_by_role("heading", name="InvokeTool").wait_for()
    assert (True, address) == ("/requests/" in address, opened.url)


def test_a_restarted_double(browser: Browser) -> None:
    """The page keeps its content, reports the loss and asks for the new token."""
    with Emulator(console=True, pool_size=0) as first:
        port, console_port = (int(address.rpartition(":")[2]) for address in addresses(first))
        httpx.get(f"{first.url}/list-apps")
        page = browser.new_page()
        page.goto(first.console_url or "")
        page.get_by_role("link", name="/list-apps").wait_for()
    page.get_by_text("The double does not answer; reconnecting").wait_for()
    page.get_by_role("link", name="/list-apps").wait_for()

    with Emulator(
        console=True, pool_size=0, port=port, console_port=console_port, token="new"
    ) as second:
        page.get_by_text("This address has no valid token").wait_for(timeout=2000)
        page.get_by_role("link", name="/list-apps").wait_for()
        page.goto(second.console_url or "")  # only the fragment is another
        page.get_by_text("Connected").wait_for()
        page.get_by_text("Send a first request").wait_for()
        page.close()


def test_a_broken_connection_loses_no_requests(browser: Browser, double: Emulator) -> None:
    double.reset(keep=())
    _, console = addresses(double)
    page = browser.new_page()
    with Relay(int(console.rpartition(":")[2])) as relay:
        page.goto((double.console_url or "").replace(console, relay.url))
        httpx.get(f"{double.url}/before")
        page.get_by_role("link", name="/before").wait_for()
        relay.cut()
        page.get_by_text("The double does not answer; reconnecting").wait_for()
        for place in range(3):
            httpx.get(f"{double.url}/meanwhile-{place}")

        relay.mend()
        page.get_by_text("Connected").wait_for(timeout=2000)
        for name in ("/before", *(f"/meanwhile-{place}" for place in range(3))):
            page.get_by_role("link", name=name).wait_for()
        page.close()


def test_an_invalid_token_is_reported(browser: Browser, double: Emulator) -> None:
    """The page asks for a valid one."""
    assert double.console_url is not None
    page = browser.new_page()

    page.goto(double.console_url.partition("=")[0] + "=wrong")
    page.get_by_text("This address has no valid token").wait_for()
    page.get_by_label("Address or token").fill(double.console_url)
    page.get_by_role("button", name="Use").click()

    page.get_by_text("Connected").wait_for()
    page.close()


def test_a_page_that_loads_late_swallows_no_click(browser: Browser, double: Emulator) -> None:
    """The form for the token stays where it is while the page appears below it."""
    assert double.console_url is not None
    page = browser.new_page()
    held: list[Route] = []
    page.route("**/pages/overview.js", lambda route: held.append(route))

    page.goto(double.console_url.partition("=")[0] + "=wrong")
    page.get_by_label("Address or token").fill(double.console_url)
    page.get_by_role("button", name="Use").hover()
    page.mouse.down()
    held.pop().continue_()
    page.locator("#page:not([aria-busy])").wait_for()
    page.unroute("**/pages/overview.js")
    page.mouse.up()

    page.get_by_text("Connected").wait_for()
    page.close()


def addresses(double: Emulator) -> tuple[str, str]:
    return double.url, (double.console_url or "").partition("/#")[0]


class Relay(socketserver.ThreadingTCPServer):
    """Forward connections until it is cut."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.target = ("127.0.0.1", port)
        self.is_cut = False
        self.events_flow = threading.Event()
        self.events_flow.set()
        self.open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def cut(self) -> None:
        """Break all connections and refuse new ones."""
        self.is_cut = True
        self.events_flow.set()
        for connection in tuple(self.open):
            _end(connection)

    def hold_events(self) -> None:
        """Hold back what event streams say from now on, until ``cut``; other answers pass."""
        self.events_flow.clear()

    def mend(self) -> None:
        self.is_cut = False

    def server_close(self) -> None:
        self.cut()
        self.shutdown()
        self._thread.join()
        super().server_close()


class _Passing(socketserver.BaseRequestHandler):
    server: Relay

    def handle(self) -> None:
        if self.server.is_cut:
            return
        with socket.create_connection(self.server.target) as behind:
            sockets = {self.request, behind}
            self.server.open |= sockets
            back = threading.Thread(target=self._pass, args=(behind, self.request))
            back.start()
            self._pass(self.request, behind)
            back.join()
            self.server.open -= sockets

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        is_stream = False
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                is_stream = is_stream or b"content-type: text/event-stream" in data.lower()
                if is_stream:
                    self.server.events_flow.wait()
                target.sendall(data)
        _end(source)
        _end(target)


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def relay(double: Emulator) -> Iterator[Relay]:
    with Relay(int((double.console_url or "").partition("/#")[0].rpartition(":")[2])) as relay:
        yield relay


@pytest.fixture
def page(browser: Browser, double: Emulator, relay: Relay) -> Iterator[Page]:
    """The overview, with a session, behind the relay."""
    double.reset(keep=())
    ask(double)
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{relay.url}/{(double.console_url or '').rpartition('/')[2]}")
    page.get_by_role("link", name="coder_ann_s0").wait_for()
    yield page
    page.close()


def test_sessions_that_will_end_are_counted_at_the_click(
    page: Page, double: Emulator, relay: Relay
) -> None:
    """A new session, a shorter life and a moved clock have not reached the page."""
    relay.hold_events()
    ask(double, "s1")
    act_on_session(double, "SetSessionTtl", session_id(double), Ttl=1920, TtlUnit="second")
    double.clock.advance(minutes=28)

    page.get_by_role("button", name="Advance the time by 5 min").click()
    page.get_by_text("2 sessions will end.").wait_for()
    ask(double, "s2")
    page.get_by_role("button", name="Advance", exact=True).click()

    page.get_by_text("2 sessions ended.").wait_for(state="attached")


def test_a_new_key_of_a_service_keeps_those_of_others(
    page: Page, double: Emulator, relay: Relay
) -> None:
    service = create_service(double, "keys", BackendConfiguration=BACKEND, ProtocolType="MCP")
    go(page, f"/tools/service/{service}")
    page.get_by_label("Name of a new key").wait_for()
    relay.hold_events()
    first = key_names(double, service)
    update_keys(double, service, [*first, "theirs"])

    page.get_by_label("Name of a new key").fill("mine")
    page.get_by_role("button", name="New key").click()
    page.get_by_role("button", name="Revoke mine").wait_for()

    assert [*first, "theirs", "mine"] == key_names(double, service)


def test_a_file_that_changed_since_it_was_opened_is_not_overwritten(
    page: Page, double: Emulator
) -> None:
    """The page asks first."""
    plane = data_plane(double, "coder_ann_s0")
    plane.data("/v1/file/write", file="/home/gem/notes", content="first")
    go(page, f"/sessions/{session_id(double)}/files")
    page.get_by_role("button", name="notes").click()
    page.get_by_label("Text of the file").fill("mine")
    plane.data("/v1/file/write", file="/home/gem/notes", content="theirs")

    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("The file has changed since you opened it.").wait_for()
    assert "theirs" == plane.get("/v1/file/download", path="notes").text
    dialog.get_by_role("button", name="Overwrite").click()
    page.get_by_text("The file is saved.").wait_for(state="attached")

    assert "mine" == plane.get("/v1/file/download", path="notes").text


BACKEND = {"CustomConfiguration": {"Domain": "127.0.0.1", "ProtocolType": "http", "Port": 9}}


def update_keys(double: Emulator, service: str, names: list[str]) -> None:
    keys = {"ApiKeys": [{"Name": name} for name in names]}
    authorizer = {"AuthorizerType": "ApiKey", "Authorizer": {"KeyAuth": keys}}
    act(double, "UpdateMCPService", MCPServiceId=service, InboundAuthorizerConfiguration=authorizer)


def key_names(double: Emulator, service: str) -> list[str]:
    record = act(double, "GetMCPService", MCPServiceId=service)["MCPService"]
    keys = record["InboundAuthorizerConfiguration"]["Authorizer"]["KeyAuth"]["ApiKeys"]
    return [key["Name"] for key in keys]
