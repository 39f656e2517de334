"""Faults from JSON, TOML or arguments, and the schemas of their kinds."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from pydantic import ValidationError

from agentdouble.core.suggestions import did_you_mean
from agentdouble.errors import FaultError
from agentdouble.faults import operations
from agentdouble.faults.kinds import (
    Cut,
    Delay,
    ExpireInstance,
    Fail,
    FailStart,
    Fault,
    Gateway,
    KillKernel,
    LoseAnswer,
    Reset,
    WrongJson,
)
from agentdouble.faults.operations import FaultOperation

KINDS: dict[str, type[Fault]] = {
    str(cls.model_fields["kind"].default): cls
    for cls in (
        *(Fail, Gateway, Delay, Cut, LoseAnswer, Reset),
        *(WrongJson, KillKernel, ExpireInstance, FailStart),
    )
}


_ONLY = {
    "InvokeTool": "InvokeTool",
    "CreateSession": "CreateSession",
    "code": "operations that run code: InvokeTool, /v1/jupyter/..., /v1/code/...",
}
_building = threading.Lock()  # the first validation of a kind builds its model, in one thread


def parse(document: Mapping[str, Any], actions: Iterable[str]) -> tuple[Fault, FaultOperation]:
    """Return the fault that a document describes, and its operation; raise FaultError."""
    if not isinstance(document, Mapping):
        raise FaultError(f"A fault is an object with kind and operation, not {document!r:.80}.")
    kind = document.get("kind")
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        problem = f"There is no kind of fault {kind!r:.80}." if kind else "A fault needs its kind."
        raise FaultError(
            f"{problem}{did_you_mean(kind, KINDS)} It is one of {', '.join(KINDS)}.", "kind"
        )
    fields = tuple(cls.model_fields)
    for name in document:
        if name not in fields:
            problem = f"A fault of kind {kind!r} has no field {name!r:.80}."
            raise FaultError(
                f"{problem}{did_you_mean(name, fields)} It has {', '.join(fields)}.", str(name)
            )
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
    description = schema["description"].replace("``", "")  # its docstring, for people
    only = {} if kind.only is None else {"x-only-for": _ONLY[kind.only]}
    return {**schema, "description": description, **only}


def _check_fits(fault: Fault, operation: FaultOperation) -> None:
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
