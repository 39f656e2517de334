"""A notebook open in JupyterLab, in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.jupyterlab.server import Lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Frame, Locator, Page, Request, ViewportSize

TIMEOUT_MS = 120_000
RUN_ALL_TIMEOUT_MS = 600_000  # a machine that does much else besides
SIZE: ViewportSize = {"width": 1000, "height": 1000}
LIGHT, DARK = "JupyterLab Light", "JupyterLab Dark"
READABLE = 3.0  # what WCAG asks of large text; middle tones have it on light and on dark
_HERE = Path(__file__).parent
_CONTRAST = (_HERE / "contrast.js").read_text("utf-8")
_OPEN = """async (path) => {
  const opened = await window.jupyterapp.commands.execute("docmanager:open", {path});
  await Promise.all([opened.context.ready, opened.revealed]);
  await opened.sessionContext.ready;
  await opened.sessionContext.session.kernel.info;
}"""
_CLOSE = """async () => {
  const opened = window.jupyterapp.shell.currentWidget;
  await opened.context.save();  // else it asks
  await opened.sessionContext.shutdown();
  opened.dispose();
}"""
_RUN_ALL = """async (patience) => {
  const late = new Promise((_, fail) => setTimeout(() => fail("a cell does not end"), patience));
  await Promise.race([window.jupyterapp.commands.execute("notebook:run-all-cells"), late]);
}"""
_ADD = """async (source) => {
  const cells = window.jupyterapp.shell.currentWidget.content;
  cells.activeCellIndex = cells.widgets.length - 1;
  await window.jupyterapp.commands.execute("notebook:insert-cell-below");
  cells.activeCell.model.sharedModel.setSource(source);
}"""
_READY = """async () => {
  const {context, sessionContext} = window.jupyterapp.shell.currentWidget;
  await Promise.all([context.ready, sessionContext.ready]);
  await sessionContext.session.kernel.info;
}"""
_IS_OPEN = "() => window.jupyterapp.shell.currentWidget?.sessionContext !== undefined"
_BEGIN = "() => { window.running = window.jupyterapp.commands.execute('notebook:run-cell'); }"
_CELLS = """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
    .map(cell => cell.toJSON())"""


@dataclass(frozen=True)
class Faint:
    """A hard-to-read text in an output: its colour is too close to its background."""

    text: str
    contrast: float
    colour: str
    behind: str


@dataclass
class OpenNotebook:
    """Drives a notebook; ``requests`` are the addresses that its page has requested."""

    page: Page
    requests: list[str] = field(default_factory=list)

    def note(self, request: Request) -> None:
        """Record a request of the page."""
        self.requests.append(request.url)

    def run_all(self) -> None:
        """Run all cells; return when the last one has finished."""
        self.page.evaluate(_RUN_ALL, RUN_ALL_TIMEOUT_MS)

    def code_cells(self) -> list[dict[str, Any]]:
        """Return the code cells in the file."""
        cells: list[dict[str, Any]] = self.page.evaluate(_CELLS)
        return [cell for cell in cells if cell["cell_type"] == "code"]

    def run(self, source: str) -> list[dict[str, Any]]:
        """Run source in a new cell at the end; return its outputs in the file."""
        self.begin(source)
        return self.ended()

    def begin(self, source: str) -> None:
        """Start source in a new cell at the end."""
        self.write(source)
        self.page.evaluate(_BEGIN)

    def write(self, source: str) -> None:
        """Write source into a new cell at the end."""
        self.page.evaluate(_ADD, source)

    def ended(self) -> list[dict[str, Any]]:
        """Wait for the cell that was started last, and return its outputs."""
        self.page.evaluate("() => window.running")
        outputs: list[dict[str, Any]] = self.code_cells()[-1]["outputs"]
        return outputs

    def command(self, name: str, **options: Any) -> Any:
        """Run one of JupyterLab's commands to completion."""
        run = "([name, options]) => window.jupyterapp.commands.execute(name, options)"
        return self.page.evaluate(run, [name, options])

    def show_in(self, theme: str) -> None:
        """Change the theme; return when the page has its colours."""
        self.command("apputils:change-theme", theme=theme)
        self.page.wait_for_function(
            "theme => document.body.dataset.jpThemeName === theme", arg=theme
        )

    def outputs(self) -> Locator:
        """Return the displayed outputs of code cells, one element a cell."""
        return self.page.locator(".jp-CodeCell .jp-Cell-outputArea")

    def framed(self, text: str) -> Locator:
        """Scroll to the last output's frame, so that it loads, and return a text in it."""
        outer = self.outputs().last.locator("iframe")
        outer.scroll_into_view_if_needed()
        return outer.content_frame.frame_locator("iframe").get_by_text(text, exact=True)

    def faint_texts(self, least: float) -> list[Faint]:
        """Return the texts in outputs and their frames that have less contrast than this."""
        script = f"([root, behind]) => ({_CONTRAST})(root, behind)"
        faint = [Faint(**item) for item in self.page.evaluate(script, [".jp-OutputArea", None])]
        for frame in self._frames_of_outputs():
            behind = frame.frame_element().evaluate(f"frame => ({_CONTRAST}).behind(frame)")
            faint += [Faint(**item) for item in frame.evaluate(script, ["body", behind])]
        return [item for item in faint if item.contrast < least]

    def photograph(self, folder: Path, name: str) -> None:
        """Save a picture of the output of each cell that has one."""
        folder.mkdir(parents=True, exist_ok=True)
        for number, area in enumerate(self.outputs().all(), 1):
            box = area.bounding_box()
            if box is not None and box["height"] > 1:
                area.screenshot(path=folder / f"{name}-{number:02}.png", animations="disabled")

    def _frames_of_outputs(self) -> list[Frame]:
        return [frame for frame in self.page.frames if frame.parent_frame is not None]


@contextmanager
def started(browser: Browser, lab: Lab) -> Iterator[Page]:
    """Yield a page with JupyterLab and no open notebook."""
    with browser.new_context(viewport=SIZE) as context:
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        page.goto(lab.address)
        page.wait_for_function("window.jupyterapp !== undefined")
        page.evaluate("() => window.jupyterapp.restored")
        yield page


def click_kernel(page: Page, title: str) -> None:
    """Click the notebook card of a kernel in the launcher."""
    page.locator(".jp-LauncherCard[data-category=Notebook]").filter(has_text=title).click()


def opened_from_launcher(page: Page, title: str) -> OpenNotebook:
    """Click a kernel in the launcher, and return the notebook when its kernel answers."""
    click_kernel(page, title)
    page.wait_for_function(_IS_OPEN)
    page.evaluate(_READY)
    return OpenNotebook(page)


@contextmanager
def opened(page: Page, notebook: str) -> Iterator[OpenNotebook]:
    """Open a notebook and wait for its kernel; end the kernel afterwards."""
    view = OpenNotebook(page)
    page.on("request", view.note)
    page.evaluate(_OPEN, notebook)
    try:
        yield view
    finally:
        page.remove_listener("request", view.note)
        page.evaluate(_CLOSE)
