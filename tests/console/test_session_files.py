"""The files of a session: read, changed, brought and taken away, by name whatever the name is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import data_plane
from tests.console.driving import ask, open_session

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.once

HOSTILE = "<img src=x onerror=acted=1>'$(touch acted)'.txt"
MAKE = f"""
import os
os.makedirs("data/deep")
open("data/deep/table.csv", "w").write("a,b\\n1,2\\n")
open({HOSTILE!r}, "w").write("harmless")
open("bytes", "wb").write(bytes(range(256)))
"""


def test_files_are_read_changed_and_deleted(opened: Page, double: Emulator) -> None:
    """By the keyboard to the tab, whose address survives a reload; a name is only a name."""
    ask(double, code=MAKE)
    open_session(opened, double)
    opened.get_by_role("tab", name="Code").focus()
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("Enter")
    opened.get_by_role("button", name="data/").press("Enter")
    opened.get_by_role("button", name="deep/").click()
    opened.get_by_role("button", name="table.csv").click()
    text = opened.get_by_role("textbox", name="Text of the file")

    text.fill("a,b\n3,4\n")
    opened.get_by_role("button", name="Save").click()
    opened.get_by_text("The file is saved.").wait_for(state="attached")
    opened.reload()
    opened.get_by_role("button", name=HOSTILE).click()
    opened.get_by_role("textbox", name="Path of the file").fill("/home/gem/it's.txt")
    opened.get_by_role("button", name="Rename").click()
    opened.get_by_role("heading", name="it's.txt").wait_for()
    opened.get_by_role("button", name="Delete").click()
    opened.get_by_role("dialog").get_by_role("button", name="Delete").click()
    opened.get_by_text("The file is deleted.").wait_for()
    opened.get_by_role("button", name="bytes").click()
    opened.get_by_text("It is no text.").wait_for()

    plane = data_plane(double, "coder_ann_s0")
    listed = plane.data("/v1/file/list", path="/home/gem")["files"]
    read = plane.get("/v1/file/download", path="data/deep/table.csv").text
    assert (["bytes", "data"], "a,b\n3,4\n") == ([entry["name"] for entry in listed], read)
    assert opened.evaluate("() => window.acted") is None


def test_files_are_brought_and_taken_away(opened: Page, double: Emulator) -> None:
    """Larger ones in pieces; what is downloaded is never shown as a page."""
    ask(double)
    open_session(opened, double)
    opened.get_by_role("tab", name="Files").click()
    large = b"<script>parent.acted = 1</script>" * 50_000
    files = [{"name": "page.html", "mimeType": "text/html", "buffer": large}]

    opened.get_by_label("Files to upload").set_input_files(files)
    opened.get_by_role("button", name="page.html").click()
    with opened.expect_download() as downloading:
        opened.get_by_role("button", name="Download").click()

    assert "page.html" == downloading.value.suggested_filename
    assert large == downloading.value.path().read_bytes()
