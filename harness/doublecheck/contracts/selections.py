"""Expressions that select checks, such as ``INV or PRB-01``: errors before pytest reads them."""

from __future__ import annotations

import ast
import re

from agentdouble.core.suggestions import did_you_mean
from doublecheck.contracts.clauses import clauses, groups
from doublecheck.errors import TargetError

_OPERATORS = ("and", "or", "not")
_WORD = re.compile(r"[()]|[^\s()]+")
_ID = re.compile(r"[A-Za-z]+-[A-Za-z0-9-]+")  # of a clause or an unknown; no check has a hyphen


def require(expression: str, spelled: str) -> None:
    """Raise TargetError for an expression with a wrong form, or with an id that no clause has.

    ``spelled`` is the expression as the caller wrote it, with the option.
    """
    words = _WORD.findall(expression)
    lowered = [word.lower() if word.lower() in _OPERATORS else word for word in words]
    if not _is_complete(lowered):
        if lowered and lowered[-1] in _OPERATORS:
            example = " ".join([*lowered, "PRB-01"])
            raise TargetError(f"{spelled} ends after {words[-1]}: write {example!r}.")
        raise TargetError(
            f"{spelled} is not an expression. Join names by and, or, not and parentheses: "
            "'(INV or PRB) and not INV-05'."
        )
    if lowered != words:
        raise TargetError(f"{spelled}: operators are in lower case: write {' '.join(lowered)!r}.")
    for word in words:
        if _ID.fullmatch(word) and not any(word.upper() in id_ for id_ in clauses()):
            raise TargetError(f"{word} is not a clause.{did_you_mean(word, clauses())} {_known()}")


def nothing_matches(selection: str) -> TargetError:
    """Return the error for a selection without checks."""
    return TargetError(f"No check matches {selection}. {_known()}")


def _known() -> str:
    return f"Clauses: {' '.join(groups())}, or one as INV-01; unknowns are for calibrate."


def _is_complete(words: list[str]) -> bool:
    """Return whether words form an expression: pytest's grammar is Python's."""
    python = " ".join(word if word in (*_OPERATORS, "(", ")") else "x" for word in words)
    try:
        ast.parse(python, mode="eval")
    except SyntaxError:
        return not words
    return True
