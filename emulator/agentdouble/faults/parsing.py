"""Parse a fault from JSON, TOML or arguments; an error suggests the nearest name."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from pydantic import ValidationError

from agentdouble.errors import FaultError
from agentdouble.faults import operations
from agentdouble.faults.operations import Operation
from agentdouble.faults.values import KINDS, Fault

_ONLY = {
    "InvokeTool": "InvokeTool",
    "code": "operations that run code: InvokeTool, /v1/jupyter/..., /v1/code/...",
}
_building = threading.Lock()  # the first validation of a kind builds its model, in one thread


def parse(document: Mapping[str, Any], actions: Iterable[str]) -> tuple[Fault, Operation]:
    """Return the fault that a document describes, and its operation; raise FaultError."""
    if not isinstance(document, Mapping):
        raise FaultError(f"A fault is an object with kind and operation, not {document!r:.80}.")
    kind = document.get("kind")
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        what = f"There is no kind of fault {kind!r:.80}." if kind else "A fault needs its kind."
        raise FaultError(f"{what}{_near(str(kind), KINDS)} It is one of {_list(KINDS)}.", "kind")
    known = tuple(cls.model_fields)
    for name in document:
        if name not in known:
            what = f"A fault of kind {kind!r} has no field {name!r:.80}."
            raise FaultError(f"{what}{_near(str(name), known)} It has {_list(known)}.", str(name))
    try:
        with _building:
            fault = cls.model_validate(dict(document))
    except ValidationError as error:
        _raise(cls, error)
    operation = operations.find(fault.operation, actions)
    _check_fits(fault, operation)
    return fault, operation


def schemas() -> Mapping[str, Any]:
    """Return the JSON Schema of each kind of fault; ``x-only-for`` says for which operations."""
    with _building:
        return {kind: _schema(cls) for kind, cls in KINDS.items()}


def _schema(kind: type[Fault]) -> dict[str, Any]:
    schema = kind.model_json_schema()
    said = schema["description"].replace("``", "")  # its docstring, for people
    only = {} if kind.only is None else {"x-only-for": _ONLY[kind.only]}
    return {**schema, "description": said, **only}


def _check_fits(fault: Fault, operation: Operation) -> None:
    fits = fault.only is None or operation.text == fault.only
    if fits or (fault.only == "code" and operation.runs_code):
        return
    raise FaultError(
        f"A fault of kind {fault.kind!r} is for {_ONLY[str(fault.only)]}; "
        f"not for {operation.text!r}.",
        "operation",
    )


def _raise(cls: type[Fault], error: ValidationError) -> NoReturn:
    first = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(str(part) for part in first["loc"][:1]) or "fields"
    kind = cls.model_fields["kind"].default
    reason = first["msg"].removeprefix("Value error, ")
    raise FaultError(f"The {name} of a fault of kind {kind!r}: {reason}.", name) from None


def _near(text: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(text[:100].lower(), known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
