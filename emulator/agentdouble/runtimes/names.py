"""What a runtime may be called."""

from __future__ import annotations

import re
from collections.abc import Collection

from agentdouble.errors import RuntimeNameError

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
RULE = (
    "a name is one segment of a path: up to 100 letters, digits and _ . -, a letter or digit first"
)


def check(name: str, taken: Collection[str] = ()) -> None:
    """Raise RuntimeNameError if no runtime can have that name; ``taken`` are applications' names."""
    if re.fullmatch(NAME, name) is None:
        raise RuntimeNameError(name, RULE)
    if name in taken:
        raise RuntimeNameError(name, f"an application of this process answers at /runtimes/{name}")
