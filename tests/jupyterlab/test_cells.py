"""Sandbox cells in JupyterLab, run as by a reader."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.doublecheck.notebook.kernels import PATIENT
from tests.jupyterlab.pages import DARK, LIGHT, READABLE, OpenNotebook, opened
from tests.jupyterlab.server import Lab
from tests.ports import handled

pytestmark = [pytest.mark.once, pytest.mark.slow]

if TYPE_CHECKING:
    from playwright.sync_api import Page

EMPTY = {
    "cells": [],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
# JupyterLab changes it too
WATCH_TITLE = """() => {
  window.titles = [];
  const note = () => window.titles.push(document.title);
  new MutationObserver(note).observe(document.querySelector("title"), {childList: true});
}"""
RUNS = "<p>as it was</p><p id=it></p><script>it.textContent = 'drawn by a script'</script>"
HOSTILE = """
<h1>Weather</h1>
<script>
  for (const page of [window, window.parent, window.top]) {{
    try {{ page.taken = [...(page.taken ?? []), "{whose}"]; page.document.title = "{whose}"; }}
    catch {{ }}
  }}
  fetch("{url}/{whose}/fetched");
</script>
<img src="{url}/{whose}/image" onerror="window.top.taken = ['{whose}']">
<svg onload="window.top.taken = ['{whose}']"></svg>
<style>@import "{url}/{whose}/style"; h1 {{ background: url({url}/{whose}/background) }}</style>
<link rel="stylesheet" href="{url}/{whose}/sheet">
<iframe src="{url}/{whose}/frame"></iframe>
"""
_ROWS = {"values": [{"a": "URL/image-mark"}]}
_VEGA_LITE = "application/vnd.vegalite.v5+json"
BARS = {"data": _ROWS, "mark": "bar", "encoding": {"x": {"field": "a"}}}
LOADING: dict[str, dict[str, Any]] = {
    "data": {_VEGA_LITE: {**BARS, "data": {"url": "URL/data"}}},
    "image-mark": {
        _VEGA_LITE: {"data": _ROWS, "mark": "image", "encoding": {"url": {"field": "a"}}}
    },
    "options": {_VEGA_LITE: {**BARS, "usermeta": {"embedOptions": {"config": "URL/options"}}}},
    "input": {
        _VEGA_LITE: {
            **BARS,
            "params": [{"name": "a", "value": "", "bind": {"input": "image", "src": "URL/input"}}],
        }
    },
    "as-vega": {
        _VEGA_LITE: {
            "$schema": "https://vega.github.io/schema/vega/v5.json",
            "data": [{"name": "a", "url": "URL/as-vega"}],
        }
    },
    "vega": {"application/vnd.vega.v5+json": {"data": [{"name": "a", "url": "URL/vega"}]}},
    "diagram": {
        "text/markdown": '```mermaid\nflowchart TD\n a@{ img: "URL/diagram", w: 60, h: 60 }\n```'
    },
}
SHOW = "from IPython.display import display\ndisplay({}, raw=True)"


@dataclass
class Hearing:
    """The requested paths."""

    url: str
    paths: list[str] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def note(self, path: str) -> None:
        """Record a path."""
        with self._changed:
            self.paths.append(path)
            self._changed.notify_all()

    def wait_for(self, path: str) -> None:
        """Return when a path has been requested."""
        with self._changed:
            assert self._changed.wait_for(lambda: path in self.paths, timeout=60), self.paths


@contextmanager
def hearing() -> Iterator[Hearing]:
    """Listen on a free port of loopback and answer every request with an empty body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard_requests.note(self.path)
            self.send_response(204)
            self.end_headers()

    with handled(Handler) as url:
        heard_requests = Hearing(url)
        yield heard_requests


@pytest.fixture(scope="module")
def notebook(page: Page, lab: Lab) -> Iterator[OpenNotebook]:
    """Open a notebook of sandbox cells, which keep their state."""
    (lab.folder / "cells.ipynb").write_text(json.dumps(EMPTY))
    with opened(page, "cells.ipynb") as view:
        view.run(f"%load_ext doublecheck\n{PATIENT}")
        yield view


