"""Axe finds nothing on any page, empty or full, in light and in dark."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from agentdouble import Emulator
from tests.console.driving import ask, barriers, go, session_id, shown, turn

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
        paths = (
            *("/", "/sessions", f"/sessions/{session_id(double)}"),
            *("/requests", f"/requests/{double.journal.entries()[-1].id}"),
            *("/agents", "/agents/app/tool_caller/ann/s1", "/agents/invoke/coder/ann/s0"),
            *("/agents/a2a/coder", "/runtimes", "/runtimes/web"),
        )
        turn(double, "tool_caller", "s1")
        double.runtimes.create("web", command=f"{sys.executable} -S nothing.py")
        page.get_by_role("link", name="coder_ann_s0").wait_for()
        for path in paths:
            go(page, path)
            page.locator("main h1, main h2").first.wait_for(state="attached")
            found[path] = barriers(page)

    assert {} == {path: one for path, one in found.items() if one}
