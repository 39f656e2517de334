"""The overview: the first steps, the sessions that run out, the slider, and the bar above."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import act_on_session
from tests.console.driving import ask, session_id

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.once


def test_an_empty_double_says_how_to_begin(opened: Page, double: Emulator) -> None:
    """With the lines that send a first request; when it has come, it is there instead."""
    opened.get_by_text("Send a first request").wait_for()

    ask(double)

    opened.get_by_role("link", name="/invoke").wait_for()
    opened.get_by_role("link", name="coder_ann_s0").wait_for()
    assert "token" not in opened.url


def test_time_is_moved(opened: Page, double: Emulator) -> None:
    """What ends by that is said."""
    ask(double)
    ask(double, "s1")
    act_on_session(double, "SetSessionTtl", session_id(double), Ttl=60, TtlUnit="second")
    opened.get_by_role("link", name="coder_ann_s1").wait_for()

    opened.get_by_role("button", name="Move the time forward by 5 min").click()

    opened.get_by_text("1 session ended.").wait_for(state="attached")
    opened.get_by_role("link", name="coder_ann_s0").wait_for(state="detached")
    assert 300 <= double.clock.offset.total_seconds() < 301


def test_reset_asks_first(opened: Page, double: Emulator) -> None:
    """And then nothing is left."""
    ask(double)
    opened.get_by_role("link", name="/invoke").wait_for()
    opened.get_by_role("button", name="Reset").click()
    opened.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert double.journal.entries()
    opened.get_by_role("button", name="Reset").click()

    opened.get_by_role("dialog").get_by_role("button", name="Reset").click()

    opened.get_by_text("Send a first request").wait_for()


def test_connect_hides_the_secret(opened: Page, double: Emulator) -> None:
    """Until it is asked for."""
    opened.get_by_role("button", name="Connect").click()
    dialog = opened.get_by_role("dialog")
    dialog.get_by_text("export ").wait_for()
    assert double.credentials.secret_key not in (dialog.text_content() or "")

    dialog.get_by_role("button", name="Show the secret").click()

    dialog.get_by_text(double.credentials.secret_key).wait_for()
