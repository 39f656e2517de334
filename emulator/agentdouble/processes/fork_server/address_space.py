"""How much memory a Python kernel may use: more is refused to its code, as a MemoryError.

What is limited is its address space, which Linux refuses to enlarge; that of a kernel at rest is
ten times the memory that it uses, and differs between versions, so it comes on top.
"""

from __future__ import annotations

import resource
from pathlib import Path


def limit(memory: int) -> None:
    """Let this process use ``memory`` (bytes), or half of that more where it uses that already."""
    pages = Path("/proc/self/statm").read_text().split()
    size, used = (int(number) * resource.getpagesize() for number in pages[:2])
    lower(resource.RLIMIT_AS, size + max(memory - used, memory // 2))


def lower(kind: int, value: int) -> None:
    """Set a limit of this process and its children, at most to what it may be."""
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))
