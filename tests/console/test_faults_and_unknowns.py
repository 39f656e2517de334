"""The faults page, and the faults that a request's page arms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentdouble import Emulator
from agentdouble.cli import faults as commands
from agentdouble.core import ledger, profiles
from agentdouble.settings import Settings
from tests.agentdouble.calling import background, http
from tests.console.driving import ask, console_page, go

pytestmark = pytest.mark.once


if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


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


@pytest.fixture(autouse=True)
def _own_answers(double: Emulator) -> None:
    """Restore the default answers, which a reset keeps."""
    http.put(f"{double.url}/_emulator/unknowns", json={}).raise_for_status()


def in_force(double: Emulator, id_: str) -> str:
    return str(http.get(f"{double.url}/_emulator/unknowns").json()["in_force"][id_])


def last(double: Emulator) -> int:
    return double.journal.entries()[-1].id


def test_another_answer_is_tried_and_adopted(opened: Page, double: Emulator) -> None:
    ask(double, code="1/0")
    count = len(double.journal.entries())
    go(opened, f"/requests/{last(double)}")

    opened.get_by_role("button", name="What if true for U-EXEC-SUCCESS?").press("Enter")

    changed = opened.get_by_role("row", name="$.Result.Result.success")
    changed.wait_for()
    assert ["false", "true"] == changed.get_by_role("cell").all_inner_texts()
    opened.get_by_text("Both responses").press("Enter")
    body = opened.get_by_role("group", name="Response under true").inner_text()
    assert "ZeroDivisionError" in body
    opened.get_by_role("button", name="What if two-names for U-KERNEL-NAMES?").press("Enter")
    opened.get_by_text(
        "Under two-names the response is the same as under aliases, except for ids and times."
    ).wait_for()
    assert (count, "false") == (len(double.journal.entries()), in_force(double, "U-EXEC-SUCCESS"))
    opened.get_by_role("button", name="Use true from now on").press("Enter")
    opened.get_by_role("button", name="true is used from now on").wait_for()
    assert "true" == in_force(double, "U-EXEC-SUCCESS")


def test_answers_are_chosen_and_saved_as_a_profile(
    opened: Page, double: Emulator, tmp_path: Path
) -> None:
    """A double can start with the file. The page follows changes of other clients."""
    http.get(f"{double.url}/list-apps")
    go(opened, "/unknowns")
    opened.get_by_text(f"{len(list(ledger.unknowns()))} unknowns", exact=True).wait_for()
    opened.locator("body").press("/")
    opened.keyboard.type("u-probe-error")
    opened.get_by_text("1 unknown", exact=True).wait_for()
    opened.get_by_role("group", name="Answers to U-PROBE-ERROR").get_by_role(
        "button", name="absent-404"
    ).press("Enter")
    opened.get_by_text(f"1 answer of {len(list(ledger.unknowns()))} differ").wait_for()
    http.put(
        f"{double.url}/_emulator/unknowns",
        json={"U-PROBE-ERROR": "absent-404", "U-LIST-APPS": "detailed"},
    )
    opened.get_by_text(f"2 answers of {len(list(ledger.unknowns()))} differ").wait_for()
    opened.get_by_role("searchbox", name="Filter unknowns").fill("")
    opened.get_by_role("button", name="Relied on").click()

    apps = opened.get_by_role("region", name="U-LIST-APPS")
    assert "true" == apps.get_by_role("button", name="detailed").get_attribute("aria-pressed")
    assert f"/requests/{last(double)}" == apps.get_by_role("link").get_attribute("href")
    with opened.expect_download() as download:
        opened.get_by_role("button", name="Save as profile.toml").click()
    download.value.save_as(tmp_path / "profile.toml")
    expected = {"U-PROBE-ERROR": "absent-404", "U-LIST-APPS": "detailed"}
    assert expected == profiles.read(tmp_path / "profile.toml").unknowns
    assert (
        "detailed"
        == Settings.load(profile=tmp_path / "profile.toml").chosen().answer("U-LIST-APPS").name
    )


def test_a_request_that_left_the_journal_is_reported(browser: Browser, double: Emulator) -> None:
    http.get(f"{double.url}/ping")
    with console_page(browser, double, refused=(404,)) as page:
        go(page, f"/requests/{last(double)}")
        double.journal.clear()
        page.get_by_role("button", name="What if text for U-PROBE-BODIES?").press("Enter")
        page.get_by_text("The journal no longer has this request.").wait_for()
