"""Which tools fit a question in words: the words count, in the name more than in the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentdouble.mcp_services.toolsets.listing import Listed

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def best(tools: Iterable[Listed], query: str, limit: int) -> list[Listed]:
    """Return the tools that have most of the query's words, the best first.

    A query without words finds all. Words match their beginnings: ``repo`` finds ``repository``.
    """
    asked = _words(query)
    ranked = [(_score(one, asked), index, one) for index, one in enumerate(tools)]
    fitting = [entry for entry in ranked if entry[0] > 0 or not asked]
    fitting.sort(key=lambda entry: (-entry[0], entry[1]))
    return [one for _, _, one in fitting[:limit]]


def _score(listed: Listed, asked: set[str]) -> int:
    name = _words(listed.name)
    rest = _words(" ".join(filter(None, (listed.tool.title, listed.tool.description))))
    properties = listed.tool.input_schema.get("properties")
    arguments = _words(" ".join(properties)) if isinstance(properties, dict) else set()
    weights = ((name, 4), (rest, 2), (arguments, 1))
    return sum(
        max((weight for words, weight in weights if _has(words, word)), default=0) for word in asked
    )


def _has(words: set[str], asked: str) -> bool:
    """Return whether a word is there, or its beginning, or (of four letters or more) its stem."""
    stems = {word for word in words if len(word) > 3}
    return any(word.startswith(asked) for word in words) or asked.startswith(tuple(stems))


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(_HUMP.sub(" ", text))}
