"""Warnings of fields that are probably misspelled arguments.

Methods that send further fields accept any name, so a call with ``user="ann"`` would silently run as
another user.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable

from agentdouble.core.suggestions import nearest

_CLOSE = 0.8
_CALLER = 4  # frames up: this module, the function of the request, the client's method, its caller


def warn(method: str, fields: Iterable[str], known: Collection[str]) -> None:
    """Warn (UserWarning) of each field that is not a known name, but near one."""
    for name in fields:
        near = None if name in known else _near(name, known)
        if near is not None:
            message = (
                f"{method}() sends {name!r} as a further field of the body. Did you mean {near}?"
            )
            warnings.warn(message, UserWarning, stacklevel=_CALLER)


def _near(name: str, known: Iterable[str]) -> str | None:
    folded = {_folded(one): one for one in known}
    stems = {one.removesuffix("id"): one for one in folded}
    word = _folded(name)
    if word in stems:
        return folded[stems[word]]
    return next((folded[one] for one in nearest(word, folded, cutoff=_CLOSE)), None)


def _folded(name: str) -> str:
    """Return the form that ``user_id``, ``userId`` and ``User-ID`` have in common."""
    return "".join(filter(str.isalnum, name)).lower()
