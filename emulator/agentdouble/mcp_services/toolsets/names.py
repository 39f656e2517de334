"""What the tools of several services are called behind one address: ``<service>__<tool>``.

A name depends on nothing but the two that it is made of, so it stays as it is when other
services come and go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

SEPARATOR = "__"
LONGEST = 128  # characters of a tool's name, by the protocol
_CLEAR = 64  # of a service's name, so that a shortened name has it whole
_DIGEST = 16


def merged(service: str, tool: str) -> str:
    """Return what a service's tool is called among those of others.

    A service whose own name is long, or would hide where the tool's begins, stands in it as a
    digest, and a name that would be too long ends in one.
    """
    name = _prefix(service) + tool
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - _DIGEST - 1]}-{_digest(name)}"


def split(name: str, services: Iterable[str]) -> tuple[str, str] | None:
    """Return the service and the tool that a name means, None if none of the services is in it.

    A name that ends in a digest is for ``merged`` to tell: see ``is_shortened``.
    """
    found = next((one for one in services if name.startswith(_prefix(one))), None)
    return None if found is None else (found, name[len(_prefix(found)) :])


def is_shortened(name: str) -> bool:
    """Return whether a name may end in a digest, so that it has to be looked for in a list."""
    return len(name) == LONGEST


def _prefix(service: str) -> str:
    clear = SEPARATOR not in service and not service.endswith("_") and len(service) <= _CLEAR
    return (service if clear else _digest(service)) + SEPARATOR


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
