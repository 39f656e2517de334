"""The notebook cells of the pages, run in order in a real kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doublecheck.notebook.kernels import NotebookKernel, notebook_kernel
from tests.readme.pages import FRONT, HARNESS, block, read

pytestmark = pytest.mark.once

LOAD, PLOT = (block(FRONT, "python", start) for start in ("%load_ext", "%%sandbox"))
(FROM_PYTHON,) = re.findall(r"^From Python, use .*?\.$", read(FRONT), re.M | re.S)
*CONNECT, RUN = re.findall(r"`(.*?)`", FROM_PYTHON)
WITHOUT_MAGICS = [
    block(HARNESS, "python", start) for start in ("import doublecheck\n", "other = await ")
]
WITH_MAGICS = [
    block(HARNESS, "python", start)
    for start in (
        "%load_ext",
        "%%sandbox --session s1 --out",
        "limit = 10",
        "%%sandbox --session s1 --in",
        "%sandbox sessions",
        "%sandbox snapshot",
        "%sandbox resume",
        "%sandbox clock",
        "%sandbox log",
    )
]

CHECK, CALIBRATE = (
    block(HARNESS, "python", start)
    for start in ("report = doublecheck.", "findings = doublecheck.")
)


@pytest.fixture(scope="module")
def notebook() -> Iterator[NotebookKernel]:
    """Start one notebook for all tests, because they share its double."""
    with notebook_kernel() as kernel:
        yield kernel


@pytest.mark.slow
def test_front_page_cells_run(notebook: NotebookKernel) -> None:
    """The magic shows the sandbox's plot; the client's result is the value of the last cell."""
    ran = [notebook.run(cell) for cell in (LOAD, PLOT, "\n".join([*CONNECT, RUN]))]

    assert [None, None, None] == [cell.error for cell in ran]
    assert any("image/png" in bundle for bundle in ran[1].bundles)
    assert "text='42'" in ran[2].text


@pytest.mark.slow
def test_platform_is_checked_and_calibrated(notebook: NotebookKernel, tmp_path: Path) -> None:
    """Each result is the value of its cell, and is also written to a file."""
    assert notebook.run("\n".join([f"%cd -q {tmp_path}", *CONNECT])).error is None

    checked, calibrated = notebook.run(CHECK), notebook.run(CALIBRATE)

    assert [None, None] == [checked.error, calibrated.error]
    assert (True, True) == (bool(checked.bundles), "U-PROBE-BODIES" in calibrated.html)
    assert "PRB-01" in (tmp_path / "report.html").read_text("utf-8")
    assert 'U-PROBE-BODIES = "object"' in (tmp_path / "profile.toml").read_text("utf-8")


@pytest.mark.slow
def test_magics_manage_sessions_clock_and_log(notebook: NotebookKernel) -> None:
    """The cells run in the order of the harness's page."""
    ran = [notebook.run(cell) for cell in WITH_MAGICS]
    _, cell, _limit, given, sessions, snapshot, resume, clock, log = ran

    assert [None] * len(ran) == [cell.error for cell in ran]
    *_moved, text = cell.stdout.splitlines()  # the front page's cell ran on the magics' own double
    assert ("[0, 1, 4, 9, 16]", "30") == (text, cell.text)
    assert "[0, 1, 4, 9]" == given.text
    assert "agent_anonymous_s1" in sessions.html
    assert ["Session", "The"] == [cell.stdout.split()[0] for cell in (snapshot, resume)]
    assert [True, True] == [bool(cell.stdout or cell.bundles) for cell in (clock, log)]


@pytest.mark.slow
def test_platform_works_with_and_without_await(notebook: NotebookKernel) -> None:
    """The blocking client also works in a running event loop."""
    blocking, awaited = (notebook.run(cell) for cell in WITHOUT_MAGICS)

    assert [None, None] == [blocking.error, awaited.error]
    assert "42" in awaited.text
