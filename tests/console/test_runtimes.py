"""The page of runtimes: one made from a command, its instances, versions, log and figures."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agentdouble import Emulator, environment
from agentdouble.runtimes.definition import Definition
from tests.agentdouble.cli.conftest import CommandLine, command_line
from tests.agentdouble.runtimes.small import ANSWERING
from tests.console.driving import go

__all__ = ["command_line"]

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.once

COMMAND = f"{sys.executable} -SE program.py"
PRINTED = r"""
print("\x1b[31mcoloured\x1b[0m <img src=x onerror='acted = 1'><script>acted = 2</script>", flush=True)
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a program that prints something hostile and answers each request."""
    made = tmp_path_factory.mktemp("sources")
    (made / "program.py").write_text(PRINTED + ANSWERING)
    return made


@pytest.fixture(scope="module")
def double(sources: Path) -> Iterator[Emulator]:
    """A double that may run what is in that directory."""
    with Emulator(runtime_sources=(sources,), console=True, pool_size=0) as double:
        yield double


def create(page: Page, name: str, sources: Path) -> None:
    go(page, "/runtimes")
    page.get_by_role("button", name="Create a runtime").click()
    page.get_by_role("textbox", name="Name", exact=True).fill(name)
    page.get_by_role("textbox", name="Directory of this machine").fill(str(sources))
    page.get_by_role("textbox", name="Command").fill(COMMAND)
    page.get_by_role("textbox", name="Environment").fill("SAYS=hello")
    page.get_by_role("spinbutton", name="Instances there may be").fill("2")
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    page.get_by_role("heading", name=name).wait_for()


def shown(double: Emulator, name: str) -> Any:
    return httpx.get(f"{double.url}/_emulator/runtimes/{name}").json()


def definition(double: Emulator, name: str) -> Definition:
    """Return what a runtime is, without its name and its key."""
    found = double.runtimes.versions(name)[-1].definition
    return replace(found, name="", authorizer=None)


def test_a_runtime_is_created_started_and_followed(
    opened: Page, double: Emulator, sources: Path
) -> None:
    """What it prints comes as text, its figures as plots, and its key opens it."""
    create(opened, "web", sources)
    opened.get_by_text("It sleeps").wait_for()
    opened.get_by_role("button", name="Show the key").press("Enter")
    key = opened.get_by_label("Key", exact=True).text_content()
    opened.get_by_role("button", name="Close").press("Enter")

    opened.get_by_role("button", name="Start").press("Enter")

    log = opened.get_by_role("log", name="Log")
    log.get_by_text("<script>acted = 2</script>").wait_for()
    assert "\x1b" not in (log.text_content() or "")
    opened.get_by_label("Instances").get_by_text("ready").wait_for()
    answer = httpx.get(f"{double.url}/runtimes/web", headers={"Authorization": f"Bearer {key}"})
    opened.get_by_text("1 served").wait_for()
    opened.get_by_role("img", name="Requests a second: now").wait_for()
    double.reset(keep=())
    opened.get_by_text("The double has no such runtime.").wait_for()
    assert "hello" in answer.text
    assert opened.evaluate("() => window.acted") is None


def test_versions_are_made_and_released(opened: Page, double: Emulator, sources: Path) -> None:
    """To stop and to delete asks first; the list follows."""
    create(opened, "web", sources)
    opened.get_by_role("button", name="Change").click()
    opened.get_by_role("spinbutton", name="Instances there may be").fill("8")
    opened.get_by_role("button", name="Make the version").click()
    opened.get_by_text("0 to 8, 10 requests each").wait_for()
    opened.get_by_role("button", name="Release version 1").click()
    opened.get_by_text("0 to 2, 10 requests each").wait_for()
    assert 1 == shown(double, "web")["version"]

    opened.get_by_role("button", name="Start").click()
    opened.get_by_label("Instances").get_by_text("ready").wait_for()
    opened.get_by_role("button", name="Stop").click()
    opened.get_by_role("dialog").get_by_role("button", name="Stop").click()
    opened.get_by_text("It sleeps").wait_for()
    assert [] == shown(double, "web")["instances"]

    opened.get_by_role("button", name="Delete").click()
    opened.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    opened.get_by_role("button", name="Delete").click()
    opened.get_by_role("dialog").get_by_role("button", name="Delete").click()
    opened.get_by_text("No runtime is there.").wait_for()
    assert 404 == httpx.get(f"{double.url}/_emulator/runtimes/web").status_code


def test_the_page_makes_what_the_command_makes(
    opened: Page, double: Emulator, sources: Path, command_line: CommandLine
) -> None:
    """And the list shows what others make."""
    create(opened, "by-page", sources)
    go(opened, "/runtimes")
    command_line.environment |= environment.variables(double.connection)
    words = ("--command", COMMAND, "--directory", str(sources), "--env", "SAYS=hello", "--max", "2")
    done = command_line.run("runtime", "create", "by-command", *words, "--url", double.url)
    assert 0 == done.returncode, done.stderr

    opened.get_by_role("link", name="by-command").wait_for()

    page_s, command_s = (definition(double, name) for name in ("by-page", "by-command"))
    assert page_s == command_s


def test_a_refusal_stands_in_the_form(browser: Browser, double: Emulator) -> None:
    """What was entered stays."""
    context = browser.new_context()
    page = context.new_page()
    assert double.console_url is not None
    page.goto(double.console_url)
    page.get_by_role("link", name="Runtimes").click()
    page.get_by_role("button", name="Create a runtime").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("web")
    page.get_by_role("textbox", name="Directory of this machine").fill("/etc")
    page.get_by_role("textbox", name="Command").fill(COMMAND)
    page.get_by_role("dialog").get_by_role("button", name="Create").click()

    page.get_by_role("alert").get_by_text("/etc is not below").wait_for()
    assert "web" == page.get_by_role("textbox", name="Name", exact=True).input_value()
    context.close()
