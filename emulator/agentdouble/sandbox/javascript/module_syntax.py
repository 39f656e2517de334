"""Turns the syntax of modules into that of a script, which V8's inspector evaluates.

V8 refuses a module's syntax before it runs anything, and says where. What it refuses is replaced
there: imports become dynamic, ``export`` is left out, and ``import.meta`` becomes an object. The
code after it keeps its lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

_MODULE = r"""(?P<quote>["'])(?P<specifier>[^"'\n]*)(?P=quote)
        (?:\s*with\s*(?P<attributes>\{[^}]*\}))?[ \t]*"""
_STATEMENT = re.compile(
    rf"""import\s*
        (?:(?P<clause>[^"'`;()=]+?)\s*(?<![\w$])from\s*)?
        {_MODULE}(?:;|(?=\r|\n|//|/\*|\Z))""",
    re.VERBOSE,
)
_CLAUSE = re.compile(
    r"""\s*(?P<default>[\w$]+)?\s*,?\s*
        (?:\*\s*as\s+(?P<namespace>[\w$]+)|\{(?P<named>[^}]*)\})?\s*""",
    re.VERBOSE,
)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_META_PROPERTY = re.compile(r"import(\s*\.\s*meta)\b")
_FROM = re.compile(
    rf"""export\s*(?P<clause>\*(?:\s*as\s+[\w$"']+)?|\{{[^}}]*\}})\s*from\s*
        {_MODULE};?""",
    re.VERBOSE,
)
_LIST = re.compile(r"export\s*\{[^}]*\}[ \t]*;?")
_DEFAULT = re.compile(r"export\s+default\b")
_NAMED_DEFAULT = re.compile(
    r"export\s+default(?=\s+(?:(?:async\s+)?function\b\s*\*?|class\b)\s*(?!extends\b)[\w$])"
)
_DECLARATION = re.compile(r"export(?=\s+(?:const|let|var|function|class|async)\b)")


def without_hashbang(source: str) -> str:
    """Return the source with a ``#!`` in the first line as a comment of the same length."""
    return f"//{source[2:]}" if source.startswith("#!") else source


def rewrite(source: str, offset: int, refusal: str) -> str | None:
    """Return the source with what V8 refuses at ``offset`` replaced, or None if that fails."""
    change = REWRITES.get(refusal)
    return None if change is None else change(source, offset)


def _rewrite_meta(source: str, offset: int) -> str | None:
    for found in _META_PROPERTY.finditer(source):
        if found.start() <= offset < found.end():
            return f"{source[: found.start()]}__cell{source[found.start(1) :]}"
    return None


def _rewrite_export(source: str, offset: int) -> str | None:
    """Leave out ``export``; a default value that has no name is evaluated, as a module does."""
    statement = _FROM.match(source, offset)
    if statement is not None:
        exported = [name for name, _ in _items(statement["clause"].strip("{}* "))]
        names = exported if statement["clause"].startswith("{") else []
        specifier = json.dumps(statement["specifier"])
        loaded = f"void __cell.named({_import(statement)}, {specifier}, {json.dumps(names)});"
        return _replaced(source, offset, statement.end(), loaded)
    for form, text in ((_LIST, ";"), (_NAMED_DEFAULT, ""), (_DEFAULT, "0,"), (_DECLARATION, "")):
        found = form.match(source, offset)
        if found is not None:
            return _replaced(source, offset, found.end(), text)
    return None


def _replaced(source: str, start: int, end: int, text: str) -> str:
    """Replace a part of the source, and keep the lines and, if there is room, the columns."""
    newlines = "\n" * source.count("\n", start, end)
    blanks = "" if newlines else " " * (end - start - len(text))
    return f"{source[:start]}{text}{blanks}{newlines}{source[end:]}"


def _rewrite_import(source: str, offset: int) -> str | None:
    statement = _STATEMENT.match(source, offset)
    if statement is None:
        return None
    clause = _CLAUSE.fullmatch(_COMMENT.sub(" ", statement["clause"] or ""))
    if clause is None:
        return None
    dynamic = _dynamic(clause, _import(statement), json.dumps(statement["specifier"]))
    return _replaced(source, offset, statement.end(), dynamic)


def _import(statement: re.Match[str]) -> str:
    options = f", {{with: {statement['attributes']}}}" if statement["attributes"] else ""
    return f"await import({json.dumps(statement['specifier'])}{options})"


def _dynamic(clause: re.Match[str], module: str, specifier: str) -> str:
    names = _names(clause)
    namespace = clause["namespace"]
    if not names:
        return f"const {namespace} = {module};" if namespace else f"void {module};"
    pattern = ", ".join(f"{exported}: {local}" for exported, local in names)
    exports = json.dumps([exported for exported, _ in names])
    first = f"{namespace} = {module}, " if namespace else ""
    return (
        f"const {first}{{{pattern}}} = __cell.named({namespace or module}, {specifier}, {exports});"
    )


def _names(clause: re.Match[str]) -> list[tuple[str, str]]:
    """Return the imported names, each as the exported name and the local name."""
    names = [("default", clause["default"])] if clause["default"] else []
    return names + _items(clause["named"] or "")


def _items(text: str) -> list[tuple[str, str]]:
    names = []
    for item in _COMMENT.sub(" ", text).split(","):
        exported, _, local = item.strip().partition(" as ")
        if exported:
            names.append((exported.strip(), (local or exported).strip()))
    return names


REWRITES: dict[str, Callable[[str, int], str | None]] = {  # by V8's message
    "Cannot use import statement outside a module": _rewrite_import,
    "Unexpected token 'export'": _rewrite_export,
    "Cannot use 'import.meta' outside a module": _rewrite_meta,
}
