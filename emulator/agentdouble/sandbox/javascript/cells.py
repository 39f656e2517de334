"""Runs and completes one cell: prepares its source, evaluates it, and returns its result or error."""

from __future__ import annotations

import json
from typing import Any

from agentdouble.sandbox.javascript import inspector, module_syntax
from agentdouble.sandbox.javascript.engine import CELL, DenoEngine, HelperError
from agentdouble.sandbox.javascript.inspector import PREFIX, CellError, InspectorError

_COLLECTED = "Promise was collected"
_STRIPPED = "file:///stripTypeScriptTypes.ts"  # the name that deno gives every source


async def run(
    engine: DenoEngine, code: str, number: int, *, typescript: bool = False
) -> dict[str, Any] | None:
    """Run a cell; return its result by media type, or None if it has none.

    Raises CellError if the cell fails, and EngineGoneError if the engine ends.
    """
    source = module_syntax.without_hashbang(code)
    if typescript:
        source = await _without_types(engine, source, number)
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
    refusal = description["message"]
    if description["started"] or refusal not in module_syntax.REWRITES:
        return None
    offset = inspector.offset(source, *inspector.position(details))
    return module_syntax.rewrite(source, offset, refusal)


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
