"""The contents of a definition, the same for every version: operations, inputs, addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

from agentdouble.errors import DefinitionError

Json = dict[str, Any]
Where = Literal["path", "query", "header", "cookie"]
How = Literal["simple", "label", "matrix", "form", "deepObject", "json"]
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


@dataclass(frozen=True)
class Style:
    """How a value is written on the wire.

    ``delimiters`` separate the members of an array; the second one is for nested arrays.
    """

    how: How
    explode: bool = False
    delimiters: tuple[str, ...] = (",",)
    allow_reserved: bool = False


@dataclass(frozen=True)
class Parameter:
    """A parameter: ``argument`` is its name in the tool, ``name`` its name on the wire."""

    argument: str
    name: str
    where: Where
    style: Style


@dataclass(frozen=True)
class Field:
    """A form field; without a style, its value's type decides how it is written."""

    style: Style | None = None
    media_type: str | None = None
    is_file: bool = False


@dataclass(frozen=True)
class Body:
    """The body of a request.

    It comes from one argument, or, for a form of Swagger 2.0, from several: ``arguments`` maps
    their names to the names of the form's fields.
    """

    kind: Literal["json", "urlencoded", "multipart", "raw"]
    media_type: str
    argument: str | None
    arguments: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Field] = field(default_factory=dict)


@dataclass(frozen=True)
class Address:
    """The base URL of operations; it may have variables or be relative to the document's."""

    url: str
    variables: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Operation:
    """An operation, which is one tool; ``input_schema`` is self-contained JSON Schema 2020-12."""

    name: str
    title: str | None
    description: str
    method: str
    path: str
    input_schema: Json
    parameters: tuple[Parameter, ...]
    body: Body | None
    accept: str
    address: Address | None = None  # its own, in place of the definition's


@dataclass(frozen=True)
class ApiKeyScheme:
    """An API key that the definition declares: the ``name`` of a header, query key or cookie."""

    name: str
    where: Literal["header", "query", "cookie"]


@dataclass(frozen=True)
class Definition:
    """A definition that has been read.

    ``document`` can be stored and loaded again with ``validate=False``. ``origin`` is the URL that
    it came from; relative addresses are relative to it. ``warnings`` are what breaks the format's
    specification and changes no request, each with its place.
    """

    title: str
    version: str
    description: str
    operations: tuple[Operation, ...]
    address: Address | None
    api_keys: Mapping[str, ApiKeyScheme]
    document: Json = field(repr=False, compare=False)
    origin: str | None = field(default=None, repr=False)  # it may contain a password
    warnings: tuple[str, ...] = field(default=(), compare=False)


def is_header_name(text: str) -> bool:
    """Return whether a text can be the name of a header."""
    return _TOKEN.match(text) is not None


def mapping(value: Any) -> Json:
    """Return the object, or an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """Return the array, or an empty one for any other value."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return the string, or an empty one for any other value."""
    return value if isinstance(value, str) else ""


def boolean(value: Any) -> bool:
    """Return whether a value is the boolean true."""
    return value is True


class Addresses:
    """The base URL of each operation: the given one, else the definition's."""

    def __init__(
        self, definition: Definition, base_url: str | None, variables: Mapping[str, str]
    ) -> None:
        self._definition = definition
        self._base_url = _checked_url(base_url) if base_url is not None else None
        self._variables = variables
        for operation in definition.operations:
            self.of(operation)

    def of(self, operation: Operation) -> str:
        """Return an operation's base URL, without a slash at its end."""
        if self._base_url is not None:
            return self._base_url
        address = operation.address or self._definition.address or Address("/")
        url = _filled(address, self._variables)
        return _checked_url(urljoin(self._definition.origin or "", url))


def _filled(address: Address, variables: Mapping[str, str]) -> str:
    url = address.url
    for name, variable in address.variables.items():
        value = variables.get(name, text(variable.get("default")))
        allowed = listed(variable.get("enum"))
        if allowed and value not in allowed:
            names = ", ".join(map(repr, allowed))
            raise DefinitionError(
                f"the server variable {name!r} may be one of {names}, not {value!r}"
            )
        url = url.replace(f"{{{name}}}", value)
    return url


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or any(one <= " " or one == "\x7f" for one in url):
        raise DefinitionError(
            "it does not say where the API is: give base_url, an http(s) URL, such as "
            "'https://api.example.com/v1'"
        )
    if parts.query or parts.fragment:
        raise DefinitionError("the API's URL has a query or a fragment, which no path can follow")
    return url.rstrip("/")
