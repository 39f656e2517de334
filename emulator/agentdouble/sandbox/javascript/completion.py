"""Completes the names of variables and of an object's properties in a cell."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentdouble.sandbox.javascript.engine import Engine

_LONGEST = 1000  # characters before the cursor that are read
_LONGEST_MS = 500
_PATH = re.compile(r"(?:(?P<object>[^\W\d][\w$]*(?:\.[\w$]+)*)\.)?(?P<begun>[\w$]*)$")
_PROPERTIES = """((value) => {
  const names = new Set();
  for (let at = Object(value); at !== null; at = Object.getPrototypeOf(at))
    for (const name of Object.getOwnPropertyNames(at)) names.add(name);
  return [...names];
})"""
_NAME = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_OURS = "__cell"


@dataclass(frozen=True)
class Place:
    """The text to complete: the object before the dot, if any, and the beginning of a name."""

    object: str | None
    begun: str


def place(before: str) -> Place | None:
    """Return the text to complete, or None if the object is known only by running code."""
    before = before[-_LONGEST:]
    found = _PATH.search(before)
    assert found is not None  # the pattern also matches an empty string
    rest = before[: found.start()]
    if rest.endswith((".", "$")):
        return None
    return Place(found["object"], found["begun"])


async def names(engine: Engine, at: Place) -> list[str]:
    """Return the matching names, sorted, without running code of the object."""
    found = await _properties(engine, at.object or "globalThis")
    if at.object is None:
        found += (await engine.call("Runtime.globalLexicalScopeNames"))["names"]
    texts = (name for name in found if isinstance(name, str))  # the session's code may forge them
    fitting = (name for name in texts if name.startswith(at.begun) and _NAME.fullmatch(name))
    return sorted({name for name in fitting if not name.startswith(_OURS)})


async def _properties(engine: Engine, expression: str) -> list[object]:
    answer = await engine.call(
        "Runtime.evaluate",
        expression=f"{_PROPERTIES}({expression})",
        throwOnSideEffect=True,
        timeout=_LONGEST_MS,
        returnByValue=True,
    )
    found = answer["result"].get("value")
    return found if isinstance(found, list) else []
