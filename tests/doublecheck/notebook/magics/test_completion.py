"""Tab completion in a notebook with the magics."""

from __future__ import annotations

import pytest

from tests.doublecheck.notebook.kernels import NotebookKernel


@pytest.mark.parametrize(
    ("cell", "offered"),
    [
        ("%%sandbox --se", ["--session"]),
        ("%sandbox cl", ["clock"]),
        ("x = 1\nfound = %sandbox se", ["sessions"]),
    ],
)
def test_options_and_commands_are_completed(
    notebook: NotebookKernel, cell: str, offered: list[str]
) -> None:
    assert offered == notebook.complete(cell)


@pytest.mark.slow
def test_cells_complete_the_names_of_their_session(notebook: NotebookKernel) -> None:
    """Names of the notebook are not offered."""
    notebook.run("%%sandbox --session tabbed\ntabular = {}")
    notebook.run("tabulated = 1")

    cell = "%%sandbox --session tabbed\nx = [\n  tabul\n]"
    assert ["tabular"] == notebook.complete(cell, cell.index("tabul\n") + len("tabul"))
    assert ["tabulated"] == notebook.complete("tabul")


@pytest.mark.slow
@pytest.mark.parametrize("line", ["%%sandbox --session nobody", "%%sandbox --on live"])
def test_cells_without_a_session_offer_nothing(notebook: NotebookKernel, line: str) -> None:
    """Names of the notebook are not offered, either."""
    notebook.run(
        "import dataclasses\ntabulated = 1\n"
        "live = doublecheck.Platform(dataclasses.replace(platform.target, kind='live'))"
    )

    assert [] == notebook.complete(f"{line}\ntabul")
    assert 0 == len(notebook.run("%sandbox sessions").bundles)
