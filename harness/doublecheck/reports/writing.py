"""Writing a file whole or not at all, and finding out beforehand whether that will be possible."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from doublecheck.errors import ReportError


def write(text: str, path: Path) -> None:
    """Write a report in one step, so that readers see the old file or the new one."""
    content = text.encode(errors="replace")
    with _translated(path), _beside(path) as new:
        new.write_bytes(content)
        new.replace(path.resolve())


def require_writable(path: Path) -> None:
    """Raise ReportError, before a run, if its report could not be written there after it."""
    with _translated(path):
        if path.exists() and not path.is_file():
            raise ReportError(f"No report can be written to {path}: it is no file.")
        with _beside(path):
            pass


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Yield a new file in the folder of another; it is removed if it was not renamed."""
    place = path.resolve()
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:40]}.")
    os.close(descriptor)
    new = Path(name)
    try:
        new.chmod(0o666 & ~_umask())  # as any other new file
        yield new
    finally:
        new.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReportError(f"No report can be written to {path}: {error.strerror}.") from None
