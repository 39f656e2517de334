"""Makes the static imports of a cell dynamic.

A cell is a script. V8 refuses ``import x from "y"`` in a script before any code runs, and reports
the position. So this module parses only that statement, not JavaScript.
"""

from __future__ import annotations

import json
import re

REFUSAL = "Cannot use import statement outside a module"

_STATEMENT = re.compile(
    r"""import\s*
        (?:(?P<clause>[^"'`;()=]+?)\s*(?<![\w$])from\s*)?
        (?P<quote>["'])(?P<specifier>[^"'\n]*)(?P=quote)
        (?:\s*with\s*(?P<attributes>\{[^}]*\}))?
        [ \t]*(?:;|(?=\r|\n|//|/\*|\Z))""",
    re.VERBOSE,
)
_CLAUSE = re.compile(
    r"""\s*(?P<default>[\w$]+)?\s*,?\s*
        (?:\*\s*as\s+(?P<namespace>[\w$]+)|\{(?P<named>[^}]*)\})?\s*""",
    re.VERBOSE,
)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def rewrite(source: str, offset: int) -> str | None:
    """Return the source with the import at ``offset`` made dynamic, or None if that fails."""
    statement = _STATEMENT.match(source, offset)
    if statement is None:
        return None
    clause = _CLAUSE.fullmatch(_COMMENT.sub(" ", statement["clause"] or ""))
    if clause is None:
        return None
    newlines = "\n" * statement[0].count("\n")  # the code after it stays on its line
    dynamic = _dynamic(clause, _import(statement), json.dumps(statement["specifier"]))
    return source[:offset] + dynamic + newlines + source[statement.end() :]


def _import(statement: re.Match[str]) -> str:
    options = f", {{with: {statement['attributes']}}}" if statement["attributes"] else ""
    return f"await import({json.dumps(statement['specifier'])}{options})"


def _dynamic(clause: re.Match[str], module: str, specifier: str) -> str:
    names = _names(clause)
    namespace = clause["namespace"]
    if not names:
        return f"const {namespace} = {module};" if namespace else f"void {module};"
    pattern = ", ".join(f"{exported}: {local}" for exported, local in names)
    wanted = json.dumps([exported for exported, _ in names])
    first = f"{namespace} = {module}, " if namespace else ""
    return (
        f"const {first}{{{pattern}}} = __cell.named({namespace or module}, {specifier}, {wanted});"
    )


def _names(clause: re.Match[str]) -> list[tuple[str, str]]:
    """Return the imported names, each as the exported name and the local name."""
    names = [("default", clause["default"])] if clause["default"] else []
    for item in (clause["named"] or "").split(","):
        exported, _, local = item.strip().partition(" as ")
        if exported:
            names.append((exported.strip(), (local or exported).strip()))
    return names
