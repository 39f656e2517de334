"""The shell around the pages: addresses, the focus, and lists in windows of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import act, eventually, http, text_by_id
from tests.console.driving import ask, console_page, go, session_id

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.once

IN_THE_PAGE = "document.getElementById('page').contains(document.activeElement)"
FOCUSED = "document.activeElement.textContent"


def until(page: Page, holds: str) -> None:
    """Wait until an expression holds; ``wait_for_function`` may not, by the console's policy."""
    eventually(lambda: page.evaluate(f"!!({holds})"), bool)


@pytest.mark.parametrize("path", ["console/nonsense", "session", "unknowns/U-NOPE", "index.html"])
def test_an_unknown_page_has_the_navigation(browser: Browser, double: Emulator, path: str) -> None:
    with console_page(browser, double, refused=(404,)) as page:
        address = f"{page.url.rstrip('/')}/{path}"
        status = httpx.get(address).status_code
        page.goto(address)

        page.get_by_role("heading", name="Not found").wait_for()
        assert "Not found · agentdouble" == page.title()
        assert path in page.get_by_role("main").inner_text()
        assert 0 == page.locator("nav [aria-current]").count()
        assert 404 == status
        page.get_by_role("link", name="Sessions").click()
        page.get_by_role("heading", name="Sessions").wait_for()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/requests/abc", "There is no request abc"),
        ("/requests/999999", "does not have request 999999"),
        ("/requests/{id}/abc", "There is no request abc"),
        ("/tools/nonsense", "There is no page nonsense here"),
        ("/sessions/s-none", "no session with this id"),
        ("/agents/nonsense", "This agent does not exist"),
    ],
)
def test_an_unknown_item_is_reported(
    browser: Browser, double: Emulator, path: str, told: str
) -> None:
    double.reset(keep=())
    http.get(f"{double.url}/ping")
    with console_page(browser, double, refused=(404,)) as page:
        go(page, path.format(id=double.journal.entries()[-1].id))

        page.get_by_text(told).wait_for()


def test_keys_that_change_the_page_move_the_focus_into_it(opened: Page, double: Emulator) -> None:
    """The keys 1 to 7, Enter on a link, and j and k, which focus the chosen row."""
    ask(double)
    http.get(f"{double.url}/ping")
    opened.get_by_role("link", name="coder_ann_s0").wait_for()
    for key, heading in enumerate(
        ["Overview", "Sessions", "Requests", "Agents", "Tools and services", "Unknowns", "Faults"],
        1,
    ):
        opened.keyboard.press(str(key))
        opened.get_by_role("heading", name=heading, exact=True, level=1).wait_for(state="attached")
        if key > 1:  # it is the first page
            until(opened, IN_THE_PAGE)

    opened.get_by_role("link", name="Requests", exact=True).press("Enter")
    opened.get_by_role("heading", name="Requests", level=1).wait_for()
    until(opened, IN_THE_PAGE)
    opened.keyboard.press("j")
    until(opened, f"{FOCUSED} === '/ping'")
    opened.keyboard.press("j")
    until(opened, f"{FOCUSED} === '/invoke'")
    opened.keyboard.press("Enter")
    until(opened, "document.activeElement.getAttribute('aria-label') === 'Request'")
    opened.get_by_role("heading", name="/invoke", exact=True).wait_for()
    opened.get_by_role("button", name="Copy as curl").wait_for()
    opened.keyboard.press("Tab")
    until(opened, f"document.activeElement.closest('.detail') && {IN_THE_PAGE}")
    opened.keyboard.press("2")
    opened.get_by_role("region", name="Active").get_by_role("link", name="coder_ann_s0").wait_for()
    opened.keyboard.press("j")
    until(opened, f"{FOCUSED} === 'coder_ann_s0'")
    opened.keyboard.press("Enter")
    opened.get_by_role("heading", name="coder_ann_s0").wait_for()
    until(opened, IN_THE_PAGE)
    opened.keyboard.press("5")
    opened.get_by_role("link", name="sandbox").first.wait_for()
    opened.keyboard.press("j")
    until(opened, "document.activeElement.closest('.row.current')")


def test_the_focus_stays_in_the_page_when_its_element_goes(
    browser: Browser, double: Emulator
) -> None:
    """A button that removes itself, and one that its action hides."""
    double.reset(keep=())
    double.faults.arm("delay", "InvokeTool", nth=9)
    ask(double)
    # the page may ask for a session's variables and files just when it ends
    with console_page(browser, double, refused=(404, 409, 410)) as page:
        go(page, "/faults")
        page.get_by_role("button", name="Remove ").press("Enter")
        page.get_by_text("No faults are armed.").wait_for()
        until(page, IN_THE_PAGE)

        go(page, f"/sessions/{session_id(double)}")
        page.get_by_role("button", name="End now").press("Enter")
        page.get_by_role("dialog").get_by_role("button", name="End").press("Enter")
        page.get_by_text("deleted by caller").first.wait_for()
        until(page, IN_THE_PAGE)


def test_the_list_of_sessions_fills_the_page(browser: Browser, double: Emulator) -> None:
    """It has a count; the middle of a long name is cut where there is too little room."""
    double.reset(keep=())
    name = "a_long_name_of_an_agent_" * 3 + "ann_s%02d"
    for number in range(40):
        session = act(double, "CreateSession", ToolId=double.tool_id, UserSessionId=name % number)
        if number >= 35:
            ids = {"ToolId": double.tool_id, "SessionId": session["SessionId"]}
            act(double, "DeleteSession", **ids)
    for width, height in ((1440, 900), (800, 900)):
        size = {"width": width, "height": height}
        with console_page(browser, double, viewport=size) as page:
            go(page, "/sessions")
            page.get_by_text("35 sessions, 5 ended").wait_for()
            link = page.get_by_role("link", name=name % 0, exact=True)
            link.wait_for()
            cut, end = link.locator("span").all()
            assert "_ann_s00" == end.inner_text()
            assert end.evaluate("e => e.scrollWidth <= e.clientWidth")
            assert cut.evaluate("e => e.scrollWidth > e.clientWidth")
            bottom = page.get_by_role("region", name="Ended").bounding_box()
            assert bottom is not None
            assert height - 40 < bottom["y"] + bottom["height"] <= height
            active = page.get_by_role("region", name="Active").bounding_box()
            assert active is not None
            assert active["height"] > 450
            assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_a_session_shows_its_last_use_and_memory(opened: Page, double: Emulator) -> None:
    """The time since the last use grows with the platform's time."""
    ask(double)
    go(opened, "/sessions")
    row = opened.get_by_role("row", name="coder_ann_s0")
    row.get_by_text(" s ago").wait_for()
    row.get_by_text(" MiB").wait_for()

    double.clock.advance(minutes=7)

    row.get_by_text("7 min ago").wait_for()
    text_by_id(double, "1", session_id(double))
    row.get_by_text(" s ago").wait_for()
    go(opened, f"/sessions/{session_id(double)}")
    opened.get_by_text("Process ids").wait_for()


def test_the_overview_names_every_surface_and_its_state(opened: Page, double: Emulator) -> None:
    ask(double)
    served = opened.get_by_role("listitem")
    listed = http.get(f"{double.url}/").json()["surfaces"]
    for surface in listed:
        served.filter(has_text=surface["name"]).first.wait_for()
    sandbox = served.filter(has_text="Sessions of the sandbox")
    sandbox.get_by_text("1 session, 1 tool").wait_for()

    act(double, "CreateTool", Name="second", ToolType="CodeEnv")

    sandbox.get_by_text("1 session, 2 tools").wait_for()
