"""Completion in a cell: names of variables, and of the properties of an object."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentdouble.sandbox.javascript.engine import Engine

_LONGEST = 1000  # characters that are looked at
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
    """What is to be completed: the object before the dot, if any, and the beginning of a name."""

    object: str | None
    begun: str


def place(before: str) -> Place | None:
    """Return what is to be completed; None if the object is not known without running code."""
    before = before[-_LONGEST:]
    found = _PATH.search(before)
    assert found is not None  # it matches nothing, too
    rest = before[: found.start()]
    if rest.endswith((".", "$")):
        return None
    return Place(found["object"], found["begun"])


async def names(engine: Engine, at: Place) -> list[str]:
    """Return the names that fit, sorted; no code of the object is run."""
    found = await _properties(engine, at.object or "globalThis")
    if at.object is None:
        found += (await engine.call("Runtime.globalLexicalScopeNames"))["names"]
    texts = (name for name in found if isinstance(name, str))  # the session's code may tell them
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
