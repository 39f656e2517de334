"""The session pages: cells, files, snapshots and the end of a session."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import act, act_on_session, data_plane, text_by_id
from tests.console.driving import ask, open_session, session_id

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = pytest.mark.once


def test_a_cell_runs_in_the_session_kernel(opened: Page, double: Emulator) -> None:
    """It sees the agent's variables, and the page shows the agent's runs."""
    ask(double, code="answer = 42")
    open_session(opened, double)
    opened.get_by_label("Variables").get_by_text("answer").wait_for()
    code = opened.get_by_role("textbox", name="Code")

    code.fill("print(answer + 1)\n1 / 0")
    code.press("Shift+Enter")
    opened.get_by_role("log").get_by_text("43", exact=True).wait_for()
    opened.get_by_role("log").get_by_text("ZeroDivisionError: division by zero").wait_for()
    ask(double, code="print('from the agent')")

    opened.get_by_role("log").get_by_text("from the agent").wait_for()


def test_earlier_cells_are_shown_and_stay(opened: Page, double: Emulator) -> None:
    """They come from the journal: code, outputs and errors."""
    ask(double, code="print(6 * 7)\n1 / 0")
    open_session(opened, double)
    log = opened.get_by_role("log")
    log.get_by_text("ZeroDivisionError: division by zero").wait_for()

    opened.reload()

    log.get_by_text("42", exact=True).wait_for()
    log.get_by_role("button", name="Run again").click()
    log.get_by_role("article").nth(1).get_by_text("ZeroDivisionError").first.wait_for()


def test_a_cell_of_javascript_is_coloured_and_run_again_as_javascript(
    opened: Page, double: Emulator
) -> None:
    payload = {"code": "let n = 6 // of seven\nn * 7", "kernel_name": "javascript"}
    act(
        double,
        "InvokeTool",
        ToolId=double.tool_id,
        UserSessionId="coder_ann_s0",
        OperationType="RunCode",
        OperationPayload=json.dumps(payload),
    )
    open_session(opened, double)
    log = opened.get_by_role("log")
    log.locator(".keyword", has_text="let").wait_for()
    log.locator(".comment", has_text="// of seven").wait_for()

    log.get_by_role("button", name="Run again").click()

    log.get_by_role("article").nth(1).get_by_text("42", exact=True).wait_for()


def test_a_session_is_paused_extended_and_ended(opened: Page, double: Emulator) -> None:
    """Ending asks for confirmation, and the page shows the reason."""
    ask(double)
    open_session(opened, double)

    opened.get_by_role("button", name="Pause").click()
    opened.get_by_role("button", name="Resume").click()
    opened.get_by_role("button", name="Pause").wait_for()
    act_on_session(double, "SetSessionTtl", session_id(double), Ttl=60, TtlUnit="second")
    opened.get_by_role("button", name="Reset to 30 min").click()
    opened.get_by_text("29:5").wait_for()
    opened.get_by_role("button", name="End now").click()
    opened.get_by_role("dialog").get_by_role("button", name="End").click()

    opened.get_by_text("deleted by caller").first.wait_for()


def test_a_snapshot_is_taken_copied_and_restored(opened: Page, double: Emulator) -> None:
    """The page lists what it leaves out."""
    ask(
        double,
        code="import threading\nx = 1\nthreading.Thread(target=threading.Event().wait).start()",
    )
    source = session_id(double)
    open_session(opened, double)
    opened.get_by_role("tab", name="Snapshots").click()

    opened.get_by_role("button", name="Take a snapshot").click()
    opened.get_by_text("Not in it: 1 thread").wait_for()
    opened.get_by_role("button", name="New session").click()
    opened.wait_for_url(lambda url: source not in url)
    code = opened.get_by_role("textbox", name="Code")
    code.fill("x + 41")
    code.press("Shift+Enter")
    opened.get_by_role("log").get_by_text("42", exact=True).wait_for()
    opened.go_back()
    ask(double, code="x = 2")
    opened.get_by_role("button", name="Return to it").click()
    opened.get_by_role("dialog").get_by_role("button", name="Return").click()
    opened.get_by_text("The session was restored from").wait_for(state="attached")
    opened.get_by_role("button", name="Delete").click()
    opened.get_by_text("No snapshots yet.").wait_for()

    ask(double, code="assert x == 1")


def test_the_code_of_a_client_is_interrupted(opened: Page, double: Emulator) -> None:
    ask(double, code="import time")
    open_session(opened, double)
    log = opened.get_by_role("log")

    with ThreadPoolExecutor() as threads:
        request = threads.submit(ask, double, code="print('begun', flush=True)\ntime.sleep(600)")
        log.get_by_text("begun").wait_for()
        opened.get_by_role("button", name="Interrupt").click()
        log.get_by_text("KeyboardInterrupt").first.wait_for()
        request.result()


def test_many_output_chunks_are_drawn_once(opened: Page, double: Emulator) -> None:
    """Carriage returns overwrite, colours persist and only the end of a flood is kept."""
    ask(double)
    open_session(opened, double)
    code = opened.get_by_role("textbox", name="Code")

    code.fill(
        "import sys\n"
        "for i in range(20_000):\n    print('line', i, '.' * 20, flush=not i % 50)\n"
        "for i in range(101):\n    print(f'\\r{i} %', end='', flush=True)\n"
        "print('\\n\\x1b[31mred', flush=True)\nprint('still red\\x1b[0m')"
    )
    code.press("Shift+Enter")
    output = opened.get_by_role("log").locator("pre.stdout").last
    output.get_by_text("still red").wait_for()

    text = output.inner_text()
    assert text.endswith("line 19999 ....................\n100 %\nred\nstill red\n")
    assert 150_000 < len(text) <= 210_000
    assert "ansi-fg1" == output.get_by_text("still red").get_attribute("class")


def test_earlier_code_stands_above_code_that_runs(opened: Page, double: Emulator) -> None:
    """Also if the journal answers late: code waits for it."""
    ask(double, code="print('earlier')")
    waiting: list[Route] = []
    opened.route("**/journal?*session=*", lambda route: waiting.append(route))
    with opened.expect_request("**/journal?*session=*"):
        open_session(opened, double)
    code = opened.get_by_role("textbox", name="Code")
    code.fill("print('later')")
    code.press("Shift+Enter")
    for route in waiting:
        route.continue_()
    outputs = opened.get_by_role("log").locator("pre.stdout")
    outputs.get_by_text("later").wait_for()

    assert ["earlier\n", "later\n"] == outputs.all_inner_texts()


HOSTILE = "<img src=x onerror=acted=1>'$(touch acted)'.txt"
MAKE = f"""
import os
os.makedirs("data/deep")
open("data/deep/table.csv", "w").write("a,b\\n1,2\\n")
open({HOSTILE!r}, "w").write("harmless")
open("bytes", "wb").write(bytes(range(256)))
"""


def test_files_are_read_edited_and_deleted(opened: Page, double: Emulator) -> None:
    """The tab is reachable by keyboard and survives a reload. Names cannot act."""
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
    opened.get_by_text("It is not text.").wait_for()

    plane = data_plane(double, "coder_ann_s0")
    listed = plane.data("/v1/file/list", path="/home/gem")["files"]
    read = plane.get("/v1/file/download", path="data/deep/table.csv").text
    assert (["bytes", "data"], "a,b\n3,4\n") == ([entry["name"] for entry in listed], read)
    assert opened.evaluate("() => window.acted") is None


def test_files_are_uploaded_and_downloaded(opened: Page, double: Emulator) -> None:
    """Large ones are sent in chunks, and a download is never shown as a page."""
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


def test_a_session_that_is_asleep_is_woken(opened: Page, double: Emulator) -> None:
    """On its own page, and in the list of ended sessions."""
    ask(double, code="x = 41")
    open_session(opened, double)
    id_ = session_id(double)
    for in_list in (False, True):
        # first: requests of the page for a session that has ended would be errors
        opened.get_by_label("Variables").get_by_text("41").wait_for()
        if in_list:
            opened.locator("body").press("2")
            opened.get_by_role("link", name="coder_ann_s0").wait_for()
        double.clock.advance(minutes=31)

        opened.get_by_role("button", name="Wake").click()
        opened.get_by_role("button", name="Wake").wait_for(state="detached")

        assert id_ == session_id(double)
        assert "41\n" == text_by_id(double, "print(x)", id_)
