"""Check arguments against a method's annotations before a request is sent.

Otherwise a wrong argument is an error deep in httpx, or creates a session called ``3``. The check
raises an error that names the argument, its required type and a remedy. Most of this file builds
that message, which a library would not do. A check costs 33 us of a call that takes 1 ms or more.
beartype takes 3 us and pydantic's ``validate_call`` 5 us, but each costs 70 ms to import, pydantic
1.6 ms more for each method, and neither is in the base install.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import reprlib
import types
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from types import FunctionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from agentdouble import tracebacks
from doublecheck.errors import ArgumentError

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

# the arguments that say whose request it is, each with names that mean the same
_IDS: Mapping[str, tuple[str, ...]] = {
    "user_id": ("user", "uid"),
    "session_id": ("session", "sid", "usersession", "usersessionid"),
    "request_id": (),
}
_NEAR = 0.9  # how alike names are that differ in a slip of the pen
_NOT_TAKEN = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


def checked_class(kind: C) -> C:
    """Make the public methods of a class raise ArgumentError for arguments of a wrong type."""
    for name, method in list(vars(kind).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(kind, name, checked(method))
    return kind


def checked(function: F) -> F:
    """Make a function raise ArgumentError for arguments of a wrong type."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with _shortened():
            check(function, args, kwargs)
            return function(*args, **kwargs)

    @functools.wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with _shortened():
            check(function, args, kwargs)
            return await function(*args, **kwargs)

    return cast("F", awaited if inspect.iscoroutinefunction(function) else call)


class _shortened:  # noqa: N801 (a context manager; one of contextlib would be a frame more)
    """Hide our frames in the notebook traceback of errors that pass through, as of an interrupt."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _frames: object) -> None:
        if error is not None:
            tracebacks.shorten(error)


def check(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise ArgumentError if a function does not take these arguments."""
    signature, hints = _taken(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise ArgumentError(_misfit(function, signature, kwargs, str(error))) from None
    _refuse_misnamed(function, signature, kwargs)
    for name, value in given.items():
        hint = hints.get(name, Any)
        if not _fits(value, hint):
            raise ArgumentError(
                f"{function.__qualname__}() takes {name} as {_type_name(hint)}, and was given "
                f"{type(value).__name__}: {reprlib.repr(value)}.{_remedy(value, hint)}"
            )
        if isinstance(value, str) and not _sendable(value):
            raise ArgumentError(
                f"{function.__qualname__}() cannot send {name}: it has half a character (a lone "
                f"surrogate), which is not text: {reprlib.repr(value)}."
            )


@functools.cache
def _taken(function: Any) -> tuple[inspect.Signature, Mapping[str, Any]]:
    signature, known = inspect.signature(function), function.__globals__
    named = [one for one in signature.parameters.values() if one.kind not in _NOT_TAKEN]
    return signature, {
        one.name: _hint(one.annotation, known)
        for one in named
        if one.annotation is not inspect.Parameter.empty
    }


def _hint(annotation: Any, known: dict[str, Any]) -> Any:
    """Resolve an annotation; a name that only type checkers import stands for Any."""
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(holder, known)["it"]
    except NameError:
        return Any


def _misfit(
    function: Callable[..., Any],
    signature: inspect.Signature,
    kwargs: Mapping[str, Any],
    reason: str,
) -> str:
    known = [name for name in signature.parameters if name != "self"]
    unknown = next((name for name in kwargs if name not in known), None)
    if unknown is None:
        return f"{function.__qualname__}(): {reason}. It takes {', '.join(known)}."
    near = difflib.get_close_matches(unknown, known, n=1)
    meant = f"Did you mean {near[0]}?" if near else f"It takes {', '.join(known)}."
    return f"{function.__qualname__}() takes no argument {unknown}. {meant}"


def _refuse_misnamed(
    function: Callable[..., Any], signature: inspect.Signature, kwargs: Mapping[str, Any]
) -> None:
    """Raise ArgumentError if a further field of a request was meant to say whose request it is.

    Sent as a field, ``user="ann"`` would silently leave the request anonymous.
    """
    ids = [name for name in signature.parameters if name in (*_IDS, "session")]
    for name in kwargs:
        if not ids or name in signature.parameters:
            continue
        plain = re.sub(r"[^a-z]", "", name.lower())
        meant = next((id_ for id_ in _IDS if _means(plain, id_)), None)
        if meant is None:
            continue
        advice = (
            f"Did you mean {meant}?" if meant in ids else "The session says who asks, and where."
        )
        raise ArgumentError(
            f"{function.__qualname__}() would send {name} as a field of the body. {advice} A body "
            "with such a field can be sent by request()."
        )


def _means(plain: str, id_: str) -> bool:
    return plain in _IDS[id_] or bool(
        difflib.get_close_matches(plain, [id_.replace("_", "")], n=1, cutoff=_NEAR)
    )


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if hint is Any:
        return True
    if hint is float:
        return isinstance(value, Real)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and _items_fit(value, *inner)
    kind = origin or hint
    return not isinstance(kind, type) or isinstance(value, kind)


def _items_fit(items: Mapping[Any, Any], key: Any, value: Any) -> bool:
    return all(_fits(one, key) and _fits(other, value) for one, other in items.items())


def _sendable(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _type_name(hint: Any) -> str:
    """Return a type in plain words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_name(one) for one in inner)
    if origin is Literal:
        return f"one of {', '.join(map(repr, inner))}"
    if origin is not None and issubclass(origin, Mapping):
        return f"a mapping of {inner[0].__name__} to {getattr(inner[1], '__name__', 'anything')}"
    if hint is types.NoneType:
        return "None"
    return "a number" if hint is float else getattr(hint, "__name__", str(hint))


def _remedy(value: Any, hint: Any) -> str:
    """Return a hint on how to fix the argument, "" if there is none."""
    if isinstance(value, bytes) and _fits("", hint):
        return " Decode it: .decode()."
    if isinstance(value, str) and _fits(b"", hint):
        return " Encode it: .encode()."
    if _fits("", hint) and not isinstance(value, Mapping) and value is not None:
        return " Pass it as text: str(...)."
    return ""
