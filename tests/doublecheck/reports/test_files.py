from __future__ import annotations

from pathlib import Path

import pytest

from doublecheck.errors import ReportError
from doublecheck.reports import report
from tests.doublecheck.reports.examples import DOUBLE


def test_a_report_replaces_an_older_one(tmp_path: Path) -> None:
    """Links are followed, and no temporary file remains."""
    old, link = tmp_path / "old.html", tmp_path / "link.html"
    old.write_text("old")
    link.symlink_to(old)

    report.require_writable(link)
    report.write([DOUBLE], link)

    assert (True, "<!doctype") == (link.is_symlink(), old.read_text("utf-8")[:9])
    assert ["link.html", "old.html"] == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "message"), [("absent/r.html", "No such file"), (".", "it is not a file")]
)
def test_unwritable_paths_are_refused_beforehand(tmp_path: Path, name: str, message: str) -> None:
    """Nothing is left behind."""
    with pytest.raises(ReportError, match=f"The report cannot be written to .*: {message}"):
        report.require_writable(tmp_path / name)

    assert [] == list(tmp_path.iterdir())


def test_the_suffix_selects_the_format(tmp_path: Path) -> None:
    """An unknown suffix is refused with the valid ones."""
    starts = {".html": "<!doctype", ".JSON": "{"}

    for suffix, start in starts.items():
        report.write([DOUBLE], tmp_path / f"report{suffix}")
        assert start == (tmp_path / f"report{suffix}").read_text("utf-8")[: len(start)]

    with pytest.raises(ReportError, match=r"must end in one of \.html, \.json"):
        report.write([DOUBLE], tmp_path / "report.pdf")
