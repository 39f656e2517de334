"""The formats of a report, by the suffix of its file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from doublecheck.errors import ReportError
from doublecheck.reports import document, html, junit
from doublecheck.reports.report import Report

_FORMATS = {".html": html.rendered, ".json": document.rendered, ".xml": junit.rendered}


def require_format(path: Path) -> None:
    """Raise ReportError if a path's suffix names no format."""
    if path.suffix.lower() not in _FORMATS:
        raise ReportError(
            f"The name of the report {path} does not say its format; it must end in one of "
            f"{', '.join(_FORMATS)}."
        )


def rendered(reports: Sequence[Report], path: Path) -> str:
    """Return reports in the format that a path's suffix names; raise ReportError for no such."""
    require_format(path)
    return _FORMATS[path.suffix.lower()](reports)
