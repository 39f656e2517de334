"""The pages of sessions: cells in the agent's own kernel, and the end of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentdouble import Emulator
from tests.console.driving import ask, open_session, own, session_id

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_a_cell_runs_in_the_session_s_own_kernel(opened: Page, double: Emulator) -> None:
    """By the keyboard; what the agent has set is there, and what the agent runs is shown."""
    ask(double, code="answer = 42")
    open_session(opened, double)
    opened.get_by_label("Variables").get_by_text("answer").wait_for()
    code = opened.get_by_role("textbox", name="Code")

    code.fill("print(answer + 1)\n1 / 0")
    code.press("Shift+Enter")
    opened.get_by_role("log").get_by_text("43").wait_for()
    opened.get_by_role("log").get_by_text("ZeroDivisionError: division by zero").wait_for()
    ask(double, code="print('from the agent')")

    opened.get_by_role("log").get_by_text("from the agent").wait_for()


def test_a_session_is_paused_prolonged_and_ended(opened: Page, double: Emulator) -> None:
    """Its end asks first, and its page says the reason."""
    ask(double)
    open_session(opened, double)

    opened.get_by_role("button", name="Pause").click()
    opened.get_by_role("button", name="Resume").click()
    opened.get_by_role("button", name="Pause").wait_for()
    own(double, f"/sessions/{session_id(double)}/ttl", {"ttl_s": 60})
    opened.get_by_role("button", name="30 min anew").click()
    opened.get_by_text("29:5").wait_for()
    opened.get_by_role("button", name="End now").click()
    opened.get_by_role("dialog").get_by_role("button", name="End").click()

    opened.get_by_text("destroyed by caller").first.wait_for()
