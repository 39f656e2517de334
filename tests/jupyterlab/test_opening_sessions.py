"""An agent's session is opened from JupyterLab's launcher, used, left, and told to have ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import act, run, text
from tests.jupyterlab.pages import OpenNotebook, click_kernel, opened_from_launcher, started
from tests.jupyterlab.server import Lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.once]

SESSION, SHOWN = "coder_ann_s1", "ann / s1 (coder)"
_SHUT_DOWN = "() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()"
_ENDED = """() => {
  const context = window.jupyterapp.shell.currentWidget.sessionContext;
  return context.hasNoKernel || context.session.kernel.status === "dead";
}"""


@pytest.fixture
def page(browser: Browser, gateway_lab: Lab, emulator: Emulator) -> Iterator[Page]:
    """A JupyterLab that was opened when an agent had a session."""
    emulator.reset()
    run(emulator, "x = 41", SESSION)
    with started(browser, gateway_lab) as page:
        yield page


def photograph(page: Page, folder: Path | None, name: str) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=folder / f"{name}.png")


def test_a_click_opens_the_session_of_an_agent_and_its_end_is_told(
    page: Page, emulator: Emulator, screenshots: Path | None
) -> None:
    """The kernel is the agent's own: each sees what the other does."""
    page.get_by_text(SHOWN).first.wait_for()
    photograph(page, screenshots, "launcher")
    notebook = opened_from_launcher(page, SHOWN)

    assert "42" == notebook.run("x + 1")[0]["data"]["text/plain"]
    notebook.run("x = 'seen by the agent'")
    assert "seen by the agent\n" == text(emulator, "print(x)", SESSION)
    page.locator(".jp-Toolbar-kernelName").get_by_text(SHOWN).wait_for()

    emulator.clock.advance(minutes=31)

    notebook.outputs().last.get_by_text(re.compile("expired at .* It sleeps: resume it")).wait_for()
    page.wait_for_function(_ENDED)
    photograph(page, screenshots, "ended")


def test_a_session_that_ended_before_the_click_says_so(
    page: Page, emulator: Emulator, screenshots: Path | None
) -> None:
    (info,) = act(emulator, "ListSessions", ToolId=emulator.tool_id)["SessionInfos"]
    act(emulator, "DeleteSession", ToolId=emulator.tool_id, SessionId=info["SessionId"])

    click_kernel(page, SHOWN)

    page.get_by_text(f"The session '{SESSION}' has ended: ").wait_for()
    photograph(page, screenshots, "refused")


def test_shutting_down_leaves_the_session_to_its_agent(page: Page, emulator: Emulator) -> None:
    """And its kernel can be opened again."""
    opened_from_launcher(page, SHOWN).run("x += 1")
    page.evaluate(_SHUT_DOWN)

    assert "42\n" == text(emulator, "print(x)", SESSION)
    OpenNotebook(page).command("launcher:create")
    assert "42" == opened_from_launcher(page, SHOWN).run("x")[0]["data"]["text/plain"]


def test_a_restart_gives_the_agent_a_new_kernel(page: Page, emulator: Emulator) -> None:
    """JupyterLab asks before it, because all variables are lost."""
    notebook = opened_from_launcher(page, SHOWN)
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:restart-kernel'); }")
    page.get_by_role("button", name="Confirm Kernel Restart").click()
    page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'"
    )

    assert "NameError" == notebook.run("x")[0]["ename"]
    assert "False\n" == text(emulator, "print('x' in globals())", SESSION)


def test_a_second_console_runs_code_while_a_cell_runs(page: Page) -> None:
    """On a subshell of the same kernel."""
    notebook = opened_from_launcher(page, SHOWN)
    notebook.begin("import time\nwhile x == 41: time.sleep(0.01)\nx")
    answer = page.evaluate(
        """async () => {
          const {kernel} = window.jupyterapp.shell.currentWidget.sessionContext.session;
          const {content} = await kernel.requestCreateSubshell({}).done;
          const second = kernel.clone({clientId: "second"});
          second.subshellId = content.subshell_id;
          return (await second.requestExecute({code: "x = 42"}).done).content.status;
        }"""
    )

    assert "ok" == answer
    assert "42" == notebook.ended()[0]["data"]["text/plain"]