@pytest.fixture
def elsewhere() -> Iterator[Hearing]:
    """Start a server that our pages must not call."""
    with hearing() as requests:
        yield requests


def printed(outputs: list[dict[str, Any]]) -> str:
    return "".join(output["text"] for output in outputs if output["output_type"] == "stream")


def test_output_appears_while_a_cell_runs(notebook: OpenNotebook) -> None:
    """The stop button interrupts it with a short error; the session keeps its state."""
    notebook.run("%%sandbox\nkept = 6 * 7")
    notebook.begin("%%sandbox\nimport time\nprint('it runs')\ntime.sleep(600)")

    notebook.outputs().last.get_by_text("it runs", exact=True).wait_for()
    (running,) = notebook.page.locator(".jp-CodeCell .jp-InputPrompt").all_inner_texts()[-1:]
    notebook.page.locator("[data-jp-item-name=interrupt]").click()
    outputs = notebook.ended()
    (error,) = (output for output in outputs if output["output_type"] == "error")

    assert "[*]:" == running
    assert "InterruptedRunError" == error["ename"]
    assert len(error["traceback"]) <= 12
    assert "42\n" == printed(notebook.run("%%sandbox\nprint(kept)"))


def test_html_with_scripts_runs_in_a_frame(
    notebook: OpenNotebook, screenshots: Path | None
) -> None:
    """The output of its script is readable in either theme."""
    faint = {}
    notebook.run(f"%%sandbox\nfrom IPython.display import HTML\nHTML({RUNS!r})")
    notebook.framed("drawn by a script").wait_for()

    for theme in (DARK, LIGHT):
        notebook.show_in(theme)
        faint[theme] = notebook.faint_texts(READABLE)
        if screenshots is not None:
            notebook.photograph(screenshots / theme.split()[-1].lower(), "cells")

    assert {DARK: [], LIGHT: []} == faint


def test_html_of_a_session_cannot_reach_the_page(
    notebook: OpenNotebook, elsewhere: Hearing
) -> None:
    """It sends no requests either; the same HTML from the notebook's kernel does both."""
    cell = "from IPython.display import HTML\nHTML('''{}''')"
    their_cell = cell.format(HOSTILE.format(url=elsewhere.url, whose="theirs"))
    our_cell = cell.format(HOSTILE.format(url=elsewhere.url, whose="ours"))

    notebook.page.evaluate(WATCH_TITLE)
    notebook.run("import doublecheck\nmine = doublecheck.connect()")
    for shows in (f"%%sandbox\n{their_cell}", f'mine.run_code("""{their_cell}""")'):
        notebook.run(shows)
        notebook.framed("Weather").wait_for()
    notebook.run(our_cell)
    elsewhere.wait_for("/ours/fetched")
    notebook.run("mine.close()")

    assert {"ours"} == {path.split("/")[1] for path in elsewhere.paths}
    assert ["ours"] == notebook.page.evaluate("() => [...new Set(window.taken)]")
    assert {"ours"} == {"ours", "theirs"} & {*notebook.page.evaluate("() => window.titles")}


def test_charts_and_diagrams_of_a_session_load_nothing(
    notebook: OpenNotebook, elsewhere: Hearing
) -> None:
    """A chart of plain data is drawn, and a chart of the notebook's own kernel loads its data."""
    for bundle in LOADING.values():
        shown = json.dumps(bundle).replace("URL", f"{elsewhere.url}/theirs")
        notebook.run("%%sandbox\n" + SHOW.format(shown))
        notebook.outputs().last.scroll_into_view_if_needed()
    notebook.run("%%sandbox\n" + SHOW.format({_VEGA_LITE: BARS}))
    notebook.outputs().last.locator("canvas").wait_for()
    ours = {**BARS, "data": {"url": f"{elsewhere.url}/ours/data"}}
    notebook.run(SHOW.format({_VEGA_LITE: ours}))
    elsewhere.wait_for("/ours/data")

    assert {"ours"} == {path.split("/")[1] for path in elsewhere.paths}
