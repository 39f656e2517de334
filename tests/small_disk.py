"""A small disk that a test may fill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(path: Path, size: str) -> Iterator[None]:
    """Mount a file system of a size ("256k") at a path; skip without permission."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts a small disk")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"no small disk can be mounted: {done.stderr.decode()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Fill a disk completely."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    try:
        yield
    finally:
        ballast.unlink()
