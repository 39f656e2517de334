"""The README has few figures, and the page of all figures is made from several runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import page
from tests.benchmarks.table import Row, Section, write
from tests.readme.pages import FRONT, read

pytestmark = pytest.mark.once


def test_the_front_page_has_three_figures_at_most() -> None:
    """A user reads them at a glance; the others are on their page."""
    section = read(FRONT).partition("## Figures\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| .*\w.* \|$", section, re.M)

    assert 1 <= len(rows) <= 3
    assert "emulator/docs/figures.md" in section


def run(folder: Path, value: float) -> dict[str, Any]:
    """Return what a benchmark has written that measured this value."""
    file = folder / f"{value}.json"
    rows = [
        Row("a call", value, "ms", 10),
        Row("calls a second", 1000 / value, "", 200, least=True),
    ]
    write([Section("Calls", "The double alone.", rows)], file)
    written: dict[str, Any] = json.loads(file.read_text())
    return written


def test_figures_of_several_runs_become_medians(tmp_path: Path) -> None:
    tables = page.merged([run(tmp_path, value) for value in (12, 4, 8)])

    assert "## Calls\n\nThe double alone.\n" in tables
    assert "| | median of 3 runs (lowest to highest) | wanted | reached |" in tables
    assert "| a call | 8 (4 to 12) ms | at most 10 ms | yes |" in tables
    assert "| calls a second | 125 (83 to 250) | at least 200 | no |" in tables


def test_runs_of_different_machines_are_refused(tmp_path: Path) -> None:
    runs = [run(tmp_path, 4), {**run(tmp_path, 8), "cores": 1000}]

    with pytest.raises(ValueError, match="different machines"):
        page.merged(runs)


def test_the_page_says_what_each_section_measures() -> None:
    """Between the marks, every table has a sentence before it."""
    _, _, rest = page.PAGE.read_text("utf-8").partition(page.BEGIN)
    tables, end, _ = rest.partition(page.END)
    sections = tables.split("\n## ")[1:]

    assert end == page.END
    assert sections
    for section in sections:
        title, about, *_ = section.split("\n\n")
        assert (bool(title), about.endswith("."), about.startswith("|")) == (True, True, False)
