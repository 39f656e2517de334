"""Runs and completes one cell: prepares its source, evaluates it, and returns its result or error."""

from __future__ import annotations

import json
import re
from typing import Any

from agentdouble.sandbox.javascript import inspector
from agentdouble.sandbox.javascript.engine import CELL, DenoEngine, HelperError
from agentdouble.sandbox.javascript.inspector import PREFIX, CellError, InspectorError

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
    newlines = "\n" * statement[0].count("\n")  # so that the code after it keeps its line number
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
    exports = json.dumps([exported for exported, _ in names])
    first = f"{namespace} = {module}, " if namespace else ""
    return (
        f"const {first}{{{pattern}}} = __cell.named({namespace or module}, {specifier}, {exports});"
    )


def _names(clause: re.Match[str]) -> list[tuple[str, str]]:
    """Return the imported names, each as the exported name and the local name."""
    names = [("default", clause["default"])] if clause["default"] else []
    for item in (clause["named"] or "").split(","):
        exported, _, local = item.strip().partition(" as ")
        if exported:
            names.append((exported.strip(), (local or exported).strip()))
    return names


_COLLECTED = "Promise was collected"
_STRIPPED = "file:///stripTypeScriptTypes.ts"  # the name that deno gives every source


async def run(
    engine: DenoEngine, code: str, number: int, *, typescript: bool = False
) -> dict[str, Any] | None:
    """Run a cell; return its result by media type, or None if it has none.

    Raises CellError if the cell fails, and EngineGoneError if the engine ends.
    """
    source = await _without_types(engine, code, number) if typescript else code
    try:
        answer = await _evaluate(engine, source, number)
        result = await engine.help("finish", _argument(answer["result"]))
    except HelperError as error:
        raise await _error(engine, error.details, source, number) from None
    except InspectorError as error:
        raise _lost_promise(error) from None
    try:
        bundle: dict[str, Any] | None = None if result is None else json.loads(result)
    except RecursionError:
        return {"text/plain": "The result is nested too deeply to be shown."}
    return bundle


async def _evaluate(engine: DenoEngine, source: str, number: int) -> dict[str, Any]:
    """Evaluate a cell; if V8 refuses the source before it runs, try a rewritten source."""
    if _may_be_object(source):  # as in every REPL, {a: 1} is an object and not a block
        answer = await _attempt(engine, f"({source}\n)", number)
        details = answer.get("exceptionDetails")
        if details is None:
            return answer
        description = await _describe(engine, details)
        if description["started"]:
            raise inspector.thrown(description, details)
    while True:
        answer = await _attempt(engine, source, number)
        details = answer.get("exceptionDetails")
        if details is None:
            return answer
        description = await _describe(engine, details)
        rewritten = _rewritten(source, details, description)
        if rewritten is None:
            raise _failure(description, details, source, number)
        source = rewritten


async def _attempt(engine: DenoEngine, source: str, number: int) -> dict[str, Any]:
    await engine.begin()
    return await engine.call(
        "Runtime.evaluate",
        expression=f"{PREFIX}{source}\n//# sourceURL=cell-{number}.js",
        replMode=True,
        awaitPromise=True,
        objectGroup=CELL,
    )


def _rewritten(source: str, details: dict[str, Any], description: dict[str, Any]) -> str | None:
    if description["started"] or description["message"] != REFUSAL:
        return None
    return rewrite(source, inspector.offset(source, *inspector.position(details)))


async def _describe(engine: DenoEngine, details: dict[str, Any]) -> dict[str, Any]:
    description: dict[str, Any] = await engine.help("describe", _argument(details["exception"]))
    return description


async def _error(
    engine: DenoEngine, details: dict[str, Any], source: str, number: int
) -> CellError:
    return _failure(await _describe(engine, details), details, source, number)


def _failure(
    description: dict[str, Any], details: dict[str, Any], source: str, number: int
) -> CellError:
    if description["started"]:
        return inspector.thrown(description, details)
    return inspector.unparsable(description, details, source, number)


async def _without_types(engine: DenoEngine, code: str, number: int) -> str:
    if _may_be_object(code):
        answer = await engine.help("stripTypes", {"value": f"({code}\n)"})
        if "error" not in answer:
            return str(answer["code"])
    answer = await engine.help("stripTypes", {"value": code})
    if "error" in answer:
        reason: str = answer["error"].removeprefix("SyntaxError: ")
        message = reason.replace(_STRIPPED, f"cell-{number}.js")
        first = message.partition("\n")[0]
        raise CellError("SyntaxError", first, f"SyntaxError: {message}".splitlines())
    source: str = answer["code"]
    return source


def _lost_promise(error: InspectorError) -> CellError:
    if str(error) == _COLLECTED:
        return CellError("NeverSettled", "the cell awaits a promise that nothing can settle")
    return CellError("InspectorError", str(error))


def _may_be_object(source: str) -> bool:
    trimmed = source.strip()
    return trimmed.startswith("{") and trimmed.endswith("}")


def _argument(remote: dict[str, Any]) -> dict[str, Any]:
    """Return a value of the engine in the form of a call's argument."""
    for key in ("objectId", "unserializableValue"):
        if key in remote:
            return {key: remote[key]}
    if remote["type"] == "undefined":
        return {}
    return {"value": remote.get("value")}
