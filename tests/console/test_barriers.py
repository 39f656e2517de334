"""axe finds no problem on any page, empty or full, in light or dark mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agentdouble import Emulator
from tests.console.driving import ask, barriers, console_page, create_api, go, run_turn, session_id

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.once, pytest.mark.slow]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible(browser: Browser, double: Emulator, scheme: Any) -> None:
    double.reset(keep=())
    problems = {}
    with console_page(
        browser, double, refused=(404,), color_scheme=scheme, bypass_csp=True
    ) as page:
        page.get_by_role("heading").first.wait_for(state="attached")
        problems["empty"] = barriers(page)
        ask(double)
        invoked, tool = (entry.id for entry in double.journal.entries())
        double.faults.arm("delay", "InvokeTool", nth=9)
        service = f"/tools/service/{create_api(double, 'api')}"
        session = f"/sessions/{session_id(double)}"
        paths = (
            *("/", "/sessions", "/requests", f"/requests/{invoked}", f"/requests/{tool}"),
            *(f"/requests/{invoked}/{tool}", "/requests/abc", "/nonsense"),
            *(session, *(f"{session}/{tab}" for tab in ("files", "snapshots", "log"))),
            *("/tools", "/tools/new/tool", "/tools/new/service", "/tools/tool/t-sandbox"),
            service,
            *("/agents", "/agents/app/tool_caller/ann/s1", "/agents/invoke/coder/ann/s0"),
            *("/agents/a2a/coder", "/unknowns", "/faults"),
        )
        run_turn(double, "tool_caller", "s1")
        page.get_by_role("link", name="coder_ann_s0").wait_for()
        for path in paths:
            go(page, path)
            if path == f"/requests/{tool}":
                page.get_by_role("button", name="What if two-names").click()
                page.get_by_text("Use two-names from now on").wait_for()
            if path == f"/requests/{invoked}/{tool}":
                page.get_by_text("Request bodies").click()
            if path == service:
                page.locator("summary", has_text="pets").click()
            if path.startswith(session):
                tab = path.rpartition("/")[2] if path != session else "code"
                panel = page.get_by_role("tabpanel", name=tab)
                panel.get_by_role("region").first.wait_for()
            problems[path] = barriers(page)

    assert {} == {path: problem for path, problem in problems.items() if problem}
