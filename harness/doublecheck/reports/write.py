"""Writing a report, and finding out beforehand whether that will be possible."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from doublecheck import atomic_files as files
from doublecheck.errors import ReportError


def write(text: str, path: Path) -> None:
    """Write a report whole or not at all."""
    with _translated(path):
        files.write(path, text)


def require_writable(path: Path) -> None:
    """Raise ReportError, before a run, if its report could not be written there after it."""
    with _translated(path):
        if path.exists() and not path.is_file():
            raise ReportError(f"No report can be written to {path}: it is no file.")
        with files.beside(path):
            pass


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReportError(f"No report can be written to {path}: {error.strerror}.") from None
