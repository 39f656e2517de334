from __future__ import annotations

from pathlib import Path

import pytest

from doublecheck.errors import ReportError
from doublecheck.reports import formats
from doublecheck.reports import write as writing
from tests.doublecheck.reports.examples import DOUBLE


def test_a_report_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    """Through a link, too, and nothing else is left in the folder."""
    old, link = tmp_path / "old.html", tmp_path / "link.html"
    old.write_text("old")
    link.symlink_to(old)

    writing.require_writable(link)
    writing.write("new", link)

    assert (True, "new") == (link.is_symlink(), old.read_text())
    assert ["link.html", "old.html"] == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "told"), [("absent/r.html", "No such file"), (".", "it is no file")]
)
def test_what_cannot_be_written_is_found_out_beforehand(
    tmp_path: Path, name: str, told: str
) -> None:
    """In one line, and nothing is left behind."""
    with pytest.raises(ReportError, match=f"No report can be written to .*: {told}"):
        writing.require_writable(tmp_path / name)

    assert [] == list(tmp_path.iterdir())


def test_the_suffix_is_the_format() -> None:
    """Another one is refused with those there are."""
    starts = {".html": "<!doctype", ".JSON": "{", ".xml": "<?xml"}

    assert list(starts.values()) == [
        formats.rendered([DOUBLE], Path(f"report{suffix}"))[: len(start)]
        for suffix, start in starts.items()
    ]
    with pytest.raises(ReportError, match=r"must end in one of \.html, \.json, \.xml"):
        formats.rendered([DOUBLE], Path("report.pdf"))
