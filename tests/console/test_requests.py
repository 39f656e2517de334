"""The timeline of a request, and two requests side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agentdouble import Emulator, SimpleApp, run_code
from tests.agentdouble.calling import Begun, http, run
from tests.console.driving import ask, console_page, go

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.once

app = SimpleApp("planner")


@app.entrypoint
async def entrypoint(payload: dict[str, Any], _headers: dict[str, str]) -> str:
    """Ask the model, then run code."""
    question = {"model": "m", "messages": [{"role": "user", "content": "print(1)"}]}
    key = {"Authorization": f"Bearer {payload['key']}"}
    async with httpx.AsyncClient(trust_env=False) as client:
        await client.post(payload["url"], json=question, headers=key)
    return await asyncio.to_thread(run_code, "print(1)")


@pytest.fixture
def planning(browser: Browser) -> Iterator[tuple[Page, Emulator]]:
    """The console of a double whose application asks the model and runs code."""
    with Emulator(app, console=True, pool_size=0) as double, console_page(browser, double) as page:
        yield page, double


def rows(place: Page | Locator) -> list[str]:
    table = place.get_by_role("region", name="Timeline")
    return table.get_by_role("rowheader").all_inner_texts()


def test_a_timeline_shows_what_an_invocation_did(planning: tuple[Page, Emulator]) -> None:
    """The model's request, InvokeTool and its steps; their bars lie within the invocation's."""
    page, double = planning
    script = {"steps": [{"text": "print(1)"}]}
    http.post(f"{double.url}/_emulator/model", json=script).raise_for_status()
    variables = double.environment("model")
    asked = {
        "url": f"{variables['OPENAI_BASE_URL']}/chat/completions",
        "key": variables["OPENAI_API_KEY"],
    }
    headers = {"user_id": "ann", "session_id": "s1"}
    http.post(f"{double.url}/invoke", json=asked, headers=headers).raise_for_status()
    invoked, model, tool = double.journal.entries()
    expected = [
        *("/invoke", "model: print(1)", "InvokeTool"),
        *("Starts a kernel", "Runs the code"),
    ]

    for entry in (invoked, tool):
        go(page, f"/requests/{entry.id}")
        page.get_by_role("heading", name="Timeline").wait_for()
        assert expected == rows(page)
        current = page.locator(".timeline [aria-current]")
        assert f"/requests/{entry.id}" == current.get_attribute("href")
    bars = [bar.bounding_box() for bar in page.locator(".axis span").all()]
    boxes = [(box["x"], box["x"] + box["width"]) for box in bars if box is not None]
    assert 5 == len(boxes)
    assert all(boxes[0][0] - 1 <= left <= right <= boxes[0][1] + 3 for left, right in boxes)
    page.get_by_role("link", name="model: print(1)").last.click()
    page.wait_for_url(f"**/requests/{model.id}")


def test_a_timeline_grows_while_a_request_runs(opened: Page, double: Emulator) -> None:
    begun = Begun(double, "s1", "")
    go(opened, f"/requests/{double.journal.entries()[-1].id}")
    row = opened.get_by_role("region", name="Timeline").get_by_role("row", name="Runs the code")
    row.get_by_text("…").wait_for()

    begun.go()
    begun.future.result(60)

    row.get_by_text(" ms").last.wait_for()
    row.get_by_text("…").wait_for(state="detached")


def test_a_request_without_steps_has_no_timeline(opened: Page, double: Emulator) -> None:
    http.get(f"{double.url}/ping")
    go(opened, f"/requests/{double.journal.entries()[-1].id}")

    opened.get_by_role("heading", name="/ping").wait_for()
    assert 0 == opened.get_by_role("heading", name="Timeline").count()


def test_two_requests_are_compared(opened: Page, double: Emulator) -> None:
    """The page proposes the previous request of the same operation, and shows what differs."""
    run(double, "print(1)", "s1")
    ask(double)
    run(double, "print(2)", "s1")
    first, *_, second = double.journal.entries()
    go(opened, f"/requests/{second.id}")
    field = opened.get_by_role("spinbutton", name="Compare with request")
    field.fill(str(first.id))

    field.press("Enter")

    opened.get_by_role("heading", name=f"#{first.id} and #{second.id}").wait_for()
    differences = opened.get_by_role("table", name="Differences")
    code = differences.get_by_role("row", name="request.OperationPayload.code")
    assert ["print(1)", "print(2)"] == code.get_by_role("cell").all_inner_texts()
    assert 0 == differences.get_by_role("row", name="request.ToolId").count()
    assert 2 == opened.get_by_role("heading", name="Timeline").count()
    address = opened.url
    opened.reload()
    differences.wait_for()
    assert address == opened.url
    opened.get_by_role("link", name=f"#{first.id} InvokeTool").press("Enter")
    opened.get_by_role("heading", name="InvokeTool").wait_for()


def test_equal_requests_have_no_differences(opened: Page, double: Emulator) -> None:
    """How long they took is in their timelines."""
    for _ in range(2):
        http.get(f"{double.url}/ping")
    first, second = (entry.id for entry in double.journal.entries())
    go(opened, f"/requests/{second}")

    opened.get_by_role("button", name="Compare").press("Enter")

    opened.wait_for_url(f"**/requests/{first}/{second}")
    opened.get_by_role("heading", name=f"#{first} and #{second}").wait_for()
    opened.get_by_text("Both requests and their responses are the same.").wait_for()


# The text is within its element, or cut there.
FITS = "e => e.scrollWidth <= e.clientWidth || getComputedStyle(e).overflowX === 'hidden'"


@pytest.mark.parametrize("width", [800, 1000, 1300, 1600])
def test_a_path_and_its_method_stand_side_by_side(browser: Browser, width: int) -> None:
    """A long path is cut; the method beside it is whole."""
    size = {"width": width, "height": 700}
    with (
        Emulator(console=True, pool_size=0) as double,
        console_page(browser, double, viewport=size) as page,
    ):
        for path in ("/mcp/a_long_name", "/apps/echo/users/ann/sessions/s1"):
            http.delete(f"{double.url}{path}")
        go(page, "/requests")
        page.get_by_role("link", name="/apps").wait_for()
        rows = page.locator(".requests .what").filter(has=page.get_by_role("link"))
        assert 2 == rows.count()
        for row in rows.all():
            assert row.locator("a").evaluate(FITS)
            if row.locator("small").is_visible():  # there may be no room for it
                assert row.locator("small").evaluate(FITS)
                path, method = (row.locator(tag).bounding_box() for tag in ("a", "small"))
                assert path is not None
                assert method is not None
                assert path["x"] + path["width"] <= method["x"]
