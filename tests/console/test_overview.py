"""The overview: the first steps, the sessions that run out, the slider, and the bar above."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentdouble import Emulator
from tests.console.driving import ask, own, session_id

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


def test_the_slider_says_who_ends(opened: Page, double: Emulator) -> None:
    """Before one travels; who was struck out has ended afterwards."""
    ask(double)
    ask(double, "s1")
    own(double, f"/sessions/{session_id(double)}/ttl", {"ttl_s": 60})
    opened.get_by_role("link", name="coder_ann_s1").wait_for()

    opened.get_by_label("Travel in time").fill("600")
    opened.get_by_text("+10:00: 1 session ends").wait_for()
    opened.get_by_role("button", name="Travel").click()

    opened.get_by_text("1 session ended.").wait_for(state="attached")
    opened.get_by_role("link", name="coder_ann_s0").wait_for(state="detached")
    assert 600 <= double.clock.offset.total_seconds() < 601


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
