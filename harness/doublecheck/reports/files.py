"""Files of reports; the suffix of a file gives its format."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from doublecheck import atomic_files
from doublecheck.errors import ReportError

if TYPE_CHECKING:
    from doublecheck.reports.report import Report

# Modules by name: a Report writes itself through them, and they import it, so they are imported
# late.
_RENDERED_BY = {".html": "html", ".json": "document"}


def write(reports: Sequence[Report], path: Path) -> None:
    """Write reports to one file atomically; raise ReportError."""
    require_format(path)
    module = importlib.import_module(f"doublecheck.reports.{_RENDERED_BY[path.suffix.lower()]}")
    write_text(module.render(reports), path)


def require_format(path: Path) -> None:
    """Raise ReportError if a path's suffix names no format."""
    if path.suffix.lower() not in _RENDERED_BY:
        raise ReportError(
            f"The name of the report {path} does not say its format; it must end in one of "
            f"{', '.join(_RENDERED_BY)}."
        )


def require_writable(path: Path) -> None:
    """Raise ReportError, before a run, if its report could not be written to this path."""
    with _as_report_errors(path):
        if path.exists() and not path.is_file():
            raise ReportError(f"No report can be written to {path}: it is not a file.")
        with atomic_files.temporary_sibling(path):
            pass


def write_text(text: str, path: Path) -> None:
    """Write the text of a report atomically; raise ReportError."""
    with _as_report_errors(path):
        atomic_files.write(path, text)


@contextlib.contextmanager
def _as_report_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReportError(f"No report can be written to {path}: {error.strerror}.") from None
