"""``%sandbox faults``: arm the double's faults by name, and remove them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from doublecheck.client._sync.faults import PlatformFaults, Which
from doublecheck.magics.messages import refuse, refuse_unknown, write_line
from doublecheck.magics.options import Parser, words

if TYPE_CHECKING:
    from doublecheck.values.double import ArmedFault

BY_ID = ("disarm", "release")


def run(rest: str, faults: PlatformFaults) -> object:
    """Run a ``%sandbox faults`` command and return the value to show."""
    given = words(rest)
    if not given:
        return _armed(faults)
    action, *arguments = given
    if action == "clear" and not arguments:
        write_line(f"{len(faults.clear().faults)} taken away.")
        return None
    if action in BY_ID:
        return getattr(faults, action)(_fault(action, arguments, faults))
    if action not in kinds():
        refuse_unknown("fault", action, (*kinds(), "clear", *BY_ID))
    return _arm(action, arguments, faults)


def kinds() -> tuple[str, ...]:
    """Return the kinds of faults, each with the method that arms it."""
    methods = inspect.getmembers(PlatformFaults, inspect.isfunction)
    return tuple(name for name, method in methods if _arms(name, method))


def _arms(name: str, method: Callable[..., Any]) -> bool:
    return not name.startswith("_") and "which" in inspect.signature(method).parameters


def options_of(kind: str) -> tuple[str, ...]:
    """Return the options of a kind."""
    return tuple(f"--{name.replace('_', '-')}" for name, _ in _fields(kind))


def _armed(faults: PlatformFaults) -> object:
    armed = faults.plan().faults
    if not armed:
        write_line("No fault is armed. %sandbox faults fail InvokeTool --nth 2 arms one.")
    return armed or None


def _fault(action: str, arguments: list[str], faults: PlatformFaults) -> ArmedFault:
    armed = {fault.id: fault for fault in faults.plan().faults}
    id_ = arguments[0] if arguments else ""
    if len(arguments) != 1 or id_ not in armed:
        refuse(
            f"%sandbox faults {action} takes the id of one: {', '.join(armed) or 'none is armed'}."
        )
    return armed[id_]


def _arm(kind: str, arguments: list[str], faults: PlatformFaults) -> ArmedFault:
    given = vars(_parser(kind).parse_args(arguments))
    operation = given.pop("operation")
    fields = {name: value for name, value in given.items() if value is not None}
    armed: ArmedFault = getattr(faults, kind)(*filter(None, [operation]), **fields)
    return armed


def _parser(kind: str) -> Parser:
    parser = Parser(
        f"%sandbox faults {kind}",
        add_help=False,
        allow_abbrev=False,
        epilog=f"Write %sandbox faults {kind} OPERATION, and of these: {', '.join(options_of(kind))}",
    )
    operation = inspect.signature(getattr(PlatformFaults, kind)).parameters["operation"]
    optional = operation.default is not inspect.Parameter.empty
    parser.add_argument("operation", nargs="?" if optional else None)
    for (name, kinds_of_value), option in zip(_fields(kind), options_of(kind), strict=True):
        if kinds_of_value == "bool":
            parser.add_argument(option, dest=name, action="store_true", default=None)
        else:
            parser.add_argument(option, dest=name, type=_reader(kinds_of_value))
    return parser


def _fields(kind: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a kind, each with its annotation."""
    for name, parameter in inspect.signature(getattr(PlatformFaults, kind)).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            yield name, str(parameter.annotation)
    for name in Which.__annotations__:
        yield name, "int"


def _reader(annotation: str) -> Any:
    """Return the parser of a field: comma-separated lists, JSON numbers and mappings, or text."""
    if annotation.startswith("Sequence"):
        return lambda text: text.split(",")
    return str if annotation.startswith("str") else _json


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
