"""Axe finds nothing on any page, empty or full, in light and in dark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agentdouble import Emulator
from tests.console.driving import ask, barriers, go, session_id, shown

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_keeps_anybody_out(browser: Browser, double: Emulator, scheme: Any) -> None:
    """Of an empty double, and of one that has been used."""
    double.reset(keep=())
    found = {}
    with shown(browser, double, color_scheme=scheme, bypass_csp=True) as page:
        found["empty"] = barriers(page)
        ask(double)
        double.faults.arm("delay", "InvokeTool", nth=9)
        paths = (
            *("/", "/sessions", f"/sessions/{session_id(double)}"),
            *("/requests", f"/requests/{double.journal.entries()[-1].id}"),
            *("/unknowns", "/faults"),
        )
        page.get_by_role("link", name="coder_ann_s0").wait_for()
        for path in paths:
            go(page, path)
            page.locator("main h1, main h2").first.wait_for(state="attached")
            found[path] = barriers(page)

    assert {} == {path: one for path, one in found.items() if one}
