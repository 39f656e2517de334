"""Files that are written atomically."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Replace a file atomically, so that readers see the old or the new content. Raise OSError."""
    content = text.encode(errors="replace")
    with temporary_sibling(path) as new:
        new.write_bytes(content)
        new.replace(path.resolve())


@contextlib.contextmanager
def temporary_sibling(path: Path) -> Iterator[Path]:
    """Yield a temporary file in the same folder. Remove it unless it was renamed."""
    target = path.resolve()
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
    os.close(descriptor)
    new = Path(name)
    try:
        new.chmod(0o666 & ~_umask())  # the mode that other new files get
        yield new
    finally:
        new.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
