"""The tab key in a notebook that has the magics."""

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
def test_options_and_commands_are_offered(
    notebook: NotebookKernel, cell: str, offered: list[str]
) -> None:
    """On the lines of the magics."""
    assert offered == notebook.complete(cell)


@pytest.mark.slow
def test_inside_a_cell_the_names_of_its_session_are_offered(notebook: NotebookKernel) -> None:
    """Those of the notebook are not: they are not there."""
    notebook.run("%%sandbox --session tabbed\ntabular = {}")
    notebook.run("tabulated = 1")

    cell = "%%sandbox --session tabbed\nx = [\n  tabul\n]"
    assert ["tabular"] == notebook.complete(cell, cell.index("tabul\n") + len("tabul"))
    assert ["tabulated"] == notebook.complete("tabul")


@pytest.mark.slow
@pytest.mark.parametrize("line", ["%%sandbox --session nobody", "%%sandbox --on live"])
def test_where_nobody_can_say_nothing_is_offered(notebook: NotebookKernel, line: str) -> None:
    """Nor of the notebook, without a session, with wrong options, or on a live platform."""
    notebook.run(
        "import dataclasses\ntabulated = 1\n"
        "live = doublecheck.Platform(dataclasses.replace(platform.target, kind='live'))"
    )

    assert [] == notebook.complete(f"{line}\ntabul")
    assert 0 == len(notebook.run("%sandbox sessions").bundles)
