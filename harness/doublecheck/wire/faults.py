"""The faults of a double: arm, list, wait for, release and remove them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from doublecheck.errors import FaultError, NotADoubleError
from doublecheck.notebook_repr import counted
from doublecheck.target.target import Target
from doublecheck.values.double import ArmedFault, ArmedFaults
from doublecheck.wire import calls
from doublecheck.wire.admin import PREFIX
from doublecheck.wire.calls import Call

if TYPE_CHECKING:
    import httpx

_FAULTS = f"{PREFIX}/faults"
_MARGIN_S = 30.0


@dataclass(frozen=True, repr=False)
class FaultPlan:
    """The armed faults of a double, and the operations that were called while there were any."""

    faults: tuple[ArmedFault, ...]
    seen: Mapping[str, int]

    def __repr__(self) -> str:
        described = "".join(f"; {fault.described}" for fault in self.faults)
        return f"<FaultPlan {counted(len(self.faults), 'fault')}{described}>"


def arm(target: Target, document: Mapping[str, Any]) -> Call[ArmedFault]:
    """Return the call that arms a fault; it raises FaultError for a wrong one."""
    return _call(target, "POST", "", _read_fault, content=calls.json_content(document))


def plan(target: Target) -> Call[FaultPlan]:
    """Return the call that lists the armed faults."""
    return _call(target, "GET", "", _read_plan)


def clear(target: Target) -> Call[FaultPlan]:
    """Return the call that removes every fault."""
    return _call(target, "DELETE", "", _read_plan)


def disarm(target: Target, id_: str) -> Call[ArmedFault]:
    """Return the call that removes a fault."""
    return _call(target, "DELETE", f"/{id_}", _read_fault)


def release(target: Target, id_: str) -> Call[ArmedFault]:
    """Return the call that releases the calls which a fault delays."""
    return _call(target, "POST", f"/{id_}/release", _read_fault)


def wait(target: Target, id_: str, fired: int, within_s: float) -> Call[ArmedFault]:
    """Return the call that waits until a fault has fired, or raises FaultError."""

    def read(response: httpx.Response) -> ArmedFault:
        fault = _read_fault(response)
        if fault.fired < fired:
            raise FaultError(
                f"{fault.described} fired {fault.fired} of {fired} times within {within_s:g} s; "
                f"its operation was called {fault.calls} times."
            )
        return fault

    path = f"/{id_}?fired={fired}&within_s={within_s}"
    return _call(target, "GET", path, read, timeout_s=within_s + _MARGIN_S)


def _call(target: Target, method: str, path: str, read: Any, **request: Any) -> Call[Any]:
    if not target.admin:
        raise NotADoubleError("Arming faults", target.url)
    return Call(calls.request(target, method, _FAULTS + path, **request), read)


def _read_plan(response: httpx.Response) -> FaultPlan:
    document = calls.read_json(response)
    return FaultPlan(ArmedFaults(_fault(fault) for fault in document["faults"]), document["seen"])


def _read_fault(response: httpx.Response) -> ArmedFault:
    if response.status_code in (400, 404):
        raise FaultError(_refusal(response))
    return _fault(calls.read_json(response))


def _refusal(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"The double has no faults that can be armed: {response.text[:200]}"


def _fault(document: Mapping[str, Any]) -> ArmedFault:
    counts = {name: document[name] for name in ("calls", "met", "fired")}
    return ArmedFault(
        id=document["id"],
        kind=document["kind"],
        operation=document["operation"],
        described=document["described"],
        **counts,
    )
