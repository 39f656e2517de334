"""The faults page, and the faults that a request's page arms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agentdouble import Emulator
from agentdouble.cli import faults as commands
from tests.agentdouble.calling import background, http
from tests.console.driving import console_page, go

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.once


def armed(double: Emulator) -> list[dict[str, Any]]:
    """Return the armed faults without their ids, which are never reused."""
    faults = http.get(f"{double.url}/_emulator/faults").json()["faults"]
    return [{name: value for name, value in fault.items() if name != "id"} for fault in faults]


def test_a_fault_is_armed_by_keyboard(
    opened: Page, double: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command arms the same one. An invalid field has an error beside it."""
    described = "fail InvokeTool (nth=1, every=2, times='all', status=429)"
    opened.get_by_role("link", name="Faults", exact=True).press("Enter")
    opened.get_by_text("No faults are armed.").wait_for()
    status = opened.get_by_role("combobox", name="HTTP status")
    status.wait_for()
    opened.get_by_role("combobox", name="Operation").focus()
    opened.keyboard.type("InvokeTool")
    status.press("Control+A")
    opened.keyboard.type("9000")
    opened.get_by_role("button", name="Arm", exact=True).press("Enter")
    opened.get_by_text("HTTP status is more than 599.").wait_for()
    assert [] == armed(double)
    opened.keyboard.press("Control+A")  # the field that is wrong has the focus
    opened.keyboard.type("429")
    opened.get_by_role("textbox", name="Then every").press("Control+A")
    opened.keyboard.type("2")
    opened.get_by_role("button", name="Arm", exact=True).press("Enter")
    opened.get_by_text(described, exact=True).wait_for()
    by_page = armed(double)
    opened.get_by_role("button", name="Remove f").press("Enter")
    opened.get_by_text("No faults are armed.").wait_for()

    for name, value in double.environment().items():
        monkeypatch.setenv(name, value)
    commands.arm(["fail", "InvokeTool", "status=429", "every=2"], double.url, as_json=True)

    assert by_page == armed(double)
    opened.get_by_text(described, exact=True).wait_for()


def test_a_request_page_arms_faults_for_its_operation(opened: Page, double: Emulator) -> None:
    """A held call is released, and the page shows the counts."""
    http.get(f"{double.url}/ping")
    go(opened, f"/requests/{double.journal.entries()[-1].id}")
    opened.get_by_role("link", name="Arm a fault").click()
    opened.get_by_role("combobox", name="Kind", exact=True).select_option("delay")
    assert "GET /ping" == opened.get_by_role("combobox", name="Operation").input_value()
    opened.get_by_role("button", name="Arm", exact=True).click()
    opened.get_by_text("delay GET /ping (nth=1)", exact=True).wait_for()
    request = background(lambda: http.get(f"{double.url}/ping").status_code)

    opened.get_by_role("button", name="Release the calls held by").click()

    assert 200 == request.result(timeout=30)
    opened.get_by_text(
        "happened 1 time · 1 call of the operation · will not happen again"
    ).wait_for()
    opened.get_by_role("button", name="Remove ").click()
    opened.get_by_text("No faults are armed.").wait_for()
    assert [] == armed(double)


def test_a_refused_fault_shows_the_error(browser: Browser, double: Emulator) -> None:
    with console_page(browser, double, refused=(400,)) as page:
        go(page, "/faults/InvokeTol")
        page.get_by_role("combobox", name="HTTP status").fill("200")
        operation = page.get_by_role("combobox", name="Operation")
        operation.press("Enter")
        page.get_by_role("combobox", name="HTTP status", description="needs a body").wait_for()
        page.get_by_role("combobox", name="HTTP status").fill("500")
        operation.press("Enter")
        page.get_by_role("combobox", name="Operation", description="Did you mean").wait_for()
